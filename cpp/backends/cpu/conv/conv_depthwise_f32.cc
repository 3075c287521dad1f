// Depthwise conv over NHWC-packed tensors, in float32 and on halves: rows of taps in registers, and in float32 a form
// of its own for dilated kernels. Types and window were checked by the shape rule.
#include <cstring>

#include "backends/cpu/conv/conv_nhwc.h"

namespace pinnace::cpu {
namespace {

bool depthwise_takes(const KernelNode& node) {
  const int64_t groups = node.attr_int("group");
  const Shape& w = node.input(1).shape;
  // Channels that are not padded to whole registers would be stored beyond their pixel.
  return nhwc_conv_takes(node) && groups > 1 && w[1].size == 1 && w[0].size == groups && groups >= 8;
}

template <const auto& isa>
int64_t depthwise_packed_bytes(const KernelNode& node) {
  const NhwcConv c = nhwc_conv(node);
  const int64_t lanes = isa.depthwise->lanes;
  return (c.groups + lanes - 1) / lanes * lanes * (1 + c.window.taps()) * static_cast<int64_t>(sizeof(ElementOf<isa>));
}

template <const auto& isa>
Status depthwise_pack(const KernelNode& node, std::byte* packed) {
  using T = ElementOf<isa>;
  const NhwcConv c = nhwc_conv(node);
  const auto* w = static_cast<const T*>(node.input_data(1));
  const auto* bias = node.has_input(2) ? static_cast<const T*>(node.input_data(2)) : nullptr;
  const int64_t lanes = isa.depthwise->lanes, taps = c.window.taps();
  auto* to = reinterpret_cast<T*>(packed);
  for (int64_t first = 0; first < c.groups; first += lanes) {
    const auto put = [&](const T* from, int64_t step) {
      for (int64_t j = 0; j < lanes; ++j) *to++ = from && first + j < c.groups ? from[(first + j) * step] : T{0};
    };
    put(bias, 1);
    for (int64_t t = 0; t < taps; ++t) put(w + t, taps);
  }
  return {};
}

struct DepthwisePlan {
  Window window;
  UnaryF32 map;
};

int64_t depthwise_plan_bytes(const KernelNode&) {
  return sizeof(DepthwisePlan);
}

void depthwise_plan(const KernelNode& node, const Layout*, std::byte* to) {
  new (to) DepthwisePlan{nhwc_conv(node).window, fused_unary(node)};
}

template <const auto& isa>
bool two_rows(const Window& w) {
  return (w.dilation[2] == 1 || w.stride[2] == 1) && w.stride[1] == w.stride[2] &&
         isa.depthwise->two_rows(static_cast<int32_t>(w.kernel[1]), static_cast<int32_t>(w.kernel[2]),
                                 static_cast<int32_t>(w.stride[2]));
}

/// Rows [first, last) of `channels` channels from `channel` on, a multiple of the register.
template <const auto& isa>
void depthwise_part(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out,
                    int64_t first, int64_t last, int64_t channel, int64_t channels) {
  using T = ElementOf<isa>;
  const auto& plan = *reinterpret_cast<const DepthwisePlan*>(context.plan);
  const Window& w = plan.window;
  const auto x = nhwc_of<T>(in[0], context.layouts[0]), y = nhwc_of<T>(out[0], context.layouts[in.size()]);
  const int64_t step = std::min<int64_t>(isa.depthwise->lanes, 8);
  const bool two = two_rows<isa>(w);
  // Under one column of taps, outputs one pixel wide: rows take the place of pixels.
  const bool column = y.size.w == 1 && w.kernel[2] == 1;
  const auto run = [&](int64_t u, int64_t count) {
    const int64_t item = u / y.size.h, row = u % y.size.h;
    DepthwiseRows<T> d{};
    d.rows = column ? 1 : static_cast<int32_t>(count);
    d.y_row = w.dilation[1] * y.row;
    d.x = x.at + item * x.step + (row * w.stride[1] - w.before[1]) * x.row - w.before[2] * x.pitch + channel;
    d.pitch = x.pitch;
    d.tap_row = w.dilation[1] * x.row;
    d.weights = reinterpret_cast<const T*>(context.packed) + channel * (1 + w.taps());
    d.y = y.at + item * y.step + row * y.row + channel;
    d.y_pitch = y.pitch;
    d.channels = (channels + step - 1) / step * step;
    d.out_w = y.size.w;
    d.kernel_h = static_cast<int32_t>(w.kernel[1]);
    d.kernel_w = static_cast<int32_t>(w.kernel[2]);
    d.stride_x = static_cast<int32_t>(w.stride[2]);
    d.dilation_x = static_cast<int32_t>(w.dilation[2]);
    d.map = plan.map;
    if (column) {
      d.pitch = x.row;
      d.y_pitch = y.row;
      d.out_w = count;
      d.kernel_h = 1;
      d.kernel_w = static_cast<int32_t>(w.kernel[1]);
      d.stride_x = static_cast<int32_t>(w.stride[1]);
      d.dilation_x = static_cast<int32_t>(w.dilation[1]);
    }
    isa.depthwise->rows(d);
  };
  // Rows that share taps stand a dilation apart.
  const int64_t apart = w.dilation[1];
  for (int64_t u = first; u < last;) {
    const int64_t end = std::min(last, (u / y.size.h + 1) * y.size.h);
    if (column) {
      run(u, end - u);
      u = end;
      continue;
    }
    const int64_t pairs = two ? std::clamp<int64_t>(end - u - apart, 0, apart) : 0;
    const int64_t done = std::min(apart, end - u);
    for (int64_t i = 0; i < done; ++i) run(u + i, i < pairs ? 2 : 1);
    u += done + pairs;
  }
}

template <const auto& isa>
void depthwise_rows(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out,
                    int64_t first, int64_t last) {
  depthwise_part<isa>(context, in, out, first, last, 0, nhwc_sizes(*out[0].type).c);
}

template <const auto& isa>
Status depthwise_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                     std::span<const TensorView> out) {
  constexpr int64_t kEachElements = 16384;
  const auto y = nhwc_of<ElementOf<isa>>(out[0], context.layouts[in.size()]);
  const Window& w = reinterpret_cast<const DepthwisePlan*>(context.plan)->window;
  const int64_t rows = y.size.n * y.size.h, lanes = isa.depthwise->lanes, registers = (y.size.c + lanes - 1) / lanes;
  const auto threads = static_cast<int64_t>(context.threads);
  if (threads > 1 && rows < 7 * threads && registers >= 2 * threads) {
    // Few rows do not come out even; and convolutions before and after are cut by channels there (conv_tasks.h).
    const int64_t groups = std::min(2 * threads, registers);
    context.parallel(groups, [&](int64_t t) {
      const int64_t first = registers * t / groups * lanes, last = registers * (t + 1) / groups * lanes;
      depthwise_part<isa>(context, in, out, 0, rows, first, std::min(last, y.size.c) - first);
    });
    return {};
  }
  const int64_t share = (rows + threads - 1) / threads;
  const int64_t parts =
      std::clamp<int64_t>(share * y.size.w * y.pitch / kEachElements, std::min<int64_t>(2, share), share);
  int64_t each = (share + parts - 1) / parts;
  if (const int64_t pair = 2 * w.dilation[1]; two_rows<isa>(w) && each >= 2 * pair)
    each = (each + pair - 1) / pair * pair;
  context.parallel((rows + each - 1) / each,
                   [&](int64_t t) { depthwise_rows<isa>(context, in, out, t * each, std::min(rows, (t + 1) * each)); });
  return {};
}

/// Pixels of one image are not padded where there is only one: its channels must be whole registers then.
template <const auto& isa>
bool depthwise_fits(const KernelNode& node) {
  if (!depthwise_takes(node)) return false;
  const auto window = check_convolution(node, 2);
  const NhwcSizes x = nhwc_sizes(node.input(0));
  return x.c % 8 == 0 || (x.h * x.w > 1 && window->out[1] * window->out[2] > 1);
}

template <const auto& isa>
constexpr CpuKernel make_depthwise() {
  return {.takes = depthwise_fits<isa>,
          .packed_bytes = depthwise_packed_bytes<isa>,
          .pack = depthwise_pack<isa>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kNhwc,
          .nhwc_inputs = 0b0001,
          .border = conv_border,
          .precision = isa.precision,
          .error = kSumError<isa>,
          .plan_bytes = depthwise_plan_bytes,
          .plan = depthwise_plan,
          .run = depthwise_run<isa>,
          .rows = depthwise_rows<isa>,
          .reads_rows = conv_reads_rows};
}

// ---------------------------------------------------------------------------------------------- depthwise, dilated

// Every dilation-th pixel by itself, across and down, is a small image under a kernel without dilation. Its channels of
// one register, with zeros around, fit the first-level cache: they are copied there, and the image needs no border,
// which would be wider than half of it (16 x 16 pixels under 5 x 5 taps two apart: 24 x 24).

struct DilatedPlan {
  Window window;
  UnaryF32 map;
  /// Sizes of the largest of the small images, with zeros around.
  int64_t rows() const { return (window.out[1] + window.dilation[1] - 1) / window.dilation[1] + window.kernel[1] - 1; }
  int64_t columns() const {
    return (window.out[2] + window.dilation[2] - 1) / window.dilation[2] + window.kernel[2] - 1;
  }
};

/// Pixels of a small image: 16 KB and 32 KB.
constexpr int64_t kMostDilatedPixels = 512;

template <const F32Isa& isa>
bool dilated_takes(const KernelNode& node) {
  if (!depthwise_fits<isa>(node)) return false;
  const DilatedPlan plan{nhwc_conv(node).window, {}};
  const Window& w = plan.window;
  return w.dilation[1] > 1 && w.dilation[2] > 1 && w.stride[1] == 1 && w.stride[2] == 1 &&
         plan.rows() * plan.columns() <= kMostDilatedPixels;
}

int64_t dilated_plan_bytes(const KernelNode&) {
  return sizeof(DilatedPlan);
}

void dilated_plan(const KernelNode& node, const Layout*, std::byte* to) {
  new (to) DilatedPlan{nhwc_conv(node).window, fused_unary(node)};
}

template <const F32Isa& isa>
int64_t dilated_scratch_bytes(const KernelNode& node, int threads) {
  const DilatedPlan plan{nhwc_conv(node).window, {}};
  return threads * plan.rows() * plan.columns() * isa.depthwise->lanes * 4;
}

/// `count` pixels of `channels` floats, a multiple of STEP, from every from_step-th float to every to_step-th.
template <int STEP>
void copy_pixels(const float* from, ptrdiff_t from_step, float* to, ptrdiff_t to_step, int64_t count,
                 int64_t channels) {
  for (int64_t i = 0; i < count; ++i, from += from_step, to += to_step) {
    for (int64_t c = 0; c < channels; c += STEP) std::memcpy(to + c, from + c, STEP * sizeof(float));
  }
}

template <const F32Isa& isa>
Status dilated_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                   std::span<const TensorView> out) {
  const auto& plan = *reinterpret_cast<const DilatedPlan*>(context.plan);
  const Window& w = plan.window;
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const int64_t lanes = isa.depthwise->lanes, columns = plan.columns();
  const int64_t step = std::min<int64_t>(lanes, 8), channels = (y.size.c + step - 1) / step * step;
  const int64_t groups = (channels + lanes - 1) / lanes, jobs = y.size.n * groups;
  const int64_t tasks = std::min<int64_t>(context.threads, jobs);
  const auto floats = static_cast<size_t>(plan.rows() * columns * lanes);
  DepthwiseRowsF32 d{};
  d.pitch = lanes;
  d.tap_row = columns * lanes;
  d.y_row = w.dilation[1] * y.row;
  d.y_pitch = w.dilation[2] * y.pitch;
  d.kernel_h = static_cast<int32_t>(w.kernel[1]);
  d.kernel_w = static_cast<int32_t>(w.kernel[2]);
  d.stride_x = d.dilation_x = 1;
  d.map = plan.map;
  const bool two = isa.depthwise->two_rows(d.kernel_h, d.kernel_w, 1);

  /// Channels [c, c + lanes) of the small image that begins at pixel (py, px).
  const auto phase = [&](DepthwiseRowsF32 rows, float* small, int64_t n, int64_t c, int64_t py, int64_t px) {
    // Small pixel (i, j) is pixel (py - before + i * dilation, px - before + j * dilation).
    const int64_t out_h = (y.size.h - py + w.dilation[1] - 1) / w.dilation[1];
    rows.out_w = (y.size.w - px + w.dilation[2] - 1) / w.dilation[2];
    const int64_t wide = rows.out_w + w.kernel[2] - 1;
    // Columns [first, last) are pixels of x, the others zeros.
    const int64_t first = std::max<int64_t>(0, (w.before[2] - px + w.dilation[2] - 1) / w.dilation[2]);
    const int64_t beyond = (x.size.w - 1 - (px - w.before[2]) + w.dilation[2]) / w.dilation[2];
    const int64_t last = std::clamp(beyond, std::min(first, wide), wide);
    for (int64_t i = 0; i < out_h + w.kernel[1] - 1; ++i) {
      float* to = small + i * rows.tap_row;
      const int64_t iy = py - w.before[1] + i * w.dilation[1];
      if (iy < 0 || iy >= x.size.h) {
        std::fill_n(to, wide * lanes, 0.0f);
        continue;
      }
      std::fill_n(to, std::min(first, wide) * lanes, 0.0f);
      std::fill_n(to + last * lanes, (wide - last) * lanes, 0.0f);
      const float* from = x.at + n * x.step + iy * x.row + (px - w.before[2] + first * w.dilation[2]) * x.pitch + c;
      const auto copy = step == 8 ? copy_pixels<8> : copy_pixels<4>;
      copy(from, w.dilation[2] * x.pitch, to + first * lanes, lanes, last - first, rows.channels);
    }
    for (int64_t i = 0; i < out_h; i += rows.rows) {
      rows.rows = two && i + 1 < out_h ? 2 : 1;
      rows.x = small + i * rows.tap_row;
      rows.y = y.at + n * y.step + (py + i * w.dilation[1]) * y.row + px * y.pitch + c;
      isa.depthwise->rows(rows);
    }
  };
  context.parallel(tasks, [&](int64_t t) {
    float* small = reinterpret_cast<float*>(context.scratch) + static_cast<size_t>(t) * floats;
    for (int64_t job = jobs * t / tasks; job < jobs * (t + 1) / tasks && !loop_stops(); ++job) {
      const int64_t n = job / groups, c = job % groups * lanes;
      DepthwiseRowsF32 rows = d;
      rows.channels = std::min(lanes, channels - c);
      rows.weights = reinterpret_cast<const float*>(context.packed) + c * (1 + w.taps());
      // A dilation may be far larger than the image.
      for (int64_t py = 0; py < std::min(w.dilation[1], y.size.h); ++py) {
        for (int64_t px = 0; px < std::min(w.dilation[2], y.size.w); ++px) phase(rows, small, n, c, py, px);
      }
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_dilated() {
  return {.takes = dilated_takes<isa>,
          .packed_bytes = depthwise_packed_bytes<isa>,
          .pack = depthwise_pack<isa>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kNhwc,
          .nhwc_inputs = 0b0001,
          .plan_bytes = dilated_plan_bytes,
          .plan = dilated_plan,
          .scratch_bytes = dilated_scratch_bytes<isa>,
          .run = dilated_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32_PACKED(conv_nhwc_dilated_f32, make_dilated)
PINNACE_KERNELS_F32_PACKED(conv_nhwc_depthwise_f32, make_depthwise)
PINNACE_KERNELS_F16(conv_nhwc_depthwise_f16, make_depthwise)

}  // namespace pinnace::cpu
