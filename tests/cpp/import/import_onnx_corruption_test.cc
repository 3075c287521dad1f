// A small .onnx model with many kinds of node, damaged: every truncation and seeded flips of bits. Whatever is loaded
// must verify, and build and run or say why not, within the importers' bounds of time and memory.
#include <pinnace/model.h>

#include "cases/parse_case.h"
#include "convert/model_data.h"
#include "cpp/guarded.h"
#include "cpp/import/onnx_fixture.h"

namespace pinnace::testing {
namespace {
using Accept = std::function<void()>;

constexpr size_t kFlips = 2000;
// Larger inputs and plans are legal, and say nothing of damage.
constexpr int64_t kLargestRun = 16 << 20;

class OnnxCorruption : public OnnxTest {
 protected:
  void SetUp() override {
    OnnxTest::SetUp();
    make_varied_model();
    good_ = model_.SerializeAsString();
  }

  static void add_ints(proto::NodeProto& node, const std::string& name, std::vector<int64_t> values) {
    auto& a = add_attr(node, name);
    a.set_type(proto::AttributeProto::INTS);
    for (int64_t v : values) a.add_ints(v);
  }
  void add_i64(const std::string& name, std::vector<int64_t> values) {
    auto& t = *graph().add_initializer();
    t.set_name(name);
    t.set_data_type(proto::TensorProto::INT64);
    t.add_dims(static_cast<int64_t>(values.size()));
    for (int64_t v : values) t.add_int64_data(v);
  }

  /// Convolution, pooling, quantisation, shapes that are computed, control flow, outputs whose size depends on data.
  void make_varied_model() {
    add_input("x", {-1, 2, 4, 4});
    add_input("c", {}, proto::TensorProto::BOOL);
    add_input("k", {}, proto::TensorProto::INT64);
    add_floats("w", {2, 2, 3, 3}, std::vector<float>(36, 0.25f));
    add_floats("scale", {}, {0.5f});
    add_floats("gw", {8, 4}, std::vector<float>(32, 0.125f));
    add_floats("scales", {4}, {1, 1, 2, 2});
    add_i64("shape", {0, -1});
    add_i64("starts", {0});
    add_i64("ends", {2});
    add_i64("axes", {1});
    add_i64("picked", {5, 0});
    add_i64("pads", {0, 1, 0, 0});
    add_ints(add_node(graph(), "Conv", {"x", "w"}, {"conv"}), "pads", {1, 1, 1, 1});
    add_node(graph(), "Relu", {"conv"}, {"r"});
    auto& pool = add_node(graph(), "MaxPool", {"r"}, {"p"});
    add_ints(pool, "kernel_shape", {2, 2}), add_ints(pool, "strides", {2, 2});
    add_node(graph(), "QuantizeLinear", {"p", "scale"}, {"q"});
    add_node(graph(), "DequantizeLinear", {"q", "scale"}, {"d"});
    add_node(graph(), "Reshape", {"d", "shape"}, {"f"});
    add_node(graph(), "Gemm", {"f", "gw"}, {"g"});
    add_node(graph(), "Slice", {"g", "starts", "ends", "axes"}, {"s"});
    add_int(add_node(graph(), "Concat", {"g", "s"}, {"cat"}), "axis", 1);
    add_ints(add_node(graph(), "Transpose", {"cat"}, {"t"}), "perm", {1, 0});
    add_node(graph(), "Gather", {"t", "picked"}, {"ga"});
    add_int(add_node(graph(), "Softmax", {"ga"}, {"sm"}), "axis", 0);
    auto& choice = add_node(graph(), "If", {"c"}, {"i"});
    auto& yes = add_graph(choice, "then_branch");
    add_node(yes, "Neg", {"sm"}, {"a"});
    yes.add_output()->set_name("a");
    auto& no = add_graph(choice, "else_branch");
    add_node(no, "Add", {"sm", "sm"}, {"b"});
    no.add_output()->set_name("b");
    auto& body = add_graph(add_node(graph(), "Loop", {"k", "", "i"}, {"l", "all"}), "body");
    set_type(*body.add_input(), "at", proto::TensorProto::INT64, {});
    set_type(*body.add_input(), "go", proto::TensorProto::BOOL, {});
    set_type(*body.add_input(), "v", proto::TensorProto::FLOAT, {2, -1});
    add_node(body, "Identity", {"go"}, {"on"});
    add_node(body, "Add", {"v", "v"}, {"v2"});
    for (const char* name : {"on", "v2", "v2"}) body.add_output()->set_name(name);
    add_node(graph(), "Pad", {"l", "pads"}, {"y"});
    add_node(graph(), "Resize", {"r", "", "scales"}, {"large"});
    add_ints(add_node(graph(), "ReduceMean", {"large"}, {"mean"}), "axes", {2, 3});
    add_node(graph(), "NonZero", {"sm"}, {"where"});
    add_int(add_node(graph(), "Cast", {"mean"}, {"half"}), "to", proto::TensorProto::FLOAT16);
    for (const char* name : {"y", "all", "half", "where"}) add_output(name);
  }

  std::string flipped(size_t index) const {
    Random random(test_seed() * 7919 + index);
    std::string bytes = good_;
    const auto bit = static_cast<size_t>(random.integer(0, static_cast<int64_t>(bytes.size()) * 8 - 1));
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    return bytes;
  }
  Result<Model> load(const std::string& bytes) {
    write(path(), bytes);
    return Model::load(path().string());
  }

