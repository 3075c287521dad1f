// Blocks of images, places for sampling, and pools that have no operator of ours.
#include <algorithm>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kMostIndices = 1 << 21;  // of one table, 16 MiB

/// x with a batch of one in front where it has none; `wanted` is the rank with a batch.
ValueId with_batch(Call& c, ValueId x, int wanted, bool& single) {
  single = c.rank(x) == wanted - 1;
  if (!single && c.rank(x) != wanted) c.fail("a tensor of this rank", str_cat(c.rank(x)));
  return single ? c.unsqueeze(x, {0}) : x;
}

// unfold of images: [N, C, H, W] -> [N, C * kh * kw, places]
void map_im2col(Call& c) {
  bool single;
  ValueId x = with_batch(c, c.tensor("self"), 4, single);
  const Ints kernel = c.ints("kernel_size", 2, 1), dilation = c.ints("dilation", 2, 1),
             padding = c.ints("padding", 2, 0), stride = c.ints("stride", 2, 1);
  const Dim channels = c.dim(x, 1);
  if (!c.ok()) return;
  if (!channels.known()) return c.fail("unfold of a symbolic number of channels");
  // Windows are indices, one per element of a window and place: as many as the tensor is long, at most.
  constexpr int64_t kLongest = 1 << 20;
  for (size_t i = 0; i < 2; ++i) {
    const auto within = [&](int64_t n, int64_t least) { return n >= least && n <= kLongest; };
    if (!within(kernel[i], 1) || !within(dilation[i], 1) || !within(stride[i], 1) || !within(padding[i], 0))
      return c.fail("unfold with windows of this size", str_cat(kernel[i], " in steps of ", dilation[i]));
  }
  const Scalar batch = c.size_of(x, 0);
  if (padding[0] || padding[1]) {
    x = c.add("pad", {x, c.constant_ints({0, 0, padding[0], padding[1], 0, 0, padding[0], padding[1]}),
                      c.constant_int(0, c.dtype_of(x))});
  }
  Scalar places = Scalar::of_int(1);
  for (int64_t axis = 2; axis < 4; ++axis) {  // a window's elements, then its places, instead of the axis
    const auto i = static_cast<size_t>(axis - 2);
    const int64_t at = axis + static_cast<int64_t>(i);
    const Dim size = c.dim(x, at);
    const int64_t reach = dilation[i] * (kernel[i] - 1) + 1;
    if (!size.known() && dilation[i] == 1) {
      x = c.swap(windows_of_dynamic_axis(c, x, at, kernel[i], stride[i]), at, at + 1);
      if (!c.ok()) return;
      places = c.multiply_sizes(places, c.size_of(x, at + 1));
      continue;
    }
    if (!size.known() || size.size < reach || size.size > kLongest)
      return c.fail("unfold of a symbolic dimension with dilation, or beyond it", to_string(c.type(x)));
    const int64_t count = (size.size - reach) / stride[i] + 1;
    places = c.multiply_sizes(places, Scalar::of_int(count));
    if (count > kMostIndices / kernel[i]) return c.fail("unfold into this many windows", str_cat(count));
    Ints index;
    for (int64_t k = 0; k < kernel[i]; ++k) {
      for (int64_t p = 0; p < count; ++p) index.push_back(p * stride[i] + k * dilation[i]);
    }
    x = c.add("gather", {x, c.reshape(c.constant_ints(index), Ints{kernel[i], count})}, {{"axis", at}});
  }
  x = c.transpose(x, {0, 1, 2, 4, 3, 5});
  const Scalar rows = Scalar::of_int(channels.size * kernel[0] * kernel[1]);
  x = c.reshape(x, std::vector<Scalar>{batch, rows, places});
  c.output(single ? c.squeeze(x, {0}) : x);
}

void map_col2im(Call& c) {
  bool single;
  const ValueId x = with_batch(c, c.tensor("self"), 3, single);
  const Ints kernel = c.ints("kernel_size", 2, 1), dilation = c.ints("dilation", 2, 1),
             padding = c.ints("padding", 2, 0), stride = c.ints("stride", 2, 1);
  const std::vector<Scalar> size = c.sizes("output_size");
  if (size.size() != 2) return c.fail("output_size", str_cat(size.size(), " numbers"));
  const ValueId y = c.add(
      "col2im", {x, c.size_values(size), c.constant_ints(kernel)},
      {{"dilations", dilation}, {"pads", Ints{padding[0], padding[1], padding[0], padding[1]}}, {"strides", stride}});
  c.output(single ? c.squeeze(y, {0}) : y);
}

