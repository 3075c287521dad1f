// 3 x 3 convolutions by Winograd's F(4x4, 3x3) and F(2x2, 3x3): tiles of the input become positions, positions are
// multiplied with transformed weights as one product of images each, and become tiles of the output. A quarter of the
// products, or four ninths, for weights that are four or nearly two times as many. What stands between the three
// kernels has 32 bits in fp16 sessions too: positions of 4 x 4 tiles reach 100 times the largest input.
#include "backends/gpu/conv/convolution.h"

namespace pinnace::gpu {
namespace {

constexpr DType kWide = DType::kI32;  // whose elements have 32 bits in fp16 sessions too

struct Tiles {
  int64_t out, positions, down, across, count;  ///< outputs of a side; tiles of all images
  int64_t C4, M4;
  double x_bytes, y_bytes;

  Tiles(const Convolution& c, int64_t outs, bool f16)
      : out(outs), positions((outs + 2) * (outs + 2)), C4((c.C + 3) / 4), M4((c.M + 3) / 4) {
    down = (c.window.out[1] + out - 1) / out;
    across = (c.window.out[2] + out - 1) / out;
    count = c.N * down * across;
    const double element = f16 ? 2 : 4;
    x_bytes = static_cast<double>(c.N * C4 * 4 * c.window.in_size()) * element;
    y_bytes = static_cast<double>(c.N * M4 * 4 * c.window.out_size()) * element;
  }
  int64_t v_floats() const { return positions * C4 * 4 * count; }
  int64_t m_floats() const { return positions * M4 * 4 * count; }
  int64_t u_floats() const { return positions * M4 * C4 * 16; }
  bool fits(int64_t bytes) const { return std::max({v_floats(), m_floats(), u_floats()}) <= bytes / 4; }

  double seconds() const {
    const double v = static_cast<double>(v_floats()), m = static_cast<double>(m_floats());
    const double side = static_cast<double>(out + 2);
    // A line of a transform is about as many multiply-adds as it has numbers; a tile has twice its side of them.
    const PhoneCost input{2 * v, 0, {x_bytes, v * 4}};
    const PhoneCost product{m * static_cast<double>(C4 * 4), static_cast<double>(u_floats()) * 4, {v * 4, m * 4}};
    const PhoneCost output{m * (1 + static_cast<double>(out) / side), 0, {m * 4, y_bytes}};
    return input.seconds() + product.seconds() + output.seconds();
  }
};

double direct_seconds(const Convolution& c, const Tiles& t, bool f16) {
  const double weights = static_cast<double>(t.M4 * t.C4 * 16 * 9) * (f16 ? 2 : 4);
  return PhoneCost{static_cast<double>(t.M4 * 4 * t.C4 * 4 * 9) * static_cast<double>(c.N * c.window.out_size()),
                   weights,
                   {t.x_bytes, t.y_bytes}}
      .seconds();
}

/// u = G w, of 3 weights `stride` apart, to out + 2 numbers.
void weight_line(int64_t out, const double* w, size_t stride, double* u, size_t u_stride) {
  const double a = w[0], b = w[stride], c = w[2 * stride];
  if (out == 2) {
    const double made[4] = {a, (a + b + c) / 2, (a - b + c) / 2, c};
    for (size_t i = 0; i < 4; ++i) u[i * u_stride] = made[i];
    return;
  }
  const double made[6] = {a / 4, (-a - b - c) / 6, (-a + b - c) / 6, (a + 2 * b + 4 * c) / 24, (a - 2 * b + 4 * c) / 24,
                          c};
  for (size_t i = 0; i < 6; ++i) u[i * u_stride] = made[i];
}

/// [position][M4][C4][4 lanes of input][4 lanes of output]: G w G^T in double, rounded once.
TensorId transformed_weights(NodeLowering& n, const Convolution& c, const Tiles& t) {
  const NodeView view = n.view();
  const int64_t M = c.M, C = c.C;
  return n.wide_weights(str_cat("winograd ", t.out), t.u_floats(), [=](std::span<float> to) -> Status {
    const auto w = view.input_floats(1);
    if (!w) return unsupported("weights are not known");
    std::fill(to.begin(), to.end(), 0.0f);
    const auto side = static_cast<size_t>(t.out + 2);
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t k = 0; k < C; ++k) {
        double one_way[6 * 3] = {}, u[6 * 6] = {};
        const double* taps = w->data() + (m * C + k) * 9;
        for (size_t j = 0; j < 3; ++j) weight_line(t.out, taps + j, 3, one_way + j, 3);
        for (size_t i = 0; i < side; ++i) weight_line(t.out, one_way + i * 3, 1, u + i * side, 1);
        for (int64_t p = 0; p < t.positions; ++p) {
          const int64_t at = (((p * t.M4 + m / 4) * t.C4 + k / 4) * 4 + k % 4) * 4 + m % 4;
          to[static_cast<size_t>(at)] = static_cast<float>(u[p]);
        }
      }
    }
    return {};
  });
}

}  // namespace

