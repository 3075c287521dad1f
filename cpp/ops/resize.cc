// resize: x sampled at another number of places along some axes.
//   x       [...]  any type; modes other than nearest: numbers
//   roi     [2 * n]  floats, optional: starts, then ends, as parts of the axis; only for tf_crop_and_resize
//   scales  [n]  f32, optional: y's size is floor(size * scale), the product in float32
//   sizes   [n]  i64, optional; exactly one of scales and sizes is given (an empty one is not), or factors
//   y       as x; n is the rank of x or the length of axes
//   mode                            "nearest" (default), "linear", "cubic"; over several axes their product
//   coordinate_transformation_mode  "half_pixel" (default) and others: see ops/resize_map.h
//   nearest_mode                    "round_prefer_floor" (default), "round_prefer_ceil", "floor", "ceil"
//   axes                            ints; empty: all
//   antialias                       int, default 0; 1: when it shrinks, linear and cubic filters widen by 1 / scale
//   cubic_coeff_a                   float, default -0.75
//   exclude_outside                 int, default 0: places beyond the edge repeat it; 1: they have no weight
//   extrapolation_value             float, default 0: elements of tf_crop_and_resize from outside x
//   factors                         floats: empty (default), or n positive ones that resize as PyTorch's scale_factor
//                                   does, not as scales: y's size is floor(size * factor), the product in double,
//                                   unless sizes says it; and places are multiplied by a step, float32(1 / factor),
//                                   where scales divide them; round_prefer_ceil is floor(float32(place + 0.5)) then.
//                                   Beside sizes a factor may be 0: its step is size of x / size of y. Linear and
//                                   antialiased, an axis that keeps its size is copied: 7 * 1.1 is 7. Only with
//                                   half_pixel, asymmetric and align_corners (sizes alone), and stretched
//   keep_aspect_ratio_policy        "stretch" (default): sizes as given; "not_larger" and "not_smaller": all axes take
//                                   the smallest (largest) scale that sizes ask for, sizes round(size * scale), half up
// Sums are in double over all axes and rounded once; integers round half to even and stop at their limits. Quantised:
// dequantised, summed in double, rounded to float32, quantised; nearest copies. NaN and infinities spread to what is
// made of them; a weight of 0 leaves them out. Source: ONNX Resize, opset 19, and
// torch.nn.functional.interpolate for factors.
#include <algorithm>
#include <cmath>

#include "ops/lines.h"
#include "ops/resize_map.h"

