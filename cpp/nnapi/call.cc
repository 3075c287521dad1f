// Call: what mapping functions are written with.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/dtype_code.h"
#include "nnapi/mapping.h"
#include "ops/element.h"

namespace pinnace::nnapi {
namespace {

/// Of axes, sizes and pads: more than any rank needs, and little enough for a list that is no Buffer.
constexpr int64_t kLongestList = 1 << 16;

}  // namespace

Result<ValueId> Call::in(size_t i) const {
  if (!has(i)) return error("input ", i, " has no value");
  return builder_.values[operation_.inputs[i]];
}

Result<TensorType> Call::concrete(ValueId id) const {
  if (!type(id).concrete()) return error("the shape of ", type(id), " must be known before the model runs");
  return type(id);
}

Result<int64_t> Call::size(ValueId id, int d) const {
  const Dim& dim = type(id).shape[static_cast<size_t>(d < 0 ? d + rank(id) : d)];
  if (!dim.known()) return error("dimension ", d, " of ", type(id), " must be known before the model runs");
  return dim.size;
}

// ------------------------------------------------------------------------------------------------------ contents

Result<ConstantPtr> Call::contents(ValueId id) {
  if (const ConstantPtr& data = builder_.data(id)) return data;
  return builder_.need(id).with_prefix(str_cat(name_, ": "));
}

Result<std::vector<int64_t>> Call::ints_of(ValueId id) {
  if (const int64_t count = type(id).elements(); count > kLongestList) {
    return error("a list of ", count, " numbers is longer than ", kLongestList);
  }
  PINNACE_ASSIGN(ConstantPtr data, contents(id));
  std::vector<int64_t> values(static_cast<size_t>(type(id).elements()));
  for (size_t k = 0; k < values.size(); ++k) {
    switch (type(id).dtype) {
      case DType::kI32:
        values[k] = reinterpret_cast<const int32_t*>(data->data())[k];
        break;
      case DType::kI64:
        values[k] = reinterpret_cast<const int64_t*>(data->data())[k];
        break;
      default:
        values[k] = static_cast<int64_t>(data->data()[k]);
    }
  }
  return values;
}

Result<std::vector<int64_t>> Call::ints(size_t i) {
  PINNACE_ASSIGN(ValueId id, in(i));
  return ints_of(id);
}

Result<int64_t> Call::integer(size_t i) {
  PINNACE_ASSIGN(std::vector<int64_t> values, ints(i));
  if (values.size() != 1) return error("input ", i, " has ", values.size(), " elements, must have 1");
  return values[0];
}

Result<int64_t> Call::integer(size_t i, int64_t fallback) {
  if (i >= inputs()) return fallback;
  return integer(i);
}

Result<bool> Call::flag(size_t i, bool fallback) {
  if (i >= inputs()) return fallback;
  PINNACE_ASSIGN(int64_t value, integer(i));
  return value != 0;
}

Result<double> Call::real(size_t i) {
  PINNACE_ASSIGN(ValueId id, in(i));
  PINNACE_ASSIGN(ConstantPtr data, contents(id));
  if (type(id).dtype == DType::kF16) return static_cast<double>(*reinterpret_cast<const Half*>(data->data()));
  return static_cast<double>(*reinterpret_cast<const float*>(data->data()));
}

Result<int64_t> Call::axis(size_t i, int rank) {
  PINNACE_ASSIGN(int64_t axis, integer(i));
  if (axis < -rank || axis >= rank) return error("axis ", axis, " is outside rank ", rank);
  return axis < 0 ? axis + rank : axis;
}

// ----------------------------------------------------------------------------------------------------- constants

Result<ValueId> Call::constant_ints(std::span<const int64_t> values, DType dtype) {
  const TensorType type{dtype, {static_cast<int64_t>(values.size())}, nullptr};
  PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type.bytes()), "a constant"));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kI32) {
      reinterpret_cast<int32_t*>(bytes.data())[i] = static_cast<int32_t>(values[i]);
    } else {
      reinterpret_cast<int64_t*>(bytes.data())[i] = values[i];
    }
  }
  return builder_.add_constant(name_ + "/ints", type, Constant::of(std::move(bytes)));
}

