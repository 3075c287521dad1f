// The trust in a device: before a kernel serves a model it has to give the reference code's answers on small cases
// (known_answers.inc). Results are kept for the process, and with the pipelines in the folder PINNACE_GPU_CACHE.
#pragma once

#include <map>
#include <mutex>
#include <set>

#include "backends/gpu/context.h"

namespace pinnace::gpu {

/// Results for one device, driver and set of kernels.
struct SelfChecks {
  using Results = std::map<std::string, std::string, std::less<>>;
  WorkMutex running;  ///< held while the tests run: whoever needs their results waits
  std::mutex mutex;   ///< of what follows
  Results results;    ///< by kernel, "conv_nc4hw4_f16": empty, or what was wrong
  /// Those of `results` that a compiler refused: not stored, for a compiler that was interrupted may take them next
  /// time.
  std::set<std::string, std::less<>> refused;
};

struct KnownAnswerTest {
  KernelId kernel;
  const char* graph;
};
/// In the order of known_answers.inc.
std::span<const KnownAnswerTest> known_answer_tests();

/// Those of `kernels` that do not give the right answers on this device, each with what was wrong: "element 3 is 1.5,
/// must be 1.25 within 2e-05", or why the device's compiler refuses one. Runs the tests whose results are not known
/// yet, all kernels in the storage type that their key states. kOutOfMemory, kDeviceLost, and as WorkMutex::lock():
/// nothing was found out.
Result<std::map<KernelId, std::string>> failed_self_checks(const std::shared_ptr<Context>& context,
                                                           const std::set<std::pair<KernelId, bool>>& kernels);

/// The kernels that the lowering of a known-answer test uses, for tests.
Result<std::set<KernelId>> kernels_of(const KnownAnswerTest& test, const std::shared_ptr<Context>& context, bool f16);

}  // namespace pinnace::gpu