namespace pinnace {
namespace {
enum Input { kX, kRoi, kScales, kSizes };

Result<std::vector<int>> resized_axes(const NodeView& node, int rank) {
  std::vector<int> axes;
  const std::span<const int64_t> named = node.attr_ints("axes");
  PINNACE_TRY(node.axes(named, rank).status());
  for (int64_t axis : named) axes.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
  for (int i = 0; named.empty() && i < rank; ++i) axes.push_back(i);
  return axes;
}

/// Input i is there and not an empty vector; its length, where known, must be `wanted`.
Result<bool> given(const NodeView& node, int i, size_t wanted) {
  if (!node.has_input(i)) return false;
  PINNACE_ASSIGN(const Dim length, vector_length(node, i, false));
  if (!length.known()) return true;
  if (length.size == 0) return false;
  if (length.size != static_cast<int64_t>(wanted)) {
    return node.error("input ", i, " has ", length.size, " elements, must have ", wanted);
  }
  return true;
}

Result<bool> stretches(const NodeView& node) {
  const std::string_view policy = node.attr_string("keep_aspect_ratio_policy");
  if (policy == "stretch") return true;
  if (policy == "not_larger" || policy == "not_smaller") return false;
  return node.error("keep_aspect_ratio_policy is '", policy, "', must be stretch, not_larger or not_smaller");
}

Result<int64_t> scaled_size(const NodeView& node, int64_t size, float scale) {
  if (!(scale > 0) || std::isinf(scale)) return node.error("scale ", scale, " is not a positive number");
  if (scale == 1) return size;  // float32 does not hold every size
  const float scaled = std::floor(static_cast<float>(size) * scale);
  if (!(scaled < 0x1p62f)) return node.error("scale ", scale, " makes ", size, " larger than memory can be");
  return static_cast<int64_t>(scaled);
}

/// By a factor, as PyTorch computes it.
Result<int64_t> multiplied_size(const NodeView& node, int64_t size, double factor) {
  const double scaled = std::floor(static_cast<double>(size) * factor);
  if (!(scaled < 0x1p62)) return node.error("factor ", factor, " makes ", size, " larger than memory can be");
  return static_cast<int64_t>(scaled);
}

/// The factors, checked; empty if there are none.
Result<std::span<const double>> factors_of(const NodeView& node, size_t axes, bool by_scales, bool by_sizes) {
  const std::span<const double> factors = node.attr_floats("factors");
  if (factors.empty()) return factors;
  if (factors.size() != axes) return node.error("factors has ", factors.size(), " numbers, must have ", axes);
  for (double factor : factors) {  // limits: so that neither it nor 1 / factor leaves float32
    if (!(factor >= 1e-30 && factor <= 1e30) && !(factor == 0 && by_sizes))
      return node.error("factor ", factor, " is not a positive number");
  }
  PINNACE_ASSIGN(const ResizeSpec spec, resize_spec(node));
  PINNACE_ASSIGN(const bool stretch, stretches(node));
  if (by_scales) return node.error("takes scales or factors, is given both");
  if (!stretch) return node.error("factors do not keep the aspect ratio");
  if (spec.coordinates != ResizeCoordinates::kHalfPixel && spec.coordinates != ResizeCoordinates::kAsymmetric &&
      spec.coordinates != ResizeCoordinates::kAlignCorners) {
    return node.error("factors do not place by ", node.attr_string("coordinate_transformation_mode"));
  }
  return factors;
}

Status check_source(const NodeView& node, int64_t in, int64_t out) {
  return in == 0 && out > 0 ? node.error("a dimension of size 0 cannot become one of size ", out) : Status();
}

/// The axes with sizes and scales, from known sizes of x and either scales, sizes or factors.
Result<std::vector<ResizeAxis>> plan(const NodeView& node, const TensorType& x, std::span<const float> scales,
                                     std::span<const int64_t> sizes) {
  PINNACE_ASSIGN(const std::vector<int> axes, resized_axes(node, x.rank()));
  PINNACE_ASSIGN(const bool stretch, stretches(node));
  PINNACE_ASSIGN(const std::span<const double> factors, factors_of(node, axes.size(), !scales.empty(), !sizes.empty()));
  if (scales.empty() && sizes.empty() && factors.size() != axes.size())
    return node.error("takes scales or sizes, is given none");
  PINNACE_ASSIGN(const ResizeSpec spec, resize_spec(node));
  const bool copies_equal_sizes = spec.mode == ResizeMode::kLinear || spec.antialias;
  std::vector<ResizeAxis> plan;
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis a{.axis = axes[i], .in = x.shape[static_cast<size_t>(axes[i])].size};
    if (!scales.empty()) {
      a.scale = scales[i];
      PINNACE_ASSIGN(a.out, scaled_size(node, a.in, a.scale));
    } else if (sizes.empty()) {
      PINNACE_ASSIGN(a.out, multiplied_size(node, a.in, factors[i]));
    } else {
      a.out = sizes[i];
      if (a.out < 0) return node.error("size ", a.out, " of axis ", a.axis, " is negative");
      if (a.in) a.scale = static_cast<float>(a.out) / static_cast<float>(a.in);
    }
    if (!factors.empty() && a.in == a.out && copies_equal_sizes) {
      a.step = a.scale = 1;
    } else if (!factors.empty() && factors[i] != 0) {
      a.step = static_cast<float>(1 / factors[i]);
      a.scale = static_cast<float>(factors[i]);
    } else if (!factors.empty() && a.out) {
      a.step = static_cast<float>(a.in) / static_cast<float>(a.out);
    }
    plan.push_back(a);
  }
  if (!stretch && scales.empty() && !plan.empty()) {
    float scale = plan[0].scale;
    for (const ResizeAxis& a : plan) {
      if (a.in == 0) return node.error("the aspect ratio of ", x, " cannot be kept");
      scale = node.attr_string("keep_aspect_ratio_policy") == "not_larger" ? std::min(scale, a.scale)
                                                                           : std::max(scale, a.scale);
    }
    for (ResizeAxis& a : plan) {
      a.scale = scale;
      const float size = std::floor(scale * static_cast<float>(a.in) + 0.5f);
      if (!(size < 0x1p62f)) return node.error("scale ", scale, " makes ", a.in, " larger than memory can be");
      a.out = static_cast<int64_t>(size);
    }
  }
  for (const ResizeAxis& a : plan) PINNACE_TRY(check_source(node, a.in, a.out));
  return plan;
}

Result<TensorType> resize_type(const NodeView& node) {
  const TensorType& x = node.input(kX);
  PINNACE_ASSIGN(const ResizeSpec spec, resize_spec(node));
  PINNACE_ASSIGN(const std::vector<int> axes, resized_axes(node, x.rank()));
  PINNACE_ASSIGN(const bool stretch, stretches(node));
  if (spec.mode != ResizeMode::kNearest && x.dtype == DType::kBool) {
    return node.error("mode ", node.attr_string("mode"), " takes no bool");
  }
  TensorType y{x.dtype, x.shape, nullptr};
  if (spec.mode == ResizeMode::kNearest) {
    PINNACE_ASSIGN(y.quantization, moved_quantization(node, kX));
  } else {
    PINNACE_ASSIGN(y.quantization, computed_quantization(node, kX));
  }
  PINNACE_ASSIGN(const bool has_roi, given(node, kRoi, 2 * axes.size()));
  if (spec.coordinates == ResizeCoordinates::kTfCropAndResize && !has_roi)
    return node.error("tf_crop_and_resize needs roi");
  PINNACE_ASSIGN(const bool by_scales, given(node, kScales, axes.size()));
  PINNACE_ASSIGN(const bool by_sizes, given(node, kSizes, axes.size()));
  const auto open = [&](int i) { return node.has_input(i) && !node.input(i).shape[0].known(); };
  if (by_scales && by_sizes && (open(kScales) || open(kSizes))) {  // one of them may be empty
    for (int axis : axes) y.shape[static_cast<size_t>(axis)] = Dim();
    return y;
  }
  PINNACE_ASSIGN(const std::span<const double> factors, factors_of(node, axes.size(), by_scales, by_sizes));
  if (by_scales == by_sizes && (by_scales || factors.empty()) && !axes.empty()) {
    return node.error("takes scales or sizes, is given ", by_scales ? "both" : "none");
  }
  bool known_x = true;
  for (int axis : axes) known_x &= x.shape[static_cast<size_t>(axis)].known();
  const auto scales = by_scales ? node.input_floats(kScales) : std::nullopt;
  const auto sizes = by_sizes ? node.input_known(kSizes) : std::nullopt;
  const auto exact = by_sizes ? known_ints(node, kSizes) : std::nullopt;
  const bool by_factors = !by_scales && !by_sizes;
  if (known_x && (scales || exact || by_factors)) {
    const std::vector<float> floats =
        scales ? std::vector<float>(scales->begin(), scales->end()) : std::vector<float>{};
    PINNACE_ASSIGN(const auto planned, plan(node, x, floats, exact.value_or(std::vector<int64_t>{})));
    for (const ResizeAxis& a : planned) y.shape[static_cast<size_t>(a.axis)] = a.out;
    return y;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& d = y.shape[static_cast<size_t>(axes[i])];
    if (scales) {
      const auto scale = static_cast<float>((*scales)[i]);
      const int64_t bound = dim_bound(d);
      PINNACE_ASSIGN(const int64_t size, scaled_size(node, bound < 0 ? 1 : bound, scale));
      if (scale != 1) d = d.known() ? Dim(size) : bound >= 0 ? Dim::unknown(size) : Dim();
    } else if (by_factors) {
      const int64_t bound = dim_bound(d);
      PINNACE_ASSIGN(const int64_t size, multiplied_size(node, bound < 0 ? 1 : bound, factors[i]));
      if (factors[i] != 1) d = d.known() ? Dim(size) : bound >= 0 ? Dim::unknown(size) : Dim();
    } else if (sizes && stretch) {
      if ((*sizes)[i].known && (*sizes)[i].value < 0) return node.error("size ", (*sizes)[i].value, " is negative");
      d = (*sizes)[i].dim();
    } else {
      d = Dim();
    }
  }
  return y;
}

/// x as doubles; quantised: the real numbers.
Result<Scratch<double>> to_doubles(const NodeView& node, const TensorView& x) {
  const int64_t count = x.elements();
  PINNACE_ASSIGN(auto values, Scratch<double>::allocate(count, node.label()));
  const auto run = [&](int64_t first, int64_t last) { load_line(x, first, 1, last - first, values.data() + first); };
  node.threads().ranges(count, kMapNanoseconds, run, kMapGrain);
  return values;
}

void store(const TensorView& y, int64_t i, double value) {
  if (y.type->quantized()) {
    store_int(y, i, quantize(static_cast<float>(value), scale_zero(*y.type), int_range(y.dtype())));
    return;
  }
  visit(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (is_float<T>) {
      y.data<T>()[i] = narrow<T>(value);
    } else {
      y.data<T>()[i] = from_real<T>(std::nearbyint(value));  // the default mode is half to even
    }
    return 0;
  });
}

