// Pooling of dense 8-bit tensors, plane by plane: rows of a window are joined first, element by element, then its
// columns. Bytes count as unsigned.
#include <algorithm>
#include <cstring>

#include "backends/cpu/i8_isa.h"
#include "backends/cpu/pace.h"
#include "backends/cpu/pool/pool_plan.h"

namespace pinnace::cpu {
namespace {

/// A thread's memory for a row of x, then one of y, then the elements of the former at even places and at odd ones.
template <class T>
struct Rows {
  T *in, *out, *of_parity[2];
  static int64_t bytes(const Window& w) {
    return static_cast<int64_t>(aligned_size(static_cast<size_t>(2 * w.in[2] + 1 + w.out[2]) * sizeof(T)));
  }
  Rows(const KernelContext& context, int64_t t, const Window& w)
      : in(reinterpret_cast<T*>(context.scratch + t * bytes(w))),
        out(in + w.in[2]),
        of_parity{out + w.out[2], out + w.out[2] + (w.in[2] + 1) / 2} {}
};

template <class T>
int64_t rows_scratch(const KernelNode& node, int threads) {
  const auto w = pool_window(node);
  return w.ok() ? threads * Rows<T>::bytes(*w) : 0;
}

/// f(rows, plane, row of out, taps...) for every row of the result.
template <class T, class F>
void for_output_rows(const KernelContext& context, const Window& w, int64_t planes, F f) {
  const int64_t rows = planes * w.out[0] * w.out[1], tasks = std::min<int64_t>(context.threads, rows);
  context.parallel(tasks, [&](int64_t t) {
    const Rows<T> own(context, t, w);
    Pace pace(w.in[2] * std::min(w.kernel[0], w.in[0]) * std::min(w.kernel[1], w.in[1]) +
              w.out[2] * std::min(w.kernel[2], w.in[2]));
    for (int64_t u = rows * t / tasks; u < rows * (t + 1) / tasks && !pace.stops(); ++u) {
      const int64_t plane = u / (w.out[0] * w.out[1]);
      f(own, plane, u, taps_at(w, 0, u / w.out[1] % w.out[0]), taps_at(w, 1, u % w.out[1]));
    }
  });
}

/// to[i] = join(to[i], x[i]) over the rows of one window of rows.
template <class T, class Join>
void join_rows(const Window& w, const uint8_t* plane, uint8_t flip, const Taps& tz, const Taps& ty, T* to, Join join) {
  std::fill_n(to, w.in[2], T{0});
  for (int64_t kz = tz.first; kz < tz.last; ++kz) {
    for (int64_t ky = ty.first; ky < ty.last; ++ky) {
      const int64_t row = (tz.start + kz * w.dilation[0]) * w.in[1] + ty.start + ky * w.dilation[1];
      const uint8_t* x = plane + row * w.in[2];
      for (int64_t i = 0; i < w.in[2]; ++i) to[i] = join(to[i], static_cast<T>(x[i] ^ flip));
    }
  }
}

/// out[o] = join(out[o], in[o * stride + ...]) over the columns of windows.
template <class T, class Join>
void join_columns(const Window& w, const Rows<T>& rows, Join join) {
  T* to = rows.out;
  std::fill_n(to, w.out[2], T{0});
  const int64_t stride = w.stride[2];
  if (stride == 2) {  // side by side, so that several are read at a time
    for (int64_t i = 0; i < w.in[2] / 2; ++i) {
      rows.of_parity[0][i] = rows.in[2 * i];
      rows.of_parity[1][i] = rows.in[2 * i + 1];
    }
    if (w.in[2] % 2) rows.of_parity[0][w.in[2] / 2] = rows.in[w.in[2] - 1];
  }
  if (stride > w.in[2]) {  // no two windows share an element: between them lie taps, perhaps 2^31, that meet none
    for (int64_t o = 0; o < w.out[2]; ++o) {
      const Taps taps = taps_at(w, 2, o);
      for (int64_t k = taps.first; k < taps.last; ++k) to[o] = join(to[o], rows.in[taps.start + k * w.dilation[2]]);
    }
    return;
  }
  // Taps that lie inside x for some window: padding may be far wider than x.
  const int64_t before = w.before[2] - (w.out[2] - 1) * stride, dilation = w.dilation[2];
  const int64_t first_tap = before > 0 ? (before + dilation - 1) / dilation : 0;
  const int64_t last_tap = std::min(w.kernel[2], (w.in[2] - 1 + w.before[2]) / dilation + 1);
  for (int64_t k = first_tap; k < last_tap; ++k) {
    const int64_t offset = k * dilation - w.before[2];
    const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    const int64_t last = offset >= w.in[2] ? 0 : std::min(w.out[2], (w.in[2] - 1 - offset) / stride + 1);
    if (stride <= 2) {
      const T* x = stride == 1 ? rows.in : rows.of_parity[offset & 1];
      const int64_t at = stride == 1 ? offset : offset >> 1;
      for (int64_t o = first; o < last; ++o) to[o] = join(to[o], x[o + at]);
    } else {
      for (int64_t o = first; o < last; ++o) to[o] = join(to[o], rows.in[o * stride + offset]);
    }
  }
}

// ------------------------------------------------------------------------------------------------------- max_pool

bool has_windows(const KernelNode& node) {
  const auto window = pool_window(node);
  return window.ok() && window->out_size() > 0 && node.input(0).elements() > 0;
}

bool max_pool_takes(const KernelNode& node) {
  return node.output_count() == 1 && has_windows(node);
}

Status max_pool_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const Window& w = planned_window(context);
  const auto flip = static_cast<uint8_t>(nhwc_offset(in[0].dtype()));
  const auto larger_of = [](uint8_t a, uint8_t b) { return a > b ? a : b; };
  for_output_rows<uint8_t>(context, w, in[0].dim(0) * in[0].dim(1),
                           [&](const Rows<uint8_t>& rows, int64_t plane, int64_t row, const Taps& tz, const Taps& ty) {
                             join_rows(w, in[0].data<uint8_t>() + plane * w.in_size(), flip, tz, ty, rows.in,
                                       larger_of);
                             join_columns(w, rows, larger_of);
                             uint8_t* y = out[0].data<uint8_t>() + row * w.out[2];
                             for (int64_t o = 0; o < w.out[2]; ++o) y[o] = rows.out[o] ^ flip;
                           });
  return {};
}

// ------------------------------------------------------------------------------------------------------- averages

/// Sums of bytes stay within int32.
constexpr int64_t kMostSummands = int64_t{1} << 22;

bool average_pool_takes(const KernelNode& node) {
  if (!fits_nhwc_i8(node.input(0)) || !node.output_quantization(0) || !has_windows(node)) return false;
  return pool_window(node)->taps() <= kMostSummands;
}

template <const I8Isa& isa>
Status average_pool_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                        std::span<const TensorView> out) {
  const Window& w = planned_window(context);
  const RealI8 from = real_i8(*in[0].type), to = real_i8(*out[0].type);
  const auto flip = static_cast<uint8_t>(nhwc_offset(in[0].dtype()));
  const bool with_pads = node.attr_int("count_include_pad") != 0;
  const auto counted = [&](int d, const Taps& t) {
    if (!with_pads) return t.last - t.first;
    return std::min(w.kernel[d], (w.in[d] + w.after[d] - 1 - t.start) / w.dilation[d] + 1);
  };
  const auto sum_of = [](int32_t a, int32_t b) { return a + b; };
  for_output_rows<int32_t>(
      context, w, in[0].dim(0) * in[0].dim(1),
      [&](const Rows<int32_t>& rows, int64_t plane, int64_t row, const Taps& tz, const Taps& ty) {
        join_rows(w, in[0].data<uint8_t>() + plane * w.in_size(), flip, tz, ty, rows.in, sum_of);
        join_columns(w, rows, sum_of);
        const int64_t high = (tz.last - tz.first) * (ty.last - ty.first), divisor = counted(0, tz) * counted(1, ty);
        uint8_t* y = out[0].data<uint8_t>() + row * w.out[2];
        // Windows side by side that count alike: all but those at the edges.
        for (int64_t o = 0; o < w.out[2];) {
          const Taps taps = taps_at(w, 2, o);
          const int64_t across = taps.last - taps.first, columns = counted(2, taps);
          int64_t end = o + 1;
          for (; end < w.out[2]; ++end) {
            const Taps next = taps_at(w, 2, end);
            if (next.last - next.first != across || counted(2, next) != columns) break;
          }
          isa.pool->means(rows.out + o, static_cast<int32_t>(high * across * from.zero), from.scale,
                          static_cast<float>(divisor * columns), to, flip, y + o, end - o);
          o = end;
        }
      });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_average_pool() {
  return {.takes = average_pool_takes,
          .plan_bytes = window_plan_bytes,
          .plan = plan_window,
          .scratch_bytes = rows_scratch<int32_t>,
          .run = average_pool_run<isa>};
}

bool global_pool_takes(const KernelNode& node) {
  const TensorType& x = node.input(0);
  if (!fits_nhwc_i8(x) || !node.output_quantization(0) || x.elements() == 0) return false;
  return x.elements() / (x.shape[0].size * x.shape[1].size) <= kMostSummands;
}

template <const I8Isa& isa>
Status global_average_pool_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                               std::span<const TensorView> out) {
  constexpr int64_t kPlanes = 128;
  const RealI8 from = real_i8(*in[0].type), to = real_i8(*out[0].type);
  const auto flip = static_cast<uint8_t>(nhwc_offset(in[0].dtype()));
  const int64_t planes = out[0].elements(), area = in[0].elements() / planes;
  context.parallel((planes + kPlanes - 1) / kPlanes, [&](int64_t t) {
    const int64_t first = t * kPlanes, count = std::min(kPlanes, planes - first);
    int32_t sums[kPlanes];
    for (int64_t p = 0; p < count; ++p) {
      const uint8_t* x = in[0].data<uint8_t>() + (first + p) * area;
      int32_t sum = 0;
      for (int64_t i = 0; i < area; ++i) sum += x[i] ^ flip;
      sums[p] = sum;
    }
    isa.pool->means(sums, static_cast<int32_t>(area * from.zero), from.scale, static_cast<float>(area), to, flip,
                    out[0].data<uint8_t>() + first, count);
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_global_average_pool() {
  return {.takes = global_pool_takes, .run = global_average_pool_run<isa>};
}

}  // namespace

PINNACE_KERNELS_I8(average_pool_i8, make_average_pool)
PINNACE_KERNELS_I8(global_average_pool_i8, make_global_average_pool)

// Maxima of bytes are what every processor has.
extern const CpuKernel max_pool_i8_generic;
const CpuKernel max_pool_i8_generic = {.takes = max_pool_takes,
                                       .plan_bytes = window_plan_bytes,
                                       .plan = plan_window,
                                       .scratch_bytes = rows_scratch<uint8_t>,
                                       .run = max_pool_run};

}  // namespace pinnace::cpu
