// Cuts of what works on images: planes, convolutions. See the kernels' files in shaders/ for what their words mean.
#include "backends/gpu/cut_walks.h"

namespace pinnace::gpu::cut {

void planes(Cuts& c, int64_t bytes, size_t result, std::optional<size_t> blocks) {
  const int64_t in = c.word(0) * c.word(1) * bytes, out = c.word(2) * c.word(3) * bytes, count = c.groups(2);
  const auto walks = [&](int64_t n) {
    std::vector<Walk> all(result + 1);
    all[0] = run(n * in);
    all[result] = run(n * out);
    return all;
  };
  const int64_t each = blocks ? c.word(*blocks) : 1;
  if (blocks && count <= each) {
    c.add(count, walks(1), [=](Step& s, int64_t first, int64_t n) {
      planes_in_z(s, n);
      put(s, *blocks, each - first);
    });
    return;
  }
  c.add(count / each, walks(each), [=](Step& s, int64_t, int64_t n) { planes_in_z(s, n * each); });
}

void pool(Cuts& c) {
  planes(c, c.vector(), 1, size_t{13});
  Windows v{c.vector(), c.groups(2), c.groups(2), {}, {1}};
  for (size_t d = 1; d < 3; ++d) {
    v.lines[d] = image_line(c, d, c.spec(d), c.word(3 + d), 5 + d, 7 + d);
    v.lines[d].end_word = 10 + d;
  }
  window_strips(c, v, [](Step& s, size_t d, int64_t n) { s.groups[2 - d] = groups_of(n, 8); });
}

void depthwise(Cuts& c, int64_t bytes, int64_t weights, int64_t numbers, int64_t count, bool floats) {
  const int64_t in = c.word(0) * c.word(1) * bytes, out = c.word(2) * c.word(3) * bytes, blocks = c.word(4);
  const size_t spec = floats ? 1 : 0, pads = floats ? 6 : 5, result = 3;  // taps, then strides; pads, then dilations
  Windows v{bytes, count, count, {}, {result}};
  for (size_t d = 1; d < 3; ++d) {
    v.lines[d] = image_line(c, d, c.spec(spec + d - 1), c.spec(spec + d + 1), pads + d - 1, pads + d + 1);
  }
  const auto set = [floats](Step& s, int64_t n) {
    if (floats) put(s, 5, n);
    planes_in_z(s, floats ? (n + 1) / 2 : n);
  };
  if (count > blocks) {
    c.add(count / blocks, {run(blocks * in), kWhole, kWhole, run(blocks * out)},
          [=](Step& s, int64_t, int64_t n) { set(s, n * blocks); });
  } else {
    c.add(count, {run(in), run(weights), run(numbers), run(out)}, [=](Step& s, int64_t, int64_t n) {
      put(s, 4, n);
      set(s, n);
    });
  }
  window_strips(c, v, [](Step& s, size_t d, int64_t n) { s.groups[2 - d] = groups_of(n, d == 1 ? 8 : 16); });
}

namespace {

/// Any window: H, W, OH, OW, C4, M4. Groups of channels in blocks, `whole_blocks` where they are; an invocation makes
/// `blocks` of outputs. `filter`: bytes of a block's weights; numbers: of its bias.
struct ImageConvolution {
  int64_t bytes, filter, numbers, blocks;
  int64_t group_in, group_out;  ///< blocks of a group
  bool one_group, whole_blocks;
  bool residual;
  size_t result;  ///< which binding is y
  std::array<Line, 3> lines;
};
void convolution(Cuts& c, const ImageConvolution& v) {
  const int64_t C4 = c.word(4), M4 = c.word(5), step = (M4 + v.blocks - 1) / v.blocks, images = c.groups(2) / step;
  const int64_t in = c.word(0) * c.word(1) * v.bytes, out = c.word(2) * c.word(3) * v.bytes;
  const auto walks = [&](Walk x, Walk w, Walk numbers, Walk y) {
    std::vector<Walk> all = {x, w, numbers};
    if (v.result == 4) all.push_back(v.residual ? y : kUnread);
    all.push_back(y);
    return all;
  };
  Windows windows{v.bytes, images * C4, images * M4, v.lines, {v.result}};
  if (v.residual) {
    windows.results.push_back(3);
  } else if (v.result == 4) {
    windows.unread = 3;
  }
  const auto strips = [&] {
    const int64_t apart = v.lines[2].transposed ? v.lines[2].stride : 1;
    window_strips(c, windows, [apart](Step& s, size_t d, int64_t n) {
      s.groups[2 - d] = groups_of(d == 1 ? n : (n + 4 * apart - 1) / (4 * apart) * apart, 8);
    });
  };
  if (images > 1) {
    c.add(images, walks(run(C4 * in), kWhole, kWhole, run(M4 * out)),
          [=](Step& s, int64_t, int64_t n) { planes_in_z(s, n * step); });
    return strips();
  }
  const auto set = [blocks = v.blocks](Step& s, int64_t outputs) {
    put(s, 5, outputs);
    planes_in_z(s, (outputs + blocks - 1) / blocks);
  };
  if (v.one_group) {
    c.add(M4, walks(kWhole, run(v.filter), run(v.numbers), run(out)), [=](Step& s, int64_t, int64_t n) { set(s, n); });
  } else if (v.whole_blocks) {
    const int64_t ins = v.group_in, outs = v.group_out;
    c.add(M4 / outs, walks(run(ins * in), run(outs * v.filter), run(outs * v.numbers), run(outs * out)),
          [=](Step& s, int64_t, int64_t n) {
            put(s, 4, n * ins);
            set(s, n * outs);
          });
  }
  strips();
}

}  // namespace

void conv_image(Cuts& c, int64_t blocks) {
  const int64_t M4 = c.word(5), group_c = c.word(6), group_m = c.word(7), taps = c.spec(1) * c.spec(2);
  const bool transposed = c.step().kernel.id == KernelId::conv_image_transposed;
  convolution(c, {c.vector(),
                  taps * c.word(8) * 4 * c.vector(),
                  c.vector(),
                  blocks,
                  group_c / 4,
                  group_m / 4,
                  group_m > 4 * (M4 - 1),
                  group_c % 4 == 0 && group_m % 4 == 0 && group_m > 0,
                  c.spec(5) != 0,
                  4,
                  {Line(), image_line(c, 1, c.spec(1), c.spec(3), 9, 11, transposed),
                   image_line(c, 2, c.spec(2), c.spec(4), 10, 12, transposed)}});
}

void bytes_conv(Cuts& c) {
  const int64_t M4 = c.word(5), taps = c.spec(0) * c.spec(1);
  convolution(c,
              {4,
               taps * c.word(6) * 16,
               48,
               c.spec(4),
               c.word(6),
               c.word(7),
               c.word(7) >= M4,
               true,
               false,
               3,
               {Line(), image_line(c, 1, c.spec(0), c.spec(2), 8, 10), image_line(c, 2, c.spec(1), c.spec(3), 9, 11)}});
}

void conv_pointwise(Cuts& c) {
  const int64_t pixels = c.word(0), C4 = c.word(1), M4 = c.word(2), own = c.word(3), V = c.vector();
  const bool residual = c.spec(1) != 0;
  if (c.groups(2) > 1) {
    const Walk y = run(M4 * pixels * V), w = own ? Walk{own * V, M4 * C4 * 4 * V} : kWhole;
    c.add(c.groups(2), {run(C4 * pixels * V), w, kWhole, residual ? y : kUnread, y},
          [](Step& s, int64_t, int64_t n) { planes_in_z(s, n); });
  } else {
    const Walk y = run(pixels * V);
    c.add(M4, {kWhole, run(C4 * 4 * V), run(V), residual ? y : kUnread, y}, [](Step& s, int64_t, int64_t n) {
      put(s, 2, n);
      s.groups[1] = groups_of(n, 8);
    });
  }
  const int64_t outs = c.groups(2) * M4;
  lane_strips(c, pixels, {{0, c.groups(2) * C4, V}, {3, residual ? outs : 0, V}, {4, outs, V}}, [](Step& s, int64_t n) {
    put(s, 0, n);
    s.groups[0] = groups_of(n, 64);
  });
}

void conv_rows(Cuts& c, int64_t bytes, bool transposed, bool floats) {
  const int64_t count = c.word(0), M = c.word(1), group_c = c.word(2), C = c.word(4);
  const int64_t in = c.word(5) * c.word(6) * c.word(7) * bytes, places = c.word(8) * c.word(9) * c.word(10);
  const size_t spec = floats ? 1 : 0;  // the kernel of floats has its activation first
  const int64_t taps = c.spec(spec) * c.spec(spec + 1) * c.spec(spec + 2);
  if (count > M * places) {
    c.add(count / (M * places), {run(C * in), kWhole, kWhole, run(M * places * bytes)},
          [=](Step& s, int64_t, int64_t n) { line(s, 0, n * M * places); });
  } else if (floats && !transposed && group_c == C) {
    c.add(M, {kWhole, run(C * taps * bytes), run(bytes), run(places * bytes)}, [=](Step& s, int64_t, int64_t n) {
      line(s, 0, n * places);
      put(s, 1, n);
    });
  }
  const int64_t images = count / (M * places);
  Windows v{bytes, images * C, images * M, {}, {3}};
  for (size_t d = 0; d < 3; ++d) {
    v.lines[d] = {c.word(5 + d),
                  c.word(8 + d),
                  c.spec(spec + d),
                  c.word(11 + d),
                  c.word(17 + d),
                  c.word(14 + d),
                  5 + d,
                  8 + d,
                  17 + d,
                  0,
                  transposed};
  }
  window_strips(
      c, v, [each = images * M](Step& s, size_t, int64_t) { line(s, 0, each * get(s, 8) * get(s, 9) * get(s, 10)); });
}

}  // namespace pinnace::gpu::cut
