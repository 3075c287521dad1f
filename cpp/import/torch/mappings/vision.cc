// torchvision's own operators (nms, roi_align, roi_pool, ps_roi_align, ps_roi_pool, deform_conv2d), and those that
// stand for its functions in python/pinnace/torch/detection.py (batched_nms, heatmaps_to_keypoints).
#include <cmath>
#include <limits>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

/// Scores as torchvision orders them, NaN before all others.
ValueId nan_first(Call& c, ValueId scores) {
  const ValueId most = c.constant(std::numeric_limits<double>::infinity(), DType::kF32);
  return c.add("where", {c.add("is_nan", {scores}), most, scores});
}

/// boxes [1, n, 4], scores [1, classes, n] -> [k, 3], for the call's threshold. torchvision compares float32 with a
/// double: what exceeds that exceeds the largest float32 that is not above it.
ValueId suppressed(Call& c, ValueId boxes, ValueId scores) {
  const double given = c.number("iou_threshold", 0.5);
  auto threshold = static_cast<float>(given);
  if (threshold > given) threshold = std::nextafter(threshold, -1.0f);
  return c.add("non_max_suppression",
               {boxes, scores, c.constant_ints({1 << 30}), c.constant(threshold, DType::kF32, {1})},
               {{"ordered_corners", int64_t{1}}});
}

// dets [n, 4] as corners, scores [n] -> indices that stay, best first
void map_nms(Call& c) {
  const ValueId boxes = c.unsqueeze(c.tensor("dets"), {0}), scores = nan_first(c, c.tensor("scores"));
  const ValueId kept = suppressed(c, boxes, c.unsqueeze(scores, {0, 1}));
  c.output(c.squeeze(c.slice(kept, 1, Scalar::of_int(2), Scalar::of_int(3)), {1}));
}

/// Whether there are more than `most` boxes, bool [].
ValueId more_boxes_than(Call& c, ValueId boxes, int64_t most) {
  const ValueId count = c.size_value(c.size_of(boxes, 0));
  return c.reshape(c.add("greater", {count, c.constant_int(most)}), std::vector<int64_t>{});
}

// pinnace::batched_nms: nms of each category by itself, best first over all of them. With up to 1000 boxes torchvision
// moves those of category i by i * (largest coordinate + 1), so that categories do not overlap, and suppresses once;
// with more it suppresses category by category, on coordinates as they are. One non_max_suppression does either: with
// few boxes all are of one class and moved; with many each category is a class, in whose scores others are NaN.
void map_batched_nms(Call& c) {
  constexpr int64_t kMostMoved = 1000;
  const ValueId given = c.tensor("boxes"), idxs = c.tensor("idxs");
  const ValueId boxes = c.cast(given, DType::kF32), scores = nan_first(c, c.cast(c.tensor("scores"), DType::kF32));
  if (!c.ok()) return;
  const ValueId many = more_boxes_than(c, boxes, kMostMoved);
  const ValueId lowest = c.constant(-std::numeric_limits<double>::infinity(), DType::kF32, {1});  // of no boxes
  const ValueId largest =
      c.add("reduce_max", {c.concat({c.reshape(boxes, std::vector<int64_t>{-1}), lowest}, 0), c.constant_ints({0})});
  const ValueId step = c.add("add", {largest, c.constant(1, DType::kF32, {1})});
  const ValueId moves = c.add("mul", {c.cast(idxs, DType::kF32), step});
  const ValueId moved = c.add("add", {boxes, c.unsqueeze(moves, {1})});
  const ValueId placed = c.add("where", {many, boxes, moved});

  const std::vector<ValueId> distinct = c.add_many("unique", {idxs}, 4);
  const ValueId none = c.constant_int(0);
  const ValueId classes = c.add("where", {many, distinct[2], none});
  const ValueId count = c.add("where", {many, c.size_value(c.size_of(distinct[0], 0)), c.constant_ints({1})});
  const ValueId each = c.add("range", {none, c.reshape(count, std::vector<int64_t>{}), c.constant_int(1)});
  const ValueId own = c.add("equal", {c.unsqueeze(classes, {0}), c.unsqueeze(each, {1})});  // [classes, n]
  const ValueId others = c.constant(std::numeric_limits<double>::quiet_NaN(), DType::kF32);
  const ValueId by_class = c.add("where", {own, c.unsqueeze(scores, {0}), others});
  const ValueId kept = suppressed(c, c.unsqueeze(placed, {0}), c.unsqueeze(by_class, {0}));
  // In order of falling score, equal ones in that of the boxes: by place first, as top_k keeps the order of equal ones.
  const auto sorted = [&](ValueId values, bool largest_first) {
    return c.add_many("top_k", {values, c.size_value(c.size_of(values, 0))}, 2,
                      {{"axis", int64_t{0}}, {"largest", largest_first}});
  };
  const ValueId places = c.squeeze(c.slice(kept, 1, Scalar::of_int(2), Scalar::of_int(3)), {1});
  const ValueId rising = sorted(places, false)[0];
  c.output(c.gather(rising, sorted(c.gather(scores, rising, 0), true)[1], 0));
}

