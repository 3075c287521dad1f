// The small network and its answer.
#include "cpp/gpu/gpu_session.h"

#include <pinnace/model.h>

#include "cases/parse_case.h"
#include "cpp/text_program.h"
#include "ops/type_inference.h"

namespace pinnace::testing {
namespace {

/// Elements of a constant, a part of 1 in size so that sums stay near it.
std::string elements(int64_t count, double size, uint64_t& state) {
  std::string text = "{";
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += str_cat(i ? "," : "", (static_cast<double>(state >> 40) / (1 << 24) * 2 - 1) * size);
  }
  return text + "}";
}

}  // namespace

SmallNetwork::SmallNetwork() {
  uint64_t state = test_seed();
  const auto constant = [&](const char* name, const char* shape, int64_t count, double size) {
    return str_cat("  const %", name, " : f32", shape, " = ", elements(count, size, state), "\n");
  };
  const std::string text = str_cat(
      "graph \"small\" {\n  input %x : f32[1,8,9,11]\n", constant("w1", "[12,8,3,3]", 864, 0.12),
      constant("b1", "[12]", 12, 0.5), constant("w2", "[12,1,3,3]", 108, 0.33), constant("w3", "[12,12,1,1]", 144, 0.3),
      constant("b3", "[12]", 12, 0.5), constant("w4", "[10,12]", 120, 1.0), constant("b4", "[10]", 10, 0.5),
      R"(  %c = conv "first" (%x, %w1, %b1) {pads=[1,1,1,1], activation="relu"}
  %d = conv "depthwise" (%c, %w2) {group=12, pads=[1,1,1,1]}
  %p = conv "pointwise" (%d, %w3, %b3)
  %s = add "sum" (%p, %c)
  %m = max_pool "pool" (%s) {kernel_shape=[2,2], strides=[2,2]}
  %g = global_average_pool "mean" (%m)
  %f = flatten "flat" (%g)
  %l = gemm "line" (%f, %w4, %b4) {trans_b=1}
  %y = softmax "softmax" (%l)
  output "y" %y
})");
  Graph graph = std::move(*parse(text));
  EXPECT_TRUE(update_types(graph).ok());
  type = graph.value(graph.inputs[0]).type;
  for (int64_t i = 0; i < type.elements(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x.push_back(static_cast<float>(state >> 40) / (1 << 23) - 1.0f);
  }
  const TensorView view{&type, reinterpret_cast<std::byte*>(x.data())};
  const auto made = std::move(*run_graph_reference(graph, {&view, 1}));
  const auto* first = reinterpret_cast<const float*>(made[0].bytes.data());
  want.assign(first, first + made[0].type.elements());
  program.emplace(program_of(text));
}

std::string SmallNetwork::check(Session& session, double bound) const {
  Tensor input;
  input.type = type;
  input.memory.host = const_cast<float*>(x.data());
  input.memory.bytes = x.size() * sizeof(float);
  const Status status = session.run({&input, 1});
  if (!status.ok()) return str_cat("code ", static_cast<int>(status.code()), ": ", status.message());
  const Tensor output = session.output(0);
  const auto* got = static_cast<const float*>(output.memory.host);
  for (size_t i = 0; i < want.size(); ++i) {
    if (!(std::fabs(got[i] - want[i]) <= bound)) return str_cat("element ", i, " is ", got[i], ", must be ", want[i]);
  }
  return {};
}

}  // namespace pinnace::testing
