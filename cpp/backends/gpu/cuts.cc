// Along what each kernel can be cut: images, planes of channels, rows, elements. Numbers of words are places in the
// kernel's push constants; see the kernel's file in shaders/ for what they mean.
#include "backends/gpu/cuts.h"

#include <algorithm>
#include <cstring>

namespace pinnace::gpu {
namespace {

int64_t get(const Step& s, size_t word) {
  int32_t value;
  std::memcpy(&value, s.push.data() + 4 * word, 4);
  return value;
}
void put(Step& s, size_t word, int64_t value) {
  const auto narrow = static_cast<int32_t>(value);
  std::memcpy(s.push.data() + 4 * word, &narrow, 4);
}

/// Bytes [first, first + bytes) of what binding b saw. Whole blocks of 16: a kernel may load and store four elements.
void narrow(Step& s, size_t b, int64_t first, int64_t bytes) {
  Extent& w = s.windows[b];
  const size_t from = std::min(w.bytes, static_cast<size_t>(first));
  w.offset += from;
  w.bytes = std::min(w.bytes - from, (static_cast<size_t>(bytes) + 15) / 16 * 16);
}

/// What units take of a binding: unit i begins at i * step and takes `reach` bytes.
struct Walk {
  int64_t step = 0, reach = 0;
};
constexpr Walk kWhole{0, 0};
constexpr Walk kUnread{0, 16};  ///< something must be bound
constexpr Walk run(int64_t bytes) {
  return {bytes, bytes};
}

class Cuts {
 public:
  explicit Cuts(const Step& step) : step_(step), s_(step.kernel.f16 ? 2 : 4) {}

  const Step& step() const { return step_; }
  int64_t word(size_t k) const { return get(step_, k); }
  int64_t spec(size_t k) const { return step_.kernel.spec[k]; }
  int64_t element() const { return s_; }     ///< bytes of an element in the storage type
  int64_t vector() const { return 4 * s_; }  ///< and of four
  int64_t groups(size_t d) const { return step_.groups[d]; }

  /// walks: one per binding. set: words and groups of a part.
  void add(int64_t units, std::vector<Walk> walks, std::function<void(Step&, int64_t first, int64_t count)> set) {
    if (units < 2) return;
    all.push_back({units, [walks = std::move(walks), set = std::move(set)](Step& s, int64_t first, int64_t count) {
                     for (size_t b = 0; b < walks.size(); ++b) {
                       const Walk& w = walks[b];
                       if (w.reach) narrow(s, b, first * w.step, (count - 1) * w.step + w.reach);
                     }
                     set(s, first, count);
                   }});
  }

  std::vector<Cut> all;

