// adaptive_average_pool: y has the wanted spatial sizes; y[n, c, o] = the mean of x[n, c, i] over i in
// [floor(o * in / out), ceil((o + 1) * in / out)) of each spatial dimension.
//   x      [N, C, spatial...]     1 to 3 spatial dimensions; floats; quantised i8 | u8 per tensor
//   sizes  [spatial dimensions]   i64, optional: the wanted sizes, where they are computed
//   output_size ints: one per spatial dimension, 0 or more; empty (default) where sizes is given
//   y      [N, C, wanted sizes]   quantised: declared scale and zero point
// Sums in double, one rounding; quantised as average_pool. A mean of nothing is NaN, quantised the zero point.
// Source: PyTorch's adaptive_avg_pool1d, 2d, 3d.
#include "ops/adaptive_pool.h"

namespace pinnace {
namespace {
Result<TensorType> adaptive_average_pool_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  PINNACE_TRY(check_quantized(node, 0));
  PINNACE_ASSIGN(Shape shape, adaptive_pool_shape(node));
  return TensorType{x.dtype, std::move(shape), node.output_quantization(0)};
}

Status adaptive_average_pool_reference(const NodeView& node, std::span<const TensorView> in,
                                       std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  if (y.elements() == 0) return {};  // of any number of planes
  const AdaptiveBins bins(x, y);
  using Bin = AdaptiveBins::Bin;
  return node.threads().ranges(x.dim(0) * x.dim(1), bins.nanoseconds(), [&](int64_t first, int64_t last) -> Status {
    PINNACE_ASSIGN(auto plane, Scratch<double>::allocate(bins.in_size, "adaptive_average_pool's plane"));
    int64_t at = first * bins.out_size;
    for (int64_t p = first; p < last; ++p) {
      load_summands(x, p * bins.in_size, bins.in_size, plane.data());
      bins.for_each([&](const Bin& bz, const Bin& by, const Bin& bx) {
        double sum = 0;
        int64_t count = 0;
        bins.for_each_element(bz, by, bx, [&](int64_t i) {
          sum += plane[i];
          ++count;
        });
        store_mean(x, y, at++, sum, static_cast<double>(count));
      });
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(adaptive_average_pool){
    .name = "adaptive_average_pool",
    .inputs = {{"x", kFloats | kI8 | kU8}, {"sizes", kI64, 0, Arity::kOptional}},
    .attrs = {ints_attr("output_size")},
    .type = adaptive_average_pool_type,
    .reference = adaptive_average_pool_reference,
    .traits = Trait::kFoldsQuantization,
    .work = Work::kPair,
};
}  // namespace pinnace
