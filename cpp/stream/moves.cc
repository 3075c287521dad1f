// Rules of operators that move elements: along time they change offsets and lengths, and compute nothing.
#include <utility>

#include "stream/rules.h"

namespace pinnace {

Result<StreamStep> stream_padded(StreamReader& reader, const Node& node, const TimePads& pads,
                                 std::function<Result<ValueId>(StreamWriter&, ValueId)> write_rest) {
  Flow in = *reader.flow(node, 0);
  if (pads.end > 0) in = in.ended(in.more + pads.end, pads.value);
  StreamStep step;
  if (in.delay < 0 && pads.begin > 0 && in.fill != pads.value) {  // two numbers would be left out
    step.delay = 0;
    in = in.delayed(0);
  }
  Flow out = in;
  out.delay = in.delay - pads.begin;
  out.more = in.more + pads.begin + pads.end;
  if (out.more < 0 && out.up == 0) return cannot_stream("nothing is left");
  if (pads.begin > 0) out.fill = pads.value;
  if (pads.begin < 0 || (in.delay > 0 && in.before != pads.value)) out.before.reset();
  if (in.delay <= 0 && out.delay > 0) out.before.reset();
  if (pads.end < 0 || in.after != pads.value) out.after.reset();
  step.outputs.assign(node.outputs.size(), std::nullopt);
  step.outputs[0] = out;
  step.reads = [pads](const Needed& n) { return Needed{n.first - pads.begin, n.last - pads.begin}; };
  step.write = [&node, &reader, in, pads, write_rest = std::move(write_rest)](StreamWriter& w,
                                                                              const Needed& needed) -> Status {
    PINNACE_ASSIGN(ValueId x, w.delayed(w.mapped(node.inputs[0]), *reader.flow(node, 0), in.delay));
    const Needed reads{pads.begin > 0 ? needed.first - pads.begin : 0,
                       pads.end > 0 ? needed.last - pads.begin : INT64_MIN};
    PINNACE_ASSIGN(x, w.padded(x, in, reads, pads.value));
    if (write_rest) {
      PINNACE_ASSIGN(x, write_rest(w, x));
    }
    w.map(node.outputs[0], x);
    return {};
  };
  return step;
}

Result<NodePads> pads_of(const StreamReader& reader, const Node& node, int axis) {
  const auto lengths = reader.lengths(node, 1);
  if (!lengths) return cannot_stream("pads are not constant");
  NodePads pads;
  for (const Length& length : *lengths) {
    if (!length.fixed()) return cannot_stream("pads grow with the number of elements");
    pads.amounts.push_back(length.plus);
  }
  const int rank = reader.type(node.inputs[0]).rank();
  std::vector<int64_t> axes;
  if (reader.has(node, 3)) {
    const auto given = reader.ints(node, 3);
    if (!given) return cannot_stream("axes are not constant");
    axes = *given;
  } else {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t &begin = pads.amounts[i], &end = pads.amounts[i + axes.size()];
    if (axes[i] == axis || axes[i] + rank == axis) {
      pads.time.begin = std::exchange(begin, 0);
      pads.time.end = std::exchange(end, 0);
    } else {
      pads.others |= begin != 0 || end != 0;
    }
  }
  const std::string_view mode = reader.attr_string(node, "mode");
  if (mode != "constant" && (pads.time.begin != 0 || pads.time.end != 0)) {
    if (mode != "reflect" && mode != "edge") {
      return cannot_stream("what it pads with comes from the other end of time", std::string(mode));
    }
    if (pads.time.begin < 0 || pads.time.end < 0) return cannot_stream("it cuts off and repeats", std::string(mode));
    pads.time.pad_mode = mode == "reflect" ? PadMode::kReflect : PadMode::kEdge;
  }
  if (reader.has(node, 2)) {
    const auto value = reader.number(node, 2);
    if (!value) return cannot_stream("the padding's value is not constant");
    pads.time.value = *value;
  }
  return pads;
}

Result<StreamStep> stream_pad(StreamReader& reader, const Node& node) {
  const Flow* f = reader.flow(node, 0);
  if (!f) return cannot_stream("pads are not constant");
  PINNACE_ASSIGN(const NodePads pads, pads_of(reader, node, f->axis));
  std::function<Result<ValueId>(StreamWriter&, ValueId)> write;
  if (pads.others) {
    write = [&node, amounts = pads.amounts](StreamWriter& w, ValueId x) -> Result<ValueId> {
      PINNACE_ASSIGN(const ValueId rest, w.ints(amounts));
      std::vector<ValueId> inputs = {x, rest};
      for (size_t i = 2; i < node.inputs.size(); ++i) inputs.push_back(w.mapped(node.inputs[i]));
      return w.copy(node, std::move(inputs)).outputs[0];
    };
  }
  return pads.time.pad_mode == PadMode::kConstant ? stream_padded(reader, node, pads.time, std::move(write))
                                                  : stream_copied_pads(reader, node, pads.time, std::move(write));
}

Result<StreamStep> stream_slice(StreamReader& reader, const Node& node) {
  const Flow* f = reader.flow(node, 0);
  if (!f) return cannot_stream("it is cut where a stream says");
  const auto starts = reader.lengths(node, 1), ends = reader.lengths(node, 2);
  const int rank = reader.type(node.inputs[0]).rank();
  if (!starts || !ends) return cannot_stream("where it is cut is not constant");
  std::vector<int64_t> axes, steps(starts->size(), 1);
  for (size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (reader.has(node, 3)) {
    const auto given = reader.ints(node, 3);
    if (!given) return cannot_stream("axes are not constant");
    axes = *given;
  }
  if (reader.has(node, 4)) {
    const auto given = reader.ints(node, 4);
    if (!given) return cannot_stream("steps are not constant");
    steps = *given;
  }
  TimePads pads;
  int64_t stride = 1;
  std::vector<int64_t> other_starts, other_ends, other_axes, other_steps;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Length start = (*starts)[i], end = (*ends)[i];
    if (axes[i] != f->axis && axes[i] + rank != f->axis) {
      if (!start.fixed() || !end.fixed()) return cannot_stream("another axis is cut by the number of elements");
      other_starts.push_back(start.plus);
      other_ends.push_back(end.plus);
      other_axes.push_back(axes[i]);
      other_steps.push_back(steps[i]);
      continue;
    }
    stride = steps[i];
    if (stride < 1) return cannot_stream("time goes backwards", str_cat("step ", stride));
    if (!start.fixed() || start.plus < 0) {
      return cannot_stream("it takes the last elements, which are known at the end alone");
    }
    pads.begin = -start.plus;
    if (end.fixed()) {
      if (end.plus < 0) {
        pads.end = end.plus;
      } else if (end.plus < INT32_MAX) {
        return cannot_stream("it takes the first elements alone", str_cat(end.plus));
      }
    } else if (end.up == f->up && end.down == f->down) {
      pads.end = std::min<int64_t>(0, end.plus - f->more);
    } else {
      return cannot_stream("its end grows at another rate than its input",
                           str_cat("T * ", end.up, "/", end.down, " + ", end.plus));
    }
  }
  std::function<Result<ValueId>(StreamWriter&, ValueId)> write;
  if (!other_axes.empty()) {
    write = [&node, other_starts, other_ends, other_axes, other_steps](StreamWriter& w, ValueId x) -> Result<ValueId> {
      PINNACE_ASSIGN(const ValueId a, w.ints(other_starts));
      PINNACE_ASSIGN(const ValueId b, w.ints(other_ends));
      PINNACE_ASSIGN(const ValueId c, w.ints(other_axes));
      PINNACE_ASSIGN(const ValueId d, w.ints(other_steps));
      return w.copy(node, {x, a, b, c, d}).outputs[0];
    };
  }
  if (stride == 1) return stream_padded(reader, node, pads, std::move(write));
  const Flow in = *f;
  Flow out = in.scaled(1, stride);
  reader.need_multiple(out.down);
  out.more = ceil_div(in.more + pads.begin + pads.end, stride);
  out.fill = 0;
  const int64_t late = in.delay - pads.begin;
  if (late < 0) return cannot_stream("steps over padding have no rule");
  out.delay = late / stride;
  const int64_t skipped = late % stride;
  StreamStep step;
  step.outputs = {out};
  step.reads = [stride, pads](const Needed& n) {
    return Needed{n.first * stride - pads.begin, (n.last - 1) * stride - pads.begin + 1};
  };
  step.write = [&node, in, stride, skipped, write = std::move(write)](StreamWriter& w, const Needed&) -> Status {
    PINNACE_ASSIGN(ValueId x, w.cut(w.mapped(node.inputs[0]), in.axis, skipped, 0, stride, "steps"));
    if (write) {
      PINNACE_ASSIGN(x, write(w, x));
    }
    w.map(node.outputs[0], x);
    return {};
  };
  return step;
}

Result<StreamStep> stream_concat(StreamReader& reader, const Node& node) {
  const int rank = reader.type(node.inputs[0]).rank();
  int64_t axis = reader.attr_int(node, "axis");
  if (axis < 0) axis += rank;
  std::optional<size_t> streamed;
  bool along = false, all = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Flow* f = reader.flow(node, i);
    all &= f != nullptr;
    if (!f) continue;
    along |= f->axis == axis;
    if (along && streamed) return cannot_stream("two streams follow each other along time");
    streamed = i;
  }
  if (!along) {
    if (!all) return cannot_stream("an operand that is no stream has elements along time");
    return stream_together(reader, node, [](size_t, int time) { return std::optional(time); });
  }
  // Constants before and behind are padding, if they are of one number.
  TimePads pads;
  std::optional<double> value;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i == *streamed) continue;
    const Value& v = reader.graph.value(node.inputs[i]);
    if (!v.constant || v.type.dtype != DType::kF32) return cannot_stream("what it follows is not constant");
    const auto* elements = reinterpret_cast<const float*>(v.constant->data());
    for (int64_t k = 0; k < v.type.elements(); ++k) {
      if (value && *value != static_cast<double>(elements[k])) {
        return cannot_stream("elements beside the stream along time are not all one number");
      }
      value = elements[k];
    }
    (i < *streamed ? pads.begin : pads.end) += v.type.shape[static_cast<size_t>(axis)].size;
  }
  pads.value = value.value_or(0);
  // As a pad of the only streamed operand.
  Node pad = node;
  pad.inputs = {node.inputs[*streamed]};
  auto kept = std::make_shared<const Node>(std::move(pad));
  PINNACE_ASSIGN(StreamStep step, stream_padded(reader, *kept, pads, nullptr));
  step.write = [kept, write = std::move(step.write)](StreamWriter& w, const Needed& n) { return write(w, n); };
  return step;
}

