// Weights of NNAPI models whose bytes depend on the sizes of a run: plans of one session share none of them. And shapes
// alone, of which no mapping takes memory.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <numeric>
#include <string>
#include <vector>

#include "base/text.h"
#include "cpp/counted_memory.h"
#include "cpp/nnapi/nnapi_operation.h"
#include "cpp/text_program.h"
#include "nnapi/operations.h"
#include "nnapi/to_graph.h"

namespace pinnace {
namespace {

TEST(NnapiSizes, RowsCountedFromTheEndAreThoseOfTheirSize) {
  std::string indices;  // above 128 bytes, or the library copies them
  for (int i = 40; i > 0; --i) indices += str_cat(i < 40 ? "," : "", -i);
  const Program program = testing::program_of(str_cat(R"(graph "g" {
    symbol n 40..1000
    input %x : f32[n,4]
    const %last : i64[40] = {)",
                                                      indices, R"(}
    %y = gather(%x, %last) {axis=0}
    output "y" %y
  })"));
  Options options;
  options.target = "nnapi:fl8";
  options.fallback = false;
  auto session = Session::create(program, options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (int64_t n : {100, 60, 120, 100}) {
    std::vector<float> x(static_cast<size_t>(n) * 4);
    std::iota(x.begin(), x.end(), 0.0f);
    Tensor in;
    in.type = {DType::kF32, {Dim(n), Dim(4)}, nullptr};
    in.memory.host = reinterpret_cast<std::byte*>(x.data());
    in.memory.bytes = x.size() * sizeof(float);
    const std::vector<Tensor> inputs = {in};
    const Status status = session->run(inputs);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(std::memcmp(session->output(0).memory.host, x.data() + (n - 40) * 4, 640), 0) << n;
  }
}

// ---------------------------------------------------------------------------------------------- of a client's model

using nnapi::Lifetime;
using nnapi::OperandCode;

constexpr size_t kMost = 1 << 20;  ///< that a mapping may take in one block

/// A model made by hand: constants, inputs of any size.
struct HandMade {
  nnapi::Model model;
  std::deque<std::vector<int32_t>> kept;

  uint32_t operand(OperandCode type, std::vector<uint32_t> dims, Lifetime from, float scale = 0) {
    model.operands.push_back({.type = type, .dims = std::move(dims), .scale = scale, .lifetime = from});
    const auto index = static_cast<uint32_t>(model.operands.size() - 1);
    if (from == Lifetime::kInput) model.inputs.push_back(index);
    if (from == Lifetime::kOutput) model.outputs.push_back(index);
    return index;
  }
  uint32_t floats(std::vector<uint32_t> dims, Lifetime from) {
    return operand(OperandCode::kTensorFloat32, std::move(dims), from);
  }
  uint32_t constant(OperandCode type, std::vector<uint32_t> dims, std::vector<int32_t> words) {
    const uint32_t index = operand(type, std::move(dims), Lifetime::kConstant);
    model.operands[index].data = std::as_bytes(std::span(kept.emplace_back(std::move(words))));
    return index;
  }
  uint32_t ints(std::vector<uint32_t> dims, std::vector<int32_t> values) {
    const OperandCode type = dims.empty() ? OperandCode::kInt32 : OperandCode::kTensorInt32;
    return constant(type, std::move(dims), std::move(values));
  }
  void add(nnapi::Op op, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs) {
    model.operations.push_back({static_cast<int32_t>(op), std::move(inputs), std::move(outputs)});
    const Result<int> level = nnapi::validate_operation(model, model.operations.back());
    EXPECT_TRUE(level.ok()) << level.status().message();
  }
  /// Lowers it for the inputs' own shapes. What takes more than it may, and cannot be refused, is in `overdrawn`.
  Status map(size_t& overdrawn) {
    EXPECT_TRUE(nnapi::finish_model(model).ok());
    std::vector<nnapi::InputSpec> specs;
    for (uint32_t i : model.inputs) specs.push_back({model.operands[i].dims});
    const testing::MemoryWatch watch(kMost);
    auto mapped = nnapi::to_graph(model, specs);
    overdrawn = watch.overdrawn();
    return mapped.status();
  }
};

/// Pads as long as they may be, of a tensor as large as they leave room for: places would be 32 GB of numbers.
TEST(NnapiSizes, MirroredPadsOfHugeTensorsTakeNoMemory) {
  for (const int32_t mode : {0, 1}) {
    for (const uint32_t n : {1'400'000'000u, 2'000'000'000u}) {
      HandMade one;
      const uint32_t x = one.operand(OperandCode::kTensorQuant8Asymm, {n}, Lifetime::kInput, 0.5f);
      const auto pad = static_cast<int32_t>(n) - 1;
      const uint32_t pads = one.ints({1, 2}, {pad, pad}), how = one.ints({}, {mode});
      one.add(nnapi::Op::MIRROR_PAD, {x, pads, how},
              {one.operand(OperandCode::kTensorQuant8Asymm, {0}, Lifetime::kOutput, 0.5f)});
      size_t overdrawn = 0;
      const Status status = one.map(overdrawn);
      EXPECT_EQ(overdrawn, 0u);
      EXPECT_EQ(status.ok(), n < 1'431'000'000u) << status.message();
    }
  }
}

/// 3^40 elements are more than 64 bits count.
TEST(NnapiSizes, MirroredPadsOfManyDimensionsAreRefused) {
  HandMade one;
  const uint32_t x = one.floats(std::vector<uint32_t>(40, 1), Lifetime::kInput);
  const uint32_t pads = one.ints({40, 2}, std::vector<int32_t>(80, 1)), how = one.ints({}, {1});
  one.add(nnapi::Op::MIRROR_PAD, {x, pads, how}, {one.floats(std::vector<uint32_t>(40, 0), Lifetime::kOutput)});
  size_t overdrawn = 0;
  EXPECT_EQ(one.map(overdrawn).code(), Code::kInvalidArgument);
  EXPECT_EQ(overdrawn, 0u);
}

/// Axes that a client repeats a billion times, in a file with nothing in it.
TEST(NnapiSizes, ListsAsLongAsTensorsAreRefused) {
  constexpr size_t kBytes = size_t{1} << 31;
  void* const zeros = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  HandMade one;
  const uint32_t x = one.floats({2, 3}, Lifetime::kInput);
  const uint32_t axes = one.operand(OperandCode::kTensorInt32, {kBytes / 4}, Lifetime::kConstant);
  one.model.operands[axes].data = {static_cast<const std::byte*>(zeros), kBytes};
  const uint32_t keep = one.ints({}, {1});
  one.add(nnapi::Op::MEAN, {x, axes, keep}, {one.floats({0, 0}, Lifetime::kOutput)});
  size_t overdrawn = 0;
  const Status status = one.map(overdrawn);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("536870912"), std::string_view::npos) << status.message();
  EXPECT_EQ(overdrawn, 0u);
  munmap(zeros, kBytes);
}

/// Units of a recurrent cell whose other weights have sizes that data decides: as many as a detector finds.
TEST(NnapiSizes, BiasesThatAreNotThereAreTakenLikeOtherMemory) {
  HandMade one;
  constexpr uint32_t kUnits = 1u << 29;
  const uint32_t scores = one.floats({1, 2}, Lifetime::kInput), boxes = one.floats({1, 8}, Lifetime::kInput);
  const uint32_t batch = one.operand(OperandCode::kTensorInt32, {1}, Lifetime::kInput);
  const auto real = [&] { return one.constant(OperandCode::kFloat32, {}, {0}); };
  const uint32_t found = one.operand(OperandCode::kTensorInt32, {0}, Lifetime::kTemporary);
  one.add(nnapi::Op::BOX_WITH_NMS_LIMIT,
          {scores, boxes, batch, real(), one.ints({}, {1}), one.ints({}, {0}), real(), real(), real()},
          {one.floats({0}, Lifetime::kTemporary), one.floats({0, 0}, Lifetime::kTemporary), found,
           one.operand(OperandCode::kTensorInt32, {0}, Lifetime::kTemporary)});
  const uint32_t rows = one.floats({0, 0}, Lifetime::kTemporary), r = one.floats({0, 0}, Lifetime::kTemporary);
  one.add(nnapi::Op::GATHER, {one.floats({1, 1}, Lifetime::kInput), one.ints({}, {0}), found}, {rows});
  one.add(nnapi::Op::GATHER, {rows, one.ints({}, {1}), found}, {r});
  const uint32_t x = one.floats({1, 1}, Lifetime::kInput), w = one.floats({kUnits, 1}, Lifetime::kInput);
  const uint32_t b = one.floats({kUnits}, Lifetime::kInput), h = one.floats({1, kUnits}, Lifetime::kInput);
  one.add(nnapi::Op::RNN, {x, w, r, b, h, one.ints({}, {0})},
          {one.floats({0, 0}, Lifetime::kOutput), one.floats({0, 0}, Lifetime::kOutput)});
  size_t overdrawn = 0;
  const Status status = one.map(overdrawn);
  EXPECT_EQ(overdrawn, 0u);
  if (testing::kMemoryIsCounted) {
    EXPECT_EQ(status.code(), Code::kOutOfMemory) << status.message();
  }
}

/// An axis of more places than are kept as a list.
TEST(NnapiSizes, MirroredPadsOfLongAxesTakeTheRightPlaces) {
  using namespace nnapi_client;
  constexpr int kLong = 70'000;
  Floats x(kLong);
  std::iota(x.begin(), x.end(), 0.0f);
  for (const int mode : {0, 1}) {
    for (const auto& [before, after] : {std::pair{3, 2}, {0, 1}, {kLong - 1, 0}, {kLong - 1, kLong - 1}}) {
      Operation op;
      op.floats({kLong}, x).ints({1, 2}, {before, after}).integers({mode}).gives(kTensorFloat32, 1).done(104);
      const Compiled compiled(op);
      Execution run(compiled);
      Floats y(static_cast<size_t>(before + kLong + after), -1);
      ASSERT_EQ(run.input(0, x) + run.output(0, y), 0);
      ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
      int wrong = 0;
      for (int i = -before; i < kLong + after; ++i) {
        const int place = i < 0 ? -i - mode : i >= kLong ? 2 * kLong - 2 - i + mode : i;
        wrong += y[static_cast<size_t>(i + before)] != static_cast<float>(place);
      }
      EXPECT_EQ(wrong, 0) << mode << ": " << before << ' ' << after;
    }
  }
}

/// Places as the definition has them: x of dimension d is 10^(2 - d) times the place along d.
TEST(NnapiSizes, MirroredPadsTakeTheRightPlaces) {
  using namespace nnapi_client;
  const auto place = [](int i, int n, int mode) { return i < 0 ? -i - mode : i >= n ? 2 * n - 2 - i + mode : i; };
  for (const int mode : {0, 1}) {
    const int most[2] = {2 + mode, 1 + mode};  // of 3 rows and 2 columns
    for (int pads = 0; pads < 36; ++pads) {
      const int p[4] = {pads % 4, pads / 4 % 3, pads / 12 % 3, pads % 2};
      if (p[0] > most[0] || p[1] > most[0] || p[2] > most[1] || p[3] > most[1]) continue;
      Operation op;
      op.floats({3, 2}, {0, 1, 10, 11, 20, 21}).ints({2, 2}, {p[0], p[1], p[2], p[3]}).integers({mode});
      op.gives(kTensorFloat32, 2).done(104);
      const Ran ran(op);
      ASSERT_EQ(ran.code, 0);
      Floats want;
      for (int i = -p[0]; i < 3 + p[1]; ++i) {
        for (int k = -p[2]; k < 2 + p[3]; ++k) {
          want.push_back(static_cast<float>(10 * place(i, 3, mode) + place(k, 2, mode)));
        }
      }
      EXPECT_EQ(ran.values<float>(0), want) << mode << ": " << p[0] << ' ' << p[1] << ' ' << p[2] << ' ' << p[3];
    }
  }
}

}  // namespace
}  // namespace pinnace