  /// What is wrong with the answer to damaged bytes, empty if nothing is.
  std::string judge(const std::string& bytes, const Accept& accept) {
    const auto model = load(bytes);
    if (!model.ok()) return untyped(model.status(), {Code::kCorruptFile, Code::kUnsupported, Code::kConversion});
    const Status status = verify(model->data().graph);
    if (!status.ok()) return str_cat("does not verify: ", status.message());
    accept();
    return {};
  }
  /// The same, and runs it.
  std::string judge_running(const std::string& bytes, const Accept& accept) {
    const auto model = load(bytes);
    if (!model.ok()) return {};
    const auto program = model->build();
    if (!program.ok()) return untyped(program.status(), {Code::kUnsupported, Code::kOutOfMemory});
    auto session = Session::create(*program, {.threads = 1});
    // No size of a dynamic dimension may fit the model.
    const auto codes = {Code::kInvalidArgument, Code::kUnsupported, Code::kOutOfMemory};
    if (!session.ok()) return untyped(session.status(), codes);
    for (const int fill : {0, 1}) {
      const std::string wrong = run_on(*session, fill, accept);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  std::string good_;

 private:
  static std::string untyped(const Status& status, std::initializer_list<Code> codes) {
    if (std::find(codes.begin(), codes.end(), status.code()) == codes.end() || status.message().empty()) {
      return str_cat("ends in ", code_name(status.code()), ": ", status.message());
    }
    return {};
  }

  /// One run on inputs that are all 0 or all 1; symbols take their smallest size, or 1.
  static std::string run_on(Session& session, int fill, const Accept& accept) {
    std::vector<std::vector<std::byte>> memory;
    std::vector<Tensor> inputs;
    for (const TensorSpec& spec : session.inputs()) {
      Tensor t{spec.type, {}};
      for (Dim& d : t.type.shape) {
        if (d.symbol >= 0) d = Dim(std::max<int64_t>(1, session.symbols()[static_cast<size_t>(d.symbol)].min));
      }
      if (!t.type.concrete() || t.type.bytes() > kLargestRun) return {};
      auto& bytes = memory.emplace_back(static_cast<size_t>(t.type.bytes()));
      const size_t width = static_cast<size_t>(std::max(1, dtype_bits(t.type.dtype) / 8));
      const float one = 1;
      for (size_t i = 0; fill && i + width <= bytes.size(); i += width) {
        t.type.dtype == DType::kF32 ? void(std::memcpy(&bytes[i], &one, 4)) : void(bytes[i] = std::byte{1});
      }
      t.memory.host = bytes.data(), t.memory.bytes = bytes.size();
      inputs.push_back(std::move(t));
    }
    // A trip count or a size may be anything: what takes long is stopped as an application would.
    auto run = session.submit(inputs);
    if (!run.ok()) return untyped(run.status(), {Code::kInvalidArgument, Code::kUnsupported, Code::kOutOfMemory});
    for (int i = 0; i < 3000 && !run->done(); ++i) ::usleep(i < 100 ? 10 : 100);
    run->cancel();
    const Status status = run->wait();
    accept();
    if (status.ok()) return {};
    return untyped(status, {Code::kInvalidArgument, Code::kUnsupported, Code::kOutOfMemory, Code::kCancelled});
  }
};

TEST_F(OnnxCorruption, TheModelItselfRuns) {
  size_t runs = 0;
  EXPECT_EQ(judge_running(good_, [&] { ++runs; }), "");
  EXPECT_EQ(runs, 2u);
  const auto model = load(good_);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_GE(model->nodes().size(), 15u);
}

TEST_F(OnnxCorruption, EveryTruncationIsAnErrorOrAModelThatRuns) {
  const auto body = [&](size_t length, const Accept& accept) {
    const std::string bytes = good_.substr(0, length);
    const std::string wrong = judge(bytes, accept);
    return wrong.empty() ? judge_running(bytes, [] {}) : wrong;
  };
  const Observed seen = run_guarded(good_.size(), {}, body);
  EXPECT_EQ(seen.failure, "");
  EXPECT_LT(seen.accepted, 60u) << "only fields after the graph may be missing";
}

TEST_F(OnnxCorruption, EveryFlippedBitIsAnErrorOrAModelThatVerifies) {
  const Allowance allowance{.memory = 16 * static_cast<int64_t>(good_.size()) + (64 << 20)};
  const Observed seen =
      run_guarded(kFlips, allowance, [&](size_t i, const Accept& accept) { return judge(flipped(i), accept); });
  EXPECT_EQ(seen.failure, "") << "seed " << test_seed();
  EXPECT_GT(seen.accepted, kFlips / 20) << "weights and names may be anything";
  EXPECT_LT(seen.accepted, kFlips * 19 / 20);
  RecordProperty("accepted", static_cast<int>(seen.accepted));
  RecordProperty("peak_bytes", std::to_string(seen.peak));
  RecordProperty("slowest_s", std::to_string(seen.slowest));
}

TEST_F(OnnxCorruption, WhatIsAcceptedRuns) {
  const Observed seen =
      run_guarded(kFlips, {}, [&](size_t i, const Accept& accept) { return judge_running(flipped(i), accept); });
  EXPECT_EQ(seen.failure, "") << "seed " << test_seed();
  EXPECT_GT(seen.accepted, kFlips / 20);
  RecordProperty("runs", static_cast<int>(seen.accepted));
  RecordProperty("slowest_s", std::to_string(seen.slowest));
}

}  // namespace
}  // namespace pinnace::testing
