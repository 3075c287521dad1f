// Elements of a TensorProto: raw bytes, typed fields, or a file beside the model (external.h).
#include "import/onnx/tensor.h"

#include <climits>
#include <cstring>
#include <limits>

#include "base/packed.h"

namespace pinnace::onnx {
namespace {
template <class... Parts>
Status corrupt(const char* rule, const Parts&... parts) {
  return Status(Code::kCorruptFile, str_cat(parts...)).with_rule(rule);
}

/// Narrows typed fields to the element type; a number that does not fit is an error, not a wrap.
template <class To, class List>
Status copy_numbers(const List& from, std::byte* to, const std::string& what) {
  for (int i = 0; i < from.size(); ++i) {
    const auto number = from.Get(i);
    To element;
    if constexpr (std::is_floating_point_v<To>) {
      element = static_cast<To>(number);
    } else {
      if (!std::in_range<To>(number)) {
        return corrupt("O-13", what, ": element ", i, " is ", number, ", outside its type");
      }
      element = static_cast<To>(number);
    }
    std::memcpy(to + static_cast<size_t>(i) * sizeof(To), &element, sizeof(To));
  }
  return {};
}

/// Number of entries that a typed field must have.
int64_t entries_of(const TensorType& type) {
  const int bits = dtype_bits(type.dtype);
  return bits == 4 || bits == 2 ? type.bytes() : type.elements();
}

template <class List>
Status check_count(const List& list, const TensorType& type, const char* field, const std::string& what) {
  if (list.size() == entries_of(type)) return {};
  return corrupt("O-12", what, " is ", to_string(type), ", which has ", entries_of(type), " elements, but ", field,
                 " has ", list.size());
}

bool has_typed_field(const proto::TensorProto& t) {
  return t.float_data_size() || t.int32_data_size() || t.int64_data_size() || t.double_data_size() ||
         t.uint64_data_size() || t.string_data_size();
}

Status check_typed(const proto::TensorProto& t, const TensorType& type, const std::string& what) {
  switch (type.dtype) {
    case DType::kF32:
      return check_count(t.float_data(), type, "float_data", what);
    case DType::kF64:
      return check_count(t.double_data(), type, "double_data", what);
    case DType::kI64:
      return check_count(t.int64_data(), type, "int64_data", what);
    case DType::kU32:
    case DType::kU64:
      return check_count(t.uint64_data(), type, "uint64_data", what);
    default:
      return check_count(t.int32_data(), type, "int32_data", what);
  }
}

Status copy_typed(const proto::TensorProto& t, const TensorType& type, std::byte* to, const std::string& what) {
  switch (type.dtype) {
    case DType::kF32:
      return copy_numbers<float>(t.float_data(), to, what);
    case DType::kF64:
      return copy_numbers<double>(t.double_data(), to, what);
    case DType::kI64:
      return copy_numbers<int64_t>(t.int64_data(), to, what);
    case DType::kU64:
      return copy_numbers<uint64_t>(t.uint64_data(), to, what);
    case DType::kU32:
      return copy_numbers<uint32_t>(t.uint64_data(), to, what);
    case DType::kI32:
      return copy_numbers<int32_t>(t.int32_data(), to, what);
    case DType::kI16:
      return copy_numbers<int16_t>(t.int32_data(), to, what);
    case DType::kI8:
      return copy_numbers<int8_t>(t.int32_data(), to, what);
    case DType::kF16:  // the bits, as an unsigned number
    case DType::kBF16:
    case DType::kU16:
      return copy_numbers<uint16_t>(t.int32_data(), to, what);
    case DType::kF6E2M3:  // one element to a number, here and not in raw_data
    case DType::kF6E3M2:
      for (int i = 0; i < t.int32_data_size(); ++i) {
        const int32_t code = t.int32_data(i);
        if (code < 0 || code > 63) return corrupt("O-13", what, ": element ", i, " is ", code, ", outside its type");
        store_packed(to, 6, i, t.int32_data_size(), static_cast<uint8_t>(code));
      }
      return {};
    default:  // bool, u8, floats of 8 bits; a number is a byte of two elements of 4 bits or four of 2
      return copy_numbers<uint8_t>(t.int32_data(), to, what);
  }
}
}  // namespace

std::optional<DType> dtype_of(int32_t data_type) {
  using P = proto::TensorProto;
  switch (data_type) {
    case P::FLOAT:
      return DType::kF32;
    case P::FLOAT16:
      return DType::kF16;
    case P::BFLOAT16:
      return DType::kBF16;
    case P::DOUBLE:
      return DType::kF64;
    case P::INT8:
      return DType::kI8;
    case P::UINT8:
      return DType::kU8;
    case P::INT16:
      return DType::kI16;
    case P::UINT16:
      return DType::kU16;
    case P::INT32:
      return DType::kI32;
    case P::UINT32:
      return DType::kU32;
    case P::INT64:
      return DType::kI64;
    case P::UINT64:
      return DType::kU64;
    case P::BOOL:
      return DType::kBool;
    case P::INT4:
      return DType::kI4;
    case P::UINT4:
      return DType::kU4;
    case P::INT2:
      return DType::kI2;
    case P::UINT2:
      return DType::kU2;
    case P::FLOAT8E4M3FN:
      return DType::kF8E4M3FN;
    case P::FLOAT8E4M3FNUZ:
      return DType::kF8E4M3FNUZ;
    case P::FLOAT8E5M2:
      return DType::kF8E5M2;
    case P::FLOAT8E5M2FNUZ:
      return DType::kF8E5M2FNUZ;
    case P::FLOAT8E8M0:
      return DType::kF8E8M0;
    case P::FLOAT6E2M3:
      return DType::kF6E2M3;
    case P::FLOAT6E3M2:
      return DType::kF6E3M2;
    case P::FLOAT4E2M1:
      return DType::kF4E2M1;
    default:
      return std::nullopt;
  }
}

std::string data_type_text(int32_t data_type) {
  if (!proto::TensorProto_DataType_IsValid(data_type)) return str_cat("number ", data_type);
  return proto::TensorProto_DataType_Name(static_cast<proto::TensorProto_DataType>(data_type));
}

Result<TensorType> type_of(int32_t data_type, const google::protobuf::RepeatedField<int64_t>& dims,
                           const std::string& what) {
  const auto dtype = dtype_of(data_type);
  if (!dtype) return unsupported(what, ": element type ", data_type_text(data_type));
  if (dims.size() > kMaxRank) return corrupt("O-11", what, " has ", dims.size(), " dimensions, at most ", kMaxRank);
  TensorType type{*dtype, {}, nullptr};
  int64_t bits = dtype_bits(*dtype);
  for (int64_t size : dims) {
    if (size < 0) return corrupt("O-11", what, " has a dimension of ", size);
    if (size > 0 && bits > INT64_MAX / 16 / size) return corrupt("O-11", what, " is larger than memory can be");
    bits *= size > 0 ? size : 1;
    type.shape.push_back(size);
  }
  return type;
}

Result<Tensor> read_tensor(const proto::TensorProto& source, const std::string& what, ExternalData& external) {
  if (source.has_segment()) return unsupported(what, " is stored in segments");
  PINNACE_ASSIGN(TensorType type, type_of(source.data_type(), source.dims(), what));
  const bool outside = source.data_location() == proto::TensorProto::EXTERNAL;
  if (outside + source.has_raw_data() + has_typed_field(source) > 1) {
    return corrupt("O-12", what, " has its data in more than one field");
  }
  if (outside) {
    PINNACE_ASSIGN(const External where, external_of(source, what));
    PINNACE_ASSIGN(ConstantPtr bytes, external.get(where, type, what));
    return Tensor{std::move(type), std::move(bytes)};
  }
  if (ConstantPtr bytes = external.read_before(&source)) return Tensor{std::move(type), std::move(bytes)};
  if (!source.has_raw_data()) {
    PINNACE_TRY(check_typed(source, type, what));
  } else if (static_cast<int64_t>(source.raw_data().size()) != type.bytes()) {
    return corrupt("O-12", what, " is ", to_string(type), ", which has ", type.bytes(), " bytes, but raw_data has ",
                   source.raw_data().size());
  }
  PINNACE_ASSIGN(Buffer buffer, Buffer::allocate(static_cast<size_t>(type.bytes()), what));
  if (!source.has_raw_data()) {
    PINNACE_TRY(copy_typed(source, type, buffer.data(), what));
  } else if (buffer.size()) {
    std::memcpy(buffer.data(), source.raw_data().data(), buffer.size());
  }
  clean(type, {buffer.data(), buffer.size()});
  ConstantPtr bytes = Constant::of(std::move(buffer));
  external.keep(&source, bytes);
  return Tensor{std::move(type), std::move(bytes)};
}

}  // namespace pinnace::onnx
