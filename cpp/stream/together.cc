// Rules of operators that compute each element of time alone: elementwise ones, products, what runs along other axes.
#include <algorithm>
#include <cmath>

#include "ops/activation.h"
#include "ops/einsum.h"
#include "stream/rules.h"

namespace pinnace {
namespace {

/// Whether a function is 0 at 0, by its formula.
bool zero_at_zero(const Unary& function) {
  switch (function.kind) {
    case UnaryKind::kNone:
      return true;
#define UNARY(kind, ...) \
  case UnaryKind::kind:  \
    return UnaryRow<UnaryKind::kind>::formula(0, function.p, function.q) == 0;
#include "ops/unary.inc"
#undef UNARY
  }
  return false;
}

/// Whether the node gives 0 for 0, whatever a second operand is: what is known to be 0 before and behind a value stays
/// so.
bool keeps_zero(const StreamReader& reader, const Node& node) {
  const OpDef& op = *reader.ops().find(node.op);
  std::vector<const TensorType*> types;
  std::vector<const void*> data;
  for (const ValueId id : node.inputs) {
    const Value* value = id == kNoValue ? nullptr : &reader.graph.value(id);
    types.push_back(value ? &value->type : nullptr);
    data.push_back(value && value->constant ? value->constant->data() : nullptr);
  }
  const NodeView view(node, op, types, data);
  if (carries_activation(op)) {
    const Result<Activation> activation = parse_activation(view);
    if (!activation || !zero_at_zero(*activation)) return false;
  }
  if (op.unary != UnaryKind::kNone) {
    const std::optional<Unary> function = unary_of(view);  // nothing where a bound of clip comes with the run
    return function && zero_at_zero(*function);
  }
  static constexpr std::string_view kOthers[] = {
      "cast",      "dft",       "expand",     "flatten",     "identity",   "mul",        "prelu",
      "reduce_l1", "reduce_l2", "reduce_max", "reduce_mean", "reduce_min", "reduce_sum", "reduce_sum_square",
      "reshape",   "slice",     "split",      "squeeze",     "transpose",  "unsqueeze"};
  return std::find(std::begin(kOthers), std::end(kOthers), node.op) != std::end(kOthers);
}

/// What the node gives for the number `x` in the place of its only streamed operand, if that is known: of 0, and of the
/// integer that stands for 0.
std::optional<double> result_of(const StreamReader& reader, const Node& node, std::optional<double> x) {
  if (!x) return std::nullopt;
  const TensorType &from = reader.type(node.inputs[0]), &to = reader.type(node.outputs[0]);
  const auto zero_of = [&](const TensorType& type) -> std::optional<double> {
    if (!type.quantized()) return std::nullopt;
    return type.quantization->axis < 0 ? std::optional<double>(type.quantization->zero_points[0]) : std::nullopt;
  };
  std::optional<double> before, after;  // what stands for 0, in the operand and in the result
  if (node.op == "quantize_linear" || node.op == "dequantize_linear") {
    const std::optional<double> zero = reader.has(node, 2) ? reader.number(node, 2) : 0.0;
    before = node.op == "quantize_linear" ? 0.0 : zero;
    after = node.op == "quantize_linear" ? zero : 0.0;
  } else if (node.op == "cast" && from.quantized() != to.quantized()) {
    before = from.quantized() ? 0.0 : zero_of(to);
    after = from.quantized() ? zero_of(from) : 0.0;
  } else if (keeps_zero(reader, node)) {
    before = after = 0.0;
  }
  return before && *x == *before ? after : std::nullopt;
}

/// Whether all streamed operands have to be 0 for the result to be 0.
bool needs_all_zero(const Node& node) {
  return node.op == "add" || node.op == "sub" || node.op == "sum" || node.op == "concat" || node.op == "max" ||
         node.op == "min";
}

}  // namespace

Result<StreamStep> stream_together(StreamReader& reader, const Node& node,
                                   const std::function<std::optional<int>(size_t operand, int axis)>& axis_of) {
  std::optional<Flow> out;
  int streamed = 0;
  bool zero_before = true, zero_after = true, all_fill_zero = true, all_streamed = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Flow* f = reader.flow(node, i);
    if (!f) {
      all_streamed = false;
      continue;
    }
    const std::optional<int> axis = axis_of(i, f->axis);
    if (!axis) return cannot_stream("the operator computes along time", str_cat("axis ", f->axis));
    Flow here = *f;
    here.axis = *axis;
    if (here.delay <= 0) here.before = here.before.value_or(0);  // there is nothing yet, but what a delay line has
    ++streamed;
    if (!out) {
      out = here;
    } else {
      if (!out->same_rate(here) || out->axis != here.axis) {
        return cannot_stream("operands have their time on other axes or at other rates",
                             str_cat("axis ", out->axis, " and ", here.axis, ", rate ", out->up, "/", out->down,
                                     " and ", here.up, "/", here.down));
      }
      if (out->more != here.more) {
        return cannot_stream("operands have other numbers of elements along time",
                             str_cat("T + ", out->more, " and T + ", here.more));
      }
      out->delay = std::max(out->delay, here.delay);
    }
    zero_before &= here.before == 0.0;
    zero_after &= here.after == 0.0;
    all_fill_zero &= here.delay >= 0 || here.fill == 0;
  }
  const bool zeros = keeps_zero(reader, node) || (needs_all_zero(node) && all_streamed);
  std::optional<double> fill;
  if (streamed == 1) {
    out->before = result_of(reader, node, out->before);
    out->after = result_of(reader, node, out->after);
    fill = result_of(reader, node, out->fill);
  } else {
    out->before = zeros && zero_before ? std::optional(0.0) : std::nullopt;
    out->after = zeros && zero_after ? std::optional(0.0) : std::nullopt;
    if (zeros && all_fill_zero) fill = 0;
  }
  if (out->delay < 0 && !fill) {
    out->delay = 0;
    out->before.reset();
  }
  out->fill = fill.value_or(0);
  StreamStep step;
  step.delay = out->delay;
  step.outputs.assign(node.outputs.size(), out);
  return step;
}

