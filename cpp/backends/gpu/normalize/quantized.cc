// lp_normalization of quantised tensors, with the reference's sums of 64-bit floats.
#include <cmath>

#include "backends/gpu/quantize/thresholds.h"
#include "backends/gpu/softmax/params.h"
#include "ops/move.h"

namespace pinnace::gpu {

Status lower_quantized_lp_normalization(NodeLowering& n) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  PINNACE_TRY(check_scales(n));
  const TensorType x = n.in(0), y = n.out();
  const bool squares = n.view().attr_int("p") == 2;
  const AxisView v = view_axis(x.shape, axis);
  if (v.size > kMostSummands) return n.refuse(Rule::kAttribute, str_cat("slices of ", v.size));
  const TensorId numbers = n.wide_weights("norm", (512 + 255) * 2, [=](std::span<float> to) {
    for (int64_t i = 0; i < 256; ++i) {
      const double real = real_of(x, i);
      put(to, static_cast<size_t>(i), squares ? real * real : std::fabs(real));
      put(to, static_cast<size_t>(256 + i), real);
    }
    put_thresholds(to, 512, y, [](double value) { return static_cast<float>(value); });
    return Status();
  });
  const int64_t slices = v.outer * v.inner;
  const TensorId from = n.dense(0), to = n.make_dense();
  n.loops(loop_turns(v.size) + (squares ? kDivisionTurns : 0) +
          shared_turns(v.size, kDivisionTurns + kByteSearchTurns));
  n.step(KernelId::int8_norm, Int8NormConstants{.ROOT = squares},
         Int8SoftmaxParams{.slices = slices, .size = v.size, .inner = v.inner, .offset = byte_offset(x.dtype)},
         {from, numbers, to}, row_groups(slices), static_cast<double>(slices * v.size * 64));
  return {};
}

}  // namespace pinnace::gpu
