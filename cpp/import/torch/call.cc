// Call: what is known of values, emission of nodes, outputs.
#include "base/dtype_code.h"
#include "import/torch/mapping.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace pinnace::torch_import {
namespace {

const TensorType kNothing{DType::kF32, {}, nullptr};

/// One element of that type as bytes.
struct Element {
  std::byte bytes[8] = {};
  size_t size = 0;
  template <class T>
  void set(T value) {
    std::memcpy(bytes, &value, sizeof value);
    size = sizeof value;
  }
};

/// Without its fraction; 0 of NaN, and at most 9.2e18 either way, so that an int64 holds it.
int64_t whole_number(double value) {
  return static_cast<int64_t>(std::clamp(std::isnan(value) ? 0.0 : std::trunc(value), -9.2e18, 9.2e18));
}
int64_t whole_number(int64_t value) {
  return value;
}

template <class N>
Element element_of(N value, DType dtype) {
  Element e;
  switch (dtype) {
    case DType::kF32:
      e.set(static_cast<float>(value));
      break;
    case DType::kF64:
      e.set(static_cast<double>(value));
      break;
    case DType::kF16:
      e.set(Half(static_cast<float>(value)));
      break;
    case DType::kBF16:
      e.set(BFloat16(static_cast<float>(value)));
      break;
    case DType::kI8:
      e.set(static_cast<int8_t>(whole_number(value)));
      break;
    case DType::kU8:
      e.set(static_cast<uint8_t>(whole_number(value)));
      break;
    case DType::kI16:
      e.set(static_cast<int16_t>(whole_number(value)));
      break;
    case DType::kU16:
      e.set(static_cast<uint16_t>(whole_number(value)));
      break;
    case DType::kI32:
      e.set(static_cast<int32_t>(whole_number(value)));
      break;
    case DType::kU32:
      e.set(static_cast<uint32_t>(whole_number(value)));
      break;
    case DType::kI64:
    case DType::kU64:
      e.set(whole_number(value));
      break;
    default:
      e.set(static_cast<uint8_t>(value != 0));
      break;
  }
  return e;
}

int category(DType dtype) {
  if (dtype == DType::kBool) return 0;
  return (dtypes(dtype) & kFloats) ? 2 : 1;
}

DType promote_pair(DType a, DType b) {
  if (a == b) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (category(a) == 2) {
    if (a == DType::kF64 || b == DType::kF64) return DType::kF64;
    return DType::kF32;  // f16 with bf16, or either with f32
  }
  const auto is_signed = [](DType d) {
    return d == DType::kI8 || d == DType::kI16 || d == DType::kI32 || d == DType::kI64;
  };
  if (is_signed(a) == is_signed(b)) return dtype_bits(a) > dtype_bits(b) ? a : b;
  const DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (dtype_bits(s) > dtype_bits(u)) return s;
  return dtype_bits(u) == 8 ? DType::kI16 : dtype_bits(u) == 16 ? DType::kI32 : DType::kI64;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------ types

const TensorType& Call::type(ValueId id) const {
  return id == kNoValue ? kNothing : builder_.type(id);
}

bool Call::is_pair(ValueId id) const {
  return std::find(pairs_.begin(), pairs_.end(), id) != pairs_.end();
}

void Call::mark_pair(ValueId id) {
  if (id != kNoValue && !is_pair(id)) pairs_.push_back(id);
}

ValueId Call::paired_like(ValueId model, ValueId made) {
  if (is_pair(model)) mark_pair(made);
  return made;
}

Dim Call::dim(ValueId id, int64_t axis) const {
  const Shape& shape = type(id).shape;
  if (axis < 0) axis += rank(id);
  return axis >= 0 && axis < rank(id) ? shape[static_cast<size_t>(axis)] : Dim();
}

const TensorMeta* Call::meta(size_t output) const {
  size_t at = 0;
  for (const Argument& a : node_.outputs) {
    const size_t count = a.kind == ArgumentKind::kTensors ? a.items.size() : 1;
    if (output < at + count) {
      const Argument& one = a.kind == ArgumentKind::kTensors ? a.items[output - at] : a;
      if (one.kind != ArgumentKind::kTensor) return nullptr;
      const auto found = scope_.def->tensors.find(one.text);
      return found == scope_.def->tensors.end() ? nullptr : &found->second;
    }
    at += count;
  }
  return nullptr;
}

bool Call::reads(size_t output) const {
  size_t at = 0;
  std::string name;
  for (const Argument& a : node_.outputs) {
    const size_t count = a.kind == ArgumentKind::kTensors ? a.items.size() : 1;
    if (output >= at && output < at + count)
      name = a.kind == ArgumentKind::kTensors ? a.items[output - at].text : a.text;
    at += count;
  }
  const auto uses = [&](const Argument& a) {
    return a.text == name ||
           std::any_of(a.items.begin(), a.items.end(), [&](const Argument& i) { return i.text == name; });
  };
  if (name.empty()) return false;
  for (const NodeDef& node : scope_.def->nodes) {
    for (const NamedArgument& input : node.inputs) {
      if (uses(input.value)) return true;
    }
  }
  return std::any_of(scope_.def->outputs.begin(), scope_.def->outputs.end(), uses);
}

const TensorMeta* Call::meta_of(std::string_view name) const {
  const Argument* a = node_.input(name);
  if (!a || a->kind != ArgumentKind::kTensor) return nullptr;
  const auto found = scope_.def->tensors.find(a->text);
  return found == scope_.def->tensors.end() ? nullptr : &found->second;
}

DType Call::out_dtype(size_t output) {
  const TensorMeta* m = meta(output);
  if (!m) return failed("the archive does not say the type of an output", "", DType::kF32);
  const auto dtype = m->part_dtype() ? m->part_dtype() : m->dtype();
  if (!dtype) return failed("this element type is not supported", scalar_type_name(m->scalar_type), DType::kF32);
  return *dtype;
}

std::optional<std::vector<int64_t>> Call::known_ints(ValueId id) const {
  if (id == kNoValue) return std::nullopt;
  const ConstantPtr& data = builder_.type_inference.data[static_cast<size_t>(id)];
  if (!data || dtype_of(id) != DType::kI64) return std::nullopt;
  std::vector<int64_t> list(data->bytes() / sizeof(int64_t));
  if (!list.empty()) std::memcpy(list.data(), data->data(), list.size() * sizeof(int64_t));
  return list;
}

ConstantPtr Call::known(ValueId id) const {
  const ConstantPtr data = id == kNoValue ? nullptr : builder_.type_inference.data[static_cast<size_t>(id)];
  return data && data->check().ok() ? data : nullptr;
}

DType Call::promote(std::span<const Operand> operands) {
  std::optional<DType> with_dims, without, numbers;
  const auto join = [](std::optional<DType>& to, DType dtype) { to = to ? promote_pair(*to, dtype) : dtype; };
  for (const Operand& o : operands) {
    if (o.is_tensor()) {
      join(rank(o.tensor) > 0 ? with_dims : without, dtype_of(o.tensor));
    } else {
      join(numbers, o.scalar.kind == Scalar::Kind::kFloat  ? DType::kF32
                    : o.scalar.kind == Scalar::Kind::kBool ? DType::kBool
                                                           : DType::kI64);
    }
  }
  const auto combine = [](std::optional<DType> higher, std::optional<DType> lower) {
    if (!higher || !lower) return higher ? higher : lower;
    return category(*higher) >= category(*lower) ? higher : std::optional(promote_pair(*higher, *lower));
  };
  return combine(with_dims, combine(without, numbers)).value_or(DType::kF32);
}

// --------------------------------------------------------------------------------------------------------- emission

std::vector<ValueId> Call::add_node(std::string_view op, std::vector<ValueId> inputs, int outputs,
                                    std::vector<std::pair<std::string, Attr>> attrs) {
  std::vector<ValueId> nothing(static_cast<size_t>(outputs), kNoValue);
  if (!ok()) return nothing;
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  auto made =
      builder_.emit(op, std::move(inputs), outputs, std::move(attrs), scope_.part_name(node_, op), node_.source);
  if (!made) {
    fail(made.status());
    return nothing;
  }
  return std::move(*made);
}

std::vector<ValueId> Call::add_many(std::string_view op, std::vector<ValueId> inputs, int outputs, AttrList attrs) {
  std::vector<std::pair<std::string, Attr>> list;
  for (const auto& [name, value] : attrs) list.emplace_back(name, value);
  return add_node(op, std::move(inputs), outputs, std::move(list));
}

ValueId Call::add(std::string_view op, std::vector<ValueId> inputs, AttrList attrs) {
  return add_many(op, std::move(inputs), 1, attrs)[0];
}

ValueId Call::constant(double value, DType dtype, const Shape& shape) {
  if (!ok()) return kNoValue;
  const Element e = element_of(value, dtype);
  auto id = builder_.constant(dtype, shape, e.bytes, e.size, scope_.part_name(node_, "number"));
  if (!id) fail(id.status());
  return id ? *id : kNoValue;
}

ValueId Call::constant_int(int64_t value, DType dtype, const Shape& shape) {
  if (!ok()) return kNoValue;
  const Element e = element_of(value, dtype);
  auto id = builder_.constant(dtype, shape, e.bytes, e.size, scope_.part_name(node_, "number"));
  if (!id) fail(id.status());
  return id ? *id : kNoValue;
}

ValueId Call::constant_ints(const std::vector<int64_t>& values) {
  if (!ok()) return kNoValue;
  auto id = builder_.constant(DType::kI64, {static_cast<int64_t>(values.size())}, values.data(),
                              values.size() * sizeof(int64_t), scope_.part_name(node_, "numbers"));
  if (!id) fail(id.status());
  return id ? *id : kNoValue;
}

ValueId Call::constant_floats(const std::vector<float>& values, const Shape& shape) {
  if (!ok()) return kNoValue;
  auto id = builder_.constant(DType::kF32, shape, values.data(), values.size() * sizeof(float),
                              scope_.part_name(node_, "numbers"));
  if (!id) fail(id.status());
  return id ? *id : kNoValue;
}

ValueId Call::constant_bytes(const std::vector<uint8_t>& values, DType dtype, const Shape& shape) {
  if (!ok()) return kNoValue;
  auto id = builder_.constant(dtype, shape, values.data(), values.size(), scope_.part_name(node_, "bytes"));
  if (!id) fail(id.status());
  return id ? *id : kNoValue;
}

ValueId Call::cast(ValueId id, DType dtype) {
  if (!ok() || dtype_of(id) == dtype) return id;
  return paired_like(id, add("cast", {id}, {{"to", std::string(dtype_code(dtype))}}));
}

ValueId Call::as_tensor(const Operand& operand, DType dtype) {
  if (operand.is_tensor()) return cast(operand.tensor, dtype);
  const Scalar& s = operand.scalar;
  if (!s.known) return cast(reshape(s.value, std::vector<int64_t>{}), dtype);
  if (s.kind == Scalar::Kind::kFloat) {
    if (category(dtype) != 2 && dtype != DType::kBool) return constant_int(whole_number(s.real), dtype);
    return constant(s.real, dtype);
  }
  return constant_int(s.integer, dtype);
}

ValueId Call::size_value(const Scalar& size) {
  return size.known ? constant_ints({size.integer}) : cast(size.value, DType::kI64);
}

ValueId Call::size_values(const std::vector<Scalar>& sizes) {
  const bool known = std::all_of(sizes.begin(), sizes.end(), [](const Scalar& s) { return s.known; });
  if (known) {
    std::vector<int64_t> numbers;
    for (const Scalar& s : sizes) numbers.push_back(s.integer);
    return constant_ints(numbers);
  }
  std::vector<ValueId> parts;
  for (const Scalar& s : sizes) parts.push_back(size_value(s));
  return concat(std::move(parts), 0);
}

Scalar Call::size_of(ValueId id, int64_t axis) {
  const Dim d = dim(id, axis);
  if (d.known() || !ok()) return Scalar::of_int(d.known() ? d.size : 1);
  if (axis < 0) axis += rank(id);
  return Scalar::of_value(Scalar::Kind::kInt, add("shape", {id}, {{"start", axis}, {"end", axis + 1}}));
}

std::vector<Scalar> Call::sizes_of(ValueId id) {
  std::vector<Scalar> list;
  for (int i = 0; i < rank(id); ++i) list.push_back(size_of(id, i));
  return list;
}

Scalar Call::add_sizes(const Scalar& a, const Scalar& b) {
  int64_t sum = 0;
  if (a.known && b.known && !__builtin_add_overflow(a.integer, b.integer, &sum)) return Scalar::of_int(sum);
  return Scalar::of_value(Scalar::Kind::kInt, add("add", {size_value(a), size_value(b)}));
}

Scalar Call::multiply_sizes(const Scalar& a, const Scalar& b) {
  int64_t product = 0;
  if (a.known && b.known && !__builtin_mul_overflow(a.integer, b.integer, &product)) return Scalar::of_int(product);
  return Scalar::of_value(Scalar::Kind::kInt, add("mul", {size_value(a), size_value(b)}));
}

ValueId Call::reshape(ValueId id, const std::vector<int64_t>& sizes) {
  std::vector<Scalar> list;
  for (int64_t n : sizes) list.push_back(Scalar::of_int(n));
  return reshape(id, list);
}

ValueId Call::reshape(ValueId id, const std::vector<Scalar>& logical) {
  if (!ok()) return kNoValue;
  std::vector<Scalar> sizes = logical;
  if (is_pair(id)) sizes.push_back(Scalar::of_int(2));
  const Shape& from = type(id).shape;
  bool same = from.size() == sizes.size(), zero = false, open = false, inferred = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    same = same && sizes[i].known && from[i].known() && from[i].size == sizes[i].integer;
    zero = zero || sizes[i].is(0);
    open = open || !sizes[i].known;
    inferred = inferred || sizes[i].is(-1);
  }
  if (same) return id;
  if (zero && inferred) {  // no elements: whatever -1 stands for, the archive says it
    const TensorMeta* m = meta();
    std::vector<Scalar> exact = sizes;
    for (size_t i = 0; i < exact.size(); ++i) {
      if (!exact[i].is(-1)) continue;
      if (!m || m->sizes.size() != logical.size() || !m->sizes[i].expression.empty())
        return failed("-1 beside a size of 0", "", kNoValue);
      exact[i] = Scalar::of_int(m->sizes[i].value);
    }
    return paired_like(id, add("reshape", {id, size_values(exact)}, {{"allowzero", 1}}));
  }
  if (!open) return paired_like(id, add("reshape", {id, size_values(sizes)}, {{"allowzero", zero ? 1 : 0}}));
  // A symbolic size that stays in its place is 0, one unknown size is -1: the shape is then a constant. Other symbols
  // are computed, so that the result's type keeps them.
  std::vector<Scalar> form = sizes;
  std::vector<size_t> unknown;
  bool others_may_be_zero = false;  // -1 cannot be found beside a size of 0
  for (size_t i = 0; i < form.size() && !zero; ++i) {
    if (form[i].known) continue;
    const auto& known = builder_.type_inference.known[static_cast<size_t>(form[i].value)];
    const int32_t symbol = known.size() == 1 ? known[0].symbol : -1;
    if (symbol < 0) {
      unknown.push_back(i);
      continue;
    }
    others_may_be_zero |= builder_.session.symbols[static_cast<size_t>(symbol)].min == 0;
    if (i < from.size() && from[i].symbol == symbol) form[i] = Scalar::of_int(0);
  }
  if (unknown.size() == 1 && !inferred && !others_may_be_zero) form[unknown[0]] = Scalar::of_int(-1);
  return paired_like(id, add("reshape", {id, size_values(form)}, {{"allowzero", zero ? 1 : 0}}));
}

ValueId Call::unsqueeze(ValueId id, const std::vector<int64_t>& axes) {
  return axes.empty() ? id : paired_like(id, add("unsqueeze", {id, constant_ints(axes)}));
}

ValueId Call::squeeze(ValueId id, const std::vector<int64_t>& axes) {
  return axes.empty() ? id : paired_like(id, add("squeeze", {id, constant_ints(axes)}));
}

ValueId Call::transpose(ValueId id, const std::vector<int64_t>& order) {
  bool same = true;
  for (size_t i = 0; i < order.size(); ++i) same = same && order[i] == static_cast<int64_t>(i);
  if (same) return id;
  std::vector<int64_t> perm = order;
  if (is_pair(id)) perm.push_back(static_cast<int64_t>(order.size()));
  return paired_like(id, add("transpose", {id}, {{"perm", perm}}));
}

ValueId Call::swap(ValueId id, int64_t a, int64_t b) {
  const int64_t count = rank(id);
  if (a < 0) a += count;
  if (b < 0) b += count;
  if (a < 0 || b < 0 || a >= count || b >= count)
    return failed("an axis is outside the rank", str_cat(count), kNoValue);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) order.push_back(i == a ? b : i == b ? a : i);
  return transpose(id, order);
}