/// The body of map_keypoints' loop: map number `iteration`, enlarged to its box, and where each is largest.
GraphPtr keypoints_body(Call& c, ValueId maps, ValueId sizes) {
  auto graph = std::make_shared<Graph>();
  const ValueId iteration = graph->add_input("iteration", {DType::kI64, {}, nullptr});
  const ValueId going = graph->add_input("condition", {DType::kBool, {}, nullptr});
  const ValueId all_maps = graph->add_input("maps", c.type(maps)), all_sizes = graph->add_input("sizes", c.type(sizes));
  Builder builder(c.builder().session, *graph);
  Call inner(builder, c.scope(), c.node(), {}, {});
  const ValueId map = inner.gather(all_maps, iteration, 0), size = inner.gather(all_sizes, iteration, 0);
  const ValueId large =
      inner.add("resize", {map, kNoValue, kNoValue, size}, {{"axes", std::vector<int64_t>{1, 2}}, {"mode", "cubic"}});
  const ValueId flat =
      inner.reshape(large, std::vector<Scalar>{inner.size_of(map, 0), Scalar::of_int(-1)});  // [keypoints, pixels]
  const ValueId place = inner.add("arg_max", {flat}, {{"axis", int64_t{1}}, {"keepdims", int64_t{1}}});
  const ValueId score = inner.add("gather_elements", {flat, place}, {{"axis", int64_t{1}}});
  const ValueId width = inner.slice(size, 0, Scalar::of_int(1), Scalar::of_int(2));
  const ValueId row = inner.add("div", {place, width});  // of integers that are not negative: rounds down
  const ValueId column = inner.add("sub", {place, inner.add("mul", {row, width})});
  if (!inner.ok()) c.fail(inner.rule(), inner.value());
  graph->add_output("condition", going);
  graph->add_output("columns", inner.squeeze(column, {1}));
  graph->add_output("rows", inner.squeeze(row, {1}));
  graph->add_output("scores", inner.squeeze(score, {1}));
  c.fail(builder.finish());
  return std::make_shared<Graph>(graph->clone());
}

// pinnace::heatmaps_to_keypoints. maps [k, keypoints, h, w], rois [k, 4] as corners -> [k, keypoints, 3]: x, y, 1, and
// scores [k, keypoints]: each map is enlarged to the pixels of its box, cubically, and searched.
void map_keypoints(Call& c) {
  const ValueId maps = c.tensor("maps"), rois = c.tensor("rois");
  if (!c.ok()) return;
  const DType dtype = c.dtype_of(rois);
  const auto corner = [&](int64_t i) { return c.slice(rois, 1, Scalar::of_int(i), Scalar::of_int(i + 1)); };
  const ValueId one = c.constant(1, dtype);
  std::vector<ValueId> pixels, steps;  // rows, then columns; [k, 1] each
  for (int64_t i : {1, 0}) {
    const ValueId length = c.add("max", {c.add("sub", {corner(i + 2), corner(i)}), one});
    const ValueId whole = c.add("ceil", {length});
    pixels.push_back(c.cast(whole, DType::kI64));
    steps.push_back(c.add("div", {length, whole}));
  }
  const ValueId sizes = c.concat(pixels, 1);  // [k, 2]
  const GraphPtr body = keypoints_body(c, maps, sizes);
  const ValueId trips = c.as_tensor({kNoValue, c.size_of(maps, 0)}, DType::kI64);
  const std::vector<ValueId> found =
      c.add_node("loop", {trips, kNoValue, maps, sizes}, 3, {{"body", body}, {"carried", int64_t{0}}});
  if (!c.ok()) return;
  const ValueId half = c.constant(0.5, dtype);
  const auto coordinate = [&](ValueId place, ValueId step, int64_t first) {
    const ValueId middle = c.add("add", {c.cast(place, dtype), half});
    return c.unsqueeze(c.add("add", {c.add("mul", {middle, step}), corner(first)}), {2});
  };
  const ValueId x = coordinate(found[0], steps[1], 0), y = coordinate(found[1], steps[0], 1);
  c.outputs({c.concat({x, y, c.full(c.sizes_of(x), one)}, 2), found[2]});
}

/// Column i of rois [k, 5], which are image, x1, y1, x2, y2: [k].
ValueId roi_column(Call& c, ValueId rois, int64_t i) {
  return c.squeeze(c.slice(rois, 1, Scalar::of_int(i), Scalar::of_int(i + 1)), {1});
}

