// Conversions element by element; what needs none is copied.
#include "backends/gpu/transfer.h"

#include <algorithm>
#include <cstring>

#include "ops/element.h"

namespace pinnace::gpu {

std::optional<int64_t> to_device(const TensorView& from, std::byte* to) {
  const auto count = static_cast<size_t>(from.elements());
  if (count == 0) return {};
  if (from.dtype() == DType::kF32 || from.dtype() == DType::kI32) {
    std::memcpy(to, from.bytes, count * 4);
    return {};
  }
  std::optional<int64_t> wide;
  visit(from.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = from.data<T>();
    for (size_t i = 0; i < count; ++i) {
      if constexpr (is_float<T>) {
        reinterpret_cast<float*>(to)[i] = static_cast<float>(x[i]);
      } else {
        const auto number = static_cast<int64_t>(+x[i]);
        reinterpret_cast<int32_t*>(to)[i] = static_cast<int32_t>(number);
        if (number != static_cast<int32_t>(number)) wide = number;
      }
    }
  });
  return wide;
}

void from_device(const std::byte* from, const TensorView& to) {
  const auto count = static_cast<size_t>(to.elements());
  if (count == 0) return;
  if (to.dtype() == DType::kF32 || to.dtype() == DType::kI32) {
    std::memcpy(to.bytes, from, count * 4);
    return;
  }
  visit(to.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* y = to.data<T>();
    for (size_t i = 0; i < count; ++i) {
      if constexpr (is_float<T>) {
        y[i] = T(reinterpret_cast<const float*>(from)[i]);
      } else {
        y[i] = static_cast<T>(reinterpret_cast<const int32_t*>(from)[i]);
      }
    }
  });
}

}  // namespace pinnace::gpu
