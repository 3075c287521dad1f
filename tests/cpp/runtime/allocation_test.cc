// A run with sizes that were seen before allocates nothing, and a first run allocates what the plan says: counted by
// replacing operator new of the test program while a counter is on.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include <pinnace/model.h>

#include "base/status.h"
#include "cases/run_case.h"
#include "cpp/counted_memory.h"
#include "graph/graph.h"

namespace pinnace {
namespace {

TEST(Allocation, ACachedShapeAllocatesNothingAndThePlanSaysWhatTheFirstRunTook) {
  if (!testing::kMemoryIsCounted) GTEST_SKIP() << "allocations are counted without sanitizers only";
  LoadOptions options;
  options.disabled_passes = {"all"};
  auto model = Model::parse(R"(graph "g" {
    symbol n 1..64
    input %x : f32[n,4,16,16]
    %a : f32[n,4,16,16] = relu(%x)
    %b : f32[n,4,16,16] = sigmoid(%a)
    %c : f32[n,4,16,16] = add(%b, %a)
    %y : f32[n,4,1,1] = global_average_pool(%c)
    output "y" %y
  })",
                            options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::create(*model->build(), {.threads = 1});
  ASSERT_TRUE(session.ok());
  std::vector<float> x(64 * 4 * 256, 1.0f);
  const auto input = [&](int64_t n) {
    Tensor t;
    t.type.shape = {n, 4, 16, 16};
    t.memory.host = x.data();
    t.memory.bytes = x.size() * sizeof(float);
    return t;
  };
  const std::vector small = {input(8)}, large = {input(64)};
  size_t largest = 0;
  Status first;
  {
    const testing::MemoryWatch watch;
    first = session->run(large);
    largest = watch.largest();
  }
  ASSERT_TRUE(first.ok()) << first.message();
  // The one large block is the session's memory; everything else is bookkeeping.
  EXPECT_EQ(static_cast<int64_t>(largest), (session->plan().peak_bytes + 63) / 64 * 64);
  // relu's and sigmoid's results are needed at once, add takes one of them over: two of the three, and the pooled
  // output.
  EXPECT_LT(session->plan().peak_bytes, 3 * 64 * 4 * 256 * 4);
  ASSERT_TRUE(session->run(small).ok());
  for (const auto& in : {large, small}) {
    Status status;
    size_t allocations = 0;
    {
      const testing::MemoryWatch watch;
      status = session->run(in);
      allocations = watch.allocations();
    }
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(allocations, 0u);
    // Neither does one into the caller's memory.
    std::vector<float> y(64 * 4);
    Tensor output;
    output.type.shape = {in[0].type.shape[0], 4, 1, 1};
    output.memory = {y.data(), y.size() * sizeof(float)};
    const std::vector out = {output};
    ASSERT_TRUE(session->run(in, out).ok());
    {
      const testing::MemoryWatch watch;
      status = session->run(in, out);
      allocations = watch.allocations();
    }
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(allocations, 0u);
  }
}

struct LaterRun {
  std::string kernel;  ///< what runs the case's node on the CPU; empty: the case does not run, or not on a kernel
  int64_t blocks = 0;  ///< taken by the third run
};

/// Reference code takes memory as it needs it, so do control flow and sizes that depend on the inputs' elements.
bool is_kernel(const Placement& placed) {
  return placed.backend == "cpu" && placed.kernel != "reference" && placed.kernel != "chosen when sizes are known";
}

/// Inputs of the case that are constants of the program: none, or all but the first, as weights are, which kernels
/// pack.
enum class Constants { kNone, kAllButTheFirst };

LaterRun later_run(testing::BuiltCase built, Constants constants, int threads) {
  LoadOptions options;
  options.disabled_passes = {"all"};
  Graph& graph = built.graph;
  const size_t given = constants == Constants::kNone ? graph.inputs.size() : std::min<size_t>(1, graph.inputs.size());
  size_t input = 0;
  for (const testing::CaseTensor& t : built.inputs) {
    if (!t.present) continue;
    if (input >= given) graph.value(graph.inputs[input]).constant = t.bytes;
    ++input;
  }
  graph.inputs.resize(given);
  auto model = Model::parse(print(graph), options);
  if (!model.ok()) return {};
  const auto program = model->build();
  if (!program.ok()) return {};
  auto session = Session::create(*program, {.threads = threads});
  if (!session.ok()) return {};
  std::vector<Tensor> inputs;
  for (const testing::CaseTensor& t : built.inputs) {
    if (!t.present || inputs.size() == given) continue;
    Tensor& tensor = inputs.emplace_back();
    tensor.type = t.type;
    tensor.memory.host = const_cast<std::byte*>(t.bytes->data());
    tensor.memory.bytes = t.bytes->bytes();
  }
  const std::vector<Placement> before = session->placement();
  for (int warm = 0; warm < 2; ++warm) {
    if (!session->run(inputs).ok()) return {};
  }
  LaterRun later;
  {
    const testing::MemoryWatch watch;
    if (!session->run(inputs).ok()) return {};
    later.blocks = static_cast<int64_t>(watch.allocations());
  }
  const std::vector<Placement> after = session->placement();
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    // Control flow allocates, whatever runs inside of it, and so do nodes whose kernel each run chooses.
    if (is_kernel(before[i]) && is_kernel(after[i]) && after[i].path.empty()) later.kernel = after[i].kernel;
  }
  return later;
}

