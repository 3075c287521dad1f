// max_pool and global_average_pool over NHWC-packed tensors, in float32 and fp16. Chosen where the operand is
// an image already.
#include "backends/cpu/f32_isa.h"
#include "backends/cpu/nhwc_rows.h"
#include "backends/cpu/pool/max_pool_row.h"
#include "backends/cpu/pool/pool_plan.h"
#include "backends/cpu/reduce/reduce_f32.h"
#include "base/half.h"
#include "ops/lines.h"

namespace pinnace::cpu {
namespace {

bool max_pool_takes(const KernelNode& node) {
  if (node.output_count() != 1 || !is_nhwc_input(node, 0)) return false;
  const auto window = pool_window(node);
  // It visits every tap of the window, see max_pool_f32_generic.
  return window.ok() && window->out_size() > 0 && window->kernel[1] <= 256 && window->kernel[2] <= 256;
}

template <const auto& isa>
void max_pool_row(const MaxPoolRow<ElementOf<isa>>& row) {
  if constexpr (std::is_same_v<ElementOf<isa>, float>) {
    max_pool_row_f32<isa.loops>(row);
  } else {
    max_pool_row_f16_neon_dotprod(row);
  }
}

template <const auto& isa>
void max_pool_rows(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out,
                   int64_t first, int64_t last) {
  using T = ElementOf<isa>;
  const Window& w = planned_window(context);
  const auto x = nhwc_of<T>(in[0], context.layouts[0]), y = nhwc_of<T>(out[0], context.layouts[in.size()]);
  for (int64_t u = first; u < last; ++u) {
    const int64_t n = u / y.size.h, oy = u % y.size.h;
    const Taps taps = taps_at(w, 1, oy);
    if (w.taps() > kLargeWindow && loop_stops()) return;
    max_pool_row<isa>({.x = x.at + n * x.step + (taps.start + taps.first * w.dilation[1]) * x.row,
                       .pitch = x.pitch,
                       .tap_row = w.dilation[1] * x.row,
                       .y = y.at + n * y.step + oy * y.row,
                       .y_pitch = y.pitch,
                       .channels = std::min(x.pitch, y.pitch),
                       .in_w = x.size.w,
                       .out_w = y.size.w,
                       .rows = taps.last - taps.first,
                       .kernel_w = w.kernel[2],
                       .stride_x = w.stride[2],
                       .dilation_x = w.dilation[2],
                       .before_x = w.before[2]});
  }
}

template <const auto& isa>
Status max_pool_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const auto y = nhwc_of<ElementOf<isa>>(out[0], context.layouts[in.size()]);
  const int64_t rows = y.size.n * y.size.h, each = rows_per_task(y);
  context.parallel((rows + each - 1) / each,
                   [&](int64_t t) { max_pool_rows<isa>(context, in, out, t * each, std::min(rows, (t + 1) * each)); });
  return {};
}

RowWindow max_pool_reads_rows(const KernelNode& node) {
  const Window w = *pool_window(node);
  return {w.stride[1], w.before[1], (w.kernel[1] - 1) * w.dilation[1] + 1};
}

template <const auto& isa>
constexpr CpuKernel make_max_pool() {
  return {.takes = max_pool_takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .precision = isa.precision,
          .plan_bytes = window_plan_bytes,
          .plan = plan_window,
          .run = max_pool_run<isa>,
          .rows = max_pool_rows<isa>,
          .reads_rows = max_pool_reads_rows};
}

bool global_pool_takes(const KernelNode& node) {
  return is_nhwc_input(node, 0);
}

/// Rows are summed in this many parts, by the threads that have made them; the parts' sums then in their order.
int64_t pool_parts(const NhwcSizes& x) {
  return std::min<int64_t>(x.h, 8);
}

/// Of a part: its sums in double, and those of up to kReducedRows pixels in float32, whose error grows with the terms.
int64_t part_bytes(int64_t channels) {
  return (channels + 1) / 2 * 2 * int64_t{sizeof(double) + sizeof(float)};
}

int64_t global_average_pool_scratch(const KernelNode& node, int) {
  const NhwcSizes x = nhwc_sizes(node.input(0));
  return x.n * pool_parts(x) * part_bytes(x.c);
}

template <const auto& isa>
Status global_average_pool_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                               std::span<const TensorView> out) {
  using T = ElementOf<isa>;
  const auto x = nhwc_of<T>(in[0], context.layouts[0]), y = nhwc_of<T>(out[0], context.layouts[in.size()]);
  const int64_t parts = pool_parts(x.size), channels = x.size.c;
  const auto sums_of = [&](int64_t t) { return reinterpret_cast<double*>(context.scratch + t * part_bytes(channels)); };
  const auto part = [&](int64_t t) {
    const int64_t n = t / parts, p = t % parts;
    double* to = sums_of(t);
    auto* some = reinterpret_cast<float*>(to + channels);
    std::fill_n(to, channels, 0.0);
    std::fill_n(some, channels, 0.0f);
    int64_t added = 0;
    const auto flush = [&] {
      for (int64_t c = 0; c < channels; ++c) to[c] += static_cast<double>(some[c]);
      std::fill_n(some, channels, 0.0f);
      added = 0;
    };
    for (int64_t row = x.size.h * p / parts; row < x.size.h * (p + 1) / parts; ++row) {
      const T* line = x.at + n * x.step + row * x.row;
      for (int64_t i = 0; i < x.size.w;) {
        const int64_t count = std::min(x.size.w - i, kReducedRows - added);
        isa.columns->sum(line + i * x.pitch, x.pitch, count, channels, some);
        i += count;
        if ((added += count) == kReducedRows) flush();
      }
    }
    if (added > 0) flush();
  };
  if (x.size.w * x.size.h * channels < 16384) {
    for (int64_t t = 0; t < x.size.n * parts; ++t) part(t);
  } else {
    context.parallel(x.size.n * parts, part);
  }
  const double scale = 1.0 / static_cast<double>(x.size.h * x.size.w);
  for (int64_t n = 0; n < x.size.n; ++n) {
    T* to = y.at + n * y.step;
    double* from = sums_of(n * parts);
    for (int64_t p = 1; p < parts; ++p) {
      const double* others = sums_of(n * parts + p);
      for (int64_t c = 0; c < channels; ++c) from[c] += others[c];
    }
    for (int64_t c = 0; c < channels; ++c) {
      const auto mean = static_cast<float>(from[c] * scale);
      if constexpr (std::is_same_v<T, float>) {
        to[c] = mean;
      } else {
        to[c] = float_to_half(mean);
      }
    }
  }
  return {};
}

template <const auto& isa>
constexpr CpuKernel make_global_average_pool() {
  return {.takes = global_pool_takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .precision = isa.precision,
          .scratch_bytes = global_average_pool_scratch,
          .run = global_average_pool_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(max_pool_nhwc_f32, make_max_pool)
PINNACE_KERNELS_F32(global_average_pool_nhwc_f32, make_global_average_pool)
PINNACE_KERNELS_F16(max_pool_nhwc_f16, make_max_pool)
PINNACE_KERNELS_F16(global_average_pool_nhwc_f16, make_global_average_pool)

}  // namespace pinnace::cpu
