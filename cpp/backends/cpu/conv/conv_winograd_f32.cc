// conv 3 x 3 in float32 by Winograd's F(4x4, 3x3), and F(2x2, 3x3) for small images: inputs of some tiles are
// transformed, multiplied with the transformed weights as 36 or 16 matrix products on the tiles of the direct
// convolution, and transformed back. A quarter of the products, or four ninths; largest error about twice the direct
// convolution's, or less than it. An input that is not finite makes all outputs of its tile NaN.
#include "backends/cpu/conv/conv_nhwc.h"
#include "backends/cpu/conv/winograd_f32.h"
#include "base/cancel.h"

namespace pinnace::cpu {
namespace {

/// Of the transform of a tile of OUT x OUT outputs.
template <int OUT>
inline constexpr int kPositions = (OUT + 2) * (OUT + 2);

/// Tiles of one pass. What they are transformed to and multiplied into stays in the second-level cache, where that is
/// possible with enough tiles for the matrix product.
struct Passes {
  int64_t down, across, tiles;  ///< tiles of a batch item, and of all
  int64_t in_row, out_row;      ///< floats from tile to tile
  int64_t each, count;          ///< tiles of a pass, passes
  int64_t v, m;                 ///< floats of the transformed input and of the products

  Passes(const NhwcConv& c, int64_t batch, int64_t outs) {
    const int64_t positions = (outs + 2) * (outs + 2);
    down = (c.window.out[1] + outs - 1) / outs;
    across = (c.window.out[2] + outs - 1) / outs;
    tiles = batch * down * across;
    in_row = spread((c.in_channels + 7) / 8 * 8);
    out_row = spread((c.out_channels + 7) / 8 * 8);
    constexpr int64_t kFloats = 256 * 1024;
    each = std::clamp<int64_t>(kFloats / (positions * (in_row + out_row)), 14, 256);
    count = (tiles + each - 1) / each;
    each = (tiles + count - 1) / count;
    v = positions * each * in_row;
    m = positions * each * out_row;
  }
  /// Rows at a distance of 2 KiB would share lines of the nearest cache.
  static int64_t spread(int64_t floats) { return floats % 512 == 0 ? floats + 16 : floats; }
};

PackedB position_shape(const NhwcConv& c) {
  return {c.in_channels, c.out_channels};
}

/// Tiles that a convolution needs at least: weights are four or nearly two times as many as the direct convolution's,
/// and with fewer tiles bringing them costs more than the products that are saved.
constexpr int64_t kLeastTiles = 9;

/// The first line that takes a node is the faster one: four by four outputs, where tiles that hang over the edge do not
/// make them more products than two by two (7 x 7 outputs are 144 of 4 x 4 and 256 of 2 x 2, but only 4 tiles; 5 x 5
/// and 6 x 6 are 144 of either).
template <int OUT>
bool winograd_takes(const KernelNode& node) {
  if (!nhwc_conv_takes(node)) return false;
  const NhwcConv c = nhwc_conv(node);
  const Window& w = c.window;
  if (c.groups != 1 || w.kernel[1] != 3 || w.kernel[2] != 3 || w.stride[1] != 1 || w.stride[2] != 1 ||
      w.dilation[1] != 1 || w.dilation[2] != 1 || c.in_channels < 16 || c.out_channels < 16 ||
      position_shape(c).blocks() != 1) {
    return false;
  }
  const int64_t batch = node.input(0).shape[0].size;
  const auto tiles = [&](int64_t out) { return batch * ((w.out[1] + out - 1) / out) * ((w.out[2] + out - 1) / out); };
  const int64_t products = kPositions<OUT> * tiles(OUT), direct = batch * w.out_size() * 9;
  // What saves less than a fifth does not pay for the transforms.
  if (tiles(OUT) < kLeastTiles || products * 5 > direct * 4) return false;
  return OUT == 2 || products < kPositions<2> * tiles(2);
}

/// As the direct convolution's, and what whole tiles read beyond that.
template <int OUT>
Border winograd_border(const KernelNode& node) {
  Border border = conv_border(node);
  const Window w = nhwc_conv(node).window;
  const auto beyond = [&](int d) {
    const int64_t read = (w.out[d] + OUT - 1) / OUT * OUT + 2 - w.before[d];
    return static_cast<int32_t>(std::max<int64_t>(0, read - w.in[d]));
  };
  border.widen({0, 0, beyond(1), beyond(2)});
  return border;
}

int64_t bias_floats(const NhwcConv& c) {
  return (c.out_channels + 15) / 16 * 16;
}

template <const F32Isa& isa, int OUT>
int64_t winograd_packed_bytes(const KernelNode& node) {
  const NhwcConv c = nhwc_conv(node);
  return (bias_floats(c) + kPositions<OUT> * position_shape(c).floats(*isa.gemm)) * 4;
}

/// [bias][position][packed in_channels x out_channels of G w G^T]
template <const F32Isa& isa, int OUT>
Status winograd_pack(const KernelNode& node, std::byte* packed) {
  const NhwcConv c = nhwc_conv(node);
  const auto* w = static_cast<const float*>(node.input_data(1));
  const float* bias = bias_of(node);
  auto* to = reinterpret_cast<float*>(packed);
  for (int64_t n = 0; n < bias_floats(c); ++n) *to++ = bias && n < c.out_channels ? bias[n] : 0.0f;
  const PackedB shape = position_shape(c);
  const GemmTilesF32& tiles = *isa.gemm;
  const int64_t floats = shape.floats(tiles);
  for (int p = 0; p < kPositions<OUT>; ++p) {  // no bias in front of the products, zeros behind the last column
    for (int64_t panel = 0; panel < shape.panels(tiles); ++panel) {
      const int64_t first = panel * tiles.nr, width = panel_width(tiles, first, c.out_channels);
      float* rows = to + p * floats + shape.at(tiles, 0, panel);
      std::fill_n(rows, width, 0.0f);
      for (int64_t k = 0; k < c.in_channels && first + width > c.out_channels; ++k) {
        for (int64_t j = c.out_channels - first; j < width; ++j) rows[(1 + k) * width + j] = 0;
      }
    }
  }
  // u = G w G^T in double, rounded once; 4 weights side by side.
  const auto line = [](const double(&w0)[4], const double(&w1)[4], const double(&w2)[4], double(&u)[OUT + 2][4]) {
    for (int i = 0; i < 4; ++i) {
      if constexpr (OUT == 2) {
        u[0][i] = w0[i];
        u[1][i] = (w0[i] + w1[i] + w2[i]) / 2;
        u[2][i] = (w0[i] - w1[i] + w2[i]) / 2;
        u[3][i] = w2[i];
      } else {
        const double even = w0[i] + w2[i], far = w0[i] / 24 + w2[i] / 6;
        u[0][i] = w0[i] / 4;
        u[1][i] = (even + w1[i]) / -6;
        u[2][i] = (even - w1[i]) / -6;
        u[3][i] = far + w1[i] / 12;
        u[4][i] = far - w1[i] / 12;
        u[5][i] = w2[i];
      }
    }
  };
  for (int64_t n = 0; n < c.out_channels; ++n) {
    const int64_t panel = n / tiles.nr, j = n % tiles.nr, width = panel_width(tiles, n - j, c.out_channels);
    for (int64_t k = 0; k < c.in_channels; k += 4) {
      const int64_t some = std::min<int64_t>(4, c.in_channels - k);
      double taps[9][4] = {}, half[3][OUT + 2][4], u[OUT + 2][4];
      for (int64_t i = 0; i < some; ++i) {
        for (int t = 0; t < 9; ++t) taps[t][i] = static_cast<double>(w[(n * c.in_channels + k + i) * 9 + t]);
      }
      for (int x = 0; x < 3; ++x) line(taps[x], taps[3 + x], taps[6 + x], half[x]);
      for (int y = 0; y < OUT + 2; ++y) {
        line(half[0][y], half[1][y], half[2][y], u);
        for (int x = 0; x < OUT + 2; ++x) {
          float* cell = to + (y * (OUT + 2) + x) * floats + shape.at(tiles, 0, panel) + (1 + k) * width + j;
          for (int64_t i = 0; i < some; ++i) cell[i * width] = static_cast<float>(u[x][i]);
        }
      }
    }
  }
  return {};
}

template <int OUT>
int64_t winograd_scratch_bytes(const KernelNode& node, int threads) {
  const Passes p(nhwc_conv(node), node.input(0).shape[0].size, OUT);
  return (p.v + p.m) * threads * 4;
}

template <int OUT>
const WinogradF32& transforms_of_tile(const WinogradTilesF32& tiles) {
  if constexpr (OUT == 4) {
    return tiles.four;
  } else {
    return tiles.two;
  }
}

template <const F32Isa& isa, int OUT>
Status winograd_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const NhwcConv c = nhwc_conv(node);
  const Window& w = c.window;
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const bool adds = context.fusion->residual.has_value();
  const NhwcF32 r = residual_of<float>(*context.fusion);
  const Passes passes(c, x.size.n, OUT);
  const PackedB shape = position_shape(c);
  const GemmTilesF32& tiles = *isa.gemm;
  const WinogradF32& winograd = transforms_of_tile<OUT>(winograd_f32<isa.loops>);
  const auto* bias = reinterpret_cast<const float*>(context.packed);
  const float* weights = bias + bias_floats(c);
  const int64_t weight_floats = shape.floats(tiles), panels = shape.panels(tiles);
  const UnaryF32 map = fused_unary(node);
  const int64_t in_channels = (c.in_channels + 7) / 8 * 8, out_channels = (c.out_channels + 7) / 8 * 8;

