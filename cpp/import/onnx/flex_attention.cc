// FlexAttention: attention whose scores and probabilities the model changes by graphs of its own, which run once each
// and are put between the operators.
#include <algorithm>
#include <cmath>

#include "base/dtype_code.h"
#include "import/onnx/nested.h"

namespace pinnace::onnx {
namespace {
constexpr int64_t kMostHeads = 1 << 12;  // as many numbers say where each head comes from

Result<ValueId> cast_to(SourceNode& node, ValueId x, DType to) {
  if (node.type(x).dtype == to) return x;
  return node.emit("cast", {x}, {{"to", std::string(dtype_code(to))}});
}

/// Each head of [B, H, S, E] `times` times over, next to itself.
Result<ValueId> repeat_heads(SourceNode& node, ValueId x, int64_t heads, int64_t times) {
  if (times == 1) return x;
  std::vector<int64_t> from;
  for (int64_t h = 0; h < heads * times; ++h) from.push_back(h / times);
  PINNACE_ASSIGN(const ValueId places, node.constant_ints(from));
  return node.emit("gather", {x, places}, {{"axis", int64_t{1}}});
}

/// The graph attribute `name` applied to x, or x if there is none.
Result<ValueId> modified(SourceNode& node, std::string_view name, ValueId x) {
  if (!node.attr(name)) return x;
  PINNACE_ASSIGN(const proto::GraphProto* graph, node.graph_attr(name));
  if (graph->input_size() != 1 || graph->output_size() != 1) {
    return refuse(str_cat(name, " must have one input and one output"),
                  str_cat(graph->input_size(), " and ", graph->output_size()));
  }
  const ValueId inputs[] = {x};
  PINNACE_ASSIGN(const std::vector<ValueId> outputs,
                 inline_graph(node, *graph, inputs, str_cat(node.name(), "/", name, "/")));
  if (outputs[0] < 0) return recorded();
  if (node.type(outputs[0]).dtype != node.type(x).dtype || node.type(outputs[0]).rank() != 4) {
    return refuse(str_cat(name, " must give what it takes, ", to_string(node.type(x))),
                  to_string(node.type(outputs[0])));
  }
  return outputs[0];
}
}  // namespace

/// softmax(score_mod(q k^T * scale)), changed by prob_mod, times v. Scores are computed in the precision of softmax, or
/// in that of the inputs if it is higher.
Status map_flex_attention(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(3));
  for (int i = 0; i < 3; ++i) {
    if (node.in_type(i).rank() != 4) return refuse("inputs must have rank 4", to_string(node.in_type(i)));
  }
  const TensorType &q = node.in_type(0), &k = node.in_type(1);
  const DType type = q.dtype;
  const Dim heads = q.shape[1], own = k.shape[1], depth = q.shape[3];
  if (!heads.known() || heads.size > kMostHeads || !own.known() || own.size < 1 || heads.size % own.size) {
    return refuse(str_cat("the heads of q must be known, at most ", kMostHeads, " and a multiple of those of k"),
                  str_cat(to_string(q), ", ", to_string(k)));
  }
  const int64_t times = heads.size / own.size;
  PINNACE_ASSIGN(const int64_t wanted, node.int_attr("softmax_precision", 0));
  const auto named = dtype_of(static_cast<int32_t>(std::clamp<int64_t>(wanted, 0, 1000)));
  if (wanted && (!named || !(dtypes(*named) & kFloats)))
    return refuse("softmax_precision must be a float", str_cat(wanted));
  const DType precision = wanted ? *named : type == DType::kF64 ? type : DType::kF32;
  const DType wide = dtype_bits(type) > dtype_bits(precision) ? type : precision;
  if (!node.attr("scale") && !depth.known())
    return refuse("scale must be given where the head size is dynamic", to_string(q));
  PINNACE_ASSIGN(const double scale, node.float_attr("scale", 1 / std::sqrt(static_cast<double>(depth.size))));
  PINNACE_ASSIGN(ValueId queries, cast_to(node, node.in(0), wide));
  PINNACE_ASSIGN(ValueId keys, cast_to(node, node.in(1), wide));
  PINNACE_ASSIGN(keys, repeat_heads(node, keys, own.size, times));
  PINNACE_ASSIGN(keys, node.emit("transpose", {keys}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}}));
  PINNACE_ASSIGN(const ValueId factor, node.constant_scalar(wide, scale));
  PINNACE_ASSIGN(queries, node.emit("mul", {queries, factor}));
  PINNACE_ASSIGN(ValueId scores, node.emit("mat_mul", {queries, keys}));
  PINNACE_ASSIGN(scores, cast_to(node, scores, precision));
  PINNACE_ASSIGN(scores, modified(node, "score_mod", scores));
  PINNACE_ASSIGN(ValueId probabilities, node.emit("softmax", {scores}));
  PINNACE_ASSIGN(probabilities, modified(node, "prob_mod", probabilities));
  PINNACE_ASSIGN(ValueId values, cast_to(node, node.in(2), precision));
  PINNACE_ASSIGN(values, repeat_heads(node, values, own.size, times));
  PINNACE_ASSIGN(ValueId y, node.emit("mat_mul", {probabilities, values}));
  PINNACE_ASSIGN(y, cast_to(node, y, type));
  return node.set_output(0, y);
}

}  // namespace pinnace::onnx
