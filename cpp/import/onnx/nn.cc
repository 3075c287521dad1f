// Normalisations, recurrent layers and spectra whose forms in the source differ from ours.
#include "import/onnx/mapping.h"

namespace pinnace::onnx {

Status map_batch_normalization(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(5));
  PINNACE_ASSIGN(const int64_t training, node.int_attr("training_mode", 0));
  if (training) return refuse("training_mode must be 0", str_cat(training));
  PINNACE_ASSIGN(const int64_t spatial, node.int_attr("spatial", 1));
  if (!spatial && node.in_type(0).rank() > 2) return refuse("statistics per element (spatial = 0) are not supported");
  PINNACE_ASSIGN(const int64_t is_test, node.int_attr("is_test", 0));
  if (node.opset() < 7 && !is_test) return refuse("is_test must be 1", "0");
  if (node.output_count() > 1) return refuse("outputs of training are not supported", node.proto().output(1));
  return map_as(node, "batch_normalization", node.inputs(), {}, {"training_mode", "spatial", "momentum", "is_test"});
}

/// Opset 18 has one scale and bias per group, newer ones one per channel.
Status map_group_normalization(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(3));
  if (node.opset() >= 21) return map_generic(node);
  PINNACE_ASSIGN(const int64_t groups, node.int_attr("num_groups", 0));
  const TensorType& x = node.in_type(0);
  if (x.rank() < 2 || !x.shape[1].known()) return refuse("the number of channels must be known", to_string(x));
  const int64_t channels = x.shape[1].size;
  if (groups <= 0 || channels % groups) {
    return refuse(str_cat("num_groups must divide the ", channels, " channels"), str_cat(groups));
  }
  std::vector<ValueId> inputs = {node.in(0)};
  for (int i = 1; i < 3; ++i) {
    if (node.in_type(i).shape != Shape{Dim(groups)}) {
      return refuse(str_cat("scale and bias must have ", groups, " elements"), to_string(node.in_type(i)));
    }
    PINNACE_ASSIGN(const ValueId column_shape, node.constant_ints(std::vector<int64_t>{groups, 1}));
    PINNACE_ASSIGN(const ValueId full_shape, node.constant_ints(std::vector<int64_t>{groups, channels / groups}));
    PINNACE_ASSIGN(const ValueId flat_shape, node.constant_ints(std::vector<int64_t>{channels}));
    PINNACE_ASSIGN(const ValueId column, node.emit("reshape", {node.in(i), column_shape}));
    PINNACE_ASSIGN(const ValueId full, node.emit("expand", {column, full_shape}));
    PINNACE_ASSIGN(const ValueId flat, node.emit("reshape", {full, flat_shape}));
    inputs.push_back(flat);
  }
  return map_as(node, "group_normalization", std::move(inputs));
}

/// The axes are 0, 2 and 3 by default.
Status map_mean_variance_normalization(SourceNode& node) {
  if (node.attr("axes")) return map_generic(node);
  return map_as(node, "mean_variance_normalization", node.inputs(), {{"axes", std::vector<int64_t>{0, 2, 3}}});
}

/// The p-norm of each channel: sum(|x|^p)^(1/p).
Status map_global_lp_pool(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  PINNACE_ASSIGN(const int64_t p, node.int_attr("p", 2));
  std::vector<int64_t> list;
  for (int d = 2; d < node.in_type(0).rank(); ++d) list.push_back(d);
  if (p < 1 || list.empty()) return refuse("p must be at least 1 and x have at least 3 dimensions", str_cat(p));
  PINNACE_ASSIGN(const ValueId axes, node.constant_ints(list));
  if (p <= 2) return node.finish(p == 1 ? "reduce_l1" : "reduce_l2", {node.in(0), axes});
  const DType dtype = node.in_type(0).dtype;
  PINNACE_ASSIGN(const ValueId exponent, node.constant_scalar(dtype, static_cast<double>(p)));
  PINNACE_ASSIGN(const ValueId root, node.constant_scalar(dtype, 1.0 / static_cast<double>(p)));
  PINNACE_ASSIGN(const ValueId size, node.emit("abs", {node.in(0)}));
  PINNACE_ASSIGN(const ValueId power, node.emit("pow", {size, exponent}));
  PINNACE_ASSIGN(const ValueId sum, node.emit("reduce_sum", {power, axes}));
  return node.finish("pow", {sum, root});
}

