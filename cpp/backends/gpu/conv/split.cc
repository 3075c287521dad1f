// Splits of convolutions: by images, groups, channels, rows and columns.
#include "backends/gpu/conv/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

template <class P>
constexpr ImageFields fields_of() {
  return {PINNACE_FIELD(P, H), PINNACE_FIELD(P, W), PINNACE_FIELD(P, OH), PINNACE_FIELD(P, OW)};
}

/// Rows and columns of windows of an image; C: the kernel's specialisation constants, with KH, KW, SH and SW.
template <class P, class C>
std::array<WindowAxis, 3> axes_of(const Splitter& c, bool transposed = false) {
  const C window = c.constants<C>();
  return {WindowAxis(),
          image_axis(c, fields_of<P>(), 1, window.KH, window.SH, PINNACE_FIELD(P, pad_y), PINNACE_FIELD(P, dil_y),
                     transposed),
          image_axis(c, fields_of<P>(), 2, window.KW, window.SW, PINNACE_FIELD(P, pad_x), PINNACE_FIELD(P, dil_x),
                     transposed)};
}

/// One filter per channel. Bytes of a vector, of a plane's filter and of its numbers; planes of all images; a group
/// makes so many of them.
struct Depthwise {
  int64_t bytes, filter, numbers, planes, planes_per_group;
  Field planes_field;  ///< if the kernel has one
  ImageFields sizes;
  Field blocks;  ///< planes of an image
  std::array<WindowAxis, 3> axes;
};
void split_depthwise(Splitter& c, const Depthwise& v) {
  const int64_t in = c.get(v.sizes.H) * c.get(v.sizes.W) * v.bytes;
  const int64_t out = c.get(v.sizes.OH) * c.get(v.sizes.OW) * v.bytes, blocks = c.get(v.blocks);
  const auto set_planes = [field = v.planes_field, each = v.planes_per_group](Step& s, int64_t n) {
    if (field) set(s, field, n);
    planes_in_z(s, (n + each - 1) / each);
  };
  if (v.planes > blocks) {
    c.add(v.planes / blocks, {run(blocks * in), kWhole, kWhole, run(blocks * out)},
          [=](Step& s, int64_t, int64_t n) { set_planes(s, n * blocks); });
  } else {
    c.add(v.planes, {run(in), run(v.filter), run(v.numbers), run(out)},
          [set_planes, field = v.blocks](Step& s, int64_t, int64_t n) {
            set(s, field, n);
            set_planes(s, n);
          });
  }
  split_windows(c, {v.bytes, v.planes, v.planes, v.axes, {3}},
                [](Step& s, size_t d, int64_t n) { s.groups[2 - d] = groups_of(n, d == 1 ? 8 : 16); });
}

/// Any window. Groups of channels in blocks, `whole_blocks` where they are; an invocation makes `blocks` of outputs.
/// filter: bytes of a block's weights; numbers: of its bias.
struct ImageConvolution {
  int64_t bytes, filter, numbers, blocks;
  int64_t group_in, group_out;  ///< blocks of a group
  bool one_group, whole_blocks;
  bool residual;
  size_t result;  ///< which binding is y
  ImageFields sizes;
  Field C4, M4;
  std::array<WindowAxis, 3> axes;

  std::vector<UnitWindow> windows(UnitWindow x, UnitWindow w, UnitWindow of_numbers, UnitWindow y) const {
    std::vector<UnitWindow> all = {x, w, of_numbers};
    if (result == 4) all.push_back(residual ? y : kUnread);
    all.push_back(y);
    return all;
  }
};

void split_image_windows(Splitter& c, const ImageConvolution& v, int64_t images) {
  WindowedStep windows{v.bytes, images * c.get(v.C4), images * c.get(v.M4), v.axes, {v.result}};
  if (v.residual) {
    windows.results.push_back(3);
  } else if (v.result == 4) {
    windows.unread = 3;
  }
  const int64_t apart = v.axes[2].transposed ? v.axes[2].stride : 1;
  split_windows(c, windows, [apart](Step& s, size_t d, int64_t n) {
    s.groups[2 - d] = groups_of(d == 1 ? n : (n + 4 * apart - 1) / (4 * apart) * apart, 8);
  });
}