  struct Place {
    int64_t item, y, x;
  };
  const auto place = [&](int64_t tile) {
    const int64_t per_item = passes.down * passes.across;
    return Place{tile / per_item, tile % per_item / passes.across * OUT, tile % passes.across * OUT};
  };
  const auto transform = [&](int64_t first, int64_t from, int64_t to, float* v) {
    for (int64_t t = from; t < to; ++t) {
      const Place at = place(first + t);
      const float* pixel = x.at + at.item * x.step + (at.y - w.before[1]) * x.row + (at.x - w.before[2]) * x.pitch;
      winograd.input({pixel, x.pitch, x.row, v + t * passes.in_row, passes.each * passes.in_row, in_channels});
    }
  };
  const auto multiply = [&](int64_t position, int64_t count, int64_t p0, int64_t p1, const float* v, float* m) {
    const ProductF32 product{v + position * passes.each * passes.in_row,
                             passes.in_row,
                             weights + position * weight_floats,
                             shape,
                             m + position * passes.each * passes.out_row,
                             passes.out_row,
                             count,
                             {}};
    product.block(tiles, 0, count, p0, p1);  // NOLINT(clang-analyzer-core.CallAndMessage): tiles is a constant
  };
  const auto finish = [&](int64_t first, int64_t from, int64_t to, const float* m) {
    for (int64_t t = from; t < to; ++t) {
      const Place at = place(first + t);
      WinogradOutputF32 o{};
      o.m = m + t * passes.out_row;
      o.position = passes.each * passes.out_row;
      o.bias = bias;
      o.y = y.at + at.item * y.step + at.y * y.row + at.x * y.pitch;
      o.pitch = y.pitch;
      o.row = y.row;
      o.residual = adds ? r.at + at.item * r.step + at.y * r.row + at.x * r.pitch : nullptr;
      o.residual_pitch = r.pitch;
      o.residual_row = r.row;
      o.channels = out_channels;
      o.rows = static_cast<int32_t>(std::min<int64_t>(OUT, y.size.h - at.y));
      o.columns = static_cast<int32_t>(std::min<int64_t>(OUT, y.size.w - at.x));
      o.map = map;
      winograd.output(o);
    }
  };

