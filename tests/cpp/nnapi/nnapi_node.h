// One node on the NNAPI back end at a stated feature level, through the NNAPI library that the test program is linked
// to.
#pragma once

#include "cpp/lone_node.h"

namespace pinnace {
const Backend& nnapi_backend();
}

namespace pinnace::testing {

inline TargetSpec nnapi_level(int level) {
  return {"nnapi", str_cat("fl", level)};
}

/// Runs a node on the back end; kUnsupported with the rule where it is refused.
inline Status run_on_nnapi(const TargetSpec& target, uint32_t values, const NodeView& view,
                           std::span<const TensorView> in, std::span<const TensorView> out) {
  return run_on(nnapi_backend(), target, values, view, in, out);
}

/// NNAPI's integers have 32 bits: a run with such an input ends with kDeviceLost, and is made again elsewhere.
inline bool exceeds_32_bits(const TensorView& t) {
  if (!t.present() || t.dtype() != DType::kI64) return false;
  const auto* numbers = t.data<int64_t>();
  return std::any_of(numbers, numbers + t.elements(), [](int64_t v) { return v < INT32_MIN || v > INT32_MAX; });
}

/// Where `got` is further from `want` than NNAPI's tolerances allow: quantised and integers by 1, floats by 1e-4 of the
/// largest (f16: 5 / 1024), plus what the case allows. NNAPI leaves results that are not finite open.
inline std::string far_from(const TensorView& want, const TensorView& got, const Tolerance& own) {
  double largest = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double w = element(want, i);
    if (std::isfinite(w)) largest = std::max(largest, std::fabs(w));
  }
  const bool floats = want.dtype() == DType::kF32 || want.dtype() == DType::kF16;
  const double relative = want.dtype() == DType::kF16 ? 5.0 / 1024 : 1e-4;
  const double bound = floats ? 1e-6 + own.abs + std::max<double>(relative, own.rel) * largest
                       : want.type->quantized() || want.dtype() == DType::kI8 || want.dtype() == DType::kU8 ? 1
                                                                                                            : 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double w = element(want, i), g = element(got, i);
    if (!std::isfinite(w)) continue;
    if (!(std::fabs(w - g) <= bound)) {
      return str_cat("element ", i, " is ", g, ", must be ", w, " within ", bound);
    }
  }
  return {};
}

}  // namespace pinnace::testing
