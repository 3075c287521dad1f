// dequantize_linear: y = (x - zero_point) * scale.
//   x             [...]  i8 | u8 | i16 | u16 | i32 | i4 | u4 | i2 | u2 | f8e4m3fn | f8e4m3fnuz | f8e5m2 | f8e5m2fnuz |
//                 f6e2m3 | f6e3m2 | f4e2m1
//   scale         f32 | f16 | bf16 | f8e8m0; per tensor [] or [1], per axis [size of the axis], or, with block_size B,
//   the shape of x
//                 with ceil(size / B) along the axis
//   zero_point    optional: element type of x, shape of scale; left out: 0
//   axis          int, default 1
//   block_size    int, default 0: no blocks
//   output_dtype  string "f32", "f16" or "bf16": element type of y; default that of scale, needed where that is f8e8m0
//   y             the shape of x
// float32(x - zero_point) times scale, rounded once to the type of y; for f32 that is the product in float32. x counts
// as plain integers or floats. Source: ONNX DequantizeLinear, opset 28.
#include "base/dtype_code.h"
#include "ops/linear_quantization.h"

namespace pinnace {
namespace {
Result<TensorType> dequantize_linear_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  PINNACE_TRY(check_scale(node));
  const std::string_view wanted = node.attr_string("output_dtype");
  DType to = node.input(1).dtype;
  if (!wanted.empty()) {
    const auto named = dtype_from_code(wanted);
    if (!named || !(dtypes(*named) & (kF32 | kF16 | kBF16))) {
      return node.error("output_dtype is '", wanted, "', must be f32, f16 or bf16");
    }
    to = *named;
  }
  if (to == DType::kF8E8M0) return node.error("output_dtype must say the element type where scale is f8e8m0");
  return TensorType{to, node.input(0).shape, nullptr};
}

Status dequantize_linear_reference(const NodeView& node, std::span<const TensorView> in,
                                   std::span<const TensorView> out) {
  const ScaleIndex scale_of(node);
  const bool has_zero = in.size() > 2 && in[2].present();
  const bool small = is_small_float(in[0].dtype());
  return visit_float(out[0].dtype(), [&](auto zero_y) {
    using Y = decltype(zero_y);
    const auto run = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t k = scale_of(i);
        float difference = 0;
        if (small) {
          difference = load_small(in[0], i) - (has_zero ? load_small(in[2], k) : 0.0f);
        } else {
          const int64_t zero = has_zero ? load_int(in[2], k) : 0;
          difference = static_cast<float>(load_int(in[0], i) - zero);
        }
        out[0].data<Y>()[i] = narrow<Y>(static_cast<double>(difference) * load_scale(in[1], k));
      }
    };
    constexpr double kNanoseconds = 10;
    node.threads().ranges(out[0].elements(), kNanoseconds, run, kMapGrain);
    return Status();
  });
}
}  // namespace

PINNACE_OP(dequantize_linear){
    .name = "dequantize_linear",
    .inputs = {{"x", kQuantized | kI32, 'T'},
               {"scale", kScales},
               {"zero_point", kQuantized | kI32, 'T', Arity::kOptional}},
    .attrs = {int_attr("axis", 1), int_attr("block_size", 0), string_attr("output_dtype", "")},
    .type = dequantize_linear_type,
    .reference = dequantize_linear_reference,
    .traits = Trait::kConverts,
};
}  // namespace pinnace
