// Pooling of dense float32 tensors: largest of a window, mean over trailing dimensions.
#include <algorithm>

#include "backends/cpu/pool/pool_plan.h"

namespace pinnace::cpu {
namespace {

/// Rows that one task takes, so that it has about 16,384 elements.
int64_t rows_per_task(int64_t columns) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, columns));
}

bool max_pool_takes(const KernelNode& node) {
  if (node.output_count() != 1 || node.input(0).rank() > 4 || node.input(0).elements() <= 0) return false;
  const auto w = pool_window(node);
  // It visits every tap of the window; the reference visits those inside x, which are few where auto_pad lets a window
  // of 2^31 taps stand over a small x.
  return w.ok() && w->kernel[1] <= 256 && w->kernel[2] <= 256;
}

Status max_pool_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const Window& w = planned_window(context);
  const int64_t planes = in[0].dim(0) * in[0].dim(1);
  const int64_t each = rows_per_task(w.in_size());
  context.parallel((planes + each - 1) / each, [&](int64_t t) {
    for (int64_t p = t * each; p < std::min(planes, (t + 1) * each); ++p) {
      const float* x = in[0].data<float>() + p * w.in_size();
      float* y = out[0].data<float>() + p * w.out_size();
      std::fill_n(y, w.out_size(), -__builtin_inff());
      for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
        const auto rows = w.span(1, ky);
        for (int64_t kx = 0; kx < w.kernel[2]; ++kx) {
          const auto columns = w.span(2, kx);
          if (w.taps() > kLargeWindow && loop_stops()) return;
          for (int64_t oy = rows.first; oy < rows.last; ++oy) {
            const float* line = x + (oy * w.stride[1] + rows.offset) * w.in[2] + columns.offset;
            float* to = y + oy * w.out[2];
            for (int64_t ox = columns.first; ox < columns.last; ++ox) {
              const float v = line[ox * w.stride[2]];
              to[ox] = v > to[ox] || v != v ? v : to[ox];  // NaN stays
            }
          }
        }
      }
    }
  });
  return {};
}

bool global_pool_takes(const KernelNode& node) {
  return node.input(0).elements() > 0 && node.input(0).rank() >= 3;
}

Status global_average_pool_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                               std::span<const TensorView> out) {
  const int64_t planes = in[0].dim(0) * in[0].dim(1), size = in[0].elements() / planes, each = rows_per_task(size);
  context.parallel((planes + each - 1) / each, [&](int64_t t) {
    for (int64_t p = t * each; p < std::min(planes, (t + 1) * each); ++p) {
      const float* x = in[0].data<float>() + p * size;
      double sums[4] = {};  // four chains of additions: one alone waits four cycles for each
      int64_t i = 0;
      for (; i + 4 <= size; i += 4) {
        for (int j = 0; j < 4; ++j) sums[j] += x[i + j];
      }
      for (; i < size; ++i) sums[0] += x[i];
      out[0].data<float>()[p] = static_cast<float>((sums[0] + sums[1] + sums[2] + sums[3]) / static_cast<double>(size));
    }
  });
  return {};
}

}  // namespace

extern const CpuKernel max_pool_f32_generic, global_average_pool_f32_generic;
const CpuKernel max_pool_f32_generic = {
    .takes = max_pool_takes, .plan_bytes = window_plan_bytes, .plan = plan_window, .run = max_pool_run};
const CpuKernel global_average_pool_f32_generic = {.takes = global_pool_takes, .run = global_average_pool_run};

}  // namespace pinnace::cpu
