// loop: runs a nested graph while a condition holds and a count is not reached, handing values from iteration to
// iteration.
//   trip_count  one element, i64, optional: how many iterations at most; left out: no limit
//   cond        one element, bool, optional: whether the first iteration runs; left out: true
//   values      ...  any types: first `carried` carried ones, then the captured ones, the same in every iteration
//   carried     int, required
//   body        graph, required. Its inputs: iteration i64[], cond bool[], carried..., captured...
//               Its outputs: cond bool, carried..., scans...
//   outputs     carried..., as after the last iteration; scans..., each of all iterations, stacked
// The body's cond decides whether another iteration runs, also where the node's cond is left out. Element types and
// ranks of carried values stay; sizes that change are unknown until it runs. Scan outputs must agree in type and have
// elements of whole bytes, which stack without moving bits. The number of iterations, the first size of a scan, is
// known where trip_count is and the body hands its cond through or returns a constant true. Source: ONNX Loop, opset
// 25, with captured values made explicit.
#include "ops/bodies.h"

namespace pinnace {
namespace {
Status check_single(const NodeView& node, int input) {
  if (!node.has_input(input)) return {};
  const TensorType& type = node.input(input);
  if (!type.concrete() || type.elements() == 1) return {};
  return node.error(input == 0 ? "trip_count" : "cond", " is ", type, ", must have one element");
}

/// How many iterations run, as far as that follows from what is known.
Dim iterations(const NodeView& node, const Graph& body, bool returns_true) {
  if (node.has_input(1)) {
    const auto* start = static_cast<const uint8_t*>(node.input_data(1));
    if (!start) return {};
    if (!*start) return 0;
  }
  const auto trips = node.has_input(0) ? node.input_known(0) : std::nullopt;
  if (!trips || trips->size() != 1) return {};
  const KnownInt count = (*trips)[0];
  const bool goes_on = body.outputs[0] == body.inputs[1] || returns_true;
  if (count.known && count.value <= 0) return 0;
  if (goes_on) return count.dim();
  return count.known ? Dim::unknown(count.value) : Dim();
}

Status loop_types(const NodeView& node, std::span<TensorType> out) {
  PINNACE_TRY(check_single(node, 0));
  PINNACE_TRY(check_single(node, 1));
  const Graph& body = node.attr_graph("body");
  const int64_t wanted = node.attr_int("carried");
  const int values = node.input_count() - 2;
  if (wanted < 0 || wanted > values)
    return node.error("carried is ", wanted, ", the node has ", std::max(values, 0), " values");
  const auto carried = static_cast<size_t>(wanted);
  if (values < 0) return node.error("needs trip_count and cond, left out or not, has ", node.input_count(), " inputs");
  if (body.outputs.size() != out.size() + 1 || out.size() < carried) {
    return node.error("the body has ", body.outputs.size(), " outputs and carries ", carried, " values, the node has ",
                      out.size(), " outputs");
  }
  std::vector<TensorType> types = {{DType::kI64, {}, nullptr}, {DType::kBool, {}, nullptr}};
  std::vector<const void*> data(2, nullptr);
  for (int i = 2; i < node.input_count(); ++i) {
    types.push_back(node.input(i));
    data.push_back(static_cast<size_t>(i) < 2 + carried ? nullptr : node.input_data(i));
  }
  for (;;) {  // each round makes at least one more size unknown, or is the last
    PINNACE_ASSIGN(const BodyOutputs found, infer_body(node, "body", body, types, data));
    const TensorType& cond = found.types[0];
    if (cond.dtype != DType::kBool || (cond.concrete() && cond.elements() != 1)) {
      return node.error("the body's cond is ", cond, ", must be one bool");
    }
    bool stable = true;
    for (size_t i = 0; i < carried; ++i) {
      const TensorType& now = found.types[1 + i];
      PINNACE_ASSIGN(TensorType either, either_type(node, str_cat("carried value ", i), types[2 + i], now));
      stable &= either == types[2 + i];
      types[2 + i] = std::move(either);
    }
    if (!stable) {
      for (size_t i = 0; i < carried; ++i) {  // bounds could grow for ever
        for (Dim& d : types[2 + i].shape) d = d.known() || d.symbol >= 0 ? d : Dim();
      }
      continue;
    }
    const Dim count = iterations(node, body, found.first_is_true);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = i < carried ? types[2 + i] : found.types[1 + i];
      if (i >= carried) {
        if (out[i].quantized() && out[i].quantization->axis >= 0)
          return node.error("scan output ", i, " is quantised per axis");
        if (dtype_bits(out[i].dtype) % 8)
          return node.error("scan output ", i, " is ", out[i], ": only elements of whole bytes are stacked");
        out[i].shape.insert(out[i].shape.begin(), count);
      }
    }
    return {};
  }
}
}  // namespace

PINNACE_OP(loop){
    .name = "loop",
    .inputs = {{"trip_count", kI64, 0, Arity::kOptional},
               {"cond", kBool, 0, Arity::kOptional},
               {"values", kEvery, 0, Arity::kVariadic}},
    .attrs = {required_attr("body", AttrKind::kGraph), required_attr("carried", AttrKind::kInt)},
    .max_outputs = -1,
    .types = loop_types,
    .traits = Trait::kControlFlow,
};
}  // namespace pinnace