ValueId roi_align_of(Call& c, bool aligned) {
  const ValueId x = c.tensor("input"), rois = c.tensor("rois");
  const ValueId boxes = c.slice(rois, 1, Scalar::of_int(1), Scalar::of_int(5));
  return c.add("roi_align", {x, boxes, c.cast(roi_column(c, rois, 0), DType::kI64)},
               {{"coordinate_transformation_mode", aligned ? "half_pixel" : "output_half_pixel"},
                {"output_height", c.integer("pooled_height")},
                {"output_width", c.integer("pooled_width")},
                {"sampling_ratio", std::max<int64_t>(c.integer("sampling_ratio", 0), 0)},
                {"spatial_scale", c.number("spatial_scale", 1)}});
}

void map_roi_align(Call& c) {
  c.output(roi_align_of(c, c.boolean("aligned", false)));
}

/// Bins of a position-sensitive operator, and the channels of its result: each bin of each reads a channel of its own.
struct SensitiveBins {
  int64_t rows = 1, columns = 1, channels = 0;
};
SensitiveBins sensitive_bins(Call& c) {
  SensitiveBins bins{.rows = c.integer("pooled_height"), .columns = c.integer("pooled_width")};
  const Dim channels = c.dim(c.tensor("input"), 1);
  if (c.reads(1)) c.fail("the channels that it gives beside its values");
  if (!c.ok()) return bins;
  // Numbers say which channel each bin reads, and all bins of all channels are computed where one of each counts.
  constexpr int64_t kMostBins = 4096;
  if (bins.rows < 1 || bins.columns < 1 || bins.rows > kMostBins / bins.columns) {
    c.fail(str_cat("bins other than 1 to ", kMostBins), str_cat(bins.rows, " x ", bins.columns));
    return bins;
  }
  if (!channels.known() || channels.size % (bins.rows * bins.columns) != 0) {
    c.fail("channels that are no multiple of the bins", str_cat(bins.rows, " x ", bins.columns));
    return bins;
  }
  bins.channels = channels.size / (bins.rows * bins.columns);
  return bins;
}

// Bin b of channel i is that of roi_align in channel i * bins + b: a diagonal of what all channels give.
void map_ps_roi_align(Call& c) {
  const SensitiveBins bins = sensitive_bins(c);
  if (!c.ok()) return;
  const int64_t count = bins.rows * bins.columns;
  std::vector<int64_t> diagonal;
  for (int64_t b = 0; b < count; ++b) diagonal.push_back(b * (count + 1));
  const ValueId all = c.reshape(roi_align_of(c, true), std::vector<int64_t>{-1, bins.channels, count * count});
  const ValueId own = c.gather(all, c.constant_ints(diagonal), 2);
  c.outputs({c.reshape(own, std::vector<int64_t>{-1, bins.channels, bins.rows, bins.columns}), kNoValue});
}

/// Where the bins of boxes begin and end along one axis of x: i64 [k, bins], in [0, size - 1].
struct BinEdges {
  ValueId first, last;
};
BinEdges bin_edges(Call& c, ValueId rois, int64_t column, int64_t bins, const Scalar& size) {
  const ValueId scale = c.constant(c.number("spatial_scale", 1), c.dtype_of(rois));
  const ValueId half = c.constant(0.5, c.dtype_of(rois));
  const auto rounded = [&](int64_t i) {  // halves away from zero
    const ValueId at = c.add("mul", {c.unsqueeze(roi_column(c, rois, i), {1}), scale});
    return c.add("mul", {c.add("sign", {at}), c.add("floor", {c.add("add", {c.add("abs", {at}), half})})});
  };
  const ValueId start = rounded(column), end = rounded(column + 2);
  const ValueId length = c.add("max", {c.add("sub", {end, start}), c.constant(1, c.dtype_of(rois))});
  const ValueId bin = c.add("div", {length, c.constant(static_cast<double>(bins), c.dtype_of(rois))});
  const ValueId most = c.add("sub", {c.size_value(size), c.constant_int(1)});
  const auto edge = [&](int64_t offset, const char* whole) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < bins; ++i) numbers.push_back(static_cast<float>(i + offset));
    const ValueId steps = c.cast(c.constant_floats(numbers, {1, bins}), c.dtype_of(rois));
    const ValueId at = c.add("add", {c.add(whole, {c.add("mul", {steps, bin})}), start});
    return c.add("min", {c.add("max", {c.cast(at, DType::kI64), c.constant_int(0)}), most});
  };
  return {edge(0, "floor"), edge(1, "ceil")};
}

