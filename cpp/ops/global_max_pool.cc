// global_max_pool: y[n, c] = the largest element of x[n, c, ...].
//   x  [N, C, ...]   rank 2 or more; floats; i8 | u8, which may be quantised per tensor
//   y  [N, C, 1...]  of x's rank and type, quantisation included
// NaN wins. The largest of nothing is -inf, of integers the least value. Source: ONNX GlobalMaxPool, opset 22.
#include <limits>

#include "ops/pool.h"

namespace pinnace {
namespace {
Result<TensorType> global_max_pool_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const auto declared = node.output_quantization(0);
  if (declared && (!x.quantized() || !(*declared == *x.quantization))) {
    return node.error("the output's declared quantisation differs from that of x ", x, ", which is kept");
  }
  if (x.quantized()) PINNACE_TRY(check_per_tensor(node, *x.quantization, x.dtype, "x"));
  PINNACE_ASSIGN(Shape shape, global_pool_shape(node));
  return TensorType{x.dtype, std::move(shape), x.quantization};
}

Status global_max_pool_reference(const NodeView& node, std::span<const TensorView> in,
                                 std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  const Slices slices(x.type->shape, 2, x.rank() - 2);
  return visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const double cost = kMapNanoseconds * static_cast<double>(slices.size);
    node.threads().ranges(slices.outer, cost, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const T* from = x.data<T>() + p * slices.size;
        T best{};
        if constexpr (is_float<T>)
          best = static_cast<T>(-std::numeric_limits<float>::infinity());
        else
          best = std::numeric_limits<T>::min();
        for (int64_t i = 0; i < slices.size; ++i) {
          if (from[i] > best || from[i] != from[i]) best = from[i];
        }
        y.data<T>()[p] = best;
      }
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(global_max_pool){
    .name = "global_max_pool",
    .inputs = {{"x", kFloats | kI8 | kU8}},
    .type = global_max_pool_type,
    .reference = global_max_pool_reference,
    .traits = Trait::kCompares | Trait::kFoldsQuantization,
};
}  // namespace pinnace
