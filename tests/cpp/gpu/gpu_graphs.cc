// The graphs and how they are run.
#include "cpp/gpu/gpu_graphs.h"

#include <algorithm>
#include <cstring>

#include "backends/packed_constants.h"
#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace::testing {
namespace {

// With something to divide along each dimension.
constexpr const char* kGraphs[] = {
    R"(input %x : f32[3,37,9,11] input %k_w : f32[37,1,3,3] input %k_b : f32[37]
  %y = conv (%x, %k_w, %k_b) {group=37, pads=[1,1,1,1], activation="relu"} output "y" %y)",
    R"(input %x : f32[1,24,8,9] input %k_w : f32[44,24,1,1] input %k_b : f32[44]
  %c = conv (%x, %k_w, %k_b) %d = tanh (%c) %e = add (%d, %c) output "y" %e)",
    R"(input %x : f32[2,12,7,9] input %k_w : f32[40,12,3,3] input %k_b : f32[40]
  %y = conv (%x, %k_w, %k_b) {strides=[2,1], activation="hard_swish"} output "y" %y)",
    R"(input %x : f32[1,32,7,9] input %k_w : f32[64,8,3,3] %y = conv (%x, %k_w) {group=4} output "y" %y)",
    R"(input %x : f32[1,8,5,6] input %k_w : f32[8,20,3,3] input %k_b : f32[20]
  %y = conv_transpose (%x, %k_w, %k_b) {strides=[2,2]} output "y" %y)",
    R"(input %x : f32[1,48,24,24] input %k_w : f32[48,48,3,3] %y = conv (%x, %k_w) {pads=[1,1,1,1]} output "y" %y)",
    R"(input %x : f32[3,4,3,4,5] input %k_w : f32[6,4,2,2,2] %y = conv (%x, %k_w) output "y" %y)",
    R"(input %x : f32[37,96] input %k_w : f32[70,96] input %k_b : f32[70]
  %y = gemm (%x, %k_w, %k_b) {trans_b=1} output "y" %y)",
    R"(input %x : f32[1,64] input %k_w : f32[300,64] input %k_b : f32[300]
  %y = gemm (%x, %k_w, %k_b) {trans_b=1} output "y" %y)",
    R"(input %x : f32[70,24] input %k_w : f32[24,90] input %k_b : f32[90]
  %y = gemm (%x, %k_w, %k_b) {activation="relu"} output "y" %y)",
    R"(input %x : f32[3,5,9,16] input %z : f32[5,16,12] %y = mat_mul (%x, %z) output "y" %y)",
    R"(input %x : f32[2,6,40,8] input %k : f32[2,2,24,8] input %v : f32[2,2,24,12] input %m : f32[40,24]
  %y = attention (%x, %k, %v, %m) output "y" %y)",
    R"(input %x : f32[1,40,16] input %k : f32[1,24,16] input %v : f32[1,24,16]
  %y = attention (%x, %k, %v) {q_num_heads=2, kv_num_heads=2, is_causal=1} output "y" %y)",
    R"(input %x : f32[21,3,40] %y = softmax (%x) {axis=1} output "y" %y)",
    R"(input %x : f32[50,64] input %k_w : f32[64] input %k_b : f32[64]
  %y = layer_normalization (%x, %k_w, %k_b) output "y" %y)",
    R"(input %x : f32[2,16,8,8] input %k_w : f32[16] input %k_b : f32[16]
  %y = instance_normalization (%x, %k_w, %k_b) output "y" %y)",
    R"(input %x : f32[2,24,9,9] %p = max_pool (%x) {kernel_shape=[3,3], strides=[2,2]}
  %q = average_pool (%p) {kernel_shape=[2,2]} %g = global_average_pool (%q) output "y" %g)",
    R"(input %x : f32[9,5,7,8] %y = transpose (%x) {perm=[2,0,3,1]} output "y" %y)",
    R"(input %x : f32[3,31,17] input %z : f32[31,1] %m = mul (%x, %z) %l = less (%m, %x)
  %w = where (%l, %m, %x) output "y" %w)",
    R"(input %x : f32[40,33] const %k_k : i64[1] = {5}
  %y, %i = top_k (%x, %k_k) {axis=1} output "y" %y output "i" %i)",
    R"(input %x : f32[64,20] const %k_a : i64[1] = {1} %y = cum_sum (%x, %k_a) output "y" %y)",
    R"(input %x : f32[6,7,8,9] const %k_a : i64[2] = {1,3} %y = reduce_sum (%x, %k_a) output "y" %y)",
    R"(input %x : f32[40,3,30] const %k_s : i64[2] = {-1,2} const %k_e : i64[2] = {-40,28}
  const %k_a : i64[2] = {0,2} const %k_t : i64[2] = {-3,2}
  %y = slice (%x, %k_s, %k_e, %k_a, %k_t) output "y" %y)",
    R"(input %x : f32[1,9,20,12] input %z : f32[1,16,20,12] %r = relu (%z)
  %y = concat (%r, %x) {axis=1} output "y" %y)",
    R"(input %x : i8[2,20,9,11]{scale 0.05, zero 3} input %k_w : i8[24,20,3,3]{scale 0.02, zero 0}
  %y : i8[2,24,7,9]{scale 0.9, zero -5} = conv (%x, %k_w) output "y" %y)",
    R"(input %x : i8[1,24,9,11]{scale 0.05, zero 3} input %k_w : i8[24,1,3,3]{scale 0.02, zero 0}
  %y : i8[1,24,7,9]{scale 0.3, zero -5} = conv (%x, %k_w) {group=24} output "y" %y)",
    R"(input %x : i8[30,64]{scale 0.02, zero 5} input %k_w : i8[50,64]{scale 0.03, zero 0} input %k_b : i32[50]
  %y : i8[30,50]{scale 0.3, zero -8} = gemm (%x, %k_w, %k_b) {trans_b=1} output "y" %y)",
    R"(input %x : f32[2,12,5,5,5] %y = relu (%x) output "y" %y)",
    R"(input %x : f32[2,3,0,5] input %z : f32[2,3,4,5] %y = concat (%x, %z) {axis=2} %r = exp (%y) output "y" %r)",
    R"(input %x : f32[2,3,2,3,2,30] %t = transpose (%x) {perm=[5,3,4,2,0,1]} %y = sigmoid (%t) output "y" %y)",
};

