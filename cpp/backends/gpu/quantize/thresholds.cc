// Numbers as the kernels' tables have them, and thresholds by asking the reference.
#include "backends/gpu/quantize/thresholds.h"

#include <cmath>

namespace pinnace::gpu {
namespace {

/// order_of() of double.glsl, and its inverse.
constexpr uint64_t kSign = uint64_t{1} << 63;

uint64_t order_of(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  return bits & kSign ? ~bits : bits | kSign;
}

double number_at(uint64_t place) {
  return std::bit_cast<double>(place & kSign ? place & ~kSign : ~place);
}

/// exp(-600) times or through anything that is summed is a normal number.
constexpr float kMostExponent = 600;

}  // namespace

Status check_scales(NodeLowering& n) {
  constexpr float kLeast = 1e-30f, kMost = 1e30f;
  for (const TensorType* type : {&n.in(0), &n.out()}) {
    const float scale = scale_zero(*type).scale;
    if (!(scale >= kLeast && scale <= kMost)) return n.refuse(Rule::kAttribute, str_cat("a scale of ", scale));
  }
  return {};
}

double digits_of(const TensorType& type) {
  double most = 0;
  for (int64_t i = 0; i < 256; ++i) {
    if (const double v = std::fabs(real_of(type, i)); v > 0) most = std::max(most, std::fabs(std::log2(v)));
  }
  return most;
}

void put(std::span<float> to, size_t at, uint64_t bits) {
  to[at * 2] = std::bit_cast<float>(static_cast<uint32_t>(bits));
  to[at * 2 + 1] = std::bit_cast<float>(static_cast<uint32_t>(bits >> 32));
}

void put(std::span<float> to, size_t at, double value) {
  put(to, at, std::bit_cast<uint64_t>(value + 0.0));  // -0 becomes +0
}

void put_thresholds(std::span<float> to, size_t at, const TensorType& y, const std::function<float(double)>& stored,
                    double first, double last) {
  const IntRange range = int_range(y.dtype);
  const auto byte = [&](uint64_t place) {
    return quantize(stored(number_at(place)), scale_zero(y), range) - range.min;
  };
  const uint64_t least = order_of(first), most = order_of(last);
  const int32_t at_least = byte(least), at_most = byte(most);
  for (int32_t k = 1; k < 256; ++k) {
    if (at_most < k) {
      put(to, at++, ~uint64_t{0});
      continue;
    }
    if (at_least >= k) {
      put(to, at++, uint64_t{0});
      continue;
    }
    uint64_t low = least, high = most;
    while (high - low > 1) {
      const uint64_t middle = low + (high - low) / 2;
      (byte(middle) >= k ? high : low) = middle;
    }
    put(to, at++, high);
  }
}

Status check_exponents(NodeLowering& n) {
  const float scale = scale_zero(n.in(0)).scale;
  return 255 * scale > kMostExponent ? n.refuse(Rule::kAttribute, str_cat("a scale of ", scale)) : Status();
}

void put_exponents(std::span<float> to, const TensorType& x) {
  for (int64_t m = 0; m < 256; ++m) {
    for (int64_t i = 0; i < 256; ++i) {
      // No row has an element above its largest.
      put(to, static_cast<size_t>(m * 256 + i), i > m ? 0.0 : std::exp(real_of(x, i) - real_of(x, m)));
    }
  }
}

}  // namespace pinnace::gpu