Result<ValueId> Call::constant_scalar(DType dtype, double value) {
  const TensorType type{dtype, {}, nullptr};
  PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type.bytes()), "a constant"));
  visit(dtype, [&](auto zero) {
    using T = decltype(zero);
    *reinterpret_cast<T*>(bytes.data()) = convert<T>(value);
    return 0;
  });
  return builder_.add_constant(name_ + "/scalar", type, Constant::of(std::move(bytes)));
}

Result<ValueId> Call::constant_floats(std::span<const float> values) {
  PINNACE_ASSIGN(ConstantPtr bytes, Constant::copy_of(values.data(), values.size_bytes()));
  return builder_.add_constant(name_ + "/floats", {DType::kF32, {static_cast<int64_t>(values.size())}, nullptr},
                               std::move(bytes));
}

// --------------------------------------------------------------------------------------------------------- nodes

Result<std::vector<ValueId>> Call::emit_many(std::string_view op, std::vector<ValueId> inputs, Attrs attrs, int outputs,
                                             const QuantizationPtr& quantization) {
  return builder_.emit(op, str_cat(name_, "/", op), std::move(inputs), std::move(attrs), outputs, quantization);
}

Result<ValueId> Call::emit(std::string_view op, std::vector<ValueId> inputs, Attrs attrs,
                           const QuantizationPtr& quantization) {
  PINNACE_ASSIGN(auto made, emit_many(op, std::move(inputs), std::move(attrs), 1, quantization));
  return made[0];
}

Result<ValueId> Call::transpose(ValueId id, std::vector<int64_t> perm) {
  return emit("transpose", {id}, {{"perm", std::move(perm)}});
}

Result<ValueId> Call::reshape(ValueId id, std::vector<int64_t> dims) {
  PINNACE_ASSIGN(ValueId shape, constant_ints(dims));
  return emit("reshape", {id, shape}, {{"allowzero", int64_t{1}}});
}

Result<ValueId> Call::cast(ValueId id, DType dtype) {
  if (type(id).dtype == dtype && !quantized(id)) return id;
  return pointwise("cast", {id}, {{"to", std::string(dtype_code(dtype))}});
}

Result<ValueId> Call::reinterpret(ValueId id, const QuantizationPtr& quantization) {
  return pointwise("cast", {id}, {{"to", std::string(dtype_code(type(id).dtype))}}, quantization);
}

Result<ValueId> Call::dequantize(ValueId id, DType to) {
  const QuantizationPtr q = type(id).quantization;
  PINNACE_ASSIGN(ValueId plain, reinterpret(id, nullptr));
  const bool per_axis = q->axis >= 0;
  std::vector<ValueId> operands = {plain};
  PINNACE_ASSIGN(ValueId scales, per_axis ? constant_floats(q->scales) : constant_scalar(DType::kF32, q->scales[0]));
  operands.push_back(scales);
  if (!per_axis) {
    PINNACE_ASSIGN(ValueId zero, constant_scalar(type(plain).dtype, q->zero_points[0]));
    operands.push_back(zero);
  }
  Attrs attrs = {{"axis", int64_t{per_axis ? q->axis : 0}}};
  if (to != DType::kF32) attrs.emplace_back("output_dtype", std::string(dtype_code(to)));
  return pointwise("dequantize_linear", std::move(operands), std::move(attrs));
}

Result<ValueId> Call::requantize(ValueId id, DType dtype, const QuantizationPtr& wanted) {
  const QuantizationPtr quantization = wanted;  // it may lie among the types, which grow
  const TensorType& from = type(id);
  if (from.quantized() && from.dtype == dtype && *from.quantization == *quantization) return id;
  ValueId real = id;
  if (from.quantized()) {
    PINNACE_ASSIGN(real, dequantize(id));
  }
  PINNACE_ASSIGN(ValueId scale, constant_scalar(DType::kF32, quantization->scales[0]));
  PINNACE_ASSIGN(ValueId zero, constant_scalar(dtype, quantization->zero_points[0]));
  PINNACE_ASSIGN(ValueId plain, pointwise("quantize_linear", {real, scale, zero}, {{"precision", std::string("f32")}}));
  return reinterpret(plain, quantization);
}