 private:
  const Step& step_;
  int64_t s_;
};

/// Sets a count and the groups of a line of 64 invocations each.
void line(Step& s, size_t word, int64_t count) {
  put(s, word, count);
  s.groups = line_groups(count, 64);
}
void planes_in_z(Step& s, int64_t planes) {
  s.groups[2] = static_cast<uint32_t>(planes);
}

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

/// Rows and images of the same tensor; `rows`: which binding has rows. Bytes of an element of rows and of a vector.
void layout(Cuts& c, size_t rows, int64_t row_bytes, int64_t image_bytes) {
  const int64_t count = c.word(0), channels = c.word(1), blocks = c.word(2), pixels = c.word(3);
  const auto walks = [&](int64_t elements, int64_t vectors) {
    std::vector<Walk> both(2);
    both[rows] = run(elements * row_bytes);
    both[1 - rows] = run(vectors * image_bytes);
    return both;
  };
  const int64_t planes = count / pixels;
  if (planes > blocks) {
    c.add(planes / blocks, walks(channels * pixels, blocks * pixels),
          [=](Step& s, int64_t, int64_t n) { line(s, 0, n * blocks * pixels); });
  } else if (planes > 1) {
    c.add(planes, walks(4 * pixels, pixels), [=](Step& s, int64_t first, int64_t n) {
      line(s, 0, n * pixels);
      put(s, 1, std::min(channels - 4 * first, 4 * n));
      put(s, 2, n);
    });
  } else if (channels == 1) {
    c.add(pixels, walks(1, 1), [](Step& s, int64_t, int64_t n) {
      line(s, 0, n);
      put(s, 3, n);
    });
  }
}

/// Scales go by channel or by a place in a row; with one scale anything goes.
void quantize(Cuts& c) {
  const int64_t count = c.word(0), inner = c.word(1), scales = c.word(2), form = c.spec(0);
  if (form == 0) {
    const int64_t unit = scales == 1 ? 1 : inner * scales;
    c.add(count / unit, {run(unit * c.element()), kWhole, run(unit * 4)},
          [=](Step& s, int64_t, int64_t n) { line(s, 0, n * unit); });
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
}

void dequantize(Cuts& c) {
  const int64_t count = c.word(0), inner = c.word(1), scales = c.word(2), blocks = c.word(3), pixels = c.word(4);
  const bool rows = c.spec(0) == 0;
  const int64_t unit = scales == 1 ? 1 : rows ? inner * scales : blocks * pixels;
  const int64_t made = rows ? c.element() : c.vector();
  c.add(count / unit, {run(unit * 4), kWhole, run(unit * made)},
        [=](Step& s, int64_t, int64_t n) { line(s, 0, n * unit); });
}

/// A window that begins with an element: it begins at or before it, where windows may, and the rest goes to a word.
void begin_at(Step& s, size_t b, size_t word, int64_t element, int64_t elements, int64_t bytes) {
  constexpr int64_t kLargestAlignment = 256;
  const int64_t from = element * bytes / kLargestAlignment * kLargestAlignment, rest = element - from / bytes;
  narrow(s, b, from, (rest + elements) * bytes);
  put(s, word, rest);
}

/// Runs of elements between places of images: words count, run, from_image, from, to_image, to.
void runs(Cuts& c, size_t from_binding, size_t to_binding, int64_t bytes) {
  const int64_t count = c.word(0), length = c.word(1), from_image = c.word(2), from = c.word(3);
  const int64_t to_image = c.word(4), to = c.word(5);
  if (count > length) {
    c.add(count / length, {}, [=](Step& s, int64_t first, int64_t n) {
      line(s, 0, n * length);
      begin_at(s, from_binding, 3, first * from_image + from, (n - 1) * from_image + length, bytes);
      begin_at(s, to_binding, 5, first * to_image + to, (n - 1) * to_image + length, bytes);
    });
    return;
  }
  c.add(count, {}, [=](Step& s, int64_t first, int64_t n) {
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

/// lanes, size, inner; walks for one outer index.
void lanes(Cuts& c, std::vector<Walk> walks) {
  const int64_t inner = c.word(2);
  c.add(c.word(0) / inner, std::move(walks), [inner](Step& s, int64_t, int64_t n) {
    put(s, 0, n * inner);
    s.groups = row_groups(n * inner);
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

/// Rows over up to three strided dimensions, of which the outermost is cut.
void reduce(Cuts& c, int64_t bytes) {
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
  if (c.step().bindings.size() > 2 && c.step().bindings[2] == c.step().bindings[1]) walks.push_back(kUnread);
  c.add(k[d], std::move(walks), [=](Step& s, int64_t, int64_t n) {
    put(s, 0, n * inner);
    if (d > 0) put(s, 1 + d, n);
    s.groups = row_groups(n * inner);
  });
}

// ---- images

/// Planes of an image that are made one by one: H, W, OH, OW; the planes are groups along z. `blocks`: the word with
/// the number of planes of an image, where the last one differs.
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

/// One filter per channel: H, W, OH, OW, C4, then in floats the number of planes; constants of a plane in bytes.
void depthwise(Cuts& c, int64_t bytes, int64_t weights, int64_t numbers, int64_t count, bool floats) {
  const int64_t in = c.word(0) * c.word(1) * bytes, out = c.word(2) * c.word(3) * bytes, blocks = c.word(4);
  const auto set = [floats](Step& s, int64_t n) {
    if (floats) put(s, 5, n);
    planes_in_z(s, floats ? (n + 1) / 2 : n);
  };
  if (count > blocks) {
    c.add(count / blocks, {run(blocks * in), kWhole, kWhole, run(blocks * out)},
          [=](Step& s, int64_t, int64_t n) { set(s, n * blocks); });
    return;
  }
  c.add(count, {run(in), run(weights), run(numbers), run(out)}, [=](Step& s, int64_t, int64_t n) {
    put(s, 4, n);
    set(s, n);
  });
}

/// Any window: H, W, OH, OW, C4, M4. Groups of channels in blocks, `whole_blocks` where they are; an invocation makes
/// `blocks` of outputs. `filter`: bytes of a block's weights; numbers: of its bias.
struct ImageConvolution {
  int64_t bytes, filter, numbers, blocks;
  int64_t group_in, group_out;  ///< blocks of a group
  bool one_group, whole_blocks;
  bool residual;
  size_t result;  ///< which binding is y
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
  if (images > 1) {
    c.add(images, walks(run(C4 * in), kWhole, kWhole, run(M4 * out)),
          [=](Step& s, int64_t, int64_t n) { planes_in_z(s, n * step); });
    return;
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
}

void conv_image(Cuts& c, int64_t blocks) {
  const int64_t M4 = c.word(5), group_c = c.word(6), group_m = c.word(7), taps = c.spec(1) * c.spec(2);
  convolution(c, {c.vector(), taps * c.word(8) * 4 * c.vector(), c.vector(), blocks, group_c / 4, group_m / 4,
                  group_m > 4 * (M4 - 1), group_c % 4 == 0 && group_m % 4 == 0 && group_m > 0, c.spec(5) != 0, 4});
}

void bytes_conv(Cuts& c) {
  const int64_t M4 = c.word(5), taps = c.spec(0) * c.spec(1);
  convolution(c, {4, taps * c.word(6) * 16, 48, c.spec(4), c.word(6), c.word(7), c.word(7) >= M4, true, false, 3});
}

void conv_pointwise(Cuts& c) {
  const int64_t pixels = c.word(0), C4 = c.word(1), M4 = c.word(2), own = c.word(3), V = c.vector();
  const bool residual = c.spec(1) != 0;
  if (c.groups(2) > 1) {
    const Walk y = run(M4 * pixels * V), w = own ? Walk{own * V, M4 * C4 * 4 * V} : kWhole;
    c.add(c.groups(2), {run(C4 * pixels * V), w, kWhole, residual ? y : kUnread, y},
          [](Step& s, int64_t, int64_t n) { planes_in_z(s, n); });
    return;
  }
  const Walk y = run(pixels * V);
  c.add(M4, {kWhole, run(C4 * 4 * V), run(V), residual ? y : kUnread, y}, [](Step& s, int64_t, int64_t n) {
    put(s, 2, n);
    s.groups[1] = groups_of(n, 8);
  });
}

/// One output per invocation: images, and channels of outputs where all of them see all of the input.
void conv_rows(Cuts& c, int64_t bytes, int64_t taps, bool channels) {
  const int64_t count = c.word(0), M = c.word(1), group_c = c.word(2), C = c.word(4);
  const int64_t in = c.word(5) * c.word(6) * c.word(7) * bytes, places = c.word(8) * c.word(9) * c.word(10);
  if (count > M * places) {
    c.add(count / (M * places), {run(C * in), kWhole, kWhole, run(M * places * bytes)},
          [=](Step& s, int64_t, int64_t n) { line(s, 0, n * M * places); });
  } else if (channels && group_c == C) {
    c.add(M, {kWhole, run(C * taps * bytes), run(bytes), run(places * bytes)}, [=](Step& s, int64_t, int64_t n) {
      line(s, 0, n * places);
      put(s, 1, n);
    });
  }
}

// ---- products

/// M, N, K, strides and offsets of matrices as gemm.comp has them. b by columns: `packed` of four, else single ones;
/// numbers: bytes that four columns have besides, 0 for none. y is the last binding.
struct ProductForm {
  int64_t bytes;
  bool packed, bias;
  int64_t packed_bytes, numbers;
  bool split;
};
void product(Cuts& c, const ProductForm& v) {
  const int64_t M = c.word(0), N = c.word(1), K = c.word(2), inner = c.word(9), first_batch = c.word(14);
  const int64_t a_row = c.word(3), a_col = c.word(4), b_row = c.word(5), b_col = c.word(6);
  const int64_t a_outer = c.word(10), a_inner = c.word(11), b_outer = c.word(12), b_inner = c.word(13);
  const int64_t batch = c.groups(2);
  const auto reach = [&](int64_t rows, int64_t row, int64_t col) {
    return std::max<int64_t>(0, rows - 1) * row + std::max<int64_t>(0, K - 1) * col + 1;
  };
  const auto walks = [&](Walk a, Walk b, Walk bias, Walk numbers, Walk y) {
    std::vector<Walk> all = {a, b, v.bias ? bias : kUnread};
    if (v.numbers) all.push_back(numbers);
    all.push_back(y);
    return all;
  };
  if (batch > 1 || first_batch > 0) {
    // Matrices that lie evenly, or as many of them as share an outer index.
    const bool one = first_batch + batch <= inner, outers = inner == 1;
    const bool even = one || outers || (a_outer == a_inner * inner && b_outer == b_inner * inner);
    const int64_t each = even ? 1 : inner;
    const int64_t a_step = even && !outers ? a_inner : a_outer, b_step = even && !outers ? b_inner : b_outer;
    if (first_batch % each != 0 || batch % each != 0) return;
    const int64_t a_all = reach(M, a_row, a_col) + (each - 1) * a_inner;
    const int64_t b_all = v.packed ? 0 : reach(N, b_col, b_row) + (each - 1) * b_inner;
    const int64_t skipped = first_batch / each, units = batch / each;
    const int64_t y_step = each * M * N * v.bytes;
    std::vector<Walk> all =
        walks({a_step * v.bytes, a_all * v.bytes}, v.packed ? kWhole : Walk{b_step * v.bytes, b_all * v.bytes}, kWhole,
              kWhole, {y_step, y_step});
    Cut cut{units, {}};
    cut.take = [=](Step& s, int64_t first, int64_t n) {
      for (size_t b = 0; b < all.size(); ++b) {
        const Walk& w = all[b];
        if (w.reach) narrow(s, b, w.step ? (skipped + first) * w.step : 0, (n - 1) * w.step + w.reach);
      }
      put(s, 14, 0);
      planes_in_z(s, n * each);
    };
    if (units > 1) c.all.push_back(std::move(cut));
    return;
  }
  const size_t across = v.split ? 1 : 0, down = v.split ? 0 : 1;
  c.add(M,
        walks({a_row * v.bytes, reach(1, a_row, a_col) * v.bytes}, kWhole,
              c.word(7) ? Walk{c.word(7) * v.bytes, ((N - 1) * c.word(8) + 1) * v.bytes} : kWhole, kWhole,
              run(N * v.bytes)),
        [=](Step& s, int64_t, int64_t n) {
          put(s, 0, n);
          s.groups[down] = groups_of(n, v.split ? 4 : 16);
        });
  if (M > 1) return;  // columns of several rows are no window of y
  const Walk b = v.packed ? run(K * v.packed_bytes) : Walk{4 * b_col * v.bytes, reach(4, b_col, b_row) * v.bytes};
  c.add((N + 3) / 4,
        walks(kWhole, b, c.word(8) ? run(4 * c.word(8) * v.bytes) : kWhole, run(v.numbers), run(4 * v.bytes)),
        [=](Step& s, int64_t first, int64_t n) {
          const int64_t columns = std::min(4 * n, N - 4 * first);
          put(s, 1, columns);
          s.groups[across] = groups_of(columns, v.split ? 32 : 64);
        });
}

/// Batches, heads that share keys, then queries by sixteen.
void attention(Cuts& c) {
  const int64_t Sq = c.word(0), Sk = c.word(1), E = c.word(2), F = c.word(3), shared_by = c.word(5), chunks = c.word(6);
  const int64_t heads = c.groups(1) / chunks, batches = c.groups(2), bytes = c.element();
  struct Operand {
    size_t strides;
    int64_t heads, tokens, width;
  };
  const Operand q{9, heads, Sq, E}, k{12, heads / shared_by, Sk, E}, v{15, heads / shared_by, Sk, F},
      y{18, heads, Sq, F};
  const auto reach = [&](const Operand& o, int64_t of_heads, int64_t tokens) {
    return (std::max<int64_t>(0, of_heads - 1) * c.word(o.strides + 1) +
            std::max<int64_t>(0, tokens - 1) * c.word(o.strides + 2) + o.width) *
           bytes;
  };
  const int64_t mask_bytes = c.spec(0) == 2 ? 4 : bytes;
  const auto mask_reach = [&](int64_t of_heads, int64_t queries) {
    return ((of_heads - 1) * c.word(22) + (queries - 1) * c.word(23) + c.word(24)) * mask_bytes;
  };
  const auto walks = [&](Walk of_q, Walk of_k, Walk of_v, Walk mask, Walk of_y) {
    const int64_t kind = c.spec(0);
    return std::vector<Walk>{of_q, of_k, of_v, kind == 1 ? mask : kUnread, kind == 2 ? mask : kUnread, of_y};
  };
  const auto whole = [&](const Operand& o, size_t by, int64_t each, int64_t of_heads) {
    return Walk{c.word(o.strides + by) * each * bytes, reach(o, of_heads, o.tokens)};
  };
  if (batches > 1) {
    c.add(batches,
          walks(whole(q, 0, 1, q.heads), whole(k, 0, 1, k.heads), whole(v, 0, 1, v.heads),
                {c.word(21) * mask_bytes, mask_reach(heads, Sq)}, whole(y, 0, 1, y.heads)),
          [](Step& s, int64_t, int64_t n) { planes_in_z(s, n); });
    return;
  }
  c.add(heads / shared_by,
        walks(whole(q, 1, shared_by, shared_by), whole(k, 1, 1, 1), whole(v, 1, 1, 1),
              {c.word(22) * shared_by * mask_bytes, mask_reach(shared_by, Sq)}, whole(y, 1, shared_by, shared_by)),
        [=](Step& s, int64_t, int64_t n) {
          put(s, 4, n * shared_by);
          s.groups[1] = static_cast<uint32_t>(n * shared_by * chunks);
        });
  const auto some = [&](const Operand& o) { return Walk{c.word(o.strides + 2) * 16 * bytes, reach(o, o.heads, 16)}; };
  c.add((Sq + 15) / 16, walks(some(q), kWhole, kWhole, {c.word(23) * 16 * mask_bytes, mask_reach(heads, 16)}, some(y)),
        [=](Step& s, int64_t first, int64_t n) {
          put(s, 0, std::min(16 * n, Sq - 16 * first));
          put(s, 7, get(s, 7) - 16 * first);  // how far a query sees, of queries that count anew
          put(s, 8, get(s, 8) + 16 * first);
          s.groups[0] = static_cast<uint32_t>(n);
        });
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
    case KernelId::bytes_conv:
      bytes_conv(c);
      break;
    case KernelId::bytes_conv_rows:
      conv_rows(c, 4, 0, false);
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
      planes(c, 4, 2, {});
      break;
    case KernelId::bytes_reduce:
      reduce(c, 4);
      break;
    case KernelId::bytes_resize:
      planes(c, 4, 3, {});
      break;
    case KernelId::bytes_softmax: {
      const Walk lane = run(c.word(1) * c.word(2) * 4);
      lanes(c, {lane, kWhole, lane});
      break;
    }
    case KernelId::bytes_table:
      runs(c, 0, 2, 4);
      break;
    case KernelId::bytes_to_image:
      layout(c, 0, 4, 4);
      break;
    case KernelId::bytes_to_rows:
      layout(c, 1, 4, 4);
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
      conv_rows(c, S, c.spec(1) * c.spec(2) * c.spec(3), step.kernel.id == KernelId::conv_rows);
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
    case KernelId::enter:
      items(c, {run(16), run(V)});
      break;
    case KernelId::enter_image:
      layout(c, 0, 4, V);
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
      }
      break;
    }
    case KernelId::gemm:
      product(c, {S, false, c.spec(1) == 1, 0, 0, false});
      break;
    case KernelId::gemm_packed:
    case KernelId::gemm_split:
      product(c, {S, true, c.spec(1) == 1, V, 0, step.kernel.id == KernelId::gemm_split});
      break;
    case KernelId::image_to_rows:
      layout(c, 1, S, V);
      break;
    case KernelId::leave:
      items(c, {run(V), run(16)});
      break;
    case KernelId::leave_image:
      layout(c, 1, 4, V);
      break;
    case KernelId::lrn: {
      const int64_t image = c.word(1) * c.word(2);
      c.add(c.word(0) / image, {run(image * S), run(image * S)},
            [image](Step& s, int64_t, int64_t n) { line(s, 0, n * image); });
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
      planes(c, V, 1, size_t{13});
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
      break;
    }
    case KernelId::rows_to_image:
      layout(c, 0, S, V);
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
      lanes(c, {run(c.word(1) * lane * bytes), c.spec(2) ? run(made * bytes) : kUnread, run(made * 4)});
      break;
    }
    default:
      break;  // recurrent, Winograd's transforms: their tensors are kept small, or they run whole
  }
  return std::move(c.all);
}

}  // namespace pinnace::gpu