// Elements go back to their places in each plane; the last one of several stays.
void map_max_unpool(Call& c) {
  const int spatial = c.parameter()[0] - '0';
  bool single;
  const ValueId x = with_batch(c, c.tensor("self"), spatial + 2, single);
  const ValueId indices = with_batch(c, c.tensor("indices"), spatial + 2, single);
  const Ints size = c.ints("output_size", static_cast<size_t>(spatial), 1);
  c.ignore({"stride", "padding"});
  if (!c.ok()) return;
  int64_t plane = 1;
  for (int64_t s : size) {
    if (s < 1 || plane > (int64_t{1} << 31) / s) return c.fail("max_unpool to this size", list_text<int64_t>(size));
    plane *= s;
  }
  const Scalar planes = c.multiply_sizes(c.size_of(x, 0), c.size_of(x, 1));
  const std::vector<Scalar> flat = {planes, Scalar::of_int(-1)};
  std::vector<Scalar> sizes = {c.size_of(x, 0), c.size_of(x, 1)};
  for (int64_t s : size) sizes.push_back(Scalar::of_int(s));
  if (c.type(x).elements() == 0) return c.fail("max_unpool of nothing");
  const ValueId zeros = c.full({planes, Scalar::of_int(plane)}, c.constant(0, c.dtype_of(x)));
  const ValueId y = c.add("scatter_elements", {zeros, c.reshape(indices, flat), c.reshape(x, flat)}, {{"axis", 1}});
  const ValueId shaped = c.reshape(y, sizes);
  c.output(single ? c.squeeze(shaped, {0}) : shaped);
}

void map_affine_grid(Call& c) {
  const ValueId theta = c.tensor("theta");
  const std::vector<Scalar> size = c.sizes("size");
  c.output(c.add("affine_grid", {theta, c.size_values(size)}, {{"align_corners", c.boolean("align_corners", false)}}));
}

// The largest element of each cell and its place in the plane. Of known sizes one axis after another from the last,
// which other processors take too: cells of unequal size repeat their last element, which changes no maximum.
void map_adaptive_max_pool(Call& c) {
  const int spatial = c.parameter()[0] - '0';
  bool single;
  ValueId x = with_batch(c, c.tensor("self"), spatial + 2, single);
  const Ints size = c.ints("output_size", static_cast<size_t>(spatial), 1);
  if (!c.ok()) return;
  Ints from;
  int64_t plane = 1;
  bool known = true;
  for (int i = 0; i < spatial; ++i) {
    const Dim d = c.dim(x, i + 2);
    known = known && d.known();
    if ((d.known() && d.size < 1) || size[static_cast<size_t>(i)] < 0 || d.size > (1 << 20))
      return c.fail("adaptive max pool of a size of 0, or this large", to_string(c.type(x)));
    from.push_back(d.size);
    plane *= d.size;
  }
  if (!known) {
    const bool places = c.reads(1), whole = std::all_of(size.begin(), size.end(), [](int64_t n) { return n == 1; });
    const std::vector<ValueId> y = whole && !places
                                       ? c.add_many("global_max_pool", {x}, 1)
                                       : c.add_many("adaptive_max_pool", {x}, places ? 2 : 1, {{"output_size", size}});
    if (!c.ok()) return;
    const auto plain = [&](ValueId id) { return single ? c.squeeze(id, {0}) : id; };
    return c.outputs({plain(y[0]), places ? plain(y[1]) : kNoValue});
  }
  for (int i = 0; i < spatial; ++i) {  // a window has at least one element, and at most two more than in / out
    const int64_t in = from[static_cast<size_t>(i)], out = size[static_cast<size_t>(i)];
    if (out > kMostIndices || in + 2 * out > kMostIndices)
      return c.fail("adaptive max pool of or to this many elements", str_cat(in, " to ", out));
  }
  ValueId place = c.add("range", {c.constant_int(0), c.constant_int(plane), c.constant_int(1)});
  std::vector<Scalar> shape = c.sizes_of(x);
  place = c.reshape(place, from);
  place = c.expand(place, shape);
  for (int i = spatial; i-- > 0;) {
    const int64_t in = from[static_cast<size_t>(i)], out = size[static_cast<size_t>(i)];
    int64_t widest = 1;
    for (int64_t o = 0; o < out; ++o) widest = std::max(widest, ((o + 1) * in + out - 1) / out - o * in / out);
    Ints index;
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t k = 0; k < widest; ++k)
        index.push_back(std::min(o * in / out + k, ((o + 1) * in + out - 1) / out - 1));
    }
    const ValueId table =
        c.reshape(c.constant_ints(index), std::vector<Scalar>{Scalar::of_int(out), Scalar::of_int(widest)});
    const ValueId cells = c.add("gather", {x, table}, {{"axis", i + 2}}),
                  places = c.add("gather", {place, table}, {{"axis", i + 2}});
    const ValueId best = c.add("arg_max", {cells}, {{"axis", i + 3}});
    x = c.squeeze(c.add("gather_elements", {cells, best}, {{"axis", i + 3}}), {i + 3});
    place = c.squeeze(c.add("gather_elements", {places, best}, {{"axis", i + 3}}), {i + 3});
  }
  if (single) {
    x = c.squeeze(x, {0});
    place = c.squeeze(place, {0});
  }
  c.outputs({x, place});
}