void split_image_convolution(Splitter& c, const ImageConvolution& v) {
  const int64_t C4 = c.get(v.C4), M4 = c.get(v.M4), step = (M4 + v.blocks - 1) / v.blocks, images = c.groups(2) / step;
  const int64_t in = c.get(v.sizes.H) * c.get(v.sizes.W) * v.bytes;
  const int64_t out = c.get(v.sizes.OH) * c.get(v.sizes.OW) * v.bytes;
  const auto set_outputs = [blocks = v.blocks, field = v.M4](Step& s, int64_t outputs) {
    set(s, field, outputs);
    planes_in_z(s, (outputs + blocks - 1) / blocks);
  };
  if (images > 1) {
    c.add(images, v.windows(run(C4 * in), kWhole, kWhole, run(M4 * out)),
          [=](Step& s, int64_t, int64_t n) { planes_in_z(s, n * step); });
  } else if (v.one_group) {
    c.add(M4, v.windows(kWhole, run(v.filter), run(v.numbers), run(out)),
          [=](Step& s, int64_t, int64_t n) { set_outputs(s, n); });
  } else if (v.whole_blocks) {
    const int64_t ins = v.group_in, outs = v.group_out;
    c.add(M4 / outs, v.windows(run(ins * in), run(outs * v.filter), run(outs * v.numbers), run(outs * out)),
          [=, field = v.C4](Step& s, int64_t, int64_t n) {
            set(s, field, n * ins);
            set_outputs(s, n * outs);
          });
  }
  split_image_windows(c, v, images);
}

void split_conv_image_by(Splitter& c, int64_t blocks) {
  using P = ConvNc4hw4Params;
  using C = ConvNc4hw4Constants;
  const P& p = c.params<P>();
  const auto constants = c.constants<C>();
  const int64_t group_c = p.group_c, group_m = p.group_m, taps = constants.KH * constants.KW;
  const bool transposed = c.step().kernel.id == KernelId::conv_nc4hw4_transposed;
  split_image_convolution(c, {.bytes = c.vector(),
                              .filter = taps * p.count * 4 * c.vector(),
                              .numbers = c.vector(),
                              .blocks = blocks,
                              .group_in = group_c / 4,
                              .group_out = group_m / 4,
                              .one_group = group_m > 4 * (p.M4 - 1),
                              .whole_blocks = group_c % 4 == 0 && group_m % 4 == 0 && group_m > 0,
                              .residual = constants.RESIDUAL != 0,
                              .result = 4,
                              .sizes = fields_of<P>(),
                              .C4 = PINNACE_FIELD(P, C4),
                              .M4 = PINNACE_FIELD(P, M4),
                              .axes = axes_of<P, C>(c, transposed)});
}

/// One output per invocation: images, and where `by_channel`, channels of outputs, all of which see all of the input.
template <class P, class C>
void split_rows(Splitter& c, int64_t bytes, bool transposed, bool by_channel) {
  const P& p = c.params<P>();
  const auto kernel = c.constants<C>().K;
  const Field counted = PINNACE_FIELD(P, count);
  const int64_t count = p.count, M = p.M, in = p.in[0] * p.in[1] * p.in[2] * bytes;
  const int64_t places = p.out[0] * p.out[1] * p.out[2], images = count / (M * places);
  const int64_t taps = kernel[0] * kernel[1] * kernel[2];
  if (images > 1) {
    c.add(images, {run(p.C * in), kWhole, kWhole, run(M * places * bytes)},
          [=](Step& s, int64_t, int64_t n) { set_line(s, counted, n * M * places); });
  } else if (by_channel && p.group_c == p.C) {
    c.add(M, {kWhole, run(p.C * taps * bytes), run(bytes), run(places * bytes)}, [=](Step& s, int64_t, int64_t n) {
      set_line(s, counted, n * places);
      s.params<P>().M = n;
    });
  }
  WindowedStep v{bytes, images * p.C, images * M, {}, {3}};
  for (size_t d = 0; d < 3; ++d) {
    v.axes[d] = {.in = p.in[d],
                 .out = p.out[d],
                 .taps = kernel[d],
                 .stride = p.stride[d],
                 .pad = p.pad[d],
                 .dilation = p.dilation[d],
                 .in_field = PINNACE_FIELD(P, in)[d],
                 .out_field = PINNACE_FIELD(P, out)[d],
                 .pad_field = PINNACE_FIELD(P, pad)[d],
                 .end_field = {},
                 .transposed = transposed};
  }
  split_windows(c, v, [counted, each = images * M](Step& s, size_t, int64_t) {
    const P& own = s.params<P>();
    set_line(s, counted, each * own.out[0] * own.out[1] * own.out[2]);
  });
}

}  // namespace