Result<StreamStep> stream_expand(StreamReader& reader, const Node& node) {
  const Flow* f = reader.flow(node, 0);
  const auto lengths = reader.lengths(node, 1);
  if (!lengths) return cannot_stream("its shape comes as a stream");
  const TensorType &x = reader.type(node.inputs[0]), &y = reader.type(node.outputs[0]);
  const size_t lead = y.shape.size() - lengths->size();
  std::optional<size_t> time;
  if (f) time = static_cast<size_t>(f->axis + y.rank() - x.rank());
  std::vector<int64_t> shape;
  for (size_t i = 0; i < lengths->size(); ++i) {
    shape.push_back((*lengths)[i].plus);
    if ((*lengths)[i].fixed()) continue;
    if (time && *time != lead + i) return cannot_stream("another axis becomes as long as time", to_string(y.shape));
    time = lead + i;
  }
  if (!time) return cannot_stream("its shape is computed from the number of elements and is always the same");
  if (*time >= lead) shape[*time - lead] = 1;  // time's own number of elements, or the chunk's
  StreamStep step;
  if (f) {
    PINNACE_ASSIGN(step, stream_together(reader, node, [&](size_t, int) { return static_cast<int>(*time); }));
    step.write = [&node, in = *f, late = *step.delay, shape](StreamWriter& w, const Needed&) -> Status {
      PINNACE_ASSIGN(const ValueId x, w.delayed(w.mapped(node.inputs[0]), in, late));
      PINNACE_ASSIGN(const ValueId sizes, w.ints(shape));
      w.copy(node, {x, sizes});
      return {};
    };
    return step;
  }
  const Length& count = (*lengths)[*time - lead];
  const int own = static_cast<int>(*time) - (y.rank() - x.rank());
  if (own >= 0 && x.shape[static_cast<size_t>(own)] != Dim(1)) {
    return cannot_stream("elements along time that are no stream", to_string(x.shape));
  }
  Flow out;
  out.axis = static_cast<int>(*time);
  out.up = count.up;
  out.down = count.down;
  out.more = count.plus;
  reader.need_multiple(out.down);
  step.outputs = {out};
  step.write = [&node, out, shape, at = *time - lead](StreamWriter& w, const Needed&) -> Status {
    PINNACE_ASSIGN(const ValueId chunk, w.chunk(out.up, out.down));
    PINNACE_ASSIGN(const ValueId sizes, w.with_size(shape, at, chunk));
    w.copy(node, {w.mapped(node.inputs[0]), sizes});
    return {};
  };
  return step;
}

