// Rules of operators that go along time and carry something: recurrent cells, running sums, causal attention; and of
// range, which counts elements.
#include <cmath>

#include "stream/rules.h"

namespace pinnace {
namespace {

/// i64[1] as a vector of `count` equal elements.
Result<ValueId> repeated(StreamWriter& w, ValueId one, int64_t count, const std::string& name) {
  if (count == 1) return one;
  PINNACE_ASSIGN(const ValueId shape, w.ints({count}));
  TensorType type = w.type(one);
  type.shape = {count};
  return w.add("expand", name, {one, shape}, type);
}

/// What is computed element after element begins with the value's first one: elements that the stream would leave out
/// come too.
Flow from_first_element(const Flow& flow, StreamStep& step) {
  if (flow.delay >= 0) return flow;
  step.delay = 0;
  return flow.delayed(0);
}

/// The elements of a chunk as a cell takes them, where the first of the stream are none of the value's: these go to
/// the end, where `lengths` leaves them out.
struct Rolled {
  ValueId x = kNoValue, lengths = kNoValue, back = kNoValue;
};
Result<Rolled> rolled(StreamWriter& w, ValueId x, const Flow& flow, int64_t batch) {
  const TensorType one{DType::kI64, {1}, nullptr}, line{DType::kI64, {Dim()}, nullptr};
  PINNACE_ASSIGN(const ValueId count, w.chunk(flow.up, flow.down));
  PINNACE_ASSIGN(const ValueId zero, w.ints({0}));
  PINNACE_ASSIGN(ValueId early, w.early(flow));
  early = w.add("max", "early_left", {early, zero}, one);
  early = w.add("min", "early_here", {early, count}, one);
  const ValueId left = w.add("sub", "left", {count, early}, one);
  PINNACE_ASSIGN(const ValueId range, w.within(flow.up, flow.down));
  const auto turned = [&](ValueId by) {
    const ValueId sum = w.add("add", "turn", {range, by}, line);
    return w.add("mod", "turned", {sum, count}, line);
  };
  Rolled r;
  r.x = w.add("gather", "rolled", {x, turned(early)}, w.type(x), {{"axis", int64_t{flow.axis}}});
  r.back = turned(left);
  const ValueId narrow =
      w.add("cast", "length", {left}, TensorType{DType::kI32, {1}, nullptr}, {{"to", std::string("i32")}});
  PINNACE_ASSIGN(r.lengths, repeated(w, narrow, batch, "lengths"));
  return r;
}

}  // namespace

Result<StreamStep> stream_recurrent(StreamReader& reader, const Node& node) {
  const Flow* f = reader.flow(node, 0);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (reader.flow(node, i)) return cannot_stream("its weights or its first state come as a stream");
  }
  const bool batch_first = reader.attr_int(node, "layout") != 0;
  const int axis = batch_first ? 1 : 0;
  if (!f || f->axis != axis) return cannot_stream("it goes along another axis than time", str_cat("axis ", axis));
  if (reader.attr_string(node, "direction") != "forward") {
    return cannot_stream("it goes backwards through time", std::string(reader.attr_string(node, "direction")));
  }
  if (reader.has(node, 4)) return cannot_stream("lengths of sequences are given");
  const size_t states = node.op == "lstm" ? 2 : 1;
  for (size_t i = 0; i < states; ++i) {
    if (reader.has(node, 5 + i) && !reader.graph.value(node.inputs[5 + i]).constant) {
      return cannot_stream("its first state is not constant");
    }
  }
  StreamStep step;
  const Flow in = from_first_element(*f, step);
  Flow out = in;
  out.before.reset();
  out.after.reset();
  step.outputs.assign(node.outputs.size(), std::nullopt);
  step.outputs[0] = out;
  step.reads = [](const Needed& n) { return Needed{std::min<int64_t>(0, n.first), n.last}; };
  step.write = [&node, &reader, in, states, axis](StreamWriter& w, const Needed&) -> Status {
    PINNACE_ASSIGN(ValueId x, w.delayed(w.mapped(node.inputs[0]), *reader.flow(node, 0), in.delay));
    const Dim batch = w.type(x).shape[axis == 0 ? 1 : 0];
    if (!batch.known()) return cannot_stream("the batch has no fixed size", to_string(w.type(x).shape));
    std::vector<ValueId> inputs = {x};
    for (size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(w.mapped(node.inputs[i]));
    inputs.resize(std::max(inputs.size(), 5 + states), kNoValue);
    Rolled roll;
    if (in.delay > 0) {
      PINNACE_ASSIGN(roll, rolled(w, x, in, batch.size));
      inputs[0] = roll.x;
      inputs[4] = roll.lengths;
    }
    std::vector<ValueId> kept;
    for (size_t i = 0; i < states; ++i) {
      TensorType type = reader.type(node.outputs[0]);  // [T, D, B, P] or [B, T, D, P]
      type.shape.erase(type.shape.begin() + axis);
      if (i == 1) type.shape.back() = reader.type(node.inputs[2]).shape[1].size / 4;
      if (!type.concrete()) return cannot_stream("its state has no fixed size", to_string(type.shape));
      const size_t place = 5 + i;
      const bool given = reader.has(node, place);
      PINNACE_ASSIGN(const ValueId id,
                     w.state(str_cat(node.name, i == 0 ? ".h" : ".c"), type, [](int64_t) { return 0; }));
      if (given) w.graph.states.back().initial = reader.graph.value(node.inputs[place]).constant;
      inputs[place] = id;
      kept.push_back(id);
    }
    Node& made = w.copy(node, std::move(inputs));
    for (size_t i = 0; i < states; ++i) {
      if (made.outputs.size() < 2 + i) {
        made.outputs.push_back(w.graph.add_value(str_cat(node.name, i == 0 ? ".next_h" : ".next_c"), w.type(kept[i])));
      }
      w.set_next(kept[i], made.outputs[1 + i]);
    }
    if (in.delay > 0) {
      const ValueId y = made.outputs[0];
      w.map(node.outputs[0], w.add("gather", "unrolled", {y, roll.back}, w.type(y), {{"axis", int64_t{in.axis}}}));
    }
    return {};
  };
  return step;
}

Result<StreamStep> stream_cum_sum(StreamReader& reader, const Node& node) {
  const Flow* f = reader.flow(node, 0);
  const auto axis = reader.number(node, 1);
  if (!f || !axis) return cannot_stream("its axis is not constant");
  const int rank = reader.type(node.inputs[0]).rank();
  const int at = static_cast<int>(*axis) + (*axis < 0 ? rank : 0);
  if (at != f->axis) {
    return stream_together(reader, node, [](size_t, int time) { return std::optional(time); });
  }
  if (reader.attr_int(node, "reverse")) return cannot_stream("it begins with the last element");
  if (reader.attr_int(node, "exclusive")) return cannot_stream("exclusive sums have no rule");
  StreamStep step;
  const Flow in = from_first_element(*f, step);
  Flow out = in;
  out.before.reset();
  out.after.reset();
  step.outputs = {out};
  step.reads = [](const Needed& n) { return Needed{std::min<int64_t>(0, n.first), n.last}; };
  step.write = [&node, &reader, in](StreamWriter& w, const Needed&) -> Status {
    PINNACE_ASSIGN(ValueId x, w.delayed(w.mapped(node.inputs[0]), *reader.flow(node, 0), in.delay));
    PINNACE_ASSIGN(x, w.masked(x, in, in.delay > 0 && in.before != 0.0, false, 0));
    TensorType type = w.type(x);
    type.shape[static_cast<size_t>(in.axis)] = 1;
    PINNACE_ASSIGN(const ValueId sum, w.state(str_cat(node.name, ".sum"), type, [](int64_t) { return 0; }));
    const ValueId joined = w.add("concat", "joined", {sum, x}, w.type(x), {{"axis", int64_t{in.axis}}});
    Node& made = w.copy(node, {joined, w.mapped(node.inputs[1])});
    PINNACE_ASSIGN(const ValueId next, w.cut(made.outputs[0], in.axis, -1, 0, 1, "next"));
    w.set_next(sum, next);
    PINNACE_ASSIGN(const ValueId y, w.cut(made.outputs[0], in.axis, 1, 0, 1, "sums"));
    w.map(node.outputs[0], y);
    return {};
  };
  return step;
}

Result<StreamStep> stream_attention(StreamReader& reader, const Node& node) {
  const Flow *q = reader.flow(node, 0), *k = reader.flow(node, 1), *v = reader.flow(node, 2);
  if (!q || !k || !v) return cannot_stream("queries, keys and values do not all come as streams");
  const int rank = reader.type(node.inputs[0]).rank(), axis = rank == 4 ? 2 : 1;
  if (q->axis != axis || k->axis != axis || v->axis != axis) {
    if (rank == 4 && q->axis < 2) {
      return stream_together(reader, node,
                             [](size_t i, int time) { return i < 3 ? std::optional(time) : std::nullopt; });
    }
    return cannot_stream("time is not the axis of queries and keys");
  }
  if (!reader.attr_int(node, "is_causal")) return cannot_stream("queries see later elements (is_causal is false)");
  for (size_t i = 3; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue) return cannot_stream("masks and caches of its own have no rule");
  }
  if (node.outputs.size() > 1) return cannot_stream("more outputs than one have no rule");
  if (reader.longest == Symbol::kUnbounded) {
    return cannot_stream("keys of all elements are kept: declare the largest number of elements (pn.Dim(max=...))");
  }
  Flow out = *q;
  out.before.reset();
  out.after.reset();
  if (!q->same_rate(*k) || !q->same_rate(*v) || q->more != k->more || q->more != v->more) {
    return cannot_stream("queries and keys come at other rates");
  }
  out.delay = std::max({q->delay, k->delay, v->delay, int64_t{0}});
  out.fill = 0;
  StreamStep step;
  step.delay = out.delay;
  step.outputs = {out};
  step.reads = [](const Needed& n) { return Needed{std::min<int64_t>(0, n.first), n.last}; };
  step.write = [&node, &reader, out, axis](StreamWriter& w, const Needed&) -> Status {
    const Flow& f = out;
    const int64_t all = ceil_div((reader.longest + w.tail()) * f.up, f.down);
    PINNACE_ASSIGN(const ValueId seen, w.seen(f.up, f.down));
    PINNACE_ASSIGN(const ValueId chunk, w.chunk(f.up, f.down));
    std::vector<ValueId> inputs(7, kNoValue);
    const TensorType one{DType::kI64, {1}, nullptr};
    for (size_t i = 0; i < 3; ++i) {
      PINNACE_ASSIGN(inputs[i], w.delayed(w.mapped(node.inputs[i]), *reader.flow(node, i), f.delay));
      if (i == 0) continue;
      TensorType type = w.type(inputs[i]);
      type.shape[static_cast<size_t>(axis)] = all;
      const std::string name = i == 1 ? "keys" : "values";
      PINNACE_ASSIGN(const ValueId kept, w.state(str_cat(node.name, ".", name), type, [](int64_t) { return 0; }));
      PINNACE_ASSIGN(const ValueId places, repeated(w, seen, type.shape[0].size, "places"));
      inputs[i] = w.add("tensor_scatter", name, {kept, inputs[i], places}, type, {{"axis", int64_t{axis}}});
      w.set_next(kept, inputs[i]);
    }
    if (f.delay > 0) {  // keys before the value's first
      const TensorType mask{DType::kBool, {1, 1, 1, all}, nullptr};
      PINNACE_ASSIGN(inputs[3], w.constant("mask", mask, [&](int64_t i) { return i >= f.delay ? 1 : 0; }));
    }
    const ValueId total = w.add("add", "total", {seen, chunk}, one);
    PINNACE_ASSIGN(inputs[6], repeated(w, total, w.type(inputs[0]).shape[0].size, "totals"));
    w.copy(node, std::move(inputs));
    return {};
  };
  return step;
}