ValueId Call::slice(ValueId id, int64_t axis, const Scalar& start, const Scalar& end, int64_t step) {
  const Dim d = dim(id, axis);
  const bool from_start = start.known && (start.integer == 0 || (d.known() && start.integer <= -d.size));
  const bool to_end = end.known && (end.integer == INT64_MAX || (d.known() && end.integer >= d.size));
  if (from_start && to_end && step == 1) return id;
  if (axis < 0) axis += rank(id);
  return paired_like(id, add("slice", {id, size_value(start), size_value(end), constant_ints({axis}),
                                       step == 1 ? kNoValue : constant_ints({step})}));
}

ValueId Call::concat(std::vector<ValueId> parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  if (parts.empty()) return failed("nothing to concatenate", "", kNoValue);
  if (axis < 0) axis += rank(parts[0]);
  for (ValueId id : parts) {
    if (is_pair(id) != is_pair(parts[0])) return failed("complex tensors put together with real ones", "", kNoValue);
  }
  const ValueId model = parts[0];
  return paired_like(model, add("concat", std::move(parts), {{"axis", axis}}));
}

ValueId Call::gather(ValueId id, ValueId places, int64_t axis) {
  if (axis < 0) axis += rank(id);
  return paired_like(id, add("gather", {id, places}, {{"axis", axis}}));
}

