// Kernels of tests/softmetal/ with inputs, launches and what plain loops make of the same inputs; run by softmetal's
// library.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/softmetal/device.h"

namespace pinnace {

/// One launch of a kernel, and what must be in its buffers afterwards.
struct SoftmetalCase {
  enum Type { kF32, kF16, kI32, kI16, kI8 };
  struct Expected {
    int buffer;
    Type type;
    std::vector<double> values;
    double tolerance;  ///< of the largest magnitude
  };
  std::string kernel;
  std::vector<std::vector<std::byte>> buffers;  ///< exactly what is bound; the last ones are results, filled with 0xff
  std::vector<std::byte> push;
  std::vector<int32_t> spec;
  std::array<uint32_t, 3> groups = {1, 1, 1}, local = {1, 1, 1};
  uint32_t threadgroup_bytes = 0;  ///< of [[threadgroup(0)]]
  uint32_t written = 0;            ///< bit n: the kernel writes buffer n
  std::vector<Expected> expected;
};

/// The library of test kernels; null where the build has none.
const SoftmetalLibrary* softmetal_test_kernels();

/// Cases of a kernel, sizes that fit its tiles and sizes that do not.
std::vector<SoftmetalCase> softmetal_cases(const std::string& kernel);
const std::vector<std::string>& softmetal_kernel_names();

/// Empty if the results are right, else "wrong answer: ...".
std::string wrong_answer(const SoftmetalCase& c, const std::vector<std::vector<std::byte>>& results);

/// Runs `kernel` on the case's inputs. Empty if all is well, the fault's sentence, or a wrong answer. `results`, if not
/// null, receives all buffers.
std::string run_softmetal(const SoftmetalCase& c, const std::string& kernel, const softmetal::Execution& execution,
                          std::vector<std::vector<std::byte>>* results = nullptr);

}  // namespace pinnace