Result<StreamStep> stream_range(StreamReader& reader, const Node& node) {
  const auto start = reader.number(node, 0), delta = reader.number(node, 2);
  const auto limit = reader.lengths(node, 1);
  if (!start || !delta || !limit || limit->size() != 1 || (*limit)[0].fixed()) {
    return cannot_stream("it counts to a number that depends on elements");
  }
  const Length last = (*limit)[0];
  const auto by = static_cast<int64_t>(*delta);
  if (*start != std::floor(*start) || *delta != std::floor(*delta) || by < 1) {
    return cannot_stream("it does not count upwards in whole numbers");
  }
  Flow out;
  out.up = last.up;
  out.down = last.down * by;
  const int64_t common = std::gcd(out.up, out.down);
  out.up /= common;
  out.down /= common;
  reader.need_multiple(out.down);
  out.more = ceil_div(last.plus - static_cast<int64_t>(*start), by);
  StreamStep step;
  step.outputs = {out};
  step.write = [&node, out, by, first = static_cast<int64_t>(*start)](StreamWriter& w, const Needed&) -> Status {
    PINNACE_ASSIGN(ValueId id, w.within(out.up, out.down));
    const TensorType line{DType::kI64, {Dim()}, nullptr};
    // What finish() feeds has no places of its own: a table may end with the last element.
    PINNACE_ASSIGN(const ValueId last, w.last_within(out));
    id = w.add("min", "place", {id, last}, line);
    PINNACE_ASSIGN(const ValueId seen, w.seen(out.up, out.down));
    id = w.add("add", "places", {id, seen}, line);
    if (by != 1) {
      PINNACE_ASSIGN(const ValueId factor, w.ints({by}));
      id = w.add("mul", "steps", {id, factor}, line);
    }
    if (first != 0) {
      PINNACE_ASSIGN(const ValueId shift, w.ints({first}));
      id = w.add("add", "first", {id, shift}, line);
    }
    const DType wanted = w.reader.type(node.outputs[0]).dtype;
    if (wanted != DType::kI64) {
      const char* code = wanted == DType::kF32 ? "f32" : wanted == DType::kI32 ? "i32" : nullptr;
      if (!code) return cannot_stream("it counts in a type that has no rule", std::string(dtype_name(wanted)));
      id = w.add("cast", "typed", {id}, TensorType{wanted, {Dim()}, nullptr}, {{"to", std::string(code)}});
    }
    w.map(node.outputs[0], id);
    return {};
  };
  return step;
}

}  // namespace pinnace
