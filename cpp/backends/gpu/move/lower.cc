// What only moves elements: views, transposes, slices, concatenation, repetition, gathering.
#include "backends/gpu/move/params.h"
#include "backends/gpu/move/region.h"
#include "ops/element.h"

namespace pinnace::gpu {
namespace {

Status view(NodeLowering& n) {
  n.alias(0, 0);
  return {};
}

/// Copies a range of channels between NC4HW4 buffers where it is whole blocks on both sides.
void move_blocks(NodeLowering& n, TensorId x, TensorId y, const ImageShape& from, int64_t from_block,
                 const ImageShape& to, int64_t to_block, int64_t blocks) {
  const int64_t run = blocks * from.pixels, count = run * from.N;
  if (count == 0) return;
  n.step(KernelId::move_blocks,
         MoveBlocksParams{.count = count,
                          .run = run,
                          .from_image = from.blocks() * from.pixels,
                          .from = from_block * from.pixels,
                          .to_image = to.blocks() * to.pixels,
                          .to = to_block * to.pixels},
         {x, y}, line_groups(count, 64), static_cast<double>(count * 4));
}

/// All of output 0 from input 0. dims: the result's dimensions, or parts that these are divided into; from: input 0's
/// strides along them.
Status move_all(NodeLowering& n, const Shape& dims, const std::vector<int64_t>& from) {
  const auto merged = merge_dims(dims, from, row_major_strides(dims));
  if (!merged) return n.refuse(Rule::kRank, str_cat(to_string(n.in(0)), " to ", to_string(n.out())));
  Region r;
  r.size = merged->size;
  r.from_stride = merged->a;
  r.to_stride = merged->b;
  const TensorId x = n.dense(0), y = n.make_dense();
  move_step(n, n.in(0).dtype, x, y, r);
  return {};
}

}  // namespace

Status check_region_rank(NodeLowering& n, int i) {
  return n.in(i).rank() > 6 ? n.refuse(Rule::kRank, to_string(n.in(i))) : Status();
}

void fill_step(NodeLowering& n, TensorId y, double real, int64_t whole) {
  const int64_t count = n.out().elements();
  const auto work = static_cast<double>(count);
  if (is_device_float(n.out().dtype)) {
    n.step(KernelId::fill, FillParams{.count = count, .value = real}, {y}, line_groups(count, 64), work);
  } else {
    n.step(KernelId::fill_int32, FillInt32Params{.count = count, .value = whole}, {y}, line_groups(count, 64), work);
  }
}

void move_step(NodeLowering& n, DType type, TensorId x, TensorId y, const Region& r) {
  if (r.count() == 0) return;
  const MoveParams params{.count = r.count(),
                          .sizes = {r.size[1], r.size[2], r.size[3], r.size[4], r.size[5]},
                          .from_strides = push_strides(r.from_stride),
                          .from = r.from,
                          .to_strides = push_strides(r.to_stride),
                          .to = r.to};
  n.step(is_device_float(type) ? KernelId::move : KernelId::move_int32, params, {x, y}, line_groups(r.count(), 64),
         static_cast<double>(r.count()));
}

Region whole_region(const Shape& shape) {
  Region r;
  r.size = six_sizes(shape);
  r.to_stride = dense_strides(shape);
  return r;
}

Status lower_reshape(NodeLowering& n) {
  return view(n);
}
Status lower_flatten(NodeLowering& n) {
  return view(n);
}
Status lower_squeeze(NodeLowering& n) {
  return view(n);
}
Status lower_unsqueeze(NodeLowering& n) {
  return view(n);
}
Status lower_identity(NodeLowering& n) {
  return view(n);
}

Status lower_transpose(NodeLowering& n) {
  const Shape& in = n.in(0).shape;
  std::vector<int64_t> perm(n.view().attr_ints("perm").begin(), n.view().attr_ints("perm").end());
  if (perm.empty()) {
    for (size_t i = in.size(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  }
  const std::vector<int64_t> strides = row_major_strides(in);
  std::vector<int64_t> from;
  for (int64_t axis : perm) from.push_back(strides[static_cast<size_t>(axis)]);
  return move_all(n, n.out().shape, from);
}

Status lower_concat(NodeLowering& n) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.out().rank()));
  bool as_nc4hw4 = axis == 1 && n.out().rank() >= 3 && is_device_float(n.out().dtype), held = false;
  for (int i = 0; i < n.view().input_count(); ++i) {
    PINNACE_TRY(check_region_rank(n, i));
    const bool last = i + 1 == n.view().input_count();
    as_nc4hw4 = as_nc4hw4 && (last || n.in(i).shape[1].size % 4 == 0);
    held |= n.held_as_nc4hw4(i);
  }
  if (as_nc4hw4 && held) {
    std::vector<TensorId> from;
    for (int i = 0; i < n.view().input_count(); ++i) from.push_back(n.nc4hw4(i));
    const ImageShape to = image_shape(n.out());
    const TensorId y = n.make_nc4hw4();
    int64_t block = 0;
    for (int i = 0; i < n.view().input_count(); ++i) {
      const ImageShape s = image_shape(n.in(i));
      move_blocks(n, from[static_cast<size_t>(i)], y, s, 0, to, block, s.blocks());
      block += s.blocks();
    }
    return {};
  }
  std::vector<TensorId> from;
  for (int i = 0; i < n.view().input_count(); ++i) from.push_back(n.dense(i));
  const TensorId y = n.make_dense();
  const Six strides = dense_strides(n.out().shape);
  const size_t at = 6 - n.out().shape.size() + static_cast<size_t>(axis);
  int64_t offset = 0;
  for (int i = 0; i < n.view().input_count(); ++i) {
    Region r = whole_region(n.in(i).shape);
    r.from_stride = dense_strides(n.in(i).shape);
    r.to_stride = strides;
    r.to = offset * strides[at];
    move_step(n, n.out().dtype, from[static_cast<size_t>(i)], y, r);
    offset += n.in(i).shape[static_cast<size_t>(axis)].size;
  }
  return {};
}

