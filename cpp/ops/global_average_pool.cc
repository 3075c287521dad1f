// global_average_pool: y[n, c] = the mean of x[n, c, ...].
//   x  [N, C, ...]   rank 2 or more; floats; quantised i8 | u8 per tensor
//   y  [N, C, 1...]  of x's rank; quantised: declared scale and zero point
// Sums in double, one rounding; quantised as average_pool. A mean of nothing is NaN, quantised the zero point.
// Source: ONNX GlobalAveragePool, opset 22.
#include <numeric>

#include "ops/pool.h"

namespace pinnace {
namespace {
Result<TensorType> global_average_pool_type(const NodeView& node) {
  PINNACE_TRY(check_quantized(node, 0));
  PINNACE_ASSIGN(Shape shape, global_pool_shape(node));
  return TensorType{node.input(0).dtype, std::move(shape), node.output_quantization(0)};
}

Status global_average_pool_reference(const NodeView& node, std::span<const TensorView> in,
                                     std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  const Slices slices(x.type->shape, 2, x.rank() - 2);
  return node.threads().ranges(
      slices.outer, 2 * static_cast<double>(slices.size), [&](int64_t begin, int64_t end) -> Status {
        PINNACE_ASSIGN(auto plane, Scratch<double>::allocate(slices.size, "global_average_pool's plane"));
        for (int64_t p = begin; p < end; ++p) {
          load_summands(x, p * slices.size, slices.size, plane.data());
          const double sum = std::accumulate(plane.data(), plane.data() + slices.size, 0.0);
          store_mean(x, y, p, sum, static_cast<double>(slices.size));
        }
        return {};
      });
}
}  // namespace

PINNACE_OP(global_average_pool){
    .name = "global_average_pool",
    .inputs = {{"x", kFloats | kI8 | kU8}},
    .type = global_average_pool_type,
    .reference = global_average_pool_reference,
    .traits = Trait::kFoldsQuantization,
};
}  // namespace pinnace
