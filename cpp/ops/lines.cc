// Reading and writing lines by element type; what quantised operands must satisfy.
#include "ops/lines.h"

#include <bit>
#include <cmath>

namespace pinnace {
namespace {

constexpr uint64_t kSign = uint64_t{1} << 63;

template <class T>
uint64_t order_of(T x) {
  if constexpr (is_float<T>) {
    const double wide = widen(x);
    if (wide != wide) return UINT64_MAX;
    const auto bits = std::bit_cast<uint64_t>(wide == 0 ? 0.0 : wide);
    return bits & kSign ? ~bits : bits | kSign;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(x)) ^ kSign;
  } else {
    return x;
  }
}

}  // namespace

void load_line(const TensorView& t, int64_t first, int64_t step, int64_t count, double* to) {
  if (t.type->quantized()) {
    const ScaleZero p = scale_zero(*t.type);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<double>(dequantize(load_int(t, first + i * step), p));
    return;
  }
  visit(t.dtype(), [&](auto zero) {
    const auto* from = t.data<decltype(zero)>();
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<double>(widen(from[first + i * step]));
  });
}

void store_line(const TensorView& t, int64_t first, int64_t step, int64_t count, const double* from) {
  if (t.type->quantized()) {
    const ScaleZero p = scale_zero(*t.type);
    const IntRange range = int_range(t.dtype());
    for (int64_t i = 0; i < count; ++i) store_int(t, first + i * step, quantize(static_cast<float>(from[i]), p, range));
    return;
  }
  visit(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = t.data<T>();
    for (int64_t i = 0; i < count; ++i) to[first + i * step] = static_cast<T>(from[i]);
  });
}

void load_order(const TensorView& t, int64_t first, int64_t step, int64_t count, uint64_t* to) {
  visit(t.dtype(), [&](auto zero) {
    const auto* from = t.data<decltype(zero)>();
    for (int64_t i = 0; i < count; ++i) to[i] = order_of(from[first + i * step]);
  });
}

void load_centered(const TensorView& t, int64_t first, int64_t step, int64_t count, int32_t zero, uint32_t* to) {
  const auto run = [&](const auto* from) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<uint32_t>(static_cast<int32_t>(from[first + i * step]) - zero);
    }
  };
  t.dtype() == DType::kI8 ? run(t.data<int8_t>()) : run(t.data<uint8_t>());
}

bool is_row_of(const Shape& from, const Shape& to, int axis) {
  for (size_t i = 1; i <= std::max(from.size(), to.size()); ++i) {  // from the last dimension on
    const int64_t size = i <= from.size() ? from[from.size() - i].size : 1;
    const bool inside = i <= to.size() && to.size() - i >= static_cast<size_t>(axis);
    if (size != (inside ? to[to.size() - i].size : 1)) return false;
  }
  return true;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 1; i <= from.size(); ++i) {
    const Dim d = from[from.size() - i];
    if (!(d.known() && d.size == 1) && differ(d, to[to.size() - i])) return false;
  }
  return true;
}

Moments moments(const double* x, int64_t count) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  const auto n = static_cast<double>(count);
  const double mean = sum / n;
  for (int64_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, squares / n};
}

Status check_per_channel(const NodeView& node, int input, Dim channels) {
  const TensorType& t = node.input(input);
  if (t.rank() == 1 && !differ(t.shape[0], channels)) return {};
  return node.error(node.input_name(input), " is ", t, ", must have one element per channel",
                    channels.known() ? str_cat(", ", channels.size) : "");
}

Status check_scale(const NodeView& node, float scale, int32_t zero, DType dtype, std::string_view what) {
  if (!(scale > 0) || std::isinf(scale)) {
    return node.error("scale ", scale, " of ", what, " is not positive and finite");
  }
  const IntRange range = int_range(dtype);
  if (zero < range.min || zero > range.max) {
    return node.error("zero point ", zero, " of ", what, " is outside ", dtype_name(dtype));
  }
  return {};
}

Status check_per_tensor(const NodeView& node, const Quantization& q, DType dtype, std::string_view what) {
  if (q.axis >= 0 || q.block != 0 || q.scales.size() != 1 || q.zero_points.size() != 1) {
    return node.error(what, " must be quantised per tensor, has ", q.scales.size(), " scales on axis ", q.axis);
  }
  return check_scale(node, q.scales[0], q.zero_points[0], dtype, what);
}

Status check_quantized(const NodeView& node, int input) {
  const TensorType& x = node.input(input);
  if (kFloats >> static_cast<int>(x.dtype) & 1) return {};
  const std::string_view name = node.input_name(input);
  if (!x.quantized()) return node.error(name, " is ", x, "; integers must be quantised");
  PINNACE_TRY(check_per_tensor(node, *x.quantization, x.dtype, name));
  const auto y = node.output_quantization(0);
  if (!y) return node.error("the output of a quantised input needs a declared quantisation");
  return check_per_tensor(node, *y, x.dtype, "the output");
}

}  // namespace pinnace
