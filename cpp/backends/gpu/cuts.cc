// Along what each kernel can be cut: images, planes of channels, rows, elements. Numbers of words are places in the
// kernel's push constants; see the kernel's file in shaders/ for what they mean.
#include "backends/gpu/cut_walks.h"

namespace pinnace::gpu {
namespace {

using namespace cut;

// ---- a line of elements

/// count first; each binding has so many bytes per item.
void items(Cuts& c, std::vector<Walk> walks) {
  c.add(c.word(0), std::move(walks), [](Step& s, int64_t, int64_t n) { line(s, 0, n); });
}

/// count, pixels, blocks; `walks` for so many vectors, of which channel operands have the last number of elements;
/// `by_image`: where a vector lies in its image matters. images: the word with the images of the operand.
void vectors(Cuts& c, bool by_image, size_t images,
             const std::function<std::vector<Walk>(int64_t vectors, int64_t channels)>& walks) {
  const int64_t count = c.word(0), pixels = c.word(1), blocks = c.word(2);
  if (!by_image || count <= pixels) return items(c, walks(1, 0));
  const int64_t planes = count / pixels;
  if (planes > blocks) {
    const int64_t each = c.word(images);
    c.add(planes / blocks, walks(blocks * pixels, each > 1 ? blocks : 0), [=](Step& s, int64_t, int64_t n) {
      line(s, 0, n * blocks * pixels);
      if (each > 1) put(s, images, n);
    });
    return;
  }
  // The last block of the image, whose lanes may be no channels, stays the last one.
  c.add(planes, walks(pixels, 1), [=](Step& s, int64_t first, int64_t n) {
    line(s, 0, n * pixels);
    put(s, 2, blocks - first);
  });
}

void map(Cuts& c) {
  bool by_image = c.spec(9) != 0;
  for (size_t k = 0; k < 4; ++k) by_image |= c.spec(5 + k) == 2;
  vectors(c, by_image, 4, [&c](int64_t vectors, int64_t channels) {
    std::vector<Walk> walks(6, run(vectors * c.vector()));
    for (size_t k = 0; k < 4; ++k) {
      const int64_t mode = c.spec(5 + k);
      if (mode == 0) walks[2 + k] = kUnread;
      if (mode == 2) walks[2 + k] = run(channels * c.vector());
      if (mode == 3) walks[2 + k] = kWhole;
    }
    return walks;
  });
}

void bytes_pair(Cuts& c) {
  const bool channel = c.spec(0) == 1;
  vectors(c, channel, 3, [channel](int64_t vectors, int64_t channels) {
    return std::vector<Walk>{run(vectors * 4), run((channel ? channels : vectors) * 4), kWhole, run(vectors * 4)};
  });
}

/// Rows and images of the same tensor; `rows`: which binding has rows. Bytes of an element of rows and of a vector;
/// base: the word that says where rows begin.
void layout(Cuts& c, size_t rows, int64_t row_bytes, int64_t image_bytes, size_t base) {
  const int64_t count = c.word(0), channels = c.word(1), blocks = c.word(2), pixels = c.word(3);
  const int64_t planes = count / pixels, from = c.word(base);
  std::vector<Walk> image(2);
  // `each` elements of rows for a unit, `all` if the part has the last unit.
  const auto rows_of = [=](Step& s, int64_t each, int64_t first, int64_t n, int64_t all) {
    begin_at(s, rows, base, from + first * each, std::min(n * each, all - first * each), row_bytes);
  };
  if (planes > blocks) {
    image[1 - rows] = run(blocks * pixels * image_bytes);
    c.add(planes / blocks, image, [=](Step& s, int64_t first, int64_t n) {
      line(s, 0, n * blocks * pixels);
      rows_of(s, channels * pixels, first, n, planes / blocks * channels * pixels);
    });
  } else {
    image[1 - rows] = run(pixels * image_bytes);
    c.add(planes, image, [=](Step& s, int64_t first, int64_t n) {
      line(s, 0, n * pixels);
      put(s, 1, std::min(channels - 4 * first, 4 * n));
      put(s, 2, n);
      rows_of(s, 4 * pixels, first, n, channels * pixels);
    });
  }
  const int64_t lines = planes / blocks * channels;
  if (lines == 1) {
    image[1 - rows] = run(image_bytes);
    c.add(pixels, image, [=](Step& s, int64_t first, int64_t n) {
      line(s, 0, n);
      put(s, 3, n);
      rows_of(s, 1, first, n, pixels);
    });
    return;
  }
  c.add_strips(pixels, [=](Part& p, int64_t first, int64_t n) {
    line(p, 0, planes * n);
    put(p, 3, n);
    put(p, base, 0);
    strip(p, rows, (from + first) * row_bytes, lines, pixels * row_bytes, n * row_bytes);
    strip(p, 1 - rows, first * image_bytes, planes, pixels * image_bytes, n * image_bytes);
  });
}

/// Between rows of elements of so many bytes, whose scale goes by what is outside of `inner`: words 0 and 1.
void inner_strips(Cuts& c, int64_t slices, int64_t inner, int64_t from_bytes, int64_t to_bytes) {
  lane_strips(c, inner, {{0, slices, from_bytes}, {2, slices, to_bytes}}, [slices](Step& s, int64_t n) {
    line(s, 0, slices * n);
    put(s, 1, n);
  });
}

/// Scales go by channel or by a place in a row; with one scale anything goes.
void quantize(Cuts& c) {
  const int64_t count = c.word(0), inner = c.word(1), scales = c.word(2), form = c.spec(0);
  if (form == 0) {
    const int64_t unit = scales == 1 ? 1 : inner * scales;
    c.add(count / unit, {run(unit * c.element()), kWhole, run(unit * 4)},
          [=](Step& s, int64_t, int64_t n) { line(s, 0, n * unit); });
    if (unit > 1) inner_strips(c, count / inner, inner, c.element(), 4);
    return;
  }
  const int64_t channels = c.word(3), blocks = c.word(4), pixels = c.word(5), planes = count / pixels;
  const bool rows = form == 1;
  if (planes > blocks) {
    c.add(planes / blocks,
          {run((rows ? channels : blocks * 4) * pixels * c.element()), kWhole, run(blocks * pixels * 4)},
          [=](Step& s, int64_t, int64_t n) { line(s, 0, n * blocks * pixels); });
  } else if (scales == 1) {
    c.add(planes, {run(4 * pixels * c.element()), kWhole, run(pixels * 4)}, [=](Step& s, int64_t first, int64_t n) {
      line(s, 0, n * pixels);
      put(s, 3, std::min(channels - 4 * first, 4 * n));
      put(s, 4, n);
    });
  }
  const int64_t lines = rows ? planes / blocks * channels : planes;
  lane_strips(c, pixels, {{0, lines, (rows ? 1 : 4) * c.element()}, {2, planes, 4}}, [=](Step& s, int64_t n) {
    line(s, 0, planes * n);
    put(s, 5, n);
  });
}

void dequantize(Cuts& c) {
  const int64_t count = c.word(0), inner = c.word(1), scales = c.word(2), blocks = c.word(3), pixels = c.word(4);
  const bool rows = c.spec(0) == 0;
  const int64_t unit = scales == 1 ? 1 : rows ? inner * scales : blocks * pixels;
  const int64_t made = rows ? c.element() : c.vector();
  c.add(count / unit, {run(unit * 4), kWhole, run(unit * made)},
        [=](Step& s, int64_t, int64_t n) { line(s, 0, n * unit); });
  if (rows && unit > 1) inner_strips(c, count / inner, inner, 4, made);
  if (rows) return;
  lane_strips(c, pixels, {{0, count / pixels, 4}, {2, count / pixels, made}}, [=](Step& s, int64_t n) {
    line(s, 0, count / pixels * n);
    put(s, 4, n);
  });
}

/// Runs of elements between places of images: words count, run, from_image, from, to_image, to.
/// others: walks of bindings that are neither.
void runs(Cuts& c, size_t from_binding, size_t to_binding, int64_t bytes, std::vector<Walk> others = {}) {
  const int64_t count = c.word(0), length = c.word(1), from_image = c.word(2), from = c.word(3);
  const int64_t to_image = c.word(4), to = c.word(5);
  if (count > length) {
    c.add(count / length, std::move(others), [=](Step& s, int64_t first, int64_t n) {
      line(s, 0, n * length);
      begin_at(s, from_binding, 3, first * from_image + from, (n - 1) * from_image + length, bytes);
      begin_at(s, to_binding, 5, first * to_image + to, (n - 1) * to_image + length, bytes);
    });
    return;
  }
  c.add(count, std::move(others), [=](Step& s, int64_t first, int64_t n) {
    line(s, 0, n);
    put(s, 1, n);
    begin_at(s, from_binding, 3, from + first, n, bytes);
    begin_at(s, to_binding, 5, to + first, n, bytes);
  });
}

// ---- elements in up to six dimensions

/// An operand of a strided kernel: its strides begin at a word; `from` is the word of its beginning, or 0.
struct Strided {
  size_t binding, strides, from;
  int64_t bytes;
};

/// Sizes of the dimensions, in words 1 to 5 but the first.
std::array<int64_t, 6> sizes_of(const Step& s) {
  std::array<int64_t, 6> size{get(s, 0)};
  for (size_t d = 1; d < 6; ++d) {
    size[d] = get(s, d);
    size[0] /= std::max<int64_t>(1, size[d]);
  }
  return size;
}

/// Neighbours that every operand walks through as one become one, so that cuts need not follow them.
void join_dimensions(Step& s, std::span<const Strided> operands) {
  std::array<int64_t, 6> size = sizes_of(s);
  const auto stride = [&](const Strided& o, size_t d) { return get(s, o.strides + d); };
  for (size_t d = 5; d > 0; --d) {
    for (size_t outer = d; outer-- > 0;) {
      if (size[outer] == 1) continue;
      const bool joins = size[d] == 1 || std::all_of(operands.begin(), operands.end(), [&](const Strided& o) {
                           return stride(o, outer) == size[d] * stride(o, d);
                         });
      if (!joins) break;
      for (const Strided& o : operands) {
        if (size[d] == 1) put(s, o.strides + d, stride(o, outer));
        put(s, o.strides + outer, 0);
      }
      size[d] *= size[outer];
      size[outer] = 1;
    }
  }
  for (size_t d = 1; d < 6; ++d) put(s, d, size[d]);
}

/// dense: the binding of a dense result, of which elements have so many bytes; of none every operand is strided.
void strided(Cuts& c, const std::vector<Strided>& operands, std::optional<std::pair<size_t, int64_t>> dense) {
  Step joined = c.step();
  join_dimensions(joined, operands);
  const std::array<int64_t, 6> size = sizes_of(joined);
  for (size_t d = 0; d < 6; ++d) {
    if (size[d] < 2) continue;
    int64_t inner = 1, outer = 1;
    for (size_t i = d + 1; i < 6; ++i) inner *= size[i];
    for (size_t i = 0; i < d; ++i) outer *= size[i];
    std::vector<Walk> walks;
    if (dense) {
      walks.resize(dense->first + 1);
      walks[dense->first] = run(inner * dense->second);
      // A step that has nothing to report has its result in the place of the problems.
      const auto& bound = c.step().bindings;
      if (bound.size() > walks.size() && bound[walks.size()] == bound[dense->first]) walks.push_back(kUnread);
    }
    c.add(size[d], std::move(walks), [=](Step& s, int64_t first, int64_t n) {
      s.push = joined.push;
      if (d > 0) put(s, d, n);
      line(s, 0, outer * n * inner);
      for (const Strided& o : operands) {
        int64_t low = first * get(s, o.strides + d), high = 0;  // what the elements of the part reach
        if (o.from) low += get(s, o.from);
        const int64_t start = low;
        for (size_t i = 0; i < 6; ++i) {
          const int64_t extent = ((i == d ? n : size[i]) - 1) * get(s, o.strides + i);
          (extent < 0 ? low : high) += extent;
        }
        if (!o.from) {
          narrow(s, o.binding, start * o.bytes, (high + 1) * o.bytes);
          continue;
        }
        begin_at(s, o.binding, o.from, low, start + high - low + 1, o.bytes);
        put(s, o.from, get(s, o.from) + start - low);
      }
    });
    if (dense) return;  // only outermost dimensions leave a dense result whole
  }
}

// ---- lanes and rows: a workgroup each

/// lanes, size, inner; walks for one outer index. lengths: elements of a lane of each binding, where they are not size.
void lanes(Cuts& c, std::vector<Walk> walks, const std::vector<int64_t>& lengths = {}) {
  const int64_t size = c.word(1), inner = c.word(2), outer = c.word(0) / inner;
  std::vector<Walk> strips = walks;
  for (size_t b = 0; b < strips.size(); ++b) {
    if (strips[b].step == 0) continue;
    const int64_t length = lengths.empty() ? size : lengths[b], bytes = strips[b].step / (length * inner);
    strips[b] = column(bytes, outer * length, inner * bytes);
  }
  c.add(outer, std::move(walks), [inner](Step& s, int64_t, int64_t n) {
    put(s, 0, n * inner);
    s.groups = row_groups(n * inner);
  });
  c.add(inner, std::move(strips), [outer](Step& s, int64_t, int64_t n) {
    put(s, 0, outer * n);
    put(s, 2, n);
    s.groups = row_groups(outer * n);
  });
}

void normalize(Cuts& c) {
  const int64_t rows = c.word(0), size = c.word(1), period = c.word(2), inner = c.word(3), channels = c.word(4);
  const int64_t bytes = c.element();
  const auto set = [](Step& s, int64_t n) {
    put(s, 0, n);
    s.groups = row_groups(n);
  };
  const Walk scale = c.spec(1) ? kWhole : kUnread, bias = c.spec(2) ? kWhole : kUnread;
  if (period == 1 || rows > period) {
    c.add(rows / period, {run(period * size * bytes), scale, bias, run(period * size * bytes)},
          [=](Step& s, int64_t, int64_t n) { set(s, n * period); });
  } else if (size % inner == 0 && channels == period * (size / inner)) {  // each row has channels of its own
    const Walk own = run(size / inner * bytes);
    c.add(rows, {run(size * bytes), c.spec(1) ? own : kUnread, c.spec(2) ? own : kUnread, run(size * bytes)},
          [=](Step& s, int64_t, int64_t n) { set(s, n); });
  }
}

/// Rows over up to three strided dimensions, of which the outermost is cut; so many rows per group.
void reduce(Cuts& c, int64_t bytes, uint32_t group = 1) {
  const int64_t rows = c.word(0), size = c.word(1);
  const int64_t k[3] = {rows / (c.word(2) * c.word(3)), c.word(2), c.word(3)};
  const int64_t r[3] = {size / (c.word(7) * c.word(8)), c.word(7), c.word(8)};
  int64_t reach = 1;
  for (size_t d = 0; d < 3; ++d) reach += std::max<int64_t>(0, r[d] - 1) * c.word(9 + d);
  size_t d = 0;
  while (d < 2 && k[d] == 1) ++d;
  int64_t inner = 1;
  for (size_t i = d + 1; i < 3; ++i) {
    reach += (k[i] - 1) * c.word(4 + i);
    inner *= k[i];
  }
  std::vector<Walk> walks = {{c.word(4 + d) * bytes, reach * bytes}, run(inner * bytes)};
  const auto& bound = c.step().bindings;
  const bool nothing_to_report = bound.size() > 2 && bound[2] == bound[1];
  if (nothing_to_report) walks.push_back(kUnread);
  c.add(k[d], std::move(walks), [=](Step& s, int64_t, int64_t n) {
    put(s, 0, n * inner);
    if (d > 0) put(s, 1 + d, n);
    s.groups = line_groups(n * inner, group);
  });
  // What the rows of a part have, in their order.
  Strip all{0, bytes, {k[0], k[1], k[2], r[0], r[1], r[2]}, {}};
  for (size_t i = 0; i < 6; ++i) all.stride[i] = c.word(i < 3 ? 4 + i : 6 + i) * bytes;
  for (size_t cut = 0; cut < 3; ++cut) {
    int64_t outer = 1, each = 1;
    for (size_t i = 0; i < 3; ++i) (i < cut ? outer : each) *= i == cut ? 1 : k[i];
    c.add_strips(k[cut], [=](Part& p, int64_t first, int64_t n) {
      Strip some = all;
      some.from = first * all.stride[cut];
      some.size[cut] = n;
      strip(p, 0, some);
      int64_t stride = 1;
      for (size_t i = 6; i-- > 0; stride *= some.size[i]) put(p, i < 3 ? 4 + i : 6 + i, stride);
      if (cut > 0) put(p, 1 + cut, n);
      put(p, 0, outer * n * each);
      p.groups = line_groups(outer * n * each, group);
      if (nothing_to_report) narrow(p, 2, 0, 16);
      if (outer > 1) return strip(p, 1, first * each * bytes, outer, k[cut] * each * bytes, n * each * bytes);
      narrow(p, 1, first * each * bytes, n * each * bytes);
      p.views[1].own = true;
    });
  }
}

}  // namespace

std::vector<Cut> cuts_of(const Step& step) {
  Cuts c(step);
  const int64_t S = c.element(), V = c.vector();
  switch (step.kernel.id) {
    case KernelId::attention:
    case KernelId::attention_vectors:
      attention(c);
      break;
    case KernelId::batch_norm: {
      const int64_t channels = c.word(1), inner = c.word(2), slices = c.word(0) / inner, image = channels * inner;
      if (slices > channels) {
        c.add(slices / channels, {run(image * S), kWhole, kWhole, kWhole, kWhole, run(image * S)},
              [=](Step& s, int64_t, int64_t n) { line(s, 0, n * image); });
      } else {
        c.add(channels, {run(inner * S), run(S), run(S), run(S), run(S), run(inner * S)},
              [=](Step& s, int64_t, int64_t n) {
                line(s, 0, n * inner);
                put(s, 1, n);
              });
      }
      lane_strips(c, inner, {{0, slices, S}, {5, slices, S}}, [=](Step& s, int64_t n) {
        line(s, 0, slices * n);
        put(s, 2, n);
      });
      break;
    }
    case KernelId::bytes_conv:
      bytes_conv(c);
      break;
    case KernelId::bytes_conv_rows:
      conv_rows(c, 4, c.spec(3) == 1, false);
      break;
    case KernelId::bytes_depthwise:
      depthwise(c, 4, c.spec(0) * c.spec(1) * 4, 48, c.groups(2), false);
      break;
    case KernelId::bytes_gemm:
      product(c, {4, c.spec(0) == 1, c.spec(1) == 1, 4, 32, false});
      break;
    case KernelId::bytes_pair:
      bytes_pair(c);
      break;
    case KernelId::bytes_pair_rows:
      strided(c, {{0, 6, 0, 4}, {1, 12, 0, 4}}, std::pair(size_t{3}, int64_t{4}));
      break;
    case KernelId::bytes_pool:
    case KernelId::bytes_pool_norm:
      planes(c, 4, 2, {});
      break;
    case KernelId::bytes_reduce:
      reduce(c, 4);
      break;
    case KernelId::bytes_reduce_ordered:
      reduce(c, 4, 64);
      break;
    case KernelId::bytes_resize:
      planes(c, 4, 3, {});
      break;
    case KernelId::bytes_log_softmax:
    case KernelId::bytes_norm:
    case KernelId::bytes_softmax: {
      const Walk lane = run(c.word(1) * c.word(2) * 4);
      lanes(c, {lane, kWhole, lane});
      break;
    }
    case KernelId::bytes_table:
      // Without a table x is bound in its place.
      runs(c, 0, 2, 4, c.spec(1) ? std::vector<Walk>{} : std::vector<Walk>{kWhole, kUnread});
      break;
    case KernelId::bytes_to_image:
      layout(c, 0, 4, 4, 5);
      break;
    case KernelId::bytes_to_rows:
      layout(c, 1, 4, 4, 5);
      break;
    case KernelId::compare:
      strided(c, {{0, 6, 0, S}, {1, 12, 0, S}}, std::pair(size_t{2}, int64_t{4}));
      break;
    case KernelId::conv_depthwise:
      depthwise(c, V, c.spec(1) * c.spec(2) * V, V, c.word(5), true);
      break;
    case KernelId::conv_image:
      conv_image(c, 2);
      break;
    case KernelId::conv_image_block:
    case KernelId::conv_image_transposed:
      conv_image(c, 1);
      break;
    case KernelId::conv_pointwise:
      conv_pointwise(c);
      break;
    case KernelId::conv_rows:
    case KernelId::conv_rows_transposed:
      conv_rows(c, S, step.kernel.id == KernelId::conv_rows_transposed, true);
      break;
    case KernelId::cum_sum:
      lanes(c, {run(c.word(1) * c.word(2) * S), run(c.word(1) * c.word(2) * S)});
      break;
    case KernelId::cum_sum_words: {
      const Walk lane = run(c.word(1) * c.word(2) * 4);
      lanes(c, {lane, lane, step.bindings[2] == step.bindings[1] ? kUnread : kWhole});
      break;
    }
    case KernelId::dequantize:
      dequantize(c);
      break;
    case KernelId::dynamic_quantize:
      if (c.spec(0) == 2) items(c, {run(S), kWhole, run(4)});  // before it, the range of all
      break;
    case KernelId::enter:
      items(c, {run(16), run(V)});
      break;
    case KernelId::enter_image:
      layout(c, 0, 4, V, 4);
      break;
    case KernelId::fill:
      items(c, {run(S)});
      break;
    case KernelId::fill_words:
      items(c, {run(4)});
      break;
    case KernelId::from_words:
      items(c, {run(4), run(S)});
      break;
    case KernelId::gather:
    case KernelId::gather_words: {
      const int64_t bytes = step.kernel.id == KernelId::gather ? S : 4;
      const int64_t indices = c.word(1), inner = c.word(2), size = c.word(3);
      if (c.word(0) > indices * inner) {
        c.add(c.word(0) / (indices * inner), {run(size * inner * bytes), kWhole, run(indices * inner * bytes)},
              [=](Step& s, int64_t, int64_t n) { line(s, 0, n * indices * inner); });
      } else {
        c.add(indices, {kWhole, run(4), run(inner * bytes)}, [=](Step& s, int64_t, int64_t n) {
          line(s, 0, n * inner);
          put(s, 1, n);
        });
        // Each part writes what its places have.
        c.add(c.word(5), {run(inner * bytes)}, [=](Step& s, int64_t first, int64_t n) {
          put(s, 4, get(s, 4) + first);
          put(s, 5, n);
        });
      }
      const int64_t outer = c.word(0) / (indices * inner);
      lane_strips(c, inner, {{0, outer * c.word(5), bytes}, {2, outer * indices, bytes}}, [=](Step& s, int64_t n) {
        line(s, 0, outer * indices * n);
        put(s, 2, n);
      });
      break;
    }
    case KernelId::gemm:
      product(c, {S, false, c.spec(1) == 1, 0, 0, false});
      break;
    case KernelId::gemm_packed:
    case KernelId::gemm_split:
      product(c, {S, true, c.spec(1) == 1, V, 0, step.kernel.id == KernelId::gemm_split});
      break;
    case KernelId::gemm_words:
      product_of_words(c);
      break;
    case KernelId::image_to_rows:
      layout(c, 1, S, V, 4);
      break;
    case KernelId::leave:
      items(c, {run(V), run(16)});
      break;
    case KernelId::leave_image:
      layout(c, 1, 4, V, 4);
      break;
    case KernelId::lrn: {
      const int64_t image = c.word(1) * c.word(2);
      c.add(c.word(0) / image, {run(image * S), run(image * S)},
            [image](Step& s, int64_t, int64_t n) { line(s, 0, n * image); });
      const int64_t slices = c.word(0) / c.word(2);
      lane_strips(c, c.word(2), {{0, slices, S}, {1, slices, S}}, [slices](Step& s, int64_t n) {
        line(s, 0, slices * n);
        put(s, 2, n);
      });
      break;
    }
    case KernelId::map:
      map(c);
      break;
    case KernelId::map_strided:
      strided(c, {{0, 6, 0, S}, {1, 12, 0, S}}, std::pair(size_t{2}, S));
      break;
    case KernelId::map_words:
      strided(c, {{0, 6, 0, 4}, {1, 12, 0, 4}}, std::pair(size_t{2}, int64_t{4}));
      break;
    case KernelId::move:
      strided(c, {{0, 6, 12, S}, {1, 13, 19, S}}, {});
      break;
    case KernelId::move_blocks:
      runs(c, 0, 1, V);
      break;
    case KernelId::move_words:
      strided(c, {{0, 6, 12, 4}, {1, 13, 19, 4}}, {});
      break;
    case KernelId::normalize:
      normalize(c);
      break;
    case KernelId::place: {
      bool based = false;  // whether a place depends on which one it is
      for (size_t k = 6; k < 12; ++k) based |= c.word(k) != 0;
      if (!based) items(c, {run(c.word(12) * 4), run(4), kWhole});
      break;
    }
    case KernelId::pool:
      pool(c);
      break;
    case KernelId::pool_global:
      c.add(c.word(0), {run(c.word(1) * V), run(V)}, [](Step& s, int64_t, int64_t n) {
        put(s, 0, n);
        s.groups = row_groups(n);
      });
      break;
    case KernelId::quantize:
      quantize(c);
      break;
    case KernelId::reduce:
      reduce(c, S);
      break;
    case KernelId::reduce_words:
      reduce(c, 4);
      break;
    case KernelId::resize:
      planes(c, V, 2, {});
      break;
    case KernelId::roi_align: {
      const int64_t box = c.word(2) * c.word(5) * c.word(6);
      c.add(c.word(0) / box, {kWhole, run(4 * S), run(4), run(box * S)},
            [box](Step& s, int64_t, int64_t n) { line(s, 0, n * box); });
      const int64_t boxes = c.word(0) / box, image = c.word(3) * c.word(4), bin = c.word(5) * c.word(6);
      c.add(c.word(2),
            {column(image * S, c.word(1), c.word(2) * image * S), kWhole, kWhole, column(bin * S, boxes, box * S)},
            [=](Step& s, int64_t, int64_t n) {
              line(s, 0, boxes * n * bin);
              put(s, 2, n);
            });
      break;
    }
    case KernelId::rows_to_image:
      layout(c, 0, S, V, 4);
      break;
    case KernelId::select:
      strided(c, {{0, 6, 0, 4}, {1, 12, 18, S}, {2, 19, 25, S}}, std::pair(size_t{3}, S));
      break;
    case KernelId::select_words:
      strided(c, {{0, 6, 0, 4}, {1, 12, 18, 4}, {2, 19, 25, 4}}, std::pair(size_t{3}, int64_t{4}));
      break;
    case KernelId::softmax:
      lanes(c, {run(c.word(1) * c.word(2) * S), run(c.word(1) * c.word(2) * S)});
      break;
    case KernelId::top_k:
    case KernelId::top_k_words: {
      const int64_t bytes = step.kernel.id == KernelId::top_k ? S : 4;
      const int64_t lane = c.word(2), made = c.word(3) * lane;
      lanes(c, {run(c.word(1) * lane * bytes), c.spec(2) ? run(made * bytes) : kUnread, run(made * 4)},
            {c.word(1), c.word(3), c.word(3)});
      break;
    }
    default:
      break;  // they run whole, or not at all
  }
  return std::move(c.all);
}

}  // namespace pinnace::gpu