Status lower_split(NodeLowering& n) {
  PINNACE_TRY(check_region_rank(n, 0));
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  bool as_nc4hw4 = axis == 1 && n.in(0).rank() >= 3 && n.held_as_nc4hw4(0) && is_device_float(n.in(0).dtype);
  for (int o = 0; o + 1 < n.view().output_count(); ++o) {
    as_nc4hw4 = as_nc4hw4 && n.out(o).shape[1].size % 4 == 0;
  }
  if (as_nc4hw4) {
    const ImageShape from = image_shape(n.in(0));
    const TensorId x = n.nc4hw4(0);
    int64_t block = 0;
    for (int o = 0; o < n.view().output_count(); ++o) {
      const ImageShape s = image_shape(n.out(o));
      const TensorId y = n.make_nc4hw4(o);
      if (s.vectors() > 0) move_blocks(n, x, y, {s.N, from.C, s.pixels}, block, s, 0, s.blocks());
      block += s.blocks();
    }
    return {};
  }
  const TensorId x = n.dense(0);
  const Six strides = dense_strides(n.in(0).shape);
  const size_t at = 6 - n.in(0).shape.size() + static_cast<size_t>(axis);
  int64_t offset = 0;
  for (int o = 0; o < n.view().output_count(); ++o) {
    Region r = whole_region(n.out(o).shape);
    r.from_stride = strides;
    r.from = offset * strides[at];
    const TensorId y = n.make_dense(o);
    move_step(n, n.in(0).dtype, x, y, r);
    offset += n.out(o).shape[static_cast<size_t>(axis)].size;
  }
  return {};
}