Result<StreamStep> stream_elementwise(StreamReader& reader, const Node& node) {
  const int rank = reader.type(node.outputs[0]).rank();
  std::optional<int> time;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (const Flow* f = reader.flow(node, i)) time = f->axis + rank - reader.type(node.inputs[i]).rank();
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue || reader.flow(node, i)) continue;
    const TensorType& type = reader.type(node.inputs[i]);
    int at = *time - (rank - type.rank());
    if (node.op.ends_with("quantize_linear") && type.rank() == 1) {  // scales or zero points along the attribute's axis
      const int64_t axis = reader.attr_int(node, "axis");
      at = *time == axis + (axis < 0 ? rank : 0) ? 0 : -1;
    }
    if (at >= 0 && type.shape[static_cast<size_t>(at)] != Dim(1)) {
      return cannot_stream("an operand that is no stream has elements along time", to_string(type.shape));
    }
  }
  return stream_together(reader, node, [&](size_t i, int axis) -> std::optional<int> {
    return axis + rank - reader.type(node.inputs[i]).rank();
  });
}

Result<StreamStep> stream_channelwise(StreamReader& reader, const Node& node) {
  return stream_together(reader, node,
                         [](size_t i, int axis) { return i == 0 && axis != 1 ? std::optional(axis) : std::nullopt; });
}

Result<StreamStep> stream_one_axis(StreamReader& reader, const Node& node) {
  const int rank = reader.type(node.inputs[0]).rank();
  int64_t axis = reader.attr_int(node, "axis");
  if (axis < 0) axis += rank;
  return stream_together(
      reader, node, [&](size_t i, int time) { return i == 0 && time != axis ? std::optional(time) : std::nullopt; });
}

Result<StreamStep> stream_behind_axis(StreamReader& reader, const Node& node) {
  int64_t axis = reader.attr_int(node, "axis");
  if (axis < 0) axis += reader.type(node.inputs[0]).rank();
  return stream_together(
      reader, node, [&](size_t i, int time) { return i == 0 && time < axis ? std::optional(time) : std::nullopt; });
}

