// Names and sizes of element types; text, size and equality of TensorType.
#include <pinnace/tensor.h>

#include <algorithm>

#include "base/dtype_code.h"
#include "base/text.h"
#include "base/type_size.h"

namespace pinnace {
namespace {
struct DTypeRow {
  std::string_view name;
  std::string_view code;
  int bits;
};
constexpr DTypeRow kDTypes[kDTypeCount] = {
    {"float32", "f32", 32},
    {"float16", "f16", 16},
    {"bfloat16", "bf16", 16},
    {"float64", "f64", 64},
    {"int8", "i8", 8},
    {"uint8", "u8", 8},
    {"int16", "i16", 16},
    {"uint16", "u16", 16},
    {"int32", "i32", 32},
    {"uint32", "u32", 32},
    {"int64", "i64", 64},
    {"uint64", "u64", 64},
    {"bool", "bool", 8},
    {"int4", "i4", 4},
    {"uint4", "u4", 4},
    {"float8_e4m3fn", "f8e4m3fn", 8},
    {"float8_e4m3fnuz", "f8e4m3fnuz", 8},
    {"float8_e5m2", "f8e5m2", 8},
    {"float8_e5m2fnuz", "f8e5m2fnuz", 8},
    {"float8_e8m0fnu", "f8e8m0", 8},
    {"float6_e2m3fn", "f6e2m3", 6},
    {"float6_e3m2fn", "f6e3m2", 6},
    {"float4_e2m1fn", "f4e2m1", 4},
    {"int2", "i2", 2},
    {"uint2", "u2", 2},
};

std::optional<DType> dtype_where(std::string_view DTypeRow::* field, std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kDTypes[i].*field == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}
}  // namespace

std::string_view dtype_name(DType dtype) {
  return kDTypes[static_cast<int>(dtype)].name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  return dtype_where(&DTypeRow::name, name);
}

std::string_view dtype_code(DType dtype) {
  return kDTypes[static_cast<int>(dtype)].code;
}

std::optional<DType> dtype_from_code(std::string_view code) {
  return dtype_where(&DTypeRow::code, code);
}

int dtype_bits(DType dtype) {
  return kDTypes[static_cast<int>(dtype)].bits;
}

bool fits_memory(const TensorType& type) {
  int64_t bits = dtype_bits(type.dtype);
  for (const Dim& d : type.shape) {
    const int64_t size = std::max<int64_t>(d.known() ? d.size : 1, 1);
    if (bits > (INT64_MAX >> 4) / size) return false;
    bits *= size;
  }
  return true;
}

bool TensorType::concrete() const {
  for (const Dim& d : shape) {
    if (!d.known()) return false;
  }
  return true;
}

int64_t TensorType::elements() const {
  int64_t count = 1;
  for (const Dim& d : shape) {
    if (!d.known()) return Dim::kUnknown;
    count *= d.size;
  }
  return count;
}

int64_t TensorType::bytes() const {
  const int64_t count = elements();
  if (count < 0) return Dim::kUnknown;
  const int bits = dtype_bits(dtype);
  return bits >= 8 ? count * (bits / 8) : (count * bits + 7) / 8;
}

bool TensorType::operator==(const TensorType& other) const {
  if (dtype != other.dtype || shape != other.shape || quantized() != other.quantized()) return false;
  return !quantized() || *quantization == *other.quantization;
}

std::string to_string(const Shape& shape, std::span<const Symbol> symbols) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    const Dim& d = shape[i];
    if (i) text += ',';
    if (d.known()) {
      append_text(text, d.size);
    } else if (d.symbol >= 0) {
      text += static_cast<size_t>(d.symbol) < symbols.size() ? symbols[d.symbol].name : str_cat("s", d.symbol);
    } else if (d.max >= 0) {
      text += str_cat("?<=", d.max);
    } else {
      text += '?';
    }
  }
  text += ']';
  return text;
}

namespace {
std::string type_text(std::string_view dtype, const TensorType& type, std::span<const Symbol> symbols) {
  std::string text = str_cat(dtype, to_string(type.shape, symbols));
  if (type.quantized()) {
    const Quantization& q = *type.quantization;
    if (q.axis < 0 && q.scales.size() == 1 && q.zero_points.size() == 1) {
      text += str_cat("{scale ", q.scales[0], ", zero ", q.zero_points[0], "}");
    } else {
      text += str_cat("{", q.scales.size(), " scales, axis ", q.axis);
      if (q.block) text += str_cat(", block ", q.block);
      text += '}';
    }
  }
  return text;
}
}  // namespace

std::string to_string(const TensorType& type, std::span<const Symbol> symbols) {
  return type_text(dtype_name(type.dtype), type, symbols);
}

std::string type_code(const TensorType& type) {
  return type_text(dtype_code(type.dtype), type, {});
}

}  // namespace pinnace
