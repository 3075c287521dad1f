// Every call that makes one model of another, and models in memory, while each allocation fails once: the typed error,
// the model that was asked is as it was, and asked again it gives the same.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>

#include <pinnace/model.h>
#include <pinnace/preprocess.h>

#include "base/status.h"
#include "cpp/fault_harness.h"

namespace pinnace::testing {
namespace {

constexpr const char* kNet = R"(graph "net" {
  symbol n 1..4
  input %x : f32[n,4]
  const %w : f32[4,8] = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5}
  const %b : f32[8] = {1,-1,1,-1,1,-1,1,-1}
  %m : f32[n,8] = mat_mul(%x, %w)
  %s : f32[n,8] = add(%m, %b)
  %r : f32[n,8] = relu(%s)
  %q : f32[n,8] = softmax(%r) {axis=1}
  output "y" %q
})";
constexpr const char* kPicture = R"(graph "picture" {
  input %x : f32[1,3,4,4]
  const %w : f32[2,3,3,1] = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}
  %c : f32[1,2,2,4] = conv(%x, %w)
  %r : f32[1,2,2,4] = relu(%c)
  output "y" %r
})";
constexpr const char* kSound = R"(graph "sound" {
  symbol t 3..64
  input %x : f32[1,2,t]
  const %w : f32[2,2,3] = {1,2,3,4,5,6,7,8,9,1,2,3}
  %c : f32[1,2,?] = conv(%x, %w)
  %r : f32[1,2,?] = relu(%c)
  output "y" %r
})";

class ModelFaults : public ::testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    if (!kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
  }
  static Model parsed(const char* text) {
    auto model = Model::parse(text);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(*model);
  }
  /// What gives a model; `of` is asked for it and stays as it is.
  static void make(const std::string& name, const Model* of, const std::function<Result<Model>()>& call) {
    const std::string before = of ? of->text() : "";
    std::string right;
    {
      const auto made = call();
      ASSERT_TRUE(made.ok()) << name << ": " << made.status().message();
      right = made->text();
    }
    std::optional<Model> made;
    fail_everywhere({name, [] {},
                     [&] {
                       auto result = call();
                       if (result) made.emplace(std::move(*result));
                       return result.status();
                     },
                     [&](const Status& status) -> std::string {
                       if (status.ok() && made->text() != right) return "another model was made";
                       if (of && of->text() != before) return "the model that was asked has changed";
                       const auto again = call();
                       if (!again) return "it cannot be made any more: " + again.status().message();
                       return again->text() == right ? "" : "another model is made now";
                     },
                     [&] { made.reset(); }},
                    GetParam());
  }
};

TEST_P(ModelFaults, Quantise) {
  const Model net = parsed(kNet);
  make("ready_to_quantize", &net, [&] { return net.ready_to_quantize({.equalize = true}); });
  const auto ready = net.ready_to_quantize();
  ASSERT_TRUE(ready.ok()) << ready.status().message();
  const auto sites = ready->quantization_sites();
  ASSERT_TRUE(sites.ok()) << sites.status().message();
  ASSERT_FALSE(sites->nodes.empty());
  QuantizeChoices choices;
  for (const QuantizationNode& node : sites->nodes) choices.nodes.push_back(node.name);
  for (const QuantizationValue& value : sites->values) choices.values.push_back({value.name, 0.5f, 128});
  make("quantized", &*ready, [&] { return ready->quantized(choices); });
  size_t found = 0;
  fail_everywhere({"quantization_sites", [] {},
                   [&]() -> Status {
                     PINNACE_ASSIGN(const QuantizationSites now, ready->quantization_sites());
                     found = now.nodes.size();
                     return {};
                   },
                   [&](const Status& status) {
                     return !status.ok() || found == sites->nodes.size() ? std::string() : "there are nodes missing";
                   },
                   [] {}},
                  GetParam());
  const auto weights = net.weight_sites();
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  ASSERT_EQ(weights->size(), 1u);
  WeightChoices stored;
  stored.nodes = {weights->front().name};
  make("with_stored_weights", &net, [&] { return net.with_stored_weights(stored); });
  stored.dynamic = true;
  make("with_stored_weights, dynamic", &net, [&] { return net.with_stored_weights(stored); });
  const auto halves = net.float16_sites();
  ASSERT_TRUE(halves.ok()) << halves.status().message();
  std::vector<std::string> names;
  for (const Float16Site& site : *halves) names.push_back(site.name);
  make("in_float16", &net, [&] { return net.in_float16(names); });
}

