// cum_sum of float32: running sums in double, each rounded once. Along the last dimension the sums of four neighbours
// do not wait for what comes before them; along others columns side by side.
#include <algorithm>

#include "backends/cpu/kernel.h"
#include "ops/move.h"

namespace pinnace::cpu {
namespace {

constexpr int kColumns = 8;

/// size numbers, `step` apart; exclusive: sums leave out their own number.
void sum_row(const float* x, float* y, int64_t size, ptrdiff_t step, bool exclusive) {
  double before = 0;
  int64_t i = 0;
  const auto put = [&](double without, double with) {
    *y = static_cast<float>(exclusive ? without : with);
    x += step;
    y += step;
  };
  for (; i + 4 <= size; i += 4) {
    const double a = x[0], b = a + static_cast<double>(x[step]), c = b + static_cast<double>(x[2 * step]),
                 d = c + static_cast<double>(x[3 * step]);
    put(before, before + a);
    put(before + a, before + b);
    put(before + b, before + c);
    put(before + c, before + d);
    before += d;
  }
  for (; i < size; ++i) {
    const double sum = before + static_cast<double>(*x);
    put(before, sum);
    before = sum;
  }
}

/// kColumns columns of `size` rows, `step` apart.
void sum_columns(const float* x, float* y, int64_t size, ptrdiff_t step, bool exclusive) {
  double sums[kColumns] = {};
  for (int64_t i = 0; i < size; ++i, x += step, y += step) {
    double before[kColumns];
    for (int c = 0; c < kColumns; ++c) before[c] = sums[c];
    for (int c = 0; c < kColumns; ++c) sums[c] += static_cast<double>(x[c]);
    const double* from = exclusive ? before : sums;
    for (int c = 0; c < kColumns; ++c) y[c] = static_cast<float>(from[c]);
  }
}

Status run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  PINNACE_ASSIGN(const int axis, node.axis(load_index(in[1], 0), in[0].rank()));
  const AxisView v = view_axis(in[0].type->shape, axis);
  const bool exclusive = node.attr_int("exclusive") != 0, reverse = node.attr_int("reverse") != 0;
  const ptrdiff_t step = reverse ? -v.inner : v.inner;
  const int64_t blocks = (v.inner + kColumns - 1) / kColumns, tasks = v.outer * blocks;
  const int64_t each =
      std::max<int64_t>(1, 16384 / std::max<int64_t>(1, v.size * std::min<int64_t>(v.inner, kColumns)));
  context.parallel((tasks + each - 1) / each, [&](int64_t t) {
    for (int64_t u = t * each; u < std::min(tasks, (t + 1) * each); ++u) {
      const int64_t first = u % blocks * kColumns, count = std::min<int64_t>(kColumns, v.inner - first);
      const int64_t at = (u / blocks * v.size + (reverse ? v.size - 1 : 0)) * v.inner + first;
      const float* x = in[0].data<float>() + at;
      float* y = out[0].data<float>() + at;
      if (count == kColumns) {
        sum_columns(x, y, v.size, step, exclusive);
      } else {
        for (int64_t c = 0; c < count; ++c) sum_row(x + c, y + c, v.size, step, exclusive);
      }
    }
  });
  return {};
}

bool takes(const KernelNode& node) {
  return node.input(0).elements() > 0;
}

}  // namespace

extern const CpuKernel cum_sum_f32_generic;
const CpuKernel cum_sum_f32_generic = {.takes = takes, .by_shape = always_by_shape, .run = run};

}  // namespace pinnace::cpu
