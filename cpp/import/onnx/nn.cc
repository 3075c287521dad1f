// Normalisations, recurrent layers and spectra whose forms in the source differ from ours.
#include "import/onnx/mapping.h"

namespace pinnace::onnx {

Status map_batch_normalization(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(5));
  PINNACE_ASSIGN(const int64_t training, node.int_attr("training_mode", 0));
  if (training) return refuse("training_mode must be 0", str_cat(training));
  PINNACE_ASSIGN(const int64_t spatial, node.int_attr("spatial", 1));
  if (!spatial && node.in_type(0).rank() > 2) return refuse("statistics per element (spatial = 0) are not supported");
  if (node.output_count() > 1) return refuse("outputs of training are not supported", node.proto().output(1));
  return map_as(node, "batch_normalization", node.inputs(), {}, {"training_mode", "spatial", "momentum"});
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

/// (x - mean) / (sqrt(variance) + 1e-9) over `axes`.
Status map_mean_variance_normalization(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  std::vector<int64_t> list = {0, 2, 3};
  if (node.attr("axes")) {
    PINNACE_ASSIGN(list, node.ints_attr("axes"));
  }
  const ValueId x = node.in(0);
  PINNACE_ASSIGN(const ValueId axes, node.constant_ints(list));
  PINNACE_ASSIGN(const ValueId mean, node.emit("reduce_mean", {x, axes}));
  PINNACE_ASSIGN(const ValueId centred, node.emit("sub", {x, mean}));
  PINNACE_ASSIGN(const ValueId squares, node.emit("mul", {centred, centred}));
  PINNACE_ASSIGN(const ValueId variance, node.emit("reduce_mean", {squares, axes}));
  PINNACE_ASSIGN(const ValueId deviation, node.emit("sqrt", {variance}));
  PINNACE_ASSIGN(const ValueId epsilon, node.constant_scalar(node.in_type(0).dtype, 1e-9));
  PINNACE_ASSIGN(const ValueId divisor, node.emit("add", {deviation, epsilon}));
  return node.finish("div", {centred, divisor});
}

/// Opset 17 has the axis as an attribute, 1 by default; newer ones as an input, the last but one by default.
Status map_dft(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  if (node.opset() >= 20) return map_generic(node);
  PINNACE_ASSIGN(const int64_t axis, node.int_attr("axis", 1));
  PINNACE_ASSIGN(const ValueId input, node.constant_int(axis));
  return map_as(node, "dft", {node.in(0), node.in(1), input}, {}, {"axis"});
}

/// rnn, gru, lstm. Lengths that are all the full length say nothing and are left as they are.
Status map_recurrent(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(3));
  return map_generic(node);
}

}  // namespace pinnace::onnx