Result<StreamStep> stream_reduction(StreamReader& reader, const Node& node) {
  const int rank = reader.type(node.inputs[0]).rank();
  std::vector<int64_t> axes;
  if (node.op.starts_with("arg_")) {
    axes = {reader.attr_int(node, "axis")};
  } else if (reader.has(node, 1)) {
    const auto given = reader.ints(node, 1);
    if (!given) return cannot_stream("the axes are not constant");
    axes = *given;
  }
  if (axes.empty()) {
    if (!reader.attr_int(node, "noop_with_empty_axes")) return cannot_stream("it reduces all axes, time among them");
  }
  const bool keeps = reader.attr_int(node, "keepdims") != 0;
  return stream_together(reader, node, [&](size_t, int time) -> std::optional<int> {
    int at = time;
    for (int64_t axis : axes) {
      if (axis < 0) axis += rank;
      if (axis == time) return std::nullopt;
      at -= axis < time && !keeps;
    }
    return at;
  });
}

Result<StreamStep> stream_transpose(StreamReader& reader, const Node& node) {
  const int rank = reader.type(node.inputs[0]).rank();
  std::vector<int64_t> perm = reader.attr_ints(node, "perm");
  if (perm.empty()) {
    for (int i = rank - 1; i >= 0; --i) perm.push_back(i);
  }
  return stream_together(reader, node, [&](size_t, int time) -> std::optional<int> {
    return static_cast<int>(std::find(perm.begin(), perm.end(), time) - perm.begin());
  });
}

Result<StreamStep> stream_product(StreamReader& reader, const Node& node) {
  const int out = reader.type(node.outputs[0]).rank();
  const bool gemm = node.op == "gemm";
  const bool both = reader.flow(node, 0) && reader.flow(node, 1);
  return stream_together(reader, node, [&](size_t i, int time) -> std::optional<int> {
    if (i > 1) return std::nullopt;
    const int rank = reader.type(node.inputs[i]).rank();
    const bool crossed = gemm && reader.attr_int(node, i == 0 ? "transA" : "transB");
    if (rank < 2) return std::nullopt;
    if (time < rank - 2) return time + out - rank;  // a batch axis
    const int summed = i == 0 ? (crossed ? rank - 2 : rank - 1) : (crossed ? rank - 1 : rank - 2);
    if (time == summed || both) return std::nullopt;
    return i == 0 ? out - 2 : out - 1;
  });
}

Result<StreamStep> stream_einsum(StreamReader& reader, const Node& node) {
  const std::string equation(reader.attr_string(node, "equation"));
  std::vector<const TensorType*> types;
  for (const ValueId id : node.inputs) types.push_back(&reader.type(id));
  PINNACE_ASSIGN(const EinsumEquation e, parse_einsum(NodeView(node, *reader.ops().find(node.op), types)));
  std::optional<int> time;
  for (size_t i = 0; i < e.terms.size(); ++i) {
    const Flow* f = reader.flow(node, i);
    if (!f) continue;
    const int label = e.terms[i][static_cast<size_t>(f->axis)];
    if (time && *time != label) return cannot_stream("it multiplies each element of time with every other", equation);
    time = label;
  }
  for (size_t i = 0; i < e.terms.size(); ++i) {
    const Flow* f = reader.flow(node, i);
    for (size_t k = 0; k < e.terms[i].size(); ++k) {
      if (e.terms[i][k] != *time || (f && f->axis == static_cast<int>(k))) continue;
      const Dim& size = reader.type(node.inputs[i]).shape[k];
      if (f || size != Dim(1)) return cannot_stream("another axis has the letter of time", equation);
    }
  }
  return stream_together(reader, node, [&](size_t, int) {
    const auto at = std::find(e.out.begin(), e.out.end(), *time);
    return at == e.out.end() ? std::nullopt : std::optional(static_cast<int>(at - e.out.begin()));
  });
}

Result<StreamStep> stream_fourier(StreamReader& reader, const Node& node) {
  const int last = reader.type(node.inputs[0]).rank() - 1;
  const auto given = reader.has(node, 2) ? reader.number(node, 2) : std::optional(-2.0);
  if (!given || (reader.has(node, 1) && !reader.number(node, 1))) {
    return cannot_stream("its axis and its length are not constant");
  }
  const int axis = static_cast<int>(*given) + (*given < 0 ? last + 1 : 0);
  return stream_together(reader, node, [&](size_t i, int time) {
    return i == 0 && time != axis && time != last ? std::optional(time) : std::nullopt;
  });
}

