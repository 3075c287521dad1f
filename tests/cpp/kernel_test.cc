// Every line of kernels.inc, run by force on every case of its operator, against the reference code. A line that no
// case exercises fails; one that this processor cannot run is a counted skip.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/kernel.h"
#include "cases/run_case.h"

namespace pinnace::testing {
namespace {

/// float32 arithmetic against double: sums of up to some thousand products, maps within 4e-7. Relative to the largest
/// magnitude of the output; cases that need more or less say so.
constexpr Tolerance kFloat32{.abs = 1e-6f, .rel = 2e-6f};

/// The line on the node, whose inputs in `values` are not known before it runs (the case's are all constants).
Status run_line(const CpuKernelLine& line, const NodeView& node, uint32_t values, std::span<const TensorView> in,
                std::span<const TensorView> out, int threads) {
  std::vector<const TensorType*> types, declared;
  std::vector<const void*> data;
  for (int i = 0; i < node.input_count(); ++i) {
    types.push_back(node.has_input(i) ? &node.input(i) : nullptr);
    data.push_back(i < 32 && (values >> i & 1) ? nullptr : node.input_data(i));
  }
  return run_forced(line, NodeView(node.node(), node.op(), types, data, declared), in, out, threads);
}

class KernelLine : public ::testing::TestWithParam<size_t> {};

TEST_P(KernelLine, MatchesTheReference) {
  const CpuKernelLine& line = cpu_kernels()[GetParam()];
  ASSERT_NE(find_op(line.op), nullptr) << line.op << " is not an operator";
  if (!cpu_runs(line.needs)) GTEST_SKIP() << "this processor does not have " << cpu_level_name(line.needs);
  int ran = 0;
  for (const CaseList& list : all_cases()) {
    if (line.op != list.op) continue;
    for (size_t i = 0; i < list.cases.size(); ++i) {
      auto built = build_case(list.op, list.cases[i], case_seed(list.op, i));
      ASSERT_TRUE(built.ok()) << built.status().message();
      if (built->expect.error) continue;
      const auto reference = run_case(*built);
      if (!reference.ok()) continue;  // the parity test reports it
      // Images are values of a run; beside one, other operands may be constants.
      const uint32_t images = line.kernel->layouts == Layouts::kDense ? 0 : line.kernel->images;
      for (const auto& [threads, values] : {std::pair(1, images), std::pair(3, images), std::pair(3, images & 1)}) {
        const auto got = run_case_with(
            [&, threads = threads, values = values](const NodeView& node, std::span<const TensorView> in,
                                                    std::span<const TensorView> out) {
              return run_line(line, node, values, in, out, threads);
            },
            *built);
        if (!got.ok() && got.status().code() == Code::kUnsupported) continue;  // the line does not take this case
        ASSERT_TRUE(got.ok()) << line.name << " on case " << i << " (" << list.cases[i].inputs
                              << "): " << got.status().message();
        ++ran;
        for (size_t k = 0; k < got->size(); ++k) {
          const CaseTensor want{true, (*reference)[k].type,
                                *Constant::copy_of((*reference)[k].bytes.data(), (*reference)[k].bytes.size())};
          const TensorView view{&(*got)[k].type, const_cast<std::byte*>((*got)[k].bytes.data())};
          Tolerance tolerance = list.cases[i].tolerance;
          tolerance.abs = std::max(tolerance.abs, kFloat32.abs);
          tolerance.rel = std::max({tolerance.rel, kFloat32.rel, line.kernel->error});
          EXPECT_EQ(difference(want, view, tolerance), "")
              << line.name << " on case " << i << " (" << list.cases[i].inputs << " | " << list.cases[i].attributes
              << ")";
        }
      }
    }
  }
  EXPECT_GT(ran, 0) << line.name << ": no case of " << line.op << " runs it";
}

INSTANTIATE_TEST_SUITE_P(Cpu, KernelLine, ::testing::Range<size_t>(0, cpu_kernels().size()), [](const auto& info) {
  const CpuKernelLine& line = cpu_kernels()[info.param];
  return std::string(line.op) + "_" + std::string(line.name);
});

TEST(Kernel, ForcedLinesRefuseOtherOperators) {
  const OpDef& op = *find_op("abs");
  Node node;
  node.op = "abs";
  node.name = "a";
  node.outputs = {0};
  const TensorType type{DType::kF32, {2}, nullptr};
  const TensorType* types[] = {&type};
  const NodeView view(node, op, types);
  EXPECT_EQ(run_forced(cpu_kernels()[0], view, {}, {}, 1).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace pinnace::testing