/// Opset 17 has the axis as an attribute, 1 by default; newer ones as an input, the last but one by default.
Status map_dft(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  if (node.opset() >= 20) return map_generic(node);
  PINNACE_ASSIGN(const int64_t axis, node.int_attr("axis", 1));
  PINNACE_ASSIGN(const ValueId input, node.constant_int(axis));
  return map_as(node, "dft", {node.in(0), node.in(1), input}, {}, {"axis"});
}

/// The loss of log_softmax over the classes, as ONNX defines it; the logarithms are its second output.
Status map_softmax_cross_entropy_loss(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(2));
  PINNACE_ASSIGN(const OpDef* def, node.find("negative_log_likelihood_loss"));
  PINNACE_ASSIGN(Attrs attrs, convert_attributes(node, *def));
  PINNACE_ASSIGN(const ValueId log_prob, node.emit("log_softmax", {node.in(0)}, {{"axis", int64_t{1}}}));
  PINNACE_ASSIGN(const ValueId loss, node.emit(def->name, {log_prob, node.in(1), node.in(2)}, std::move(attrs)));
  PINNACE_TRY(node.set_output(0, loss));
  return node.set_output(1, log_prob);
}

/// A depthwise conv over the input with the last k - 1 elements of the past, or zeros, before it; they are where the
/// next call's past begins.
Status map_causal_conv_with_state(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(2));
  PINNACE_ASSIGN(const std::string_view activation, node.string_attr("activation", "none"));
  if (activation != "none" && activation != "silu" && activation != "swish") {
    return refuse("activation must be none, silu or swish", std::string(activation));
  }
  const TensorType &x = node.in_type(0), &weight = node.in_type(1);
  if (x.rank() != 3 || weight.rank() != 3) {
    return refuse("input and weight must have rank 3", str_cat(to_string(x), " and ", to_string(weight)));
  }
  const Dim channels = weight.shape[0], kernel = weight.shape[2];
  if (!channels.known() || !kernel.known() || kernel.size < 1 || weight.shape[1] != Dim(1)) {
    return refuse("weight must be [channels, 1, k] of known sizes", to_string(weight));
  }
  const int64_t before = kernel.size - 1;
  ValueId all = kNoValue;
  if (node.has(3)) {
    const TensorType& past = node.in_type(3);
    if (past.rank() != 3 || (past.shape[2].known() && past.shape[2].size != before)) {
      return refuse(str_cat("past_state must have ", before, " elements per channel"), to_string(past));
    }
    PINNACE_ASSIGN(all, node.emit("concat", {node.in(3), node.in(0)}, {{"axis", int64_t{2}}}));
  } else {
    PINNACE_ASSIGN(const ValueId pads, node.constant_ints(std::vector<int64_t>{0, 0, before, 0, 0, 0}));
    PINNACE_ASSIGN(all, node.emit("pad", {node.in(0), pads}));
  }
  Attrs attrs = {{"group", channels.size}};
  if (activation != "none") attrs.emplace_back("activation", std::string("silu"));
  PINNACE_ASSIGN(const ValueId y, node.emit("conv", {all, node.in(1), node.in(2)}, std::move(attrs)));
  PINNACE_TRY(node.set_output(0, y));
  if (!node.wants(1)) return {};
  PINNACE_ASSIGN(const ValueId first, node.constant_ints(std::vector<int64_t>{before ? -before : INT64_MAX}));
  PINNACE_ASSIGN(const ValueId end, node.constant_ints(std::vector<int64_t>{INT64_MAX}));
  PINNACE_ASSIGN(const ValueId axis, node.constant_ints(std::vector<int64_t>{2}));
  PINNACE_ASSIGN(const ValueId state, node.emit("slice", {all, first, end, axis}));
  return node.set_output(1, state);
}

/// rnn, gru, lstm. Lengths that are all the full length say nothing and are left as they are. An input behind ONNX's
/// eight would be taken for a projection.
Status map_recurrent(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(3));
  if (node.input_count() > 8) return refuse("it takes at most 8 inputs", str_cat(node.input_count()));
  return map_generic(node);
}

}  // namespace pinnace::onnx