TEST(Allocation, NoKernelAllocatesInALaterRun) {
  if (!testing::kMemoryIsCounted) GTEST_SKIP() << "allocations are counted without sanitizers only";
  std::map<std::string, int> ran;
  std::map<std::string, int64_t> blocks;
  for (const testing::CaseList& list : testing::all_cases()) {
    for (size_t i = 0; i < list.cases.size(); ++i) {
      for (const Constants constants : {Constants::kNone, Constants::kAllButTheFirst}) {
        for (const int threads : {1, 3}) {
          auto built = testing::build_case(list.op, list.cases[i], testing::case_seed(list.op, i));
          if (!built.ok()) continue;
          const LaterRun later = later_run(std::move(*built), constants, threads);
          if (later.kernel.empty()) continue;
          ++ran[later.kernel];
          int64_t& most = blocks[str_cat(later.kernel, " on ", list.op)];
          most = std::max(most, later.blocks);
        }
      }
    }
  }
  for (const auto& [kernel, most] : blocks) EXPECT_EQ(most, 0) << kernel;
  EXPECT_GT(ran.size(), 50u) << "kernels that some case runs";
}

/// `text` with constants of so many equal elements at its begin, for weights.
std::string with_constants(std::string text,
                           std::initializer_list<std::tuple<const char*, const char*, int>> constants) {
  for (const auto& [name, type, count] : constants) {
    std::string line = str_cat("const %", name, " : ", type, " = {");
    for (int i = 0; i < count; ++i) line += i ? ",1" : "1";
    text.insert(text.find('\n') + 1, line + "}\n");
  }
  return text;
}

