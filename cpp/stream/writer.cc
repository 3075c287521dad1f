// StreamWriter: the nodes and states of the new graph.
#include <algorithm>

#include "ops/element.h"
#include "stream/rule.h"
#include "stream/stream.h"

namespace pinnace {
namespace {

TensorType with_open(TensorType type, int axis) {
  type.shape[static_cast<size_t>(axis)] = Dim();
  return type;
}

/// The bytes of a tensor whose elements these are; of a quantised one what they stand for.
Result<Buffer> filled(const TensorType& type, const std::function<double(int64_t)>& element) {
  if (!(dtypes(type.dtype) & kAny)) {
    return cannot_stream("values of this type cannot be kept", std::string(dtype_name(type.dtype)));
  }
  if (type.quantized() && type.quantization->axis >= 0) {
    return cannot_stream("values with several scales cannot be kept", to_string(type));
  }
  PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type.bytes()), "elements of a stream"));
  visit(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    auto* to = reinterpret_cast<T*>(bytes.data());
    for (int64_t i = 0; i < type.elements(); ++i) {
      double stored = element(i);
      if (type.quantized()) stored = quantize(static_cast<float>(stored), scale_zero(type), int_range(type.dtype));
      to[i] = convert<T>(stored);
    }
  });
  return bytes;
}

}  // namespace

ValueId StreamWriter::mapped(ValueId id) {
  if (id == kNoValue) return kNoValue;
  ValueId& to = mapped_[static_cast<size_t>(id)];
  if (to == kNoValue && reader.graph.value(id).constant) {
    const Value& v = reader.graph.value(id);
    to = graph.add_constant(v.name, v.type, v.constant);
  }
  return to;
}

ValueId StreamWriter::add(std::string_view op, const std::string& name, std::vector<ValueId> inputs, TensorType type,
                          decltype(Node::attrs) attrs) {
  const ValueId id = graph.add_value(str_cat(node_name, ".", name), std::move(type));
  Node* node = graph.add_node(std::string(op), reader.ops().find(op)->version, str_cat(node_name, ".", name),
                              std::move(inputs), {id});
  for (auto& [key, value] : attrs) node->set_attr(key, std::move(value));
  node->source = source;
  return id;
}

Node& StreamWriter::copy(const Node& node, std::vector<ValueId> inputs) {
  std::vector<ValueId> outputs;
  for (const ValueId id : node.outputs) {
    const Value& v = reader.graph.value(id);
    TensorType type = v.type;
    for (Dim& d : type.shape) d = d.known() ? d : Dim();
    outputs.push_back(graph.add_value(v.name, std::move(type)));
    map(id, outputs.back());
  }
  Node* made = graph.add_node(node.op, node.version, node.name, std::move(inputs), std::move(outputs));
  made->attrs = node.attrs;
  made->source = node.source;
  return *made;
}

Node& StreamWriter::copy(const Node& node) {
  std::vector<ValueId> inputs;
  for (const ValueId id : node.inputs) inputs.push_back(mapped(id));
  return copy(node, std::move(inputs));
}

Result<ValueId> StreamWriter::constant(const std::string& name, TensorType type,
                                       const std::function<double(int64_t)>& element) {
  PINNACE_ASSIGN(Buffer bytes, filled(type, element));
  return graph.add_constant(str_cat(node_name, ".", name), std::move(type), Constant::of(std::move(bytes)));
}

Result<ValueId> StreamWriter::ints(const std::vector<int64_t>& elements) {
  if (const auto found = ints_.find(elements); found != ints_.end()) return found->second;
  const Shape shape{static_cast<int64_t>(elements.size())};
  PINNACE_ASSIGN(const ValueId id,
                 graph.add_constant_of<int64_t>(str_cat(stream_, ".numbers"), DType::kI64, shape, elements));
  ints_.emplace(elements, id);
  return id;
}

Result<ValueId> StreamWriter::with_size(const std::vector<int64_t>& elements, size_t at, ValueId size) {
  std::vector<ValueId> parts;
  const auto place = elements.begin() + static_cast<ptrdiff_t>(at);
  if (place != elements.begin()) {
    PINNACE_ASSIGN(parts.emplace_back(), ints({elements.begin(), place}));
  }
  parts.push_back(size);
  if (place + 1 != elements.end()) {
    PINNACE_ASSIGN(parts.emplace_back(), ints({place + 1, elements.end()}));
  }
  if (parts.size() == 1) return size;
  const TensorType type{DType::kI64, {static_cast<int64_t>(elements.size())}, nullptr};
  return add("concat", "sizes", std::move(parts), type, {{"axis", int64_t{0}}});
}

