// Softmax of quantised tensors. The reference adds up in 64-bit floats: the kernel does the same arithmetic by integers
// (shaders/double.glsl) and compares results with the numbers at which the reference stores another byte.
#include <cmath>

#include "backends/gpu/quantize/thresholds.h"
#include "backends/gpu/softmax/params.h"
#include "ops/move.h"

namespace pinnace::gpu {
namespace {

/// Doubles of int8_log_softmax: of softmax, the bytes' numbers, and what makes logarithms.
constexpr int64_t kLogTable = 65792 + 256 + 128 + 21 * 128 + 8 + 2;

/// Output 0 by a kernel of int8_softmax.comp whose table of `count` doubles begins as that of softmax; `rest` writes
/// what is there beside it.
Status exponent_lanes(NodeLowering& n, KernelId kernel, int64_t count,
                      void (*rest)(std::span<float> to, const TensorType& x)) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  PINNACE_TRY(check_scales(n));
  PINNACE_TRY(check_exponents(n));
  const TensorType x = n.in(0), y = n.out();
  const AxisView v = view_axis(x.shape, axis);
  // One invocation adds up a slice, in the reference's order, and a dispatch must end.
  if (v.size > kMostSummands) return n.refuse(Rule::kAttribute, str_cat("slices of ", v.size));
  const TensorId numbers = n.wide_weights("exponents", count * 2, [=](std::span<float> to) {
    put_exponents(to, x);
    put_thresholds(to, 65536, y, [](double value) { return static_cast<float>(value); });
    rest(to, x);
    return Status();
  });
  const int64_t slices = v.outer * v.inner;
  const TensorId from = n.dense(0), to = n.make_dense();
  std::vector<TensorId> bindings = {from, numbers, to};
  const bool logarithm = kernel == KernelId::int8_log_softmax;
  if (logarithm) bindings.push_back(n.error_record());
  // The largest by all invocations, the sum by one, its logarithm, then two searches or a division and a search each.
  // Mesa makes one more loop of a selection before the two searches.
  const int64_t each = logarithm ? loop_turns(2, kByteSearchTurns) + 1 : kDivisionTurns + kByteSearchTurns;
  n.loops(shared_turns(v.size) + kTreeTurns + loop_turns(v.size) + (logarithm ? loop_turns(8) + loop_turns(2) : 0) +
          shared_turns(v.size, each));
  n.step(kernel, Int8SoftmaxParams{.slices = slices, .size = v.size, .inner = v.inner, .offset = byte_offset(x.dtype)},
         std::move(bindings), row_groups(slices), static_cast<double>(slices * v.size * 64));
  return {};
}

}  // namespace

Status lower_quantized_softmax(NodeLowering& n) {
  return exponent_lanes(n, KernelId::int8_softmax, 65536 + 255, [](std::span<float>, const TensorType&) {});
}

Status lower_quantized_log_softmax(NodeLowering& n) {
  return exponent_lanes(n, KernelId::int8_log_softmax, kLogTable, [](std::span<float> to, const TensorType& x) {
    put(to, 65791, 0.0);
    size_t at = 65792;
    for (int64_t i = 0; i < 256; ++i) put(to, at++, real_of(x, i));
    for (int j = 0; j < 128; ++j) put(to, at++, 1 / (1 + j / 128.0));
    for (int k = 0; k <= 20; ++k) {
      for (int j = 0; j < 128; ++j) put(to, at++, std::log(std::ldexp(1 + j / 128.0, k)));
    }
    for (int i = 1; i <= 8; ++i) put(to, at++, (i % 2 ? 1.0 : -1.0) / i);
    put(to, at++, 1 + 0x1p-48);
    put(to, at++, 1 - 0x1p-48);
  });
}

}  // namespace pinnace::gpu