/// Kernels that follow their operand's layout run between convolutions alone.
void expect_no_blocks(const std::string& text, std::initializer_list<const char*> kernels) {
  LoadOptions options;
  options.disabled_passes = {"all"};
  const auto model = Model::parse(text, options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto program = model->build();
  ASSERT_TRUE(program.ok()) << program.status().message();
  for (const int threads : {1, 3}) {
    auto session = Session::create(*program, {.threads = threads});
    ASSERT_TRUE(session.ok()) << session.status().message();
    std::vector<float> x(8 * 16 * 16, 0.5f);
    Tensor tensor;
    tensor.type = session->inputs()[0].type;
    tensor.memory.host = x.data();
    tensor.memory.bytes = static_cast<size_t>(tensor.type.bytes());
    for (int warm = 0; warm < 2; ++warm) ASSERT_TRUE(session->run(std::vector{tensor}).ok());
    const std::vector inputs = {tensor};
    Status status;
    size_t blocks = 0;
    {
      const testing::MemoryWatch watch;
      status = session->run(inputs);
      blocks = watch.allocations();
    }
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(blocks, 0u);
    std::string all;
    for (const Placement& placed : session->placement()) all += placed.kernel + " ";
    for (const char* kernel : kernels) EXPECT_NE(all.find(kernel), std::string::npos) << kernel << " in " << all;
  }
}

TEST(Allocation, NoKernelAllocatesBetweenConvolutions) {
  if (!testing::kMemoryIsCounted) GTEST_SKIP() << "allocations are counted without sanitizers only";
  expect_no_blocks(
      with_constants(R"(graph "floats" {
    input %x : f32[1,8,16,16]
    const %sizes : i64[4] = {1,8,16,16}
    %a : f32[1,8,16,16] = conv(%x, %w)
    %b : f32[1,8,8,8] = max_pool(%a) {kernel_shape=[2,2], strides=[2,2]}
    %c : f32[1,8,8,8] = conv(%b, %w)
    %d : f32[1,8,8,8] = average_pool(%c) {kernel_shape=[3,3], pads=[1,1,1,1]}
    %e : f32[1,8,8,8] = conv(%d, %w)
    %f : f32[1,8,8,8] = sigmoid(%e)
    %g : f32[1,8,8,8] = erf(%f)
    %h : f32[1,8,8,8] = mul(%g, %e)
    %i : f32[1,16,8,8] = concat(%h, %e) {axis=1}
    %j : f32[1,8,8,8] = conv(%i, %w2)
    %k : f32[1,8,16,16] = resize(%j, none, none, %sizes)
    %l : f32[1,8,16,16] = conv(%k, %d1) {pads=[1,1,1,1], group=8}
    %m : f32[1,8,16,16] = softmax(%l) {axis=1}
    %n : f32[1,8,16,16] = conv(%m, %w)
    %o : f32[1,8,1,1] = global_average_pool(%n)
    output "o" %o
    output "n" %n
  })",
                     {{"w", "f32[8,8,1,1]", 64}, {"w2", "f32[8,16,1,1]", 128}, {"d1", "f32[8,1,3,3]", 72}}),
      {"conv_nhwc_f32", "max_pool_nhwc", "average_pool_nhwc"});
  expect_no_blocks(with_constants(R"(graph "bytes" {
    input %x : u8[1,8,16,16]{scale 0.1, zero 128}
    %a : u8[1,8,16,16]{scale 0.2, zero 128} = conv(%x, %w)
    %b : u8[1,8,8,8]{scale 0.2, zero 128} = max_pool(%a) {kernel_shape=[2,2], strides=[2,2]}
    %c : u8[1,8,8,8]{scale 0.2, zero 128} = conv(%b, %w)
    %d : u8[1,8,8,8]{scale 0.2, zero 128} = average_pool(%c) {kernel_shape=[3,3], pads=[1,1,1,1]}
    %e : u8[1,8,8,8]{scale 0.2, zero 128} = conv(%d, %w)
    %f : u8[1,8,8,8]{scale 0.01, zero 0} = sigmoid(%e)
    %g : u8[1,8,8,8]{scale 0.2, zero 128} = mul(%f, %e)
    %h : u8[1,8,8,8]{scale 0.2, zero 128} = add(%g, %e)
    %i : u8[1,8,8,8]{scale 0.2, zero 128} = conv(%h, %w)
    %o : u8[1,8,1,1]{scale 0.2, zero 128} = global_average_pool(%i)
    output "o" %o
    output "i" %i
  })",
                                  {{"w", "i8[8,8,1,1]{scale 0.05, zero 0}", 64}}),
                   {"conv_nhwc_i8", "max_pool_nhwc_i8", "average_pool_nhwc_i8"});
}

}  // namespace
}  // namespace pinnace