Result<ValueId> Call::to_nchw(ValueId id, bool nchw) {
  if (nchw) return id;
  if (const ValueId first = channels_first(id); first != kNoValue) return first;
  PINNACE_ASSIGN(const ValueId first, transpose(id, {0, 3, 1, 2}));
  builder_.channels_first[id] = first;
  return first;
}
Result<ValueId> Call::from_nchw(ValueId id, bool nchw) {
  if (nchw) return id;
  PINNACE_ASSIGN(const ValueId last, transpose(id, {0, 2, 3, 1}));
  builder_.channels_first[last] = id;
  return last;
}

ValueId Call::channels_first(ValueId id) const {
  const auto found = builder_.channels_first.find(id);
  return found == builder_.channels_first.end() ? kNoValue : found->second;
}

Result<ValueId> Call::pointwise(std::string_view op, std::vector<ValueId> inputs, Attrs attrs,
                                const QuantizationPtr& declared) {
  const QuantizationPtr quantization = declared;  // it may lie among the types, which grow
  bool first = false, possible = true;
  for (ValueId id : inputs) {
    first |= channels_first(id) != kNoValue;
    possible &= rank(id) == 4 || rank(id) <= 1;
  }
  if (!first || !possible) return emit(op, std::move(inputs), std::move(attrs), quantization);
  for (ValueId& id : inputs) {
    if (rank(id) == 4) {
      PINNACE_ASSIGN(id, to_nchw(id));
    } else if (rank(id) == 1 && type(id).shape[0] != Dim(1)) {  // channels
      PINNACE_ASSIGN(id, reshape(id, {-1, 1, 1}));
    }
  }
  PINNACE_ASSIGN(const ValueId y, emit(op, std::move(inputs), std::move(attrs), quantization));
  return from_nchw(y);
}

Result<Attrs> Call::activation(int64_t code) const {
  switch (code) {
    case 0:
      return Attrs{};
    case 1:
      return Attrs{{"activation", std::string("relu")}};
    case 2:
      return Attrs{{"activation", std::string("clip")}, {"activation_params", std::vector<double>{-1, 1}}};
    case 3:
      return Attrs{{"activation", std::string("clip")}, {"activation_params", std::vector<double>{0, 6}}};
    default:
      return error("activation ", code, " is not one of 0 to 3");
  }
}

Result<ValueId> Call::activate(ValueId id, int64_t code) {
  if (code == 0) return id;
  const QuantizationPtr q = type(id).quantization;
  if (code == 1) return pointwise("relu", {id}, {}, q);
  if (code != 2 && code != 3) return error("activation ", code, " is not one of 0 to 3");
  const DType dtype = q ? DType::kF32 : type(id).dtype;
  PINNACE_ASSIGN(ValueId least, constant_scalar(dtype, code == 2 ? -1 : 0));
  PINNACE_ASSIGN(ValueId most, constant_scalar(dtype, code == 2 ? 1 : 6));
  return pointwise("clip", {id, least, most}, {}, q);
}

Status Call::finish(size_t i, ValueId id) {
  const Operand& operand = result(i);
  const TensorType& made = type(id);
  const TensorType wanted = tensor_type(operand, operand.dims);
  if (made.dtype != wanted.dtype || made.quantized() != wanted.quantized()) {
    return error("output ", i, " is ", made, ", the operand ", wanted);
  }
  // What nobody outside sees simply has the quantisation that the operation gives it.
  if (made.quantized() && operand.lifetime == Lifetime::kOutput && !(*made.quantization == *wanted.quantization)) {
    return error("output ", i, " has the quantisation of ", made, ", the operand that of ", wanted);
  }
  if (made.concrete() && made.bytes() > UINT32_MAX) {
    return error("output ", i, ", ", made, ", is larger than an operand can be");
  }
  if (!operand.dynamic_rank()) {
    bool fits = made.rank() == wanted.rank();
    for (size_t d = 0; fits && d < operand.dims.size(); ++d) {
      fits = operand.dims[d] == 0 || !made.shape[d].known() || made.shape[d].size == wanted.shape[d].size;
    }
    if (!fits) return error("output ", i, " is ", made, ", the operand ", wanted);
  }
  builder_.values[operation_.outputs[i]] = id;
  return {};
}

}  // namespace pinnace::nnapi