std::vector<ValueId> Call::split(ValueId id, const std::vector<int64_t>& sizes, int64_t axis) {
  std::vector<ValueId> parts =
      add_many("split", {id, constant_ints(sizes)}, static_cast<int>(sizes.size()), {{"axis", axis}});
  for (ValueId part : parts) paired_like(id, part);
  return parts;
}

ValueId Call::expand(ValueId id, const std::vector<Scalar>& logical) {
  if (!ok()) return kNoValue;
  std::vector<Scalar> sizes = logical;
  if (is_pair(id)) sizes.push_back(Scalar::of_int(-1));
  const Shape& from = type(id).shape;
  if (sizes.size() < from.size()) return failed("expand to fewer dimensions", str_cat(sizes.size()), kNoValue);
  const size_t added = sizes.size() - from.size();
  std::vector<Scalar> wanted = sizes;
  bool same = added == 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Dim d = i < added ? Dim() : from[i - added];
    if (wanted[i].is(-1) || (d.known() && wanted[i].is(d.size))) {
      wanted[i] = Scalar::of_int(1);
    } else {
      same = false;
    }
  }
  return same ? id : paired_like(id, add("expand", {id, size_values(wanted)}));
}

ValueId Call::full(const std::vector<Scalar>& logical, ValueId value) {
  if (logical.empty()) return rank(value) ? reshape(value, std::vector<int64_t>{}) : value;
  std::vector<Scalar> sizes = logical;
  if (is_pair(value)) sizes.push_back(Scalar::of_int(2));
  return paired_like(value, add("expand", {value, size_values(sizes)}));
}

// ----------------------------------------------------------------------------------------------------------- outputs

void Call::outputs(std::vector<ValueId> ids) {
  outputs_ = std::move(ids);
  done_ = true;
}

void Call::output_scalar(Scalar scalar) {
  if (!ok()) return;
  if (!scalar.known && scalar.value != kNoValue) {
    const ConstantPtr& data = builder_.type_inference.data[static_cast<size_t>(scalar.value)];
    if (data && scalar.kind == Scalar::Kind::kInt && data->bytes() == 8 && dtype_of(scalar.value) == DType::kI64) {
      int64_t n;
      std::memcpy(&n, data->data(), sizeof n);
      scalar = Scalar::of_int(n);
    } else if (data && scalar.kind == Scalar::Kind::kBool && data->bytes() == 1) {
      scalar = Scalar::of_bool(*data->data() != std::byte{0});
    } else if (data && scalar.kind == Scalar::Kind::kFloat && data->bytes() == 8 &&
               dtype_of(scalar.value) == DType::kF64) {
      double d;
      std::memcpy(&d, data->data(), sizeof d);
      scalar = Scalar::of_float(d);
    }
  }
  scalars_.push_back(scalar);
  done_ = true;
}

}  // namespace pinnace::torch_import