/// Each axis after another; an axis that keeps its places is skipped.
Status interpolate(const NodeView& node, const ResizeSpec& spec, std::span<const ResizeAxis> axes, const TensorView& x,
                   const TensorView& y) {
  PINNACE_ASSIGN(Scratch<double> values, to_doubles(node, x));
  Shape shape = x.type->shape;
  for (const ResizeAxis& a : axes) {
    if (a.identity(spec)) continue;
    PINNACE_ASSIGN(ResizeTaps taps, resize_taps(spec, a, node.label()));
    const AxisView v = view_axis(shape, a.axis);
    const int64_t total = saturating_mul(saturating_mul(v.outer, v.inner), a.out);
    PINNACE_ASSIGN(auto next, Scratch<double>::allocate(total, node.label()));
    const double cost = 10 + static_cast<double>(taps.count) * static_cast<double>(v.inner);
    node.threads().ranges(v.outer * a.out, cost, [&](int64_t first, int64_t last) {
      for (int64_t line = first; line < last; ++line) {
        const int64_t o = line / a.out, i = line % a.out;
        double* to = next.data() + line * v.inner;
        std::fill(to, to + v.inner, 0.0);
        for (int64_t k = i * taps.count; k < (i + 1) * taps.count; ++k) {
          const double weight = taps.weight[k];
          const double* from = values.data() + (o * v.size + taps.index[k]) * v.inner;
          if (weight == 0) continue;  // infinities beside the filter do not count
          for (int64_t n = 0; n < v.inner; ++n) to[n] += weight * from[n];
        }
      }
    });
    values = std::move(next);
    shape[static_cast<size_t>(a.axis)] = a.out;
  }
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) store(y, i, values[i]);
  };
  constexpr double kStoreNanoseconds = 4;
  node.threads().ranges(y.elements(), kStoreNanoseconds, run, kMapGrain);
  if (spec.coordinates != ResizeCoordinates::kTfCropAndResize) return {};
  const double outside = node.attr_float("extrapolation_value");
  for (const ResizeAxis& a : axes) {
    const AxisView v = view_axis(y.type->shape, a.axis);
    for (int64_t i = 0; i < a.out; ++i) {
      if (!resize_extrapolates(spec, a, resize_coordinate(spec, a, i))) continue;
      for (int64_t o = 0; o < v.outer; ++o) {
        for (int64_t n = 0; n < v.inner; ++n) store(y, (o * v.size + i) * v.inner + n, outside);
      }
    }
  }
  return {};
}