Status lower_slice(NodeLowering& n) {
  PINNACE_TRY(check_region_rank(n, 0));
  const int rank = n.in(0).rank();
  const auto starts = n.view().input_ints(1);
  const auto axes_given = n.has(3) ? n.view().input_ints(3) : std::nullopt;
  const auto steps = n.has(4) ? n.view().input_ints(4) : std::nullopt;
  if (!starts) return n.refuse(Rule::kConstant, "starts");
  if (n.has(3) && !axes_given) return n.refuse(Rule::kConstant, "axes");
  if (n.has(4) && !steps) return n.refuse(Rule::kConstant, "steps");
  Region r = whole_region(n.out().shape);
  r.from_stride = dense_strides(n.in(0).shape);
  for (size_t i = 0; i < starts->size(); ++i) {
    PINNACE_ASSIGN(const int axis, n.view().axis(axes_given ? (*axes_given)[i] : static_cast<int64_t>(i), rank));
    const int64_t size = n.in(0).shape[static_cast<size_t>(axis)].size, step = steps ? (*steps)[i] : 1;
    int64_t start = (*starts)[i];
    if (start < 0) start = start < -size ? -1 : start + size;
    start = step > 0 ? std::clamp<int64_t>(start, 0, size) : std::clamp<int64_t>(start, 0, size - 1);
    const auto at = static_cast<size_t>(int64_t{6} - rank + axis);
    r.from += start * r.from_stride[at];
    if (r.size[at] > 1) r.from_stride[at] *= step;
  }
  const TensorId x = n.dense(0), y = n.make_dense();
  move_step(n, n.in(0).dtype, x, y, r);
  return {};
}

Status lower_expand(NodeLowering& n) {
  return move_all(n, n.out().shape, strides_in(n.in(0).shape, n.out().shape));
}

Status lower_constant_of_shape(NodeLowering& n) {
  const int64_t whole = n.view().attr_int("int_value");
  if (whole != static_cast<int32_t>(whole)) return n.refuse(Rule::kWide, str_cat("int_value ", whole));
  fill_step(n, n.make_dense(), n.view().attr_float("value"), whole);
  return {};
}

/// Every axis as [repeat, size], of which x has strides for the size only.
Status lower_tile(NodeLowering& n) {
  const Shape &in = n.in(0).shape, &out = n.out().shape;
  const std::vector<int64_t> strides = row_major_strides(in);
  Shape dims;
  std::vector<int64_t> from;
  for (size_t d = 0; d < in.size(); ++d) {
    const int64_t size = in[d].size;
    if (size == 0) return n.refuse(Rule::kAttribute, to_string(n.in(0)));
    dims.insert(dims.end(), {Dim(out[d].size / size), Dim(size)});
    from.insert(from.end(), {0, strides[d]});
  }
  return move_all(n, dims, from);
}

/// [N, C, H, W] to [N, C / b / b, H * b, W * b], as one transpose of six dimensions.
Status lower_depth_to_space(NodeLowering& n) {
  PINNACE_TRY(check_region_rank(n, 0));
  const int64_t b = n.view().attr_int("blocksize");
  const Shape& in = n.in(0).shape;
  const int64_t C = n.out().shape[1].size, H = in[2].size, W = in[3].size, plane = H * W;
  const bool dcr = n.view().attr_string("mode") == "DCR";
  Region r;
  r.size = {in[0].size, C, H, b, W, b};
  const int64_t row = dcr ? b * C * plane : b * plane, column = dcr ? C * plane : plane;
  r.from_stride = {in[1].size * plane, dcr ? plane : b * b * plane, W, row, 1, column};
  r.to_stride = {C * plane * b * b, plane * b * b, b * W * b, W * b, b, 1};
  const TensorId x = n.dense(0), y = n.make_dense();
  move_step(n, n.in(0).dtype, x, y, r);
  return {};
}

/// The inverse, likewise.
Status lower_space_to_depth(NodeLowering& n) {
  const int64_t b = n.view().attr_int("blocksize");
  const Shape &in = n.in(0).shape, &out = n.out().shape;
  const int64_t C = in[1].size, H = out[2].size, W = out[3].size, plane = H * W;
  const bool dcr = n.view().attr_string("mode") == "DCR";
  Region r;
  r.size = {in[0].size, C, H, b, W, b};
  r.from_stride = {C * plane * b * b, plane * b * b, b * W * b, W * b, b, 1};
  const int64_t row = dcr ? b * C * plane : b * plane, column = dcr ? C * plane : plane;
  r.to_stride = {out[1].size * plane, dcr ? plane : b * b * plane, W, row, 1, column};
  const TensorId x = n.dense(0), y = n.make_dense();
  move_step(n, n.in(0).dtype, x, y, r);
  return {};
}

}  // namespace pinnace::gpu