Result<ValueId> StreamWriter::scalar(const TensorType& like, double value) {
  return constant("number", TensorType{like.dtype, {}, like.quantization}, [&](int64_t) { return value; });
}

Result<ValueId> StreamWriter::state(const std::string& name, TensorType type,
                                    const std::function<double(int64_t)>& element) {
  if (!type.concrete()) {
    return cannot_stream("a dimension beside time has no fixed size, so that no state can hold the value",
                         to_string(type.shape));
  }
  PINNACE_ASSIGN(Buffer bytes, filled(type, element));
  const auto taken = [&](const std::string& wanted) {
    return std::any_of(graph.states.begin(), graph.states.end(), [&](const State& s) { return s.name == wanted; });
  };
  std::string unique = name;
  for (int i = 1; taken(unique); ++i) unique = str_cat(name, "_", i);
  const ValueId id = graph.add_value(unique, std::move(type));
  graph.states.push_back({std::move(unique), id, id, Constant::of(std::move(bytes))});
  return id;
}

void StreamWriter::set_next(ValueId state, ValueId next) {
  for (State& s : graph.states) {
    if (s.input == state) s.output = next;
  }
}

Result<ValueId> StreamWriter::cut(ValueId id, int axis, int64_t begin, int64_t end, int64_t step,
                                  const std::string& name) {
  PINNACE_ASSIGN(const ValueId starts, ints({begin}));
  PINNACE_ASSIGN(const ValueId ends, ints({end == 0 ? INT64_MAX : end}));
  PINNACE_ASSIGN(const ValueId axes, ints({axis}));
  std::vector<ValueId> inputs = {id, starts, ends, axes};
  if (step != 1) {
    PINNACE_ASSIGN(const ValueId steps, ints({step}));
    inputs.push_back(steps);
  }
  return add("slice", name, std::move(inputs), with_open(type(id), axis));
}

Result<ValueId> StreamWriter::with_tail(ValueId id, const Flow& flow, int64_t count, double padding,
                                        const std::string& name) {
  if (count == 0) return id;
  TensorType kept = type(id);
  const auto axis = static_cast<size_t>(flow.axis);
  kept.shape[axis] = count;
  int64_t inner = 1;
  for (size_t i = axis + 1; i < kept.shape.size(); ++i) inner *= kept.shape[i].size;
  PINNACE_ASSIGN(const ValueId old, state(str_cat(node_name, ".", name), kept,
                                          [&](int64_t i) { return flow.initial(i / inner % count - count, padding); }));
  const ValueId joined = add("concat", str_cat(name, ".joined"), {old, id}, with_open(type(id), flow.axis),
                             {{"axis", int64_t{flow.axis}}});
  PINNACE_ASSIGN(const ValueId next, cut(joined, flow.axis, -count, 0, 1, str_cat(name, ".next")));
  set_next(old, next);
  return joined;
}

Result<ValueId> StreamWriter::delayed(ValueId id, const Flow& flow, int64_t to) {
  if (to == flow.delay) return id;
  const std::tuple key{id, flow.delay, flow.fill, to};
  if (const auto found = delayed_.find(key); found != delayed_.end()) return found->second;
  const int64_t count = to - flow.delay;
  PINNACE_ASSIGN(const ValueId joined, with_tail(id, flow, count, flow.before.value_or(0), "line"));
  PINNACE_ASSIGN(const ValueId late, cut(joined, flow.axis, 0, -count, 1, "late"));
  delayed_.emplace(key, late);
  return late;
}

Result<ValueId> StreamWriter::masked(ValueId id, const Flow& flow, bool before, bool after, double value) {
  if (!before && !after) return id;
  const std::tuple key{id, before ? flow.delay : -1, after ? flow.more + flow.delay : INT64_MAX, value};
  if (const auto found = masked_.find(key); found != masked_.end()) return found->second;
  PINNACE_ASSIGN(const ValueId place, within(flow.up, flow.down));
  const TensorType line{DType::kBool, {Dim()}, nullptr};
  ValueId inside = kNoValue;
  if (before) {
    PINNACE_ASSIGN(const ValueId first, early(flow));
    inside = add("greater_or_equal", "begun", {place, first}, line);
  }
  if (after) {
    PINNACE_ASSIGN(const ValueId last, last_within(flow));
    const ValueId not_over = add("less_or_equal", "not_over", {place, last}, line);
    inside = inside == kNoValue ? not_over : add("and", "inside", {inside, not_over}, line);
  }
  const int behind = type(id).rank() - 1 - flow.axis;
  if (behind > 0) {
    std::vector<int64_t> shape(static_cast<size_t>(behind) + 1, 1);
    shape[0] = -1;
    PINNACE_ASSIGN(const ValueId sizes, ints(shape));
    TensorType column{DType::kBool, Shape(shape.size(), Dim(1)), nullptr};
    column.shape[0] = Dim();
    inside = add("reshape", "mask", {inside, sizes}, column);
  }
  PINNACE_ASSIGN(const ValueId outside, scalar(type(id), value));
  const ValueId made = add("where", "padded", {inside, id, outside}, type(id));
  masked_.emplace(key, made);
  return made;
}