  auto* scratch = reinterpret_cast<float*>(context.scratch);
  const auto threads = static_cast<int64_t>(context.threads);
  if (threads == 1 || passes.count >= 2 * threads) {
    // Each thread makes whole passes in memory of its own.
    const int64_t tasks = std::min(threads, passes.count);
    context.parallel(tasks, [&](int64_t task) {
      float *v = scratch + task * (passes.v + passes.m), *m = v + passes.v;
      for (int64_t pass = passes.count * task / tasks; pass < passes.count * (task + 1) / tasks && !loop_stops();
           ++pass) {
        const int64_t first = pass * passes.each, count = std::min(passes.each, passes.tiles - first);
        transform(first, 0, count, v);
        for (int64_t p = 0; p < kPositions<OUT>; ++p) multiply(p, count, 0, panels, v, m);
        finish(first, 0, count, m);
      }
    });
    return {};
  }
  // Few passes: all threads work on each.
  float *v = scratch, *m = scratch + passes.v;
  for (int64_t pass = 0; pass < passes.count; ++pass) {
    const int64_t first = pass * passes.each, count = std::min(passes.each, passes.tiles - first);
    const auto part = [&](int64_t i) { return count * i / threads; };
    context.parallel(threads, [&](int64_t i) { transform(first, part(i), part(i + 1), v); });
    context.parallel(kPositions<OUT>, [&](int64_t p) { multiply(p, count, 0, panels, v, m); });
    context.parallel(threads, [&](int64_t i) { finish(first, part(i), part(i + 1), m); });
  }
  return {};
}

template <const F32Isa& isa, int OUT>
constexpr CpuKernel make_winograd() {
  return {.takes = winograd_takes<OUT>,
          .packed_bytes = winograd_packed_bytes<isa, OUT>,
          .pack = winograd_pack<isa, OUT>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kNhwc,
          .nhwc_inputs = 0b1,
          .fuses = kFusesResidual,
          .border = winograd_border<OUT>,
          .error = OUT == 4 ? 1.25e-5f : 3e-6f,  // the largest seen: 1.02e-5, of 127 channels
          .scratch_bytes = winograd_scratch_bytes<OUT>,
          .run = winograd_run<isa, OUT>};
}

template <const F32Isa& isa>
constexpr CpuKernel make_four() {
  return make_winograd<isa, 4>();
}
template <const F32Isa& isa>
constexpr CpuKernel make_two() {
  return make_winograd<isa, 2>();
}

}  // namespace

PINNACE_KERNELS_F32_PACKED(conv_winograd_f32, make_four)
PINNACE_KERNELS_F32_PACKED(conv_winograd_two_f32, make_two)

}  // namespace pinnace::cpu
