// One node as a graph of its own, compiled and run by a back end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/backend.h"
#include "backends/packed_constants.h"
#include "base/half.h"
#include "cases/run_case.h"

namespace pinnace::testing {

/// The node of a call as a graph of its own, whose inputs are values of the run where bit i of `values` is set, else
/// constants.
struct LoneNode {
  Graph graph;
  TypeInference type_inference;
  std::vector<ValueId> inputs, outputs;
  std::vector<size_t> places;  ///< of the segment's inputs among the node's

  LoneNode(const NodeView& view, uint32_t values, std::span<const TensorView> in, std::span<const TensorView> out) {
    std::vector<ValueId> ins;
    for (size_t i = 0; i < in.size(); ++i) {
      ins.push_back(in[i].present() ? graph.add_value(str_cat("in", i), *in[i].type) : kNoValue);
    }
    for (size_t i = 0; i < out.size(); ++i) outputs.push_back(graph.add_value(str_cat("out", i), *out[i].type));
    Node* node = graph.add_node(view.node().op, view.node().version, "node", ins, outputs);
    node->attrs = view.node().attrs;
    type_inference = begin_type_inference(graph);
    type_inference.types.resize(graph.values.size());
    type_inference.data.resize(graph.values.size());
    type_inference.computed = {false};
    for (size_t i = 0; i < in.size(); ++i) {
      if (!in[i].present()) continue;
      const auto id = static_cast<size_t>(ins[i]);
      type_inference.types[id] = *in[i].type;
      if (i < 32 && (values >> i & 1)) {
        inputs.push_back(ins[i]);
        places.push_back(i);
      } else {
        type_inference.data[id] =
            std::make_shared<Constant>(nullptr, in[i].bytes, static_cast<size_t>(in[i].type->bytes()));
      }
    }
    for (size_t i = 0; i < out.size(); ++i) type_inference.types[static_cast<size_t>(outputs[i])] = *out[i].type;
  }

  Verdict verdict(const Backend& backend, const TargetSpec& target, const OpDef& op) const {
    const Node& node = *graph.nodes[0];
    std::vector<const TensorType*> types, declared;
    std::vector<const void*> data;
    for (ValueId id : node.inputs) {
      types.push_back(id == kNoValue ? nullptr : &type_inference.types[static_cast<size_t>(id)]);
      const bool known = id != kNoValue && type_inference.data[static_cast<size_t>(id)];
      data.push_back(known ? type_inference.data[static_cast<size_t>(id)]->data() : nullptr);
    }
    for (ValueId id : node.outputs) declared.push_back(&type_inference.types[static_cast<size_t>(id)]);
    return backend.supports(NodeView(node, op, types, data, declared), target);
  }
};

/// Runs a node on the back end; kUnsupported with the rule where it is refused.
inline Status run_on(const Backend& backend, const TargetSpec& target, uint32_t values, const NodeView& view,
                     std::span<const TensorView> in, std::span<const TensorView> out) {
  LoneNode lone(view, values, in, out);
  const Verdict verdict = lone.verdict(backend, target, view.op());
  if (!verdict.supported) {
    return Status(Code::kUnsupported, str_cat(verdict.text, ", is ", verdict.value)).with_rule(verdict.rule);
  }
  const OpTable ops;
  PackedConstants packed;
  const Segment segment{lone.graph, lone.type_inference, {0}, lone.inputs, lone.outputs, ops, packed, ""};
  PINNACE_ASSIGN(auto executable, backend.compile(segment, target));
  PINNACE_ASSIGN(Buffer workspace, Buffer::allocate(executable->workspace_bytes(), "workspace"));
  std::vector<TensorView> inputs;
  for (size_t i : lone.places) inputs.push_back(in[i]);
  RunContext context;
  context.workspace = workspace.data();
  return executable->run(context, inputs, out);
}

/// Element `i` as a number; integers of quantised types as they are stored.
inline double element(const TensorView& t, int64_t i) {
  switch (t.dtype()) {
    case DType::kF32:
      return t.data<float>()[i];
    case DType::kF16:
      return half_to_float(t.data<uint16_t>()[i]);
    case DType::kBF16:
      return bfloat_to_float(t.data<uint16_t>()[i]);
    case DType::kF64:
      return t.data<double>()[i];
    case DType::kI32:
      return t.data<int32_t>()[i];
    case DType::kI64:
      return static_cast<double>(t.data<int64_t>()[i]);
    case DType::kI8:
      return t.data<int8_t>()[i];
    case DType::kI16:
      return t.data<int16_t>()[i];
    case DType::kU16:
      return t.data<uint16_t>()[i];
    default:
      return t.data<uint8_t>()[i];
  }
}

inline bool all_tame(const TensorView& t) {
  if (!t.present() || (t.dtype() != DType::kF32 && t.dtype() != DType::kF16)) return true;
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (!(std::fabs(element(t, i)) < 1e6)) return false;
  }
  return true;
}

}  // namespace pinnace::testing
