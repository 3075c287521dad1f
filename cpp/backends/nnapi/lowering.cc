// Operands, constants, layouts and boundaries of a model that is being made of a segment.
#include "backends/nnapi/lowering.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/half.h"
#include "nnapi/shapes.h"

namespace pinnace::nnapi_client {
namespace {

using enum OperandCode;
using nnapi::Lifetime;
using nnapi::Operand;

/// NNAPI copies values up to this many bytes; longer ones stay in memory that lives as long as the model.
constexpr size_t kCopiedBytes = 128;

Status refuse(Verdict& verdict, Rule rule, std::string value) {
  verdict = refusal(rule, std::move(value));
  return Status(Code::kUnsupported, verdict.text);
}

/// What addOperand checks, as a verdict.
Status check_operand(OperandCode type, const std::vector<uint32_t>& dims, float scale, int32_t zero_point,
                     Verdict& verdict) {
  const auto code = static_cast<int32_t>(type);
  const Status valid = nnapi::validate_operand(code, static_cast<uint32_t>(dims.size()),
                                               dims.empty() ? nullptr : dims.data(), scale, zero_point);
  if (valid.ok()) return {};
  const bool large = nnapi::validate_operand(code, 0, nullptr, scale, zero_point).ok();
  return refuse(verdict, large ? Rule::kBytes : Rule::kQuantization, valid.message());
}

/// True if [N, C, H, W] and [N, H, W, C] have elements in the same order.
bool same_order(const std::vector<uint32_t>& nchw) {
  assert(nchw.size() == 4);
  return nchw[1] == 1 || nchw[2] * uint64_t{nchw[3]} == 1;
}

size_t element_bytes(OperandCode type) {
  return nnapi::info(type).bytes;
}

/// Contents of a constant of the graph as NNAPI's elements.
void convert_elements(Elements elements, const void* from, size_t count, size_t size, std::byte* to) {
  if (elements == Elements::kNarrow) {
    const auto* wide = static_cast<const int64_t*>(from);
    auto* narrow = reinterpret_cast<int32_t*>(to);
    for (size_t i = 0; i < count; ++i)
      narrow[i] = static_cast<int32_t>(std::clamp<int64_t>(wide[i], INT32_MIN, INT32_MAX));
    return;
  }
  if (elements == Elements::kWiden) {
    const auto* half = static_cast<const uint16_t*>(from);
    std::copy_n(half, count, reinterpret_cast<int32_t*>(to));
    return;
  }
  std::memcpy(to, from, count * size);
  if (elements == Elements::kFlipSign) {
    for (size_t i = 0; i < count; ++i) to[i] ^= std::byte{0x80};
  }
}

}  // namespace

std::vector<uint32_t> channels_last(const std::vector<uint32_t>& dims) {
  assert(dims.size() == 4);
  return {dims[0], dims[2], dims[3], dims[1]};
}

namespace {
/// to[n][b][a] = from[n][a][b], elements of `size` bytes.
template <class T>
void swap_planes(size_t n, size_t a, size_t b, const std::byte* from, std::byte* to) {
  const auto* x = reinterpret_cast<const T*>(from);
  auto* y = reinterpret_cast<T*>(to);
  for (size_t k = 0; k < n; ++k, x += a * b, y += a * b) {
    for (size_t j = 0; j < b; ++j) {
      for (size_t i = 0; i < a; ++i) y[j * a + i] = x[i * b + j];
    }
  }
}
void swap_planes(size_t size, size_t n, size_t a, size_t b, const std::byte* from, std::byte* to) {
  if (size == 1) return swap_planes<uint8_t>(n, a, b, from, to);
  if (size == 2) return swap_planes<uint16_t>(n, a, b, from, to);
  if (size == 4) return swap_planes<uint32_t>(n, a, b, from, to);
  swap_planes<uint64_t>(n, a, b, from, to);
}
}  // namespace

void move_to_channels_last(const std::vector<uint32_t>& nchw, size_t size, const std::byte* from, std::byte* to) {
  swap_planes(size, nchw[0], nchw[1], size_t{nchw[2]} * nchw[3], from, to);
}
void move_from_channels_last(const std::vector<uint32_t>& nchw, size_t size, const std::byte* from, std::byte* to) {
  swap_planes(size, nchw[0], size_t{nchw[2]} * nchw[3], nchw[1], from, to);
}

bool Lowering::specify(const TensorType& type, OperandSpec& to, Verdict& verdict, bool narrow) const {
  const auto no = [&](Rule rule, std::string value) {
    verdict = refusal(rule, std::move(value));
    return false;
  };
  to = {};
  for (const Dim& d : type.shape) {
    if (d.size == 0) return no(Rule::kEmpty, to_string(type));
    if (d.size < 0) return no(Rule::kOpen, to_string(type));
    if (d.size > UINT32_MAX) return no(Rule::kBytes, to_string(type));
    to.dims.push_back(static_cast<uint32_t>(d.size));
  }
  if (to.dims.empty()) to.dims = {1};
  if (to.dims.size() > 4) {  // as one dimension: who takes such ranks knows the graph's sizes
    uint64_t count = 1;
    for (uint32_t d : to.dims) count = std::min<uint64_t>(count * d, UINT32_MAX);
    to.dims = {static_cast<uint32_t>(count)};
  }
  if (type.quantized()) {
    const Quantization& q = *type.quantization;
    if (q.axis >= 0 || q.block > 0 || q.scales.size() != 1) return no(Rule::kQuantization, to_string(type));
    if (type.dtype == DType::kU16) {
      to.type = kTensorInt32;
      to.elements = Elements::kWiden;
      return check_operand(to.type, to.dims, 0, 0, verdict).ok();
    }
    if (type.dtype != DType::kU8 && type.dtype != DType::kI8) return no(Rule::kType, to_string(type));
    to.scale = q.scales[0];
    to.zero_point = q.zero_points[0];
    to.type = kTensorQuant8Asymm;
    if (type.dtype == DType::kI8 && feature_level_ >= 4) {
      to.type = kTensorQuant8AsymmSigned;
    } else if (type.dtype == DType::kI8) {  // shifted: docs/nnapi_rules.md, rewrites
      to.elements = Elements::kFlipSign;
      to.zero_point += 128;
    }
  } else {
    switch (type.dtype) {
      case DType::kF32:
        to.type = kTensorFloat32;
        break;
      case DType::kF16:
        to.type = kTensorFloat16;
        break;
      case DType::kI32:
        to.type = kTensorInt32;
        break;
      case DType::kU8:  // plain integers: stored numbers of scale 1
      case DType::kI8:
        to.scale = 1;
        to.type = type.dtype == DType::kI8 && feature_level_ >= 4 ? kTensorQuant8AsymmSigned : kTensorQuant8Asymm;
        if (type.dtype == DType::kI8 && feature_level_ < 4) {
          to.elements = Elements::kFlipSign;
          to.zero_point = 128;
        }
        break;
      case DType::kBool:
        to.type = kTensorBool8;
        break;
      case DType::kU16:  // lower_node() knows who may read it
        to.type = kTensorInt32;
        to.elements = Elements::kWiden;
        break;
      case DType::kI64:
        if (!narrow) return no(Rule::kSize64, to_string(type));
        to.type = kTensorInt32;
        to.elements = Elements::kNarrow;
        break;
      default:
        return no(Rule::kType, to_string(type));
    }
  }
  const nnapi::OperandCodeInfo& code = nnapi::info(to.type);
  if (code.since > feature_level_) {
    return no(Rule::kFeatureLevel,
              str_cat(code.name, " is of feature level ", static_cast<int>(code.since), ", here are ", feature_level_));
  }
  return check_operand(to.type, to.dims, to.scale, to.zero_point, verdict).ok();
}

OperandId Lowering::add_operand(const OperandSpec& spec, Lifetime lifetime) {
  Operand o;
  o.type = spec.type;
  o.dims = spec.dims;
  o.scale = spec.scale;
  o.zero_point = spec.zero_point;
  o.lifetime = lifetime;
  model_.operands.push_back(std::move(o));
  return static_cast<OperandId>(model_.operands.size() - 1);
}

OperandId Lowering::add_constant(const OperandSpec& spec, const void* bytes, size_t size) {
  auto copy = std::make_shared<std::vector<std::byte>>(size);
  std::memcpy(copy->data(), bytes, size);
  const OperandId id = add_operand(spec, Lifetime::kConstant);
  model_.operands[id].data = *copy;
  model_.operands[id].owner = std::move(copy);
  return id;
}

OperandId Lowering::add_weight(const OperandSpec& spec, std::string_view role, std::function<void(std::byte*)> fill,
                               bool stores) {
  const OperandId id = add_operand(spec, Lifetime::kConstant);
  if (dry_) return id;
  const size_t bytes = model_.operands[id].bytes();
  if (bytes > kCopiedBytes) {
    std::string key = str_cat(key_, "/", role, "/", static_cast<int32_t>(spec.type));
    for (uint32_t d : spec.dims) key += str_cat("x", d);
    weights_.push_back({id, nullptr, bytes, std::move(key), std::move(fill), stores});
    return id;
  }
  auto copy = std::make_shared<std::vector<std::byte>>(bytes);
  if (before_reading_) before_reading_();
  fill(copy->data());
  model_.operands[id].data = *copy;
  model_.operands[id].owner = std::move(copy);
  return id;
}

std::function<void(std::byte*)> Lowering::take_constant(OperandId last) {
  std::function<void(std::byte*)> fill = [](std::byte*) {};
  if (!weights_.empty() && weights_.back().operand == last) {
    fill = std::move(weights_.back().fill);
    weights_.pop_back();
  } else if (!dry_) {
    fill = [owner = model_.operands[last].owner, data = model_.operands[last].data](std::byte* to) {
      std::memcpy(to, data.data(), data.size());
    };
  }
  model_.operands.pop_back();
  return fill;
}

OperandId Lowering::add_scalar(int32_t value) {
  return add_constant({kInt32, {}}, &value, sizeof value);
}
OperandId Lowering::add_scalar(bool value) {
  const uint8_t byte = value;
  return add_constant({kBool, {}}, &byte, 1);
}
OperandId Lowering::add_scalar(float value, OperandCode type) {
  if (type == kFloat16) {
    const uint16_t half = float_to_half(value);
    return add_constant({type, {}}, &half, sizeof half);
  }
  return add_constant({type, {}}, &value, sizeof value);
}

OperandId Lowering::add_body(Lowering&& body) {
  auto made = std::make_shared<nnapi::Model>(std::move(body.model_));
  for (Weight& w : body.weights_) {
    if (!w.body) w.body = made.get();
    weights_.push_back(std::move(w));
  }
  for (auto& owner : body.kept_) kept_.push_back(std::move(owner));
  Operand o;
  o.type = kModel;
  o.lifetime = Lifetime::kModel;
  o.model = std::move(made);
  model_.operands.push_back(std::move(o));
  return static_cast<OperandId>(model_.operands.size() - 1);
}

Status Lowering::add_operation(Op op, std::vector<OperandId> inputs, std::vector<OperandId> outputs, Verdict& verdict) {
  nnapi::Operation operation{static_cast<int32_t>(op), std::move(inputs), std::move(outputs)};
  // What lowering makes up itself may be larger than any tensor of the graph.
  for (const auto* list : {&operation.inputs, &operation.outputs}) {
    for (OperandId id : *list) {
      const Operand& o = model_.operands[id];
      PINNACE_TRY(check_operand(o.type, o.dims, o.scale, o.zero_point, verdict));
    }
  }
  const auto needed = nnapi::validate_operation(model_, operation, nnapi::kNewestFeatureLevel);
  if (!needed) return refuse(verdict, Rule::kSignature, needed.status().message());
  // What the runtime lets pass its driver need not take.
  if (const Status ranks = nnapi::check_documented_ranks(model_, operation); !ranks.ok()) {
    return refuse(verdict, Rule::kSignature, ranks.message());
  }
  if (*needed > feature_level_) {
    return refuse(verdict, Rule::kFeatureLevel,
                  str_cat(nnapi::operation_info(operation.code)->name, " needs feature level ", *needed, ", here are ",
                          feature_level_));
  }
  model_.operations.push_back(std::move(operation));
  return {};
}

OperandId Lowering::constant(ValueId id, Layout layout, OperandSpec spec) {
  LoweredValue& v = value(id);
  const bool moved = layout == Layout::kChannelsLast;
  if (moved) spec.dims.insert(spec.dims.begin(), 4 - spec.dims.size(), 1);  // lower ranks broadcast
  const std::vector<uint32_t> nchw = spec.dims;
  const Elements elements = spec.elements;
  const size_t size = element_bytes(spec.type), count = static_cast<size_t>(v.type->elements());
  if (moved) spec.dims = channels_last(nchw);
  const OperandId made = add_weight(
      spec, str_cat("value", id, moved ? "/last" : ""),
      [data = v.data, nchw, elements, size, count, moved](std::byte* to) {
        if (!moved) return convert_elements(elements, data, count, size, to);
        std::vector<std::byte> plain(count * size);
        convert_elements(elements, data, count, size, plain.data());
        move_to_channels_last(nchw, size, plain.data(), to);
      },
      spec.type != kTensorInt32);  // those may be places
  v.operands[static_cast<size_t>(layout)] = made;
  return made;
}

Result<OperandId> Lowering::change_layout(ValueId id, Layout layout, Verdict& verdict) {
  LoweredValue& v = value(id);
  const OperandId from = v.operands[layout == Layout::kPlain ? 1 : 0];
  OperandSpec spec;
  if (!specify(*v.type, spec, verdict, true)) return Status(Code::kUnsupported, verdict.text);
  const std::vector<uint32_t> nchw = spec.dims;
  if (layout == Layout::kChannelsLast) spec.dims = channels_last(nchw);
  const OperandId to = add_operand(spec, Lifetime::kTemporary);
  v.operands[static_cast<size_t>(layout)] = to;
  if (same_order(nchw)) {
    std::vector<int32_t> shape(spec.dims.begin(), spec.dims.end());
    const OperandId sizes = add_constant({kTensorInt32, {4}}, shape.data(), 16);
    PINNACE_TRY(add_operation(Op::RESHAPE, {from, sizes}, {to}, verdict));
  } else if (feature_level_ >= 2) {
    const int32_t last[] = {0, 2, 3, 1}, first[] = {0, 3, 1, 2};
    const OperandId perm = add_constant({kTensorInt32, {4}}, layout == Layout::kPlain ? first : last, 16);
    PINNACE_TRY(add_operation(Op::TRANSPOSE, {from, perm}, {to}, verdict));
  } else {
    model_.operations.push_back({kHostMoveCode, {from}, {to}});
    moves_.push_back({from, to, layout == Layout::kPlain ? Layout::kChannelsLast : Layout::kPlain});
  }
  return to;
}

Result<OperandId> Lowering::operand(ValueId id, Layout layout, Verdict& verdict, Int64 use) {
  LoweredValue& v = value(id);
  // One element of a lower rank broadcasts to any layout; constants get further dimensions, see constant().
  if (v.type->rank() < 4 && v.type->elements() == 1 && !v.constant) layout = Layout::kPlain;
  if (use == Int64::kRefused) use = int64_;
  const OperandId there = v.operands[static_cast<size_t>(layout)];
  OperandSpec spec;
  if (!specify(*v.type, spec, verdict, use != Int64::kRefused)) return Status(Code::kUnsupported, verdict.text);
  const bool exact = spec.elements == Elements::kNarrow && use == Int64::kExact;
  if (exact && v.constant) {
    const auto* wide = static_cast<const int64_t*>(v.data);
    for (int64_t i = 0; wide && i < v.type->elements(); ++i) {
      if (wide[i] < INT32_MIN || wide[i] > INT32_MAX)
        return refuse(verdict, Rule::kSize64, str_cat("a constant ", wide[i]));
    }
  }
  if (exact) {
    for (Boundary& b : entries_) b.exact |= b.value == id;
  }
  if (there != kNoOperand) return there;
  if (v.constant) return constant(id, layout, std::move(spec));
  if (v.inside) return change_layout(id, layout, verdict);
  if (layout == Layout::kChannelsLast) spec.dims = channels_last(spec.dims);
  const OperandId made = add_operand(spec, Lifetime::kInput);
  v.operands[static_cast<size_t>(layout)] = made;
  model_.inputs.push_back(made);
  entries_.push_back({id, made, layout, spec.elements, exact});
  return made;
}

Result<OperandId> Lowering::output(ValueId id, Layout layout, Verdict& verdict, Int64 use) {
  LoweredValue& v = value(id);
  if (use == Int64::kRefused) use = int64_;
  OperandSpec spec;
  if (!specify(*v.type, spec, verdict, use != Int64::kRefused)) return Status(Code::kUnsupported, verdict.text);
  if (layout == Layout::kChannelsLast) spec.dims = channels_last(spec.dims);
  v.inside = true;
  return v.operands[static_cast<size_t>(layout)] = add_operand(spec, Lifetime::kTemporary);
}

Result<OperandId> Lowering::scaled_int32(ValueId id, float scale, Verdict& verdict) {
  OperandSpec spec;
  if (!specify(*value(id).type, spec, verdict)) return Status(Code::kUnsupported, verdict.text);
  const auto same = spec.elements;
  spec.scale = scale;
  if (!value(id).inside) {
    const OperandId made = add_operand(spec, Lifetime::kInput);
    model_.inputs.push_back(made);
    entries_.push_back({id, made, Layout::kPlain, same});
    return made;
  }
  PINNACE_ASSIGN(const OperandId there, operand(id, Layout::kPlain, verdict));
  const OperandId made = add_operand(spec, Lifetime::kTemporary);
  PINNACE_TRY(add_operation(Op::CAST, {there}, {made}, verdict));
  return made;
}

namespace {
OperandSpec cell_spec(const TensorType& type, float scale) {
  OperandSpec spec{kTensorQuant16Symm, {}, scale};
  for (const Dim& d : type.shape) spec.dims.push_back(static_cast<uint32_t>(d.size));
  return spec;
}
}  // namespace

Result<OperandId> Lowering::cell_input(ValueId id, float scale, Verdict& verdict) {
  LoweredValue& v = value(id);
  const OperandSpec spec = cell_spec(*v.type, scale);
  const OperandId there = v.operands[0];
  if (there != kNoOperand) {
    if (model_.operands[there].scale == scale) return there;
    const OperandId made = add_operand(spec, Lifetime::kTemporary);  // feature level 4, as all cells but those of 2^-11
    PINNACE_TRY(add_operation(Op::CAST, {there}, {made}, verdict));
    return made;
  }
  if (v.constant) return constant(id, Layout::kPlain, spec);
  const OperandId made = v.operands[0] = add_operand(spec, Lifetime::kInput);
  model_.inputs.push_back(made);
  entries_.push_back({id, made, Layout::kPlain, Elements::kSame});
  return made;
}

Result<OperandId> Lowering::cell_output(ValueId id, float scale, Verdict& verdict) {
  LoweredValue& v = value(id);
  if (v.type->dtype != DType::kI16 || v.type->quantized()) {
    return refuse(verdict, Rule::kType, to_string(*v.type));
  }
  v.inside = true;
  return v.operands[0] = add_operand(cell_spec(*v.type, scale), Lifetime::kTemporary);
}

void Lowering::add_body_input(ValueId id, const nnapi::Operand& outer) {
  Operand inner;
  inner.type = outer.type;
  inner.dims = outer.dims;
  inner.scale = outer.scale;
  inner.zero_point = outer.zero_point;
  inner.lifetime = Lifetime::kInput;
  model_.operands.push_back(std::move(inner));
  const auto made = static_cast<OperandId>(model_.operands.size() - 1);
  model_.inputs.push_back(made);
  if (id == kNoValue) return;
  value(id).inside = true;
  value(id).operands[static_cast<size_t>(Layout::kPlain)] = made;
}

void Lowering::finish_body(std::span<const OperandId> outputs) {
  for (OperandId id : outputs) {
    model_.operands[id].lifetime = Lifetime::kOutput;
    model_.outputs.push_back(id);
  }
}

bool Lowering::stands_channels_last(ValueId id) const {
  const LoweredValue& v = values_[static_cast<size_t>(id)];
  return v.operands[0] == kNoOperand && v.operands[1] != kNoOperand;
}

Status Lowering::finish(std::span<const ValueId> outputs, Verdict& verdict) {
  for (ValueId id : outputs) {
    LoweredValue& v = value(id);
    const Layout layout = v.operands[0] != kNoOperand ? Layout::kPlain : Layout::kChannelsLast;
    const OperandId made = v.operands[static_cast<size_t>(layout)];
    OperandSpec spec;
    const bool cell = model_.operands[made].type == kTensorQuant16Symm;
    if (!cell && !specify(*v.type, spec, verdict, true)) return Status(Code::kUnsupported, verdict.text);
    model_.operands[made].lifetime = Lifetime::kOutput;
    model_.outputs.push_back(made);
    exits_.push_back({id, made, layout, spec.elements});
  }
  return {};
}

}  // namespace pinnace::nnapi_client