void split_int8_conv(Splitter& c) {
  using P = Int8ConvParams;
  using C = Int8ConvConstants;
  const P& p = c.params<P>();
  const auto constants = c.constants<C>();
  const int64_t taps = constants.KH * constants.KW;
  split_image_convolution(c, {.bytes = 4,
                              .filter = taps * p.group_c4 * 16,
                              .numbers = 48,
                              .blocks = constants.BLOCKS,
                              .group_in = p.group_c4,
                              .group_out = p.group_m4,
                              .one_group = p.group_m4 >= p.M4,
                              .whole_blocks = true,
                              .residual = false,
                              .result = 3,
                              .sizes = fields_of<P>(),
                              .C4 = PINNACE_FIELD(P, C4),
                              .M4 = PINNACE_FIELD(P, M4),
                              .axes = axes_of<P, C>(c)});
}

void split_int8_conv_dense(Splitter& c) {
  split_rows<Int8ConvDenseParams, Int8ConvDenseConstants>(c, 4, c.constants<Int8ConvDenseConstants>().TRANSPOSED == 1,
                                                          false);
}

void split_int8_depthwise(Splitter& c) {
  using P = Int8DepthwiseParams;
  using C = Int8DepthwiseConstants;
  const auto constants = c.constants<C>();
  split_depthwise(c, {.bytes = 4,
                      .filter = constants.KH * constants.KW * 4,
                      .numbers = 48,
                      .planes = c.groups(2),
                      .planes_per_group = 1,
                      .planes_field = {},
                      .sizes = fields_of<P>(),
                      .blocks = PINNACE_FIELD(P, C4),
                      .axes = axes_of<P, C>(c)});
}

void split_conv_depthwise(Splitter& c) {
  using P = ConvDepthwiseParams;
  using C = ConvDepthwiseConstants;
  const auto constants = c.constants<C>();
  split_depthwise(c, {.bytes = c.vector(),
                      .filter = constants.KH * constants.KW * c.vector(),
                      .numbers = c.vector(),
                      .planes = c.params<P>().planes,
                      .planes_per_group = 2,
                      .planes_field = PINNACE_FIELD(P, planes),
                      .sizes = fields_of<P>(),
                      .blocks = PINNACE_FIELD(P, C4),
                      .axes = axes_of<P, C>(c)});
}

void split_conv_nc4hw4(Splitter& c) {
  split_conv_image_by(c, 2);
}

void split_conv_nc4hw4_block(Splitter& c) {
  split_conv_image_by(c, 1);
}

void split_conv_dense(Splitter& c) {
  split_rows<ConvDenseParams, ConvDenseConstants>(c, c.element(), false, true);
}

void split_conv_dense_transposed(Splitter& c) {
  split_rows<ConvDenseParams, ConvDenseConstants>(c, c.element(), true, false);
}

void split_conv_pointwise(Splitter& c) {
  using P = ConvPointwiseParams;
  const P& p = c.params<P>();
  const int64_t pixels = p.pixels, C4 = p.C4, M4 = p.M4, own = p.weights_step, images = c.groups(2), V = c.vector();
  const bool residual = c.constants<ConvPointwiseConstants>().RESIDUAL != 0;
  if (images > 1) {
    const UnitWindow y = run(M4 * pixels * V), w = own ? UnitWindow{own * V, M4 * C4 * 4 * V} : kWhole;
    c.add(images, {run(C4 * pixels * V), w, kWhole, residual ? y : kUnread, y},
          [](Step& s, int64_t, int64_t n) { planes_in_z(s, n); });
  } else {
    const UnitWindow y = run(pixels * V);
    c.add(M4, {kWhole, run(C4 * 4 * V), run(V), residual ? y : kUnread, y}, [](Step& s, int64_t, int64_t n) {
      s.params<P>().M4 = n;
      s.groups[1] = groups_of(n, 8);
    });
  }
  const int64_t outs = images * M4;
  split_inner(c, pixels, {{0, images * C4, V}, {3, residual ? outs : 0, V}, {4, outs, V}}, [](Step& s, int64_t n) {
    s.params<P>().pixels = n;
    s.groups[0] = groups_of(n, 64);
  });
}

}  // namespace pinnace::gpu::splitting