struct Trial {
  Graph graph;
  TypeInference type_inference;
  std::vector<ConstantPtr> contents;
  std::vector<ValueId> open;
  std::vector<int32_t> nodes;
  OpTable ops;
  PackedConstants packed;
};

}  // namespace

std::span<const char* const> family_graphs() {
  return kGraphs;
}

Result<std::vector<std::vector<std::byte>>> graph_answers(const Backend& backend, const std::string& text,
                                                          const char* precision, int runs) {
  Trial t;
  PINNACE_ASSIGN(t.graph, parse(str_cat("graph \"small\" {\n", text, "\n}")));
  std::vector<ConstantPtr> known;
  uint64_t state = 1;
  for (const ValueId id : t.graph.inputs) {
    const Value& value = t.graph.value(id);
    std::vector<std::byte> bytes(static_cast<size_t>(value.type.bytes()));
    const auto fill = [&](auto zero) {
      using T = decltype(zero);
      for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int number = static_cast<int>(state >> 56) - 128;
        const T made = value.type.dtype == DType::kF32 ? static_cast<T>(number / 64.0) : static_cast<T>(number);
        std::memcpy(bytes.data() + i * sizeof(T), &made, sizeof(T));
      }
    };
    if (value.type.dtype == DType::kF32) fill(float{});
    if (value.type.dtype == DType::kI64) fill(int64_t{});
    if (value.type.dtype == DType::kI32) fill(int32_t{});
    if (value.type.dtype == DType::kI8) fill(int8_t{});
    PINNACE_ASSIGN(ConstantPtr made, Constant::copy_of(bytes.data(), bytes.size()));
    t.contents.push_back(made);
    const bool constant = value.name.starts_with("k_");
    known.push_back(constant ? std::move(made) : nullptr);
    if (!constant) t.open.push_back(id);
  }
  PINNACE_ASSIGN(t.type_inference, infer_types(t.graph, {}, known, t.ops));
  for (size_t i = 0; i < t.graph.nodes.size(); ++i) {
    if (!t.type_inference.computed[i]) t.nodes.push_back(static_cast<int32_t>(i));
  }
  const Segment segment{t.graph, t.type_inference, t.nodes, t.open, t.graph.outputs, t.ops, t.packed, ""};
  PINNACE_ASSIGN(auto executable, backend.compile(segment, {std::string(backend.name()), "", precision}));
  std::vector<TensorView> inputs, outputs;
  for (size_t i = 0; i < t.graph.inputs.size(); ++i) {
    const ValueId id = t.graph.inputs[i];
    if (std::find(t.open.begin(), t.open.end(), id) == t.open.end()) continue;
    auto* bytes = const_cast<std::byte*>(static_cast<const std::byte*>(t.contents[i]->data()));
    inputs.push_back({&t.type_inference.types[static_cast<size_t>(id)], bytes});
  }
  std::vector<std::vector<std::byte>> made;
  made.reserve(t.graph.outputs.size());
  for (const ValueId id : t.graph.outputs) {
    const TensorType& type = t.type_inference.types[static_cast<size_t>(id)];
    made.emplace_back(static_cast<size_t>(type.bytes()));
    outputs.push_back({&type, made.back().data()});
  }
  std::vector<std::vector<std::byte>> first;
  for (int run = 0; run < runs; ++run) {
    for (auto& bytes : made) std::fill(bytes.begin(), bytes.end(), std::byte{0xcd});
    PINNACE_TRY(executable->run(RunContext(), inputs, outputs));
    if (run == 0) first = made;
    if (made != first) return Status(Code::kVerification, str_cat("run ", run, " gives other bits than the first"));
  }
  return made;
}

}  // namespace pinnace::testing
