// Operators that move elements: attributes of older opsets become inputs.
#include <algorithm>

#include "import/onnx/dynamic_ranks.h"

namespace pinnace::onnx {
namespace {
/// The inputs of `node` with attribute `name`, if it is there, as integer input `at`.
Result<std::vector<ValueId>> with_ints_input(SourceNode& node, std::string_view name, size_t at) {
  std::vector<ValueId> inputs = node.inputs();
  if (!node.attr(name)) return inputs;
  PINNACE_ASSIGN(const std::vector<int64_t> ints, node.ints_attr(name));
  inputs.resize(std::max(inputs.size(), at + 1), kNoValue);
  PINNACE_ASSIGN(inputs[at], node.constant_ints(ints));
  return inputs;
}

/// Axes as a vector: ONNX's own definitions of operators give some as a scalar.
Status axes_as_vector(SourceNode& node, std::vector<ValueId>& inputs) {
  if (inputs.size() < 2 || inputs[1] == kNoValue || node.type(inputs[1]).rank() != 0) return {};
  PINNACE_ASSIGN(const ValueId one, node.constant_ints(std::vector<int64_t>{1}));
  PINNACE_ASSIGN(inputs[1], node.emit("reshape", {inputs[1], one}));
  return {};
}

/// An input that newer opsets leave out and older ones gave as an empty tensor.
ValueId unless_empty(SourceNode& node, int i) {
  return node.has(i) && node.in_type(i).elements() == 0 ? kNoValue : node.in(i);
}

}  // namespace

Status map_squeeze(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  PINNACE_ASSIGN(std::vector<ValueId> inputs, with_ints_input(node, "axes", 1));
  PINNACE_TRY(axes_as_vector(node, inputs));
  if ((inputs.size() < 2 || inputs[1] == kNoValue) && !node.in_type(0).concrete()) {
    PINNACE_ASSIGN(const std::vector<int64_t> axes, axes_of_size_one(node, node.in_type(0)));
    inputs.resize(2, kNoValue);
    PINNACE_ASSIGN(inputs[1], node.constant_ints(axes));
  }
  return map_as(node, "squeeze", std::move(inputs), {}, {"axes"});
}

Status map_unsqueeze(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  PINNACE_ASSIGN(std::vector<ValueId> inputs, with_ints_input(node, "axes", 1));
  PINNACE_TRY(axes_as_vector(node, inputs));
  return map_as(node, "unsqueeze", std::move(inputs), {}, {"axes"});
}

Status map_slice(SourceNode& node) {
  if (node.opset() >= 10) return map_generic(node);
  PINNACE_TRY(node.need_inputs(1));
  PINNACE_ASSIGN(const std::vector<int64_t> starts, node.ints_attr("starts"));
  PINNACE_ASSIGN(const std::vector<int64_t> ends, node.ints_attr("ends"));
  std::vector<ValueId> inputs = {node.in(0), kNoValue, kNoValue, kNoValue};
  PINNACE_ASSIGN(inputs[1], node.constant_ints(starts));
  PINNACE_ASSIGN(inputs[2], node.constant_ints(ends));
  if (node.attr("axes")) {
    PINNACE_ASSIGN(const std::vector<int64_t> axes, node.ints_attr("axes"));
    PINNACE_ASSIGN(inputs[3], node.constant_ints(axes));
  }
  return node.finish("slice", std::move(inputs));
}

/// The number of outputs is an attribute since opset 18; before, and where it is left out, the node itself says it.
Status map_split(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  PINNACE_ASSIGN(std::vector<ValueId> inputs, with_ints_input(node, "split", 1));
  Attrs attrs;
  if (inputs.size() < 2) attrs.emplace_back("num_outputs", int64_t{node.proto().output_size()});
  PINNACE_ASSIGN(const int64_t stated, node.int_attr("num_outputs", node.proto().output_size()));
  if (stated != node.proto().output_size()) {
    return refuse(str_cat("num_outputs must be the number of outputs, ", node.proto().output_size()), str_cat(stated));
  }
  return map_as(node, "split", std::move(inputs), std::move(attrs), {"split", "num_outputs"});
}

Status map_pad(SourceNode& node) {
  if (node.opset() >= 11) return map_generic(node);
  PINNACE_TRY(node.need_inputs(1));
  PINNACE_ASSIGN(const std::vector<int64_t> pads, node.ints_attr("pads"));
  PINNACE_ASSIGN(const double value, node.float_attr("value", 0));
  PINNACE_ASSIGN(const ValueId pads_input, node.constant_ints(pads));
  ValueId value_input = kNoValue;
  if (value != 0) {
    PINNACE_ASSIGN(value_input, node.constant_scalar(node.in_type(0).dtype, value));
  }
  return map_as(node, "pad", {node.in(0), pads_input, value_input}, {}, {"pads", "value"});
}

/// Before opset 10 k is an attribute.
Status map_top_k(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  if (node.opset() >= 10) return map_generic(node);
  PINNACE_ASSIGN(const int64_t k, node.int_attr("k", -1));
  PINNACE_ASSIGN(const ValueId input, node.constant_ints(std::vector<int64_t>{k}));
  return map_as(node, "top_k", {node.in(0), input}, {}, {"k"});
}

Status map_scatter(SourceNode& node) {
  return map_as(node, "scatter_elements", node.inputs());
}

/// Upsample repeats or interpolates from the corner: output i reads input i / scale.
Status map_upsample(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  ValueId scales = node.in(1);
  if (node.opset() < 9) {
    PINNACE_ASSIGN(const std::vector<double> values, node.floats_attr("scales"));
    const std::vector<float> floats(values.begin(), values.end());
    PINNACE_ASSIGN(ConstantPtr data, Constant::copy_of(floats.data(), floats.size() * sizeof(float)));
    scales = node.scope().builder.add_constant(str_cat(node.name(), "/scales"),
                                               TensorType{DType::kF32, {static_cast<int64_t>(floats.size())}, nullptr},
                                               std::move(data));
  }
  PINNACE_ASSIGN(std::string_view mode, node.string_attr("mode", "nearest"));
  if (mode == "bilinear") mode = "linear";
  return node.finish("resize", {node.in(0), kNoValue, scales},
                     {{"mode", std::string(mode)},
                      {"coordinate_transformation_mode", std::string("asymmetric")},
                      {"nearest_mode", std::string("floor")}});
}

Status map_resize(SourceNode& node) {
  if (node.opset() < 11) return map_upsample(node);
  return map_as(node, "resize", {node.in(0), unless_empty(node, 1), unless_empty(node, 2), unless_empty(node, 3)});
}

/// Before opset 20 the modes have the names of two dimensions.
Status map_grid_sample(SourceNode& node) {
  PINNACE_ASSIGN(std::string_view mode, node.string_attr("mode", "linear"));
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  return map_as(node, "grid_sample", node.inputs(), {{"mode", std::string(mode)}}, {"mode"});
}

/// Before opset 16 regions are not moved by half a pixel.
Status map_roi_align(SourceNode& node) {
  if (node.opset() >= 16) return map_generic(node);
  return map_as(node, "roi_align", node.inputs(),
                {{"coordinate_transformation_mode", std::string("output_half_pixel")}});
}

// ------------------------------------------------------------------------------------------------------- constants

Status map_constant(SourceNode& node) {
  const auto attributes = node.attributes();
  if (attributes.size() != 1) return refuse("a constant has one attribute", str_cat(attributes.size()));
  const auto& [kind, value] = attributes[0];
  const auto& a = *value;
  const std::string name =
      node.proto().output_size() ? node.scope().frame.prefix + node.proto().output(0) : node.name();
  ValueId id = kNoValue;
  const auto make = [&](DType dtype, Shape shape, const auto& values) -> Status {
    PINNACE_ASSIGN(ConstantPtr data, Constant::copy_of(values.data(), values.size() * sizeof(values[0])));
    id = node.scope().builder.add_constant(name, TensorType{dtype, std::move(shape), nullptr}, std::move(data));
    return {};
  };
  if (kind == "value") {
    PINNACE_ASSIGN(id, node.constant_tensor(a.t(), name));
  } else if (kind == "sparse_value") {
    Import& import = node.scope().builder.import;
    PINNACE_ASSIGN(Tensor read, read_sparse(a.sparse_tensor(), node.label(), import.external, import.sparse_budget));
    id = node.scope().builder.add_constant(name, std::move(read.type), std::move(read.data));
  } else if (kind == "value_int") {
    PINNACE_TRY(make(DType::kI64, {}, std::vector<int64_t>{a.i()}));
  } else if (kind == "value_float") {
    PINNACE_TRY(make(DType::kF32, {}, std::vector<float>{a.f()}));
  } else if (kind == "value_ints") {
    PINNACE_TRY(make(DType::kI64, {int64_t{a.ints_size()}}, std::vector<int64_t>(a.ints().begin(), a.ints().end())));
  } else if (kind == "value_floats") {
    PINNACE_TRY(
        make(DType::kF32, {int64_t{a.floats_size()}}, std::vector<float>(a.floats().begin(), a.floats().end())));
  } else {
    return refuse("constants are dense tensors of numbers", std::string(kind));
  }
  return node.set_output(0, id);
}

/// One element, spread over the shape.
Status map_constant_of_shape(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  ValueId scalar = kNoValue;
  if (const auto* value = node.attr("value")) {
    PINNACE_ASSIGN(const ValueId one, node.constant_tensor(value->t(), str_cat(node.name(), "/value")));
    if (node.type(one).elements() != 1) return refuse("'value' must have one element", to_string(node.type(one)));
    const TensorType type{node.type(one).dtype, {}, nullptr};
    scalar = node.scope().builder.add_constant(str_cat(node.name(), "/scalar"), type, node.scope().builder.data(one));
  } else {
    PINNACE_ASSIGN(scalar, node.constant_scalar(DType::kF32, 0));
  }
  return node.finish("expand", {scalar, node.in(0)});
}

}  // namespace pinnace::onnx
