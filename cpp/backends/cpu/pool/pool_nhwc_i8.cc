// Pooling on 8-bit quantised types over NHWC-packed tensors (unsigned). Chosen where the operand is NHWC-packed
// already.
#include "backends/cpu/i8_isa.h"
#include "backends/cpu/nhwc_rows.h"
#include "backends/cpu/pool/pool_plan.h"

namespace pinnace::cpu {
namespace {

bool max_pool_takes(const KernelNode& node) {
  if (node.output_count() != 1 || !is_nhwc_input_i8(node, 0)) return false;
  const auto window = pool_window(node);
  return window.ok() && window->out_size() > 0;
}

template <const I8Isa& isa>
Status max_pool_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const Window& w = planned_window(context);
  const NhwcI8 x = nhwc_i8_of(in[0], context.layouts[0]), y = nhwc_i8_of(out[0], context.layouts[in.size()]);
  for_rows_i8(context, y, [&](int64_t n, int64_t oy) {
    const Taps rows = taps_at(w, 1, oy);
    const uint8_t* from = x.at + n * x.step + (rows.start + rows.first * w.dilation[1]) * x.row;
    for (int64_t ox = 0; ox < y.size.w; ++ox) {
      const Taps columns = taps_at(w, 2, ox);
      isa.pool->maximum(from + (columns.start + columns.first * w.dilation[2]) * x.pitch, w.dilation[1] * x.row,
                        rows.last - rows.first, w.dilation[2] * x.pitch, columns.last - columns.first,
                        y.at + n * y.step + oy * y.row + ox * y.pitch, y.pitch);
    }
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_max_pool() {
  return {.takes = max_pool_takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .plan_bytes = window_plan_bytes,
          .plan = plan_window,
          .run = max_pool_run<isa>};
}

/// Sums of bytes stay within int32.
constexpr int64_t kMostSummands = int64_t{1} << 22;
constexpr int64_t kPoolChannels = 256;

bool average_pool_takes(const KernelNode& node) {
  if (!is_nhwc_input_i8(node, 0) || !node.output_quantization(0)) return false;
  const auto window = pool_window(node);
  return window.ok() && window->out_size() > 0 && window->taps() <= kMostSummands;
}

template <const I8Isa& isa>
Status average_pool_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                        std::span<const TensorView> out) {
  const Window& w = planned_window(context);
  const NhwcI8 x = nhwc_i8_of(in[0], context.layouts[0]), y = nhwc_i8_of(out[0], context.layouts[in.size()]);
  const RealI8 from = real_i8(*in[0].type), to = real_i8(*out[0].type);
  const bool with_pads = node.attr_int("count_include_pad") != 0;
  const auto counted = [&](int d, const Taps& t) {
    if (!with_pads) return t.last - t.first;
    return std::min(w.kernel[d], (w.in[d] + w.after[d] - 1 - t.start) / w.dilation[d] + 1);
  };
  for_rows_i8(context, y, [&](int64_t n, int64_t oy) {
    const Taps rows = taps_at(w, 1, oy);
    for (int64_t ox = 0; ox < y.size.w; ++ox) {
      const Taps columns = taps_at(w, 2, ox);
      const int64_t across = columns.last - columns.first, inside = across * (rows.last - rows.first);
      uint8_t* pixel = y.at + n * y.step + oy * y.row + ox * y.pitch;
      for (int64_t first = 0; first < y.size.c; first += kPoolChannels) {
        const int64_t count = std::min(kPoolChannels, y.size.c - first);
        int32_t sums[kPoolChannels] = {};
        for (int64_t ky = rows.first; ky < rows.last; ++ky) {
          const uint8_t* line = x.at + n * x.step + (rows.start + ky * w.dilation[1]) * x.row + first;
          isa.pool->sum(line + (columns.start + columns.first * w.dilation[2]) * x.pitch, w.dilation[2] * x.pitch,
                        across, count, sums);
        }
        isa.pool->means(sums, static_cast<int32_t>(inside * from.zero), from.scale,
                        static_cast<float>(counted(1, rows) * counted(2, columns)), to, 0, pixel + first, count);
      }
    }
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_average_pool() {
  return {.takes = average_pool_takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .plan_bytes = window_plan_bytes,
          .plan = plan_window,
          .run = average_pool_run<isa>};
}

bool global_pool_takes(const KernelNode& node) {
  if (!is_nhwc_input_i8(node, 0) || !node.output_quantization(0)) return false;
  const NhwcSizes s = nhwc_sizes(node.input(0));
  return s.h * s.w <= kMostSummands;
}

template <const I8Isa& isa>
Status global_average_pool_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                               std::span<const TensorView> out) {
  const NhwcI8 x = nhwc_i8_of(in[0], context.layouts[0]), y = nhwc_i8_of(out[0], context.layouts[in.size()]);
  const RealI8 from = real_i8(*in[0].type), to = real_i8(*out[0].type);
  const int64_t blocks = (x.size.c + kPoolChannels - 1) / kPoolChannels, area = x.size.h * x.size.w;
  context.parallel(x.size.n * blocks, [&](int64_t t) {
    const int64_t n = t / blocks, first = t % blocks * kPoolChannels;
    const int64_t count = std::min(kPoolChannels, x.size.c - first);
    int32_t sums[kPoolChannels] = {};
    for (int64_t row = 0; row < x.size.h; ++row) {
      isa.pool->sum(x.at + n * x.step + row * x.row + first, x.pitch, x.size.w, count, sums);
    }
    isa.pool->means(sums, static_cast<int32_t>(area * from.zero), from.scale, static_cast<float>(area), to, 0,
                    y.at + n * y.step + first, count);
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_global_average_pool() {
  return {.takes = global_pool_takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .run = global_average_pool_run<isa>};
}

}  // namespace

PINNACE_KERNELS_I8(max_pool_nhwc_i8, make_max_pool)
PINNACE_KERNELS_I8(average_pool_nhwc_i8, make_average_pool)
PINNACE_KERNELS_I8(global_average_pool_nhwc_i8, make_global_average_pool)

}  // namespace pinnace::cpu