Result<ValueId> StreamWriter::padded(ValueId id, const Flow& flow, const Needed& reads, double value) {
  const bool before = reads.first < 0 && flow.delay > 0 && flow.before != value;
  const bool after = reads.any() && reads.last > flow.more && flow.after != value;
  return masked(id, flow, before, after, value);
}

Result<ValueId> StreamWriter::scaled(ValueId count, int64_t up, int64_t down) {
  const std::tuple key{count, up, down};
  if (const auto found = scaled_.find(key); found != scaled_.end()) return found->second;
  const TensorType one{DType::kI64, {1}, nullptr};
  if (up != 1) {
    PINNACE_ASSIGN(const ValueId factor, ints({up}));
    count = add("mul", "up", {count, factor}, one);
  }
  if (down != 1) {
    PINNACE_ASSIGN(const ValueId divisor, ints({down}));
    count = add("div", "down", {count, divisor}, one);
  }
  scaled_.emplace(key, count);
  return count;
}

Result<ValueId> StreamWriter::chunk(int64_t up, int64_t down) {
  if (chunk_ == kNoValue) {
    chunk_ = add("shape", "chunk", {input_}, TensorType{DType::kI64, {1}, nullptr},
                 {{"end", int64_t{axis_} + 1}, {"start", int64_t{axis_}}});
  }
  return scaled(chunk_, up, down);
}

Result<ValueId> StreamWriter::seen(int64_t up, int64_t down) {
  if (seen_ == kNoValue) {
    const TensorType one{DType::kI64, {1}, nullptr};
    PINNACE_ASSIGN(seen_, state(str_cat(stream_, ".seen"), one, [](int64_t) { return 0; }));
    PINNACE_ASSIGN(const ValueId now, chunk(1, 1));
    const ValueId next = add("add", "seen", {seen_, now}, one);
    PINNACE_ASSIGN(const ValueId most, ints({kMostSeen}));
    set_next(seen_, add("min", "most_seen", {next, most}, one));
  }
  return scaled(seen_, up, down);
}

Result<ValueId> StreamWriter::within(int64_t up, int64_t down) {
  const std::pair key{up, down};
  if (const auto found = within_.find(key); found != within_.end()) return found->second;
  PINNACE_ASSIGN(const ValueId count, chunk(up, down));
  PINNACE_ASSIGN(const ValueId zero, ints({0}));
  PINNACE_ASSIGN(const ValueId one, ints({1}));
  const ValueId id = add("range", "within", {zero, count, one}, TensorType{DType::kI64, {Dim()}, nullptr});
  within_.emplace(key, id);
  return id;
}

Result<ValueId> StreamWriter::early(const Flow& flow, int64_t back) {
  // No more of the elements seen than matter, so that their product with the rate fits 32 bits, which some devices
  // have.
  const TensorType one{DType::kI64, {1}, nullptr};
  PINNACE_ASSIGN(const ValueId all, seen(1, 1));
  PINNACE_ASSIGN(const ValueId enough, ints({ceil_div(std::max<int64_t>(0, flow.delay + back), flow.up) * flow.down}));
  PINNACE_ASSIGN(const ValueId count, scaled(add("min", "seen_enough", {all, enough}, one), flow.up, flow.down));
  PINNACE_ASSIGN(const ValueId delay, ints({flow.delay}));
  return add("sub", "early", {delay, count}, one);
}

Result<ValueId> StreamWriter::last_within(const Flow& flow) {
  const TensorType one{DType::kI64, {1}, nullptr};
  if (far_ == kNoValue) {
    PINNACE_ASSIGN(const ValueId open, state(str_cat(stream_, ".open"), one, [](int64_t) { return 1; }));
    PINNACE_ASSIGN(const ValueId most, ints({kMostSeen}));
    far_ = add("mul", "far", {open, most}, one);
  }
  // When the input has ended, the chunk begins with the first element that is none of it.
  PINNACE_ASSIGN(const ValueId shift, ints({flow.more + flow.delay - 1}));
  return add("add", "last", {far_, shift}, one);
}

}  // namespace pinnace