Result<StreamStep> stream_gather(StreamReader& reader, const Node& node) {
  const int rank = reader.type(node.inputs[0]).rank();
  int64_t axis = reader.attr_int(node, "axis");
  if (axis < 0) axis += rank;
  const int picked = reader.type(node.inputs[1]).rank();
  if (reader.flow(node, 0) && reader.flow(node, 1))
    return cannot_stream("it picks elements of a stream by another one");
  return stream_together(reader, node, [&](size_t i, int time) -> std::optional<int> {
    if (i == 1) return static_cast<int>(axis) + time;
    if (time == axis) return std::nullopt;
    return time < axis ? time : time + picked - 1;
  });
}

Result<StreamStep> stream_resize(StreamReader& reader, const Node& node) {
  const Flow* f = reader.flow(node, 0);
  if (!f) return cannot_stream("sizes come as a stream");
  if (reader.attr_string(node, "mode") != "nearest") {
    return cannot_stream("only mode nearest is known to streams", std::string(reader.attr_string(node, "mode")));
  }
  const TensorType &x = reader.type(node.inputs[0]), &y = reader.type(node.outputs[0]);
  // By how much each axis grows: what is known of shapes says it of all but time.
  std::vector<int64_t> axes = reader.attr_ints(node, "axes");
  if (axes.empty()) {
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  const auto position = [&](int64_t time) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] == time || axes[i] + x.rank() == time) return static_cast<int64_t>(i);
    }
    return int64_t{-1};
  };
  const int64_t at = position(f->axis);
  double scale = 1;
  if (at >= 0) {
    const auto sizes = reader.lengths(node, 3);
    const Value* scales = reader.has(node, 2) ? &reader.graph.value(node.inputs[2]) : nullptr;
    const Attr* factors = node.attr("factors");
    if (factors && !sizes) {
      scale = std::get<std::vector<double>>(*factors)[static_cast<size_t>(at)];
    } else if (scales && scales->constant && scales->type.elements() > at) {
      scale = reinterpret_cast<const float*>(scales->constant->data())[at];
    } else if (sizes && static_cast<int64_t>(sizes->size()) > at) {
      const Length& size = (*sizes)[static_cast<size_t>(at)];
      scale = static_cast<double>(size.up) * static_cast<double>(f->down) /
              (static_cast<double>(size.down) * static_cast<double>(f->up));
      if (static_cast<double>(size.plus) != scale * static_cast<double>(f->more)) scale = 0;
    } else {
      scale = 0;
    }
  }
  const auto whole = static_cast<int64_t>(scale);
  if (whole < 1 || static_cast<double>(whole) != scale) {
    return cannot_stream("time grows by no whole factor", str_cat(scale));
  }
  const std::string_view where = reader.attr_string(node, "coordinate_transformation_mode");
  if (where == "align_corners" || where == "tf_crop_and_resize" || where == "half_pixel_symmetric") {
    return cannot_stream("places depend on the number of elements", std::string(where));
  }
  Flow out = f->scaled(whole, 1);
  out.more = f->more * whole;
  out.delay = f->delay * whole;
  StreamStep step;
  step.outputs = {out};
  step.reads = [whole](const Needed& n) { return Needed{floor_div(n.first, whole), ceil_div(n.last, whole)}; };
  step.write = [&reader, &node, x, y, axis = f->axis, whole](StreamWriter& w, const Needed&) -> Status {
    // Sizes say how long time is: factors instead.
    std::vector<float> factors;
    for (int i = 0; i < x.rank(); ++i) {
      const Dim &from = x.shape[static_cast<size_t>(i)], &to = y.shape[static_cast<size_t>(i)];
      const bool grows = from.known() && to.known();
      factors.push_back(i == axis ? static_cast<float>(whole)
                        : grows   ? static_cast<float>(to.size) / static_cast<float>(from.size)
                                  : 1.0f);
    }
    PINNACE_ASSIGN(const ValueId scales,
                   w.graph.add_constant_of<float>(str_cat(node.name, ".scales"), DType::kF32,
                                                  Shape{static_cast<int64_t>(factors.size())}, factors));
    Node& made = w.copy(node, {w.mapped(node.inputs[0]), kNoValue, scales});
    made.remove_attr("axes");
    made.remove_attr("factors");
    return {};
  };
  return step;
}

}  // namespace pinnace