// One channel's offsets become pixels, or the reverse, for tensors of any rank: the leading dimensions are one.
void map_pixel_shuffle(Call& c) {
  const ValueId x = c.tensor("self");
  const bool down = c.parameter() == "down";
  const int64_t r = c.integer(down ? "downscale_factor" : "upscale_factor");
  const int rank = c.rank(x);
  const Dim channels = c.dim(x, -3), height = c.dim(x, -2), width = c.dim(x, -1);
  if (!down && rank == 4 && c.type(x).elements() != 0)
    return c.output(c.add("depth_to_space", {x}, {{"blocksize", r}, {"mode", "CRD"}}));
  if (rank < 3 || r < 1 || r > (1 << 20) || !channels.known() || !height.known() || !width.known())
    return c.fail("pixel shuffle of a symbolic size", to_string(c.type(x)));
  const auto n = [](int64_t i) { return Scalar::of_int(i); };
  std::vector<Scalar> parts = c.sizes_of(x), sizes = parts;
  parts.resize(static_cast<size_t>(rank) - 3);
  sizes.resize(static_cast<size_t>(rank) - 3);
  Ints order;
  for (int64_t i = 0; i < rank - 3; ++i) order.push_back(i);
  const int64_t b = rank - 3;
  if (down) {
    parts.insert(parts.end(), {n(channels.size), n(height.size / r), n(r), n(width.size / r), n(r)});
    order.insert(order.end(), {b, b + 2, b + 4, b + 1, b + 3});
    sizes.insert(sizes.end(), {n(channels.size * r * r), n(height.size / r), n(width.size / r)});
  } else {
    parts.insert(parts.end(), {n(channels.size / (r * r)), n(r), n(r), n(height.size), n(width.size)});
    order.insert(order.end(), {b, b + 3, b + 1, b + 4, b + 2});
    sizes.insert(sizes.end(), {n(channels.size / (r * r)), n(height.size * r), n(width.size * r)});
  }
  c.output(c.reshape(c.transpose(c.reshape(x, parts), order), sizes));
}

constexpr Mapping kMappings[] = {
    {"aten.adaptive_max_pool1d", map_adaptive_max_pool, "1"},
    {"aten.adaptive_max_pool2d", map_adaptive_max_pool, "2"},
    {"aten.adaptive_max_pool3d", map_adaptive_max_pool, "3"},
    {"aten.affine_grid_generator", map_affine_grid, ""},
    {"aten.col2im", map_col2im, ""},
    {"aten.im2col", map_im2col, ""},
    {"aten.max_unpool2d", map_max_unpool, "2"},
    {"aten.max_unpool3d", map_max_unpool, "3"},
    {"aten.pixel_shuffle", map_pixel_shuffle, "up"},
    {"aten.pixel_unshuffle", map_pixel_shuffle, "down"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> image_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
