// average_pool and adaptive_average_pool in float32, over NHWC-packed tensors and over dense tensors.
#include <algorithm>
#include <cassert>
#include <new>

#include "backends/cpu/f32_isa.h"
#include "backends/cpu/pool/pool_plan.h"
#include "backends/cpu/reduce/reduce_f32.h"
#include "ops/adaptive_pool.h"

namespace pinnace::cpu {
namespace {

/// Places of one dimension of x that an output place is the mean of, `step` apart, and what it counts as.
struct Bin {
  int64_t first, count, step;
  double counted;
};

/// The bins of both pools, of which a node is one. What run() needs of the node, worked out with the plan.
struct Bins {
  bool adaptive, with_pads;
  Window w;               // of a window
  int64_t in[2], out[2];  // of an adaptive pool

  Bin at(int d, int64_t o) const {
    if (adaptive) {
      const int64_t first = o * in[d] / out[d], last = ((o + 1) * in[d] + out[d] - 1) / out[d];
      return {first, last - first, 1, static_cast<double>(last - first)};
    }
    const Taps t = taps_at(w, d + 1, o);
    const int64_t count = std::max<int64_t>(0, t.last - t.first), step = w.dilation[d + 1];
    const double padded =
        static_cast<double>(std::min(w.kernel[d + 1], (w.in[d + 1] + w.after[d + 1] - 1 - t.start) / step + 1));
    return {t.start + t.first * step, count, step, with_pads ? padded : static_cast<double>(count)};
  }
};

/// x has one or two spatial dimensions.
bool bins_of(const KernelNode& node, Bins* bins) {
  const TensorType& x = node.input(0);
  if (!has_nhwc_sizes(x) || x.elements() < 1) return false;
  bins->adaptive = node.node().op == "adaptive_average_pool";
  const NhwcSizes s = nhwc_sizes(x);
  if (bins->adaptive) {
    const auto y = adaptive_pool_shape(node);
    if (!y.ok()) return false;
    bins->in[0] = s.h;
    bins->in[1] = s.w;
    bins->out[0] = y->size() > 3 ? (*y)[2].size : 1;
    bins->out[1] = y->back().size;  // unknown sizes are negative
    return bins->out[0] > 0 && bins->out[1] > 0;
  }
  const auto window = pool_window(node);
  if (!window.ok() || window->out_size() < 1 || window->rank > 2) return false;
  bins->w = *window;
  bins->with_pads = node.attr_int("count_include_pad") != 0;
  return true;
}

bool takes(const KernelNode& node) {
  Bins bins{};
  return bins_of(node, &bins);
}

int64_t plan_bytes(const KernelNode&) {
  return sizeof(Bins);
}
void plan(const KernelNode& node, const Layout*, std::byte* to) {
  [[maybe_unused]] const bool taken = bins_of(node, new (to) Bins{});
  assert(taken);
}

int64_t together(int64_t elements) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, elements));
}

/// The mean of a bin of many pixels, of which x is the first: the error of a sum in float32 grows with its terms.
void mean_of_many(const F32Isa& isa, const float* x, const NhwcF32& image, const Bin& by, const Bin& bx,
                  int64_t channels, float* to) {
  for (int64_t c = 0; c < channels; c += kReducedColumns) {
    const int64_t count = std::min(kReducedColumns, channels - c);
    double sums[kReducedColumns] = {}, line[kReducedColumns];
    for (int64_t i = 0; i < by.count; ++i) {
      reduce_columns(isa, Reduction::kSum, x + i * by.step * image.row + c, bx.step * image.pitch, bx.count, count,
                     line);
      for (int64_t j = 0; j < count; ++j) sums[j] += line[j];
    }
    for (int64_t j = 0; j < count; ++j) to[c + j] = static_cast<float>(sums[j] / (by.counted * bx.counted));
  }
}

template <const F32Isa& isa>
Status nhwc_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const auto& bins = *reinterpret_cast<const Bins*>(context.plan);
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const int64_t channels = std::min(x.pitch, y.pitch), rows = y.size.n * y.size.h;
  const int64_t each = together(x.size.w * x.pitch * x.size.h / std::max<int64_t>(1, y.size.h));
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    for (int64_t u = t * each; u < std::min(rows, (t + 1) * each); ++u) {
      const int64_t n = u / y.size.h, oy = u % y.size.h;
      const Bin by = bins.at(0, oy);
      for (int64_t ox = 0; ox < y.size.w; ++ox) {
        const Bin bx = bins.at(1, ox);
        float* to = y.at + n * y.step + oy * y.row + ox * y.pitch;
        const float* from = x.at + n * x.step + by.first * x.row + bx.first * x.pitch;
        if (by.count * bx.count > kLargeWindow) {
          if (loop_stops()) return;
          mean_of_many(isa, from, x, by, bx, channels, to);
          continue;
        }
        std::fill_n(to, channels, 0.0f);
        for (int64_t i = 0; i < by.count; ++i) {
          isa.columns->sum(from + i * by.step * x.row, bx.step * x.pitch, bx.count, channels, to);
        }
        const auto scale = static_cast<float>(1 / (by.counted * bx.counted));
        isa.arithmetic->dense(BinaryKind::kMul, to, 1, &scale, 0, to, channels);
      }
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_nhwc() {
  return {.takes = takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .plan_bytes = plan_bytes,
          .plan = plan,
          .run = nhwc_run<isa>};
}

Status dense_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  const auto& bins = *reinterpret_cast<const Bins*>(context.plan);
  const NhwcSizes from = nhwc_sizes(*in[0].type), to = nhwc_sizes(*out[0].type);
  const int64_t planes = from.n * from.c, each = together(from.h * from.w);
  context.parallel((planes + each - 1) / each, [&](int64_t t) {
    for (int64_t p = t * each; p < std::min(planes, (t + 1) * each); ++p) {
      const float* x = in[0].data<float>() + p * from.h * from.w;
      float* y = out[0].data<float>() + p * to.h * to.w;
      for (int64_t oy = 0; oy < to.h; ++oy) {
        const Bin by = bins.at(0, oy);
        for (int64_t ox = 0; ox < to.w; ++ox) {
          const Bin bx = bins.at(1, ox);
          if (by.count * bx.count > kLargeWindow && loop_stops()) return;
          double sum = 0;
          for (int64_t i = 0; i < by.count; ++i) {
            const float* line = x + (by.first + i * by.step) * from.w + bx.first;
            for (int64_t k = 0; k < bx.count; ++k) sum += static_cast<double>(line[k * bx.step]);
          }
          y[oy * to.w + ox] = static_cast<float>(sum / (by.counted * bx.counted));
        }
      }
    }
  });
  return {};
}

}  // namespace

PINNACE_KERNELS_F32(average_pool_nhwc_f32, make_nhwc)

extern const CpuKernel average_pool_f32_generic;
const CpuKernel average_pool_f32_generic = {.takes = takes, .plan_bytes = plan_bytes, .plan = plan, .run = dense_run};

}  // namespace pinnace::cpu
