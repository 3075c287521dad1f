// adaptive_average_pool: y has the wanted spatial sizes; y[n, c, o] = the mean of x[n, c, i] over i in
// [floor(o * in / out), ceil((o + 1) * in / out)) of each spatial dimension.
//   x  [N, C, spatial...]   1 to 3 spatial dimensions; floats; quantised i8 | u8 per tensor
//   output_size ints, required: one per spatial dimension, 0 or more
//   y  [N, C, output_size]  quantised: declared scale and zero point
// Sums in double, one rounding; quantised as average_pool. A mean of nothing is NaN, quantised the zero point.
// Source: PyTorch's adaptive_avg_pool1d, 2d, 3d.
#include "ops/pool.h"

namespace pinnace {
namespace {
Result<TensorType> adaptive_average_pool_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  PINNACE_TRY(check_quantized(node, 0));
  const auto sizes = node.attr_ints("output_size");
  if (x.rank() < 3 || x.rank() > 5) return node.error("x is ", x, ", must have rank 3 to 5");
  if (sizes.size() + 2 != x.shape.size()) {
    return node.error("output_size ", list_text(sizes), " must have ", x.rank() - 2, " entries for x ", x);
  }
  TensorType y{x.dtype, {x.shape[0], x.shape[1]}, node.output_quantization(0)};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t in = x.shape[2 + i].size;
    if (sizes[i] < 0 || sizes[i] > INT32_MAX || in > INT32_MAX) {
      return node.error("output_size ", list_text(sizes), " or a size of x ", x, " is outside [0, 2^31)");
    }
    y.shape.push_back(sizes[i]);
  }
  return y;
}

Status adaptive_average_pool_reference(const NodeView& node, std::span<const TensorView> in,
                                       std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  std::array<int64_t, 3> from{1, 1, 1}, to{1, 1, 1};
  for (int i = 2; i < x.rank(); ++i) {
    from[static_cast<size_t>(i + 3 - x.rank())] = x.dim(i);
    to[static_cast<size_t>(i + 3 - x.rank())] = y.dim(i);
  }
  const auto begin = [&](size_t d, int64_t o) { return o * from[d] / to[d]; };
  const auto end = [&](size_t d, int64_t o) { return ((o + 1) * from[d] + to[d] - 1) / to[d]; };
  const int64_t planes = x.dim(0) * x.dim(1), in_size = from[0] * from[1] * from[2];
  const int64_t out_size = to[0] * to[1] * to[2];
  if (in_size == 0) from = {};  // bins of nothing: no loop over the other sizes
  return node.threads().ranges(
      planes, 3 * static_cast<double>(in_size + out_size), [&](int64_t first, int64_t last) -> Status {
        PINNACE_ASSIGN(auto plane, Scratch<double>::allocate(in_size, "adaptive_average_pool's plane"));
        int64_t at = first * out_size;
        for (int64_t p = first; p < last; ++p) {
          load_summands(x, p * in_size, in_size, plane.data());
          for (int64_t oz = 0; oz < to[0]; ++oz) {
            for (int64_t oy = 0; oy < to[1]; ++oy) {
              for (int64_t ox = 0; ox < to[2]; ++ox) {
                double sum = 0;
                int64_t count = 0;
                for (int64_t z = begin(0, oz); z < end(0, oz); ++z) {
                  for (int64_t i = begin(1, oy); i < end(1, oy); ++i) {
                    for (int64_t k = begin(2, ox); k < end(2, ox); ++k, ++count)
                      sum += plane[(z * from[1] + i) * from[2] + k];
                  }
                }
                store_mean(x, y, at++, sum, static_cast<double>(count));
              }
            }
          }
        }
        return {};
      });
}
}  // namespace

PINNACE_OP(adaptive_average_pool){
    .name = "adaptive_average_pool",
    .inputs = {{"x", kFloats | kI8 | kU8}},
    .attrs = {required_attr("output_size", AttrKind::kInts)},
    .type = adaptive_average_pool_type,
    .reference = adaptive_average_pool_reference,
    .traits = Trait::kFoldsQuantization,
    .work = Work::kPair,
};
}  // namespace pinnace