Result<StreamStep> stream_reshape(StreamReader& reader, const Node& node) {
  const Flow* f = reader.flow(node, 0);
  if (!f) return cannot_stream("its shape comes as a stream");
  const TensorType &x = reader.type(node.inputs[0]), &y = reader.type(node.outputs[0]);
  int axis = -1;
  for (int i = 0; i < y.rank(); ++i) {
    if (y.shape[static_cast<size_t>(i)].known()) continue;
    if (axis >= 0) return cannot_stream("two sizes of its result are dynamic", to_string(y.shape));
    axis = i;
  }
  if (axis < 0) return cannot_stream("time does not stay an axis", to_string(y.shape));
  int64_t before = 1, after = 1, new_before = 1, new_after = 1;
  for (int i = 0; i < x.rank(); ++i) {
    const Dim& d = x.shape[static_cast<size_t>(i)];
    if (i == f->axis) continue;
    if (!d.known()) return cannot_stream("two sizes of its operand are dynamic", to_string(x.shape));
    (i < f->axis ? before : after) *= d.size;
  }
  for (int i = 0; i < y.rank(); ++i) {
    if (i != axis) (i < axis ? new_before : new_after) *= y.shape[static_cast<size_t>(i)].size;
  }
  if (before != new_before || after == 0 || new_after == 0) {
    return cannot_stream("time does not stay together", str_cat(to_string(x.shape), " to ", to_string(y.shape)));
  }
  const int64_t common = std::gcd(after, new_after), up = after / common, down = new_after / common;
  Flow out = f->scaled(up, down);
  reader.need_multiple(out.down);
  out.axis = axis;
  if (f->more * up % down != 0) {
    return cannot_stream("frames do not divide the number of elements", str_cat("T + ", f->more, " by ", down));
  }
  out.more = f->more * up / down;
  // A frame begins with its first element: delays are made whole frames.
  const int64_t late = down == 1 ? f->delay : std::max<int64_t>(0, ceil_div(f->delay, down)) * down;
  out.delay = late * up / down;
  const Flow begun = f->delayed(late);
  out.before = begun.before;
  StreamStep step;
  step.delay = late;
  step.outputs = {out};
  step.reads = [up, down](const Needed& n) {
    return Needed{floor_div(n.first * down, up), ceil_div(n.last * down, up)};
  };
  step.write = [&node, in = *f, late, y](StreamWriter& w, const Needed&) -> Status {
    PINNACE_ASSIGN(const ValueId x, w.delayed(w.mapped(node.inputs[0]), in, late));
    if (node.op != "reshape") {
      std::vector<ValueId> inputs = {x};
      for (size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(w.mapped(node.inputs[i]));
      w.copy(node, std::move(inputs));
      return {};
    }
    std::vector<int64_t> sizes;
    for (const Dim& d : y.shape) sizes.push_back(d.known() ? d.size : -1);
    PINNACE_ASSIGN(const ValueId shape, w.ints(sizes));
    w.copy(node, {x, shape}).remove_attr("allowzero");
    return {};
  };
  return step;
}

}  // namespace pinnace
