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

int64_t StridedLoop::size() const {
  int64_t total = 1;
  for (const Dim& d : shape_) total *= d.size;
  return total;
}

void StridedLoop::start(int64_t first, std::vector<int64_t>& index, std::vector<int64_t>& offsets) const {
  for (size_t d = shape_.size(); d-- > 0 && first > 0; first /= shape_[d].size) {
    index[d] = first % shape_[d].size;
    for (size_t k = 0; k < strides_.size(); ++k) offsets[k] += strides_[k][d] * index[d];
  }
}

BroadcastRows::BroadcastRows(const Shape& out, std::span<const TensorView> operands)
    : rows_(Shape()), step_(operands.size(), -1) {
  const auto advances = [&](const TensorView& operand, size_t d) -> int64_t {
    const Shape& from = operand.type->shape;
    const size_t lead = out.size() - from.size();
    return d >= lead && from[d - lead].size == out[d].size ? 1 : 0;
  };
  // Takes dimensions into the row from the last one on, as long as all operands go on alike.
  size_t outer = out.size();
  for (; outer > 0; --outer) {
    const size_t d = outer - 1;
    if (out[d].size == 1) continue;
    bool alike = true;
    for (size_t k = 0; k < operands.size(); ++k) alike &= step_[k] < 0 || step_[k] == advances(operands[k], d);
    if (!alike) break;
    for (size_t k = 0; k < operands.size(); ++k) step_[k] = advances(operands[k], d);
    count_ *= out[d].size;
  }
  rows_ = StridedLoop(Shape(out.begin(), out.begin() + static_cast<ptrdiff_t>(outer)));
  for (size_t k = 0; k < operands.size(); ++k) {
    if (step_[k] < 0) step_[k] = 0;
    const Shape& from = operands[k].type->shape;
    const std::vector<int64_t> own = row_major_strides(from);
    const size_t lead = out.size() - from.size();
    std::vector<int64_t> strides(outer, 0);
    for (size_t d = lead; d < outer; ++d) strides[d] = from[d - lead].size == 1 ? 0 : own[d - lead];
    rows_.add_strides(std::move(strides));
  }
}

void BroadcastRows::run_erased(const Threads& threads, void* context, Row row) const {
  if (count_ == 0) return;
  threads.ranges(
      rows_.size() * count_, kMapNanoseconds,
      [&](int64_t first, int64_t last) {
        std::vector<int64_t> inside(step_.size());
        rows_.run(first / count_, (last - 1) / count_ + 1, [&](int64_t r, const int64_t* at) {
          const int64_t from = std::max<int64_t>(0, first - r * count_), to = std::min(count_, last - r * count_);
          for (size_t k = 0; k < step_.size(); ++k) inside[k] = at[k] + from * step_[k];
          row(context, r * count_ + from, to - from, inside.data(), step_.data());
        });
      },
      kMapGrain);
}

int32_t load_int(const TensorView& t, int64_t i) {
  switch (t.dtype()) {
    case DType::kI2:
      return (load_packed(t.bytes, 2, i) ^ 2) - 2;  // sign-extends
    case DType::kI4:
      return (load_packed(t.bytes, 4, i) ^ 8) - 8;
    case DType::kU2:
      return load_packed(t.bytes, 2, i);
    case DType::kU4:
      return load_packed(t.bytes, 4, i);
    case DType::kI8:
      return t.data<int8_t>()[i];
    case DType::kU8:
      return t.data<uint8_t>()[i];
    case DType::kI16:
      return t.data<int16_t>()[i];
    case DType::kU16:
      return t.data<uint16_t>()[i];
    default:
      return t.data<int32_t>()[i];
  }
}

void store_int(const TensorView& t, int64_t i, int32_t value) {
  switch (t.dtype()) {
    case DType::kI2:
    case DType::kU2:
    case DType::kI4:
    case DType::kU4:
      store_packed(t.bytes, dtype_bits(t.dtype()), i, t.elements(), static_cast<uint8_t>(value));
      break;
    case DType::kI8:
      t.data<int8_t>()[i] = static_cast<int8_t>(value);
      break;
    case DType::kU8:
      t.data<uint8_t>()[i] = static_cast<uint8_t>(value);
      break;
    case DType::kI16:
      t.data<int16_t>()[i] = static_cast<int16_t>(value);
      break;
    case DType::kU16:
      t.data<uint16_t>()[i] = static_cast<uint16_t>(value);
      break;
    default:
      t.data<int32_t>()[i] = value;
      break;
  }
}

float load_small(const TensorView& t, int64_t i) {
  return small_to_float(t.dtype(), load_packed(t.bytes, dtype_bits(t.dtype()), i));
}

void store_small(const TensorView& t, int64_t i, uint8_t code) {
  store_packed(t.bytes, dtype_bits(t.dtype()), i, t.elements(), code);
}

int32_t quantize(float x, ScaleZero p, IntRange range) {
  const double q = std::nearbyint(static_cast<double>(x / p.scale)) + p.zero;  // the default mode is half to even
  if (!(q == q)) return std::clamp(p.zero, range.min, range.max);
  return static_cast<int32_t>(std::clamp<double>(q, range.min, range.max));
}

}  // namespace pinnace