Status pick_nearest(const NodeView& node, const ResizeSpec& spec, std::span<const ResizeAxis> axes, const TensorView& x,
                    const TensorView& y) {
  int64_t total = 0;
  for (const Dim& d : y.type->shape) total += d.size;
  PINNACE_ASSIGN(auto places, Scratch<int64_t>::allocate(total, node.label()));
  int64_t* place = places.data();
  for (int d = 0; d < y.rank(); ++d) {
    const auto at = std::find_if(axes.begin(), axes.end(), [d](const ResizeAxis& a) { return a.axis == d; });
    for (int64_t i = 0; i < y.dim(d); ++i) {
      *place = i;
      if (at != axes.end() && !at->identity(spec)) {
        const float coordinate = resize_coordinate(spec, *at, i);
        *place = resize_extrapolates(spec, *at, coordinate) ? -1 : resize_nearest(spec, *at, coordinate);
      }
      ++place;
    }
  }
  alignas(8) std::byte fill[8];
  TensorView one = y;
  one.bytes = fill;
  store(one, 0, node.attr_float("extrapolation_value"));
  copy_by_places(node.threads(), x, y, places.span(), fill);
  return {};
}

/// roi: where all axes begin, then where they end.
Status take_regions(const NodeView& node, const TensorView& roi, std::span<ResizeAxis> axes) {
  PINNACE_ASSIGN(Scratch<double> regions, to_doubles(node, roi));
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].roi_start = static_cast<float>(regions[static_cast<int64_t>(i)]);
    axes[i].roi_end = static_cast<float>(regions[static_cast<int64_t>(i + axes.size())]);
  }
  return {};
}