bool lower_winograd(NodeLowering& n, const Convolution& c) {
  const Window& w = c.window;
  if (c.group != 1 || w.kernel[1] != 3 || w.kernel[2] != 3 || w.stride[1] != 1 || w.stride[2] != 1 ||
      w.dilation[1] != 1 || w.dilation[2] != 1) {
    return false;
  }
  const bool f16 = n.all().f16();
  const Tiles four(c, 4, f16), two(c, 2, f16);
  const int64_t most = n.all().binding_bytes();
  const Tiles& t = four.fits(most) && (four.seconds() < two.seconds() || !two.fits(most)) ? four : two;
  if (!t.fits(most) || t.seconds() >= direct_seconds(c, t, f16)) return false;
  const bool large = t.out == 4;
  const KernelId product = pointwise_kernel(n, c.C, c.M, t.count);
  if (!n.trusts(product) || !n.trusts(large ? KernelId::winograd_input_4 : KernelId::winograd_input_2) ||
      !n.trusts(large ? KernelId::winograd_output_4 : KernelId::winograd_output_2)) {
    return false;
  }
  const Epilogue e = c.epilogue();
  const TensorId x = n.nc4hw4(0), u = transformed_weights(n, c, t), bias = bias_weights(n, c.M);
  const TensorId v = n.make_scratch(t.v_floats(), kWide), m = n.make_scratch(t.m_floats(), kWide);
  const int64_t v_count = t.v_floats() / t.positions, m_count = t.m_floats() / t.positions;
  n.step(large ? KernelId::winograd_input_4 : KernelId::winograd_input_2,
         WinogradInputParams{.count = v_count,
                             .H = w.in[1],
                             .W = w.in[2],
                             .C4 = t.C4,
                             .tiles = t.count,
                             .down = t.down,
                             .across = t.across,
                             .pad_y = w.before[1],
                             .pad_x = w.before[2]},
         {x, v}, line_groups(v_count, 64), static_cast<double>(t.v_floats()) * 2);
  const TensorId zeros = n.wide_weights("no bias", t.M4 * 4, [](std::span<float> to) {
    std::fill(to.begin(), to.end(), 0.0f);
    return Status();
  });
  n.loops(loop_turns(t.C4));
  n.step(product, ConvPointwiseConstants{},
         ConvPointwiseParams{.pixels = t.count, .C4 = t.C4, .M4 = t.M4, .weights_step = t.M4 * t.C4 * 4},
         {v, u, zeros, v, m}, {groups_of(t.count, 64), groups_of(t.M4, 8), static_cast<uint32_t>(t.positions)},
         static_cast<double>(t.m_floats()) * static_cast<double>(t.C4 * 4), true);
  const TensorId y = n.make_nc4hw4();
  n.step(large ? KernelId::winograd_output_4 : KernelId::winograd_output_2,
         WinogradOutputConstants{.ACT = static_cast<int32_t>(e.function)},
         WinogradOutputParams{.count = m_count,
                              .OH = w.out[1],
                              .OW = w.out[2],
                              .M4 = t.M4,
                              .tiles = t.count,
                              .down = t.down,
                              .across = t.across,
                              .a = e.a,
                              .b = e.b},
         {m, bias, x, y}, line_groups(m_count, 64), static_cast<double>(t.m_floats()));
  if (!in_epilogue(c.activation)) apply_after(n, c.activation, true);
  return true;
}

}  // namespace pinnace::gpu