// Means of the bins' elements, by sums over all elements before a place, in double; the last row and column of x are
// in no bin, as torchvision has it.
void map_ps_roi_pool(Call& c) {
  const SensitiveBins bins = sensitive_bins(c);
  const ValueId x = c.tensor("input"), rois = c.tensor("rois");
  if (!c.ok()) return;
  const Scalar height = c.size_of(x, 2), width = c.size_of(x, 3);
  const BinEdges rows = bin_edges(c, rois, 2, bins.rows, height), columns = bin_edges(c, rois, 1, bins.columns, width);
  ValueId before = c.cast(x, DType::kF64);
  for (int64_t axis : {2, 3}) before = c.add("cum_sum", {before, c.constant_int(axis)}, {{"exclusive", int64_t{1}}});
  before = c.reshape(before, std::vector<int64_t>{-1});
  // Channel of each bin, counted over all images: [k, channels, rows, columns].
  const ValueId count = c.constant_int(bins.channels * bins.rows * bins.columns);
  const ValueId own = c.reshape(c.add("range", {c.constant_int(0), count, c.constant_int(1)}),
                                std::vector<int64_t>{bins.channels, bins.rows, bins.columns});
  const ValueId images = c.unsqueeze(c.cast(roi_column(c, rois, 0), DType::kI64), {1, 2, 3});
  const ValueId channel = c.add("add", {c.add("mul", {images, count}), own});
  const auto sum = [&](ValueId row, ValueId column) {  // of the elements above and left of it
    const ValueId line = c.add("add", {c.add("mul", {channel, c.size_value(height)}), c.unsqueeze(row, {1, 3})});
    return c.gather(before, c.add("add", {c.add("mul", {line, c.size_value(width)}), c.unsqueeze(column, {1, 2})}), 0);
  };
  const ValueId below = c.add("sub", {sum(rows.last, columns.last), sum(rows.last, columns.first)});
  const ValueId above = c.add("sub", {sum(rows.first, columns.last), sum(rows.first, columns.first)});
  const ValueId zero = c.constant_int(0);
  const ValueId high = c.add("max", {c.add("sub", {rows.last, rows.first}), zero});
  const ValueId wide = c.add("max", {c.add("sub", {columns.last, columns.first}), zero});
  const ValueId area = c.add("mul", {c.unsqueeze(high, {1, 3}), c.unsqueeze(wide, {1, 2})});
  const ValueId mean = c.add("div", {c.add("sub", {below, above}), c.cast(area, DType::kF64)});
  const ValueId made = c.add("where", {c.add("greater", {area, zero}), mean, c.constant(0, DType::kF64)});
  c.outputs({c.cast(made, c.dtype_of(x)), kNoValue});
}

// rois as those of roi_align; also where each bin's largest element lies, which only training reads
void map_roi_pool(Call& c) {
  if (c.reads(1)) return c.fail("the places that roi_pool gives beside its values");
  const ValueId x = c.tensor("input");
  const std::vector<int64_t> bins = {c.integer("pooled_height"), c.integer("pooled_width")};
  c.outputs({c.add("max_roi_pool", {x, c.cast(c.tensor("rois"), c.dtype_of(x))},
                   {{"pooled_shape", bins}, {"spatial_scale", c.number("spatial_scale", 1)}}),
             kNoValue});
}

// Offsets and mask in the order that ONNX has them too.
void map_deform_conv(Call& c) {
  const ValueId x = c.tensor("input"), weight = c.tensor("weight"), offset = c.tensor("offset");
  const ValueId bias = c.tensor("bias"), mask = c.tensor("mask");
  const auto pair = [&](const char* rows, const char* columns) {
    return std::vector<int64_t>{c.integer(rows), c.integer(columns)};
  };
  std::vector<int64_t> pads = pair("pad_h", "pad_w");
  pads.insert(pads.end(), {pads[0], pads[1]});
  c.output(c.add("deform_conv", {x, weight, offset, bias, c.boolean("use_mask", false) ? mask : kNoValue},
                 {{"strides", pair("stride_h", "stride_w")},
                  {"pads", pads},
                  {"dilations", pair("dilation_h", "dilation_w")},
                  {"group", c.integer("groups")},
                  {"offset_group", c.integer("offset_groups")}}));
}

constexpr Mapping kMappings[] = {
    {"pinnace.batched_nms", map_batched_nms, ""},
    {"pinnace.heatmaps_to_keypoints", map_keypoints, ""},
    // torchvision's
    {"torchvision.deform_conv2d", map_deform_conv, ""},
    {"torchvision.nms", map_nms, ""},
    {"torchvision.ps_roi_align", map_ps_roi_align, ""},
    {"torchvision.ps_roi_pool", map_ps_roi_pool, ""},
    {"torchvision.roi_align", map_roi_align, ""},
    {"torchvision.roi_pool", map_roi_pool, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> vision_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