TEST_P(ModelFaults, Reshape) {
  const Model net = parsed(kNet), picture = parsed(kPicture), sound = parsed(kSound);
  const std::vector<StreamAxis> streams = {{"x", 2}};
  make("streamed", &sound, [&] { return sound.streamed(streams); });
  Preprocessing how;
  how.height = how.width = 4;
  make("preprocessed", &picture, [&] { return picture.preprocessed(how); });
  const std::vector<std::string> inputs = {"an input with a name that is long enough"}, outputs = {"z"}, values = {"r"};
  make("with_names", &net, [&] { return net.with_names(inputs, outputs); });
  make("cut", &net, [&] { return net.cut(values); });
  std::vector<Symbol> ranges;
  for (const Symbol& symbol : net.symbols()) ranges.push_back({symbol.name, 2, 3});
  make("with_ranges", &net, [&] { return net.with_ranges(ranges); });
  const std::vector<std::vector<int64_t>> shapes = {{3, 4}};
  ShapeTrial trial;
  fail_everywhere({"try_shapes", [] {},
                   [&]() -> Status {
                     PINNACE_ASSIGN(trial, net.try_shapes(shapes, true));
                     return {};
                   },
                   [&](const Status& status) -> std::string {
                     if (status.ok() && (!trial.fits || trial.nodes.size() != net.nodes().size())) return "no trial";
                     const auto again = net.try_shapes(shapes, true);
                     return again && again->fits ? "" : "it cannot be tried any more";
                   },
                   [&] { trial = {}; }},
                  GetParam());
}

/// relu(x + w) of four numbers, as PyTorch's serialiser lays it out: header, operands, values, operations, dimensions,
/// contents of the values, arguments of the operations, inputs, outputs.
TEST_P(ModelFaults, SerialisedNnapi) {
  constexpr uint32_t kFloats = 3, kInteger = 1, kHere = 0, kBuffer = 2, kAdd = 0, kRelu = 1;
  const std::vector<uint32_t> words = {
      1,        4,       2,  1,     1,     1,  // version; operands, values, operations, inputs, outputs
      kFloats,  1,       0,  0,                // x: type, rank, scale, zero point
      kFloats,  1,       0,  0,                // w
      kInteger, 0,       0,  0,                // the activation
      kFloats,  1,       0,  0,                // y
      1,        kBuffer, 12, 2,     kHere, 4,  // values: operand, source, bytes
      kAdd,     3,       1,                    // operations: code, inputs, outputs
      4,        4,       4,                    // dimensions of x, w and y
      0,        0,       16, kRelu,            // w: buffer, offset, bytes; the activation
      0,        1,       2,  3,                // inputs and output of the operation
      0,        3};
  const std::array<float, 4> w = {1, -2, 3, 4};
  TorchNnapiModel source;
  source.serialized = std::as_bytes(std::span(words));
  source.weights = {std::as_bytes(std::span(w))};
  source.input_dims = {{4}};
  source.input_formats = source.output_formats = {0};
  make("load serialised NNAPI", nullptr, [&] { return Model::load_torch_nnapi(source); });
}

INSTANTIATE_TEST_SUITE_P(All, ModelFaults, ::testing::Values(Fault::kAllocation, Fault::kNoMoreAllocations),
                         kFaultTestName);

}  // namespace
}  // namespace pinnace::testing
