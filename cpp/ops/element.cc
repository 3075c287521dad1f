// StridedLoop's set-up and the arithmetic of quantised types.
#include "ops/element.h"

#include <algorithm>
#include <cmath>

namespace pinnace {

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = step;
    step *= shape[d].size;
  }
  return strides;
}

int StridedLoop::add_broadcast(const Shape& from) {
  const std::vector<int64_t> own = row_major_strides(from);
  std::vector<int64_t> strides(shape_.size(), 0);
  const size_t lead = shape_.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) strides[lead + d] = from[d].size == 1 ? 0 : own[d];
  return add_strides(std::move(strides));
}

int StridedLoop::add_strides(std::vector<int64_t> strides) {
  strides_.push_back(std::move(strides));
  bases_.push_back(0);
  return static_cast<int>(strides_.size()) - 1;
}

IntRange int_range(DType dtype) {
  switch (dtype) {
    case DType::kI4: return {-8, 7};
    case DType::kU4: return {0, 15};
    case DType::kI8: return {-128, 127};
    case DType::kU8: return {0, 255};
    case DType::kI16: return {-32768, 32767};
    case DType::kU16: return {0, 65535};
    default: return {INT32_MIN, INT32_MAX};
  }
}

int32_t load_int(const TensorView& t, int64_t i) {
  switch (t.dtype()) {
    case DType::kI8: return t.data<int8_t>()[i];
    case DType::kU8: return t.data<uint8_t>()[i];
    case DType::kI16: return t.data<int16_t>()[i];
    case DType::kU16: return t.data<uint16_t>()[i];
    default: return t.data<int32_t>()[i];
  }
}

void store_int(const TensorView& t, int64_t i, int32_t value) {
  switch (t.dtype()) {
    case DType::kI8: t.data<int8_t>()[i] = static_cast<int8_t>(value); break;
    case DType::kU8: t.data<uint8_t>()[i] = static_cast<uint8_t>(value); break;
    case DType::kI16: t.data<int16_t>()[i] = static_cast<int16_t>(value); break;
    case DType::kU16: t.data<uint16_t>()[i] = static_cast<uint16_t>(value); break;
    default: t.data<int32_t>()[i] = value; break;
  }
}

int32_t quantize(float x, ScaleZero p, IntRange range) {
  const double q = std::nearbyint(static_cast<double>(x / p.scale)) + p.zero;  // the default mode is half to even
  if (!(q == q)) return std::clamp(p.zero, range.min, range.max);
  return static_cast<int32_t>(std::clamp<double>(q, range.min, range.max));
}

}  // namespace pinnace
