// Scan as a loop that gathers one slice of every scanned input per pass.
#include "import/onnx/nested.h"

namespace pinnace::onnx {
namespace {
/// What a Scan says beside its body.
struct ScanForm {
  int scans = 0, states = 0;  // inputs
  std::vector<int64_t> in_axes, in_reverse, out_axes, out_reverse;
};

Result<ScanForm> scan_form(SourceNode& node, const proto::GraphProto& body) {
  ScanForm form;
  PINNACE_ASSIGN(const int64_t scans, node.int_attr("num_scan_inputs", 0));
  if (scans < 1 || scans > node.input_count() || body.input_size() != node.input_count()) {
    return refuse("num_scan_inputs must be at least 1 and the body have the node's inputs", str_cat(scans));
  }
  PINNACE_TRY(node.need_inputs(node.input_count()));
  form.scans = static_cast<int>(scans);
  form.states = node.input_count() - form.scans;
  const int outs = body.output_size() - form.states;
  if (outs < 0) return refuse("the body has too few outputs", str_cat(body.output_size()));
  PINNACE_ASSIGN(form.in_axes, node.ints_attr("scan_input_axes"));
  PINNACE_ASSIGN(form.in_reverse, node.ints_attr(node.opset() < 9 ? "directions" : "scan_input_directions"));
  PINNACE_ASSIGN(form.out_axes, node.ints_attr("scan_output_axes"));
  PINNACE_ASSIGN(form.out_reverse, node.ints_attr("scan_output_directions"));
  for (auto* list : {&form.in_axes, &form.in_reverse}) list->resize(static_cast<size_t>(form.scans), 0);
  for (auto* list : {&form.out_axes, &form.out_reverse}) list->resize(static_cast<size_t>(outs), 0);
  for (int i = 0; i < form.scans; ++i) {
    int64_t& axis = form.in_axes[static_cast<size_t>(i)];
    const int rank = node.in_type(form.states + i).rank();
    if (axis < -rank || axis >= rank)
      return refuse(str_cat("scan_input_axes must be within rank ", rank), str_cat(axis));
    if (axis < 0) axis += rank;
  }
  return form;
}

/// A scalar: the size of dimension `axis` of `id`.
Result<ValueId> size_of(SourceNode& node, ValueId id, int64_t axis) {
  PINNACE_ASSIGN(const ValueId sizes, node.emit("shape", {id}));
  PINNACE_ASSIGN(const ValueId place, node.constant_int(axis));
  return node.emit("gather", {sizes, place});
}

/// A loop over the scanned dimension: each pass gathers one slice of every scanned input. All outputs of the body.
/// `trips` is the number of passes, a scalar; kNoValue: all that there are.
Result<std::vector<ValueId>> scan(SourceNode& node, const proto::GraphProto& body, ValueId trips = kNoValue) {
  PINNACE_ASSIGN(const ScanForm form, scan_form(node, body));
  if (trips == kNoValue) {
    PINNACE_ASSIGN(trips, size_of(node, node.in(form.states), form.in_axes[0]));
  }
  PINNACE_ASSIGN(const ValueId one, node.constant_int(1));
  PINNACE_ASSIGN(const ValueId last, node.emit("sub", {trips, one}));
  std::vector<ValueId> inputs = {trips, kNoValue};
  std::vector<TensorType> types;
  for (int i = 0; i < form.states; ++i) {
    inputs.push_back(node.in(i));
    types.push_back(node.in_type(i));
  }
  GraphBuilder& outside = node.scope().builder;
  const auto bind = [&](GraphBuilder& b, Scope& s, std::span<const TensorType> now) -> Status {
    const ValueId trip = b.add_input("trip", {DType::kI64, {}, nullptr});
    const ValueId condition = b.add_input("condition", {DType::kBool, {}, nullptr});
    b.graph.add_output("condition", condition);
    for (int i = 0; i < form.states; ++i) {
      const std::string& name = body.input(i).name();
      PINNACE_TRY(s.define(name, b.add_input(name, now[static_cast<size_t>(i)])));
    }
    SourceNode item(s, node.proto(), str_cat(node.name(), "/item"), node.opset(), {});
    for (int i = 0; i < form.scans; ++i) {
      const std::string& name = body.input(form.states + i).name();
      const auto k = static_cast<size_t>(i);
      ValueId at = trip;
      if (form.in_reverse[k]) {
        PINNACE_ASSIGN(at, item.emit("sub", {b.capture(outside, last, "last"), trip}));
      }
      const ValueId all = b.capture(outside, node.in(form.states + i), name + "/all");
      PINNACE_ASSIGN(const ValueId slice, item.emit("gather", {all, at}, {{"axis", form.in_axes[k]}}));
      PINNACE_TRY(s.define(name, slice));
    }
    return {};
  };
  PINNACE_ASSIGN(auto builder, import_loop_body(node, body, std::move(types), bind));
  for (const auto& [from, inside] : builder->captures) inputs.push_back(from);
  PINNACE_ASSIGN(std::vector<ValueId> results,
                 node.emit_many("loop", std::move(inputs),
                                {{"carried", int64_t{form.states}}, {"body", graph_of(*builder)}}, body.output_size()));
  for (int i = 0; i < body.output_size(); ++i) {
    ValueId& result = results[static_cast<size_t>(i)];
    if (const int k = i - form.states; k >= 0 && form.out_reverse[static_cast<size_t>(k)]) {
      PINNACE_ASSIGN(const ValueId from, node.constant_ints(std::vector<int64_t>{-1}));
      PINNACE_ASSIGN(const ValueId to, node.constant_ints(std::vector<int64_t>{INT64_MIN}));
      PINNACE_ASSIGN(const ValueId zero, node.constant_ints(std::vector<int64_t>{0}));
      PINNACE_ASSIGN(result, node.emit("slice", {result, from, to, zero, from}));
    }
    if (const int k = i - form.states; k >= 0 && form.out_axes[static_cast<size_t>(k)] != 0) {
      const int rank = node.type(result).rank();
      int64_t to = form.out_axes[static_cast<size_t>(k)];
      if (to < -rank || to >= rank) return refuse(str_cat("scan_output_axes must be within rank ", rank), str_cat(to));
      if (to < 0) to += rank;
      std::vector<int64_t> perm;  // dimension 0 goes to place `to`
      for (int64_t d = 1; d < rank; ++d) perm.push_back(d);
      perm.insert(perm.begin() + to, 0);
      PINNACE_ASSIGN(result, node.emit("transpose", {result}, {{"perm", std::move(perm)}}));
    }
  }
  return results;
}

/// The first `length` slices of a result, and zeros up to `longest`.
Result<ValueId> fill_up(SourceNode& node, ValueId result, ValueId length, ValueId longest) {
  PINNACE_ASSIGN(const ValueId one, node.constant_ints(std::vector<int64_t>{1}));
  PINNACE_ASSIGN(const ValueId zero, node.constant_ints(std::vector<int64_t>{0}));
  PINNACE_ASSIGN(const ValueId missing, node.emit("sub", {longest, length}));
  PINNACE_ASSIGN(const ValueId after, node.emit("reshape", {missing, one}));
  PINNACE_ASSIGN(const ValueId pads, node.emit("concat", {zero, after}, {{"axis", int64_t{0}}}));
  return node.emit("pad", {result, pads, kNoValue, zero});
}

/// Opset 8: all inputs and outputs have a batch before everything else; a loop scans one member after another. Input 0
/// may give each member's length.
Result<std::vector<ValueId>> scan_batch(SourceNode& node, const proto::GraphProto& body) {
  if (node.input_count() < 2) return refuse("a scanned input is needed");
  if (node.has(0) && (node.in_type(0).dtype != DType::kI64 || node.in_type(0).rank() != 1)) {
    return refuse("lengths of sequences must be a vector of type int64", to_string(node.in_type(0)));
  }
  GraphBuilder& outside = node.scope().builder;
  GraphBuilder builder(outside.import);
  builder.graph.name = "batch";
  Scope scope{builder, node.scope().frame, &node.scope(), {}};
  const ValueId trip = builder.add_input("member", {DType::kI64, {}, nullptr});
  builder.graph.add_output("condition", builder.add_input("condition", {DType::kBool, {}, nullptr}));
  SourceNode pick(scope, node.proto(), str_cat(node.name(), "/member"), node.opset(), {});
  std::vector<ValueId> members;
  for (int i = 1; i < node.input_count(); ++i) {
    if (!node.has(i) || node.in_type(i).rank() < 1)
      return refuse("every input must have a batch", str_cat("input ", i));
    const ValueId all = builder.capture(outside, node.in(i), str_cat("batch_", i));
    PINNACE_ASSIGN(const ValueId member, pick.emit("gather", {all, trip}));
    members.push_back(member);
  }
  SourceNode one(scope, node.proto(), str_cat(node.name(), "/one"), node.opset(), std::move(members));
  ValueId length = kNoValue;
  if (node.has(0)) {
    PINNACE_ASSIGN(const ValueId none, pick.constant_int(0));
    PINNACE_ASSIGN(const ValueId stated, pick.emit("gather", {builder.capture(outside, node.in(0), "lengths"), trip}));
    PINNACE_ASSIGN(length, pick.emit("max", {stated, none}));
  }
  PINNACE_ASSIGN(std::vector<ValueId> results, scan(one, body, length));
  PINNACE_ASSIGN(const int64_t scans, node.int_attr("num_scan_inputs", 0));
  const auto states = static_cast<size_t>(one.input_count() - scans);
  for (size_t i = states; node.has(0) && i < results.size(); ++i) {
    PINNACE_ASSIGN(const ValueId longest, size_of(one, one.in(static_cast<int>(states)), 0));
    PINNACE_ASSIGN(results[i], fill_up(one, results[i], length, longest));
  }
  for (size_t i = 0; i < results.size(); ++i) builder.graph.add_output(str_cat("result_", i), results[i]);
  PINNACE_ASSIGN(const ValueId trips, size_of(node, node.in(1), 0));
  std::vector<ValueId> inputs = {trips, kNoValue};
  for (const auto& [from, inside] : builder.captures) inputs.push_back(from);
  return node.emit_many("loop", std::move(inputs), {{"carried", int64_t{0}}, {"body", graph_of(builder)}},
                        body.output_size());
}
}  // namespace

Status map_scan(SourceNode& node) {
  PINNACE_ASSIGN(const proto::GraphProto* body, node.graph_attr("body"));
  if (node.output_count() > body->output_size()) {
    return refuse("the body has too few outputs", str_cat(body->output_size()));
  }
  PINNACE_ASSIGN(const std::vector<ValueId> results, node.opset() < 9 ? scan_batch(node, *body) : scan(node, *body));
  for (int i = 0; i < node.output_count(); ++i) PINNACE_TRY(node.set_output(i, results[static_cast<size_t>(i)]));
  return {};
}

}  // namespace pinnace::onnx
