// conv in float32 over NHWC-packed tensors, in groups of few channels: see grouped_f32.h. Types and window were checked
// by the shape rule.
#include "backends/cpu/conv/conv_nhwc.h"
#include "backends/cpu/conv/grouped_f32.h"

namespace pinnace::cpu {
namespace {

template <const F32Isa& isa>
bool takes(const KernelNode& node) {
  if (!nhwc_conv_takes(node)) return false;
  const NhwcConv c = nhwc_conv(node);
  if (c.groups < 2 || c.in_channels != c.out_channels || !grouped_f32<isa.loops>.takes(c.in_channels)) return false;
  // Pixels of one image are not padded where there is only one, nor those of few channels: they must be whole registers
  // then.
  const int64_t channels = c.groups * c.in_channels;
  return channels % 8 == 0 || (channels > 8 && c.window.in_size() > 1 && c.window.out_size() > 1);
}

int64_t register_floats(const NhwcConv& c, int64_t lanes) {
  return lanes * (1 + c.window.taps() * c.in_channels);
}

template <const F32Isa& isa>
int64_t packed_bytes(const KernelNode& node) {
  const NhwcConv c = nhwc_conv(node);
  const int64_t lanes = grouped_f32<isa.loops>.lanes, channels = c.groups * c.in_channels;
  return (channels + lanes - 1) / lanes * register_floats(c, lanes) * 4;
}

template <const F32Isa& isa>
Status pack(const KernelNode& node, std::byte* packed) {
  const NhwcConv c = nhwc_conv(node);
  const auto* w = static_cast<const float*>(node.input_data(1));
  const float* bias = bias_of(node);
  const int64_t lanes = grouped_f32<isa.loops>.lanes, channels = c.groups * c.in_channels, taps = c.window.taps();
  auto* to = reinterpret_cast<float*>(packed);
  for (int64_t first = 0; first < channels; first += lanes) {
    const auto put = [&](const float* from, int64_t step) {
      for (int64_t m = first; m < first + lanes; ++m) *to++ = from && m < channels ? from[m * step] : 0.0f;
    };
    put(bias, 1);
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t i = 0; i < c.in_channels; ++i) put(w + i * taps + t, c.in_channels * taps);
    }
  }
  return {};
}

struct GroupedPlan {
  NhwcConv conv;
  UnaryF32 map;
};

int64_t plan_bytes(const KernelNode&) {
  return sizeof(GroupedPlan);
}

void plan(const KernelNode& node, const Layout*, std::byte* to) {
  new (to) GroupedPlan{nhwc_conv(node), fused_unary(node)};
}

/// Rows of a task take the weights of a few registers of channels at a time, which then stay in the nearest cache.
constexpr int64_t kWeightBytes = 16 * 1024;

template <const F32Isa& isa>
void grouped_rows(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out,
                  int64_t first, int64_t last) {
  const auto& [conv, map] = *reinterpret_cast<const GroupedPlan*>(context.plan);
  const Window& w = conv.window;
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const int64_t lanes = grouped_f32<isa.loops>.lanes, step = std::min<int64_t>(lanes, 8);
  const int64_t channels = (y.size.c + step - 1) / step * step, floats = register_floats(conv, lanes);
  // Whole groups, too.
  const int64_t unit = std::max(lanes, conv.in_channels);
  const int64_t some = std::max<int64_t>(1, kWeightBytes / (floats * 4 * unit / lanes)) * unit;
  for (int64_t c = 0; c < channels; c += some) {
    for (int64_t u = first; u < last; ++u) {
      const int64_t item = u / y.size.h, row = u % y.size.h;
      GroupedRowF32 g{};
      g.x = x.at + item * x.step + (row * w.stride[1] - w.before[1]) * x.row - w.before[2] * x.pitch + c;
      g.pitch = x.pitch;
      g.tap_row = w.dilation[1] * x.row;
      g.weights = reinterpret_cast<const float*>(context.packed) + c / lanes * floats;
      g.y = y.at + item * y.step + row * y.row + c;
      g.y_pitch = y.pitch;
      g.channels = std::min(some, channels - c);
      g.out_w = y.size.w;
      g.each = static_cast<int32_t>(conv.in_channels);
      g.kernel_h = static_cast<int32_t>(w.kernel[1]);
      g.kernel_w = static_cast<int32_t>(w.kernel[2]);
      g.stride_x = static_cast<int32_t>(w.stride[2]);
      g.dilation_x = static_cast<int32_t>(w.dilation[2]);
      g.map = map;
      grouped_f32<isa.loops>.row(g);
    }
  }
}

template <const F32Isa& isa>
Status run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  const NhwcF32 y = nhwc_of(out[0], context.layouts[in.size()]);
  const int64_t rows = y.size.n * y.size.h;
  const int64_t each = std::max<int64_t>(1, std::min(rows / (4 * context.threads), 16384 / (y.size.w * y.pitch)));
  context.parallel((rows + each - 1) / each,
                   [&](int64_t t) { grouped_rows<isa>(context, in, out, t * each, std::min(rows, (t + 1) * each)); });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_grouped() {
  return {.takes = takes<isa>,
          .packed_bytes = packed_bytes<isa>,
          .pack = pack<isa>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kNhwc,
          .nhwc_inputs = 0b0001,
          .border = conv_border,
          .plan_bytes = plan_bytes,
          .plan = plan,
          .run = run<isa>,
          .rows = grouped_rows<isa>,
          .reads_rows = conv_reads_rows};
}

}  // namespace

PINNACE_KERNELS_F32_PACKED(conv_grouped_f32, make_grouped)

}  // namespace pinnace::cpu
