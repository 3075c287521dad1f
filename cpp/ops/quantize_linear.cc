// quantize_linear: y = clamp(round_half_even(x / scale) + zero_point); to small floats round(x / scale + zero_point).
//   x             [...]  f32 | f16 | bf16 | i32
//   scale         f32 | f16 | bf16 | f8e8m0 | i32; per tensor [] or [1], per axis [size of the axis], or, with
//   block_size B, the shape of x
//                 with ceil(size / B) along the axis
//   zero_point    optional: i8 | u8 | i16 | u16 | i4 | u4 | i2 | u2 | f8e4m3fn | f8e4m3fnuz | f8e5m2 | f8e5m2fnuz |
//                 f6e2m3 | f6e3m2 | f4e2m1, shape of scale; left out: 0
//   axis          int, default 1
//   block_size    int, default 0: no blocks
//   output_dtype  string: element type of y; default that of zero_point, else u8
//   precision     string "f32", "f16" or "bf16": type of the division; default that of scale, f32 where that is f8e8m0,
//                 f64 where it is i32
//   saturate      int, default 1: what is too large for a float of 8 bits becomes its largest number; 0: as cast has it
//   y             the shape of x
// x and scale are converted to the type of the division, whose result is rounded to it, then to an integer. NaN gives
// the zero point, infinities the ends of the range. y is a plain tensor. Small floats
// take NaN and infinity as cast has it. Source: ONNX QuantizeLinear, opset 28.
#include <cmath>

#include "base/dtype_code.h"
#include "ops/linear_quantization.h"

namespace pinnace {
namespace {
Result<TensorType> quantize_linear_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  PINNACE_TRY(check_scale(node));
  const std::string_view precision = node.attr_string("precision"), wanted = node.attr_string("output_dtype");
  const auto division = dtype_from_code(precision);
  if (!precision.empty() && !(division && dtypes(*division) & (kF32 | kF16 | kBF16))) {
    return node.error("precision is '", precision, "', must be f32, f16 or bf16");
  }
  DType to = node.has_input(2) ? node.input(2).dtype : DType::kU8;
  if (!wanted.empty()) {
    const auto named = dtype_from_code(wanted);
    if (!named || !(dtypes(*named) & kQuantized)) {
      return node.error("output_dtype is '", wanted,
                        "', must be an integer of at most 16 bits or a float of at most 8");
    }
    if (node.has_input(2) && *named != to) {
      return node.error("output_dtype is '", wanted, "', but the zero point is ", node.input(2));
    }
    to = *named;
  }
  return TensorType{to, node.input(0).shape, nullptr};
}

/// With the quotient of x and scale in P, and X the element type of x.
template <class P, class X>
void quantize(const NodeView& node, std::span<const TensorView> in, const TensorView& y) {
  const ScaleIndex scale_of(node);
  const bool small = is_small_float(y.dtype()), saturate = node.attr_int("saturate") != 0;
  const IntRange range = int_range(y.dtype());
  const bool has_zero = in.size() > 2 && in[2].present();
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t k = scale_of(i);
      const double ratio = widen(convert<P>(in[0].data<X>()[i])) / widen(narrow<P>(load_scale(in[1], k)));
      if (small) {
        const double zero = has_zero ? static_cast<double>(load_small(in[2], k)) : 0.0;
        store_small(y, i, small_from_double(y.dtype(), widen(narrow<P>(ratio)) + zero, saturate));
        continue;
      }
      const int32_t zero = has_zero ? load_int(in[2], k) : 0;
      const double q = std::nearbyint(widen(narrow<P>(ratio))) + zero;
      store_int(y, i, q != q ? zero : static_cast<int32_t>(limit(q, range.min, range.max)));
    }
  };
  constexpr double kNanoseconds = 10;
  node.threads().ranges(y.elements(), kNanoseconds, run, kMapGrain);
}

/// visit() for what x can be, and for f64.
template <class F>
void visit_x(DType dtype, F f) {
  switch (dtype) {
    case DType::kF16:
      return f(Half{});
    case DType::kBF16:
      return f(BFloat16{});
    case DType::kI32:
      return f(int32_t{});
    case DType::kF64:
      return f(double{});
    default:
      return f(float{});
  }
}

Status quantize_linear_reference(const NodeView& node, std::span<const TensorView> in,
                                 std::span<const TensorView> out) {
  const auto precision = dtype_from_code(node.attr_string("precision"));
  const DType scale = in[1].dtype();
  visit_x(precision              ? *precision
          : scale == DType::kI32 ? DType::kF64
                                 : scale,
          [&](auto zero_p) {
            using P = decltype(zero_p);
            visit_x(in[0].dtype(), [&](auto zero_x) {
              using X = decltype(zero_x);
              if constexpr (is_float<P> && !std::is_same_v<X, double>) quantize<P, X>(node, in, out[0]);
            });
          });
  return {};
}
}  // namespace

PINNACE_OP(quantize_linear){
    .name = "quantize_linear",
    .inputs = {{"x", kF32 | kF16 | kBF16 | kI32},
               {"scale", kScales | kI32},
               {"zero_point", kQuantized, 0, Arity::kOptional}},
    .attrs = {int_attr("axis", 1), int_attr("block_size", 0), string_attr("output_dtype", ""),
              string_attr("precision", ""), int_attr("saturate", 1)},
    .type = quantize_linear_type,
    .reference = quantize_linear_reference,
    .traits = Trait::kConverts,
};
}  // namespace pinnace