Status resize_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[kX], y = out[0];
  PINNACE_ASSIGN(const ResizeSpec spec, resize_spec(node));
  const auto has = [&](size_t i) { return i < in.size() && in[i].present() && in[i].elements() > 0; };
  std::vector<float> scales;
  std::vector<int64_t> sizes;
  if (has(kScales)) scales.assign(in[kScales].data<float>(), in[kScales].data<float>() + in[kScales].elements());
  if (has(kSizes)) sizes = load_indices(in[kSizes]);
  if (y.elements() == 0) return {};
  PINNACE_ASSIGN(std::vector<ResizeAxis> axes, plan(node, *x.type, scales, sizes));
  if (has(kRoi)) PINNACE_TRY(take_regions(node, in[kRoi], axes));
  return spec.mode == ResizeMode::kNearest ? pick_nearest(node, spec, axes, x, y) : interpolate(node, spec, axes, x, y);
}
}  // namespace

Result<std::vector<ResizeAxis>> resize_axes(const NodeView& node) {
  const auto contents = [&](int i) {
    return node.has_input(i) && node.input(i).elements() > 0 ? node.input_data(i) : nullptr;
  };
  const auto* scales = static_cast<const float*>(contents(kScales));
  const auto* sizes = static_cast<const int64_t*>(contents(kSizes));
  PINNACE_ASSIGN(const std::vector<int> axes, resized_axes(node, node.input(kX).rank()));
  const auto asked = [&](int i) { return node.has_input(i) && node.input(i).elements() != 0; };
  const bool by_factors = !asked(kScales) && !asked(kSizes) && !node.attr_floats("factors").empty();
  if (!scales && !sizes && !by_factors && !axes.empty()) return node.error("neither scales nor sizes are known");
  PINNACE_ASSIGN(std::vector<ResizeAxis> made, plan(node, node.input(kX), std::span(scales, scales ? axes.size() : 0),
                                                    std::span(sizes, scales || !sizes ? 0 : axes.size())));
  if (const void* roi = contents(kRoi)) {
    PINNACE_TRY(take_regions(node, {&node.input(kRoi), static_cast<std::byte*>(const_cast<void*>(roi))}, made));
  }
  return made;
}

PINNACE_OP(resize){
    .name = "resize",
    .inputs = {{"x", kAny},
               {"roi", kFloats, 0, Arity::kOptional},
               {"scales", kF32, 0, Arity::kOptional},
               {"sizes", kI64, 0, Arity::kOptional}},
    .attrs = {int_attr("antialias", 0), ints_attr("axes"), string_attr("coordinate_transformation_mode", "half_pixel"),
              float_attr("cubic_coeff_a", -0.75), int_attr("exclude_outside", 0), float_attr("extrapolation_value", 0),
              floats_attr("factors"), string_attr("keep_aspect_ratio_policy", "stretch"),
              string_attr("mode", "nearest"), string_attr("nearest_mode", "round_prefer_floor")},
    .type = resize_type,
    .reference = resize_reference,
    .traits = Trait::kFoldsQuantization,
    .work = Work::kResize,
};
}  // namespace pinnace
