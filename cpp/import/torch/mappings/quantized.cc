// quantized_decomposed.*: how PT2E writes quantised models. Quantise and dequantise stay explicit; a pass folds them.
#include <algorithm>
#include <cmath>

#include "import/torch/mappings/formula.h"
#include "ops/element.h"

namespace pinnace::torch_import {
namespace {

struct Range {
  double low, high;
};

std::optional<Range> full_range(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return Range{-128, 127};
    case DType::kU8:
      return Range{0, 255};
    case DType::kI16:
      return Range{-32768, 32767};
    case DType::kU16:
      return Range{0, 65535};
    case DType::kI32:
      return Range{-2147483648.0, 2147483647.0};
    default:
      return std::nullopt;
  }
}

/// Scale and zero point as tensors: numbers, or tensors of one element or one per channel.
struct Parameters {
  ValueId scale, zero;
  bool known;
  double scale_number, zero_number;
};

Parameters parameters(Call& c, DType quantised) {
  Parameters p{kNoValue, kNoValue, false, 1, 0};
  if (c.given("scales")) {
    p.scale = c.cast(c.tensor("scales"), DType::kF32);
    p.zero = c.given("zero_points") ? c.cast(c.tensor("zero_points"), quantised) : kNoValue;
    return p;
  }
  const Operand scale = c.operand("scale"), zero = c.operand("zero_point");
  if (!scale.is_tensor() && !zero.is_tensor() && scale.scalar.known && zero.scalar.known) {
    p.known = true;
    p.scale_number = scale.scalar.number();
    p.zero_number = zero.scalar.number();
    if (!(p.scale_number > 0) || !std::isfinite(p.scale_number))
      c.fail("a scale that is not a positive number", str_cat(p.scale_number));
    p.scale = c.constant(p.scale_number, DType::kF32);
    p.zero = c.constant_int(zero.scalar.integer, quantised);
    return p;
  }
  p.scale = c.reshape(c.as_tensor(scale, DType::kF32), std::vector<int64_t>{});
  p.zero = c.reshape(c.as_tensor(zero, quantised), std::vector<int64_t>{});
  return p;
}

/// Parameters [C] of an axis as [C, 1, ...], or [] as they are (axis -1).
ValueId along(Call& c, ValueId parameter, int64_t axis, int rank) {
  std::vector<int64_t> behind;
  for (int64_t i = axis + 1; axis >= 0 && i < rank; ++i) behind.push_back(i - axis);
  return c.unsqueeze(parameter, behind);
}

// clamp(round(x * (1 / scale)) + zero, low, high), step by step in f32
void map_quantize_rows(Call& c, ValueId x, const Parameters& p, int64_t axis, double low, double high) {
  const Formula f(c, DType::kF32);
  const int rank = c.rank(x);
  const ValueId inverse = f("div", 1.0, along(c, p.scale, axis, rank));
  ValueId y = f("round", f("mul", x, inverse));
  if (p.zero != kNoValue) y = f("add", y, c.cast(along(c, p.zero, axis, rank), DType::kF32));
  c.output(c.cast(f("min", f("max", y, low), high), c.out_dtype()));
}

/// The same for rows that each have parameters: the last axis (per token), or groups of it (per channel group). Here
/// the zero point is added before rounding.
void map_quantize_groups(Call& c) {
  const Formula f(c, DType::kF32);
  const ValueId whole = c.cast(c.tensor("input"), DType::kF32);
  ValueId x = whole, scale = c.cast(c.tensor("scales"), DType::kF32),
          zero = c.cast(c.tensor("zero_points"), DType::kF32);
  c.ignore({"dtype"});
  const double low = c.number("quant_min", -128), high = c.number("quant_max", 127);
  if (c.parameter() == "group") {
    const int64_t size = c.integer("group_size", 128);
    const Dim width = c.dim(x, -1);
    x = c.reshape(x, std::vector<int64_t>{-1, width.known() && width.size < size ? width.size : size});
    scale = c.reshape(scale, std::vector<int64_t>{-1, 1});
    zero = c.reshape(zero, std::vector<int64_t>{-1, 1});
  }
  ValueId y = f("round", f("add", f("mul", x, f("div", 1.0, scale)), zero));
  y = c.cast(f("min", f("max", y, low), high), c.out_dtype());
  c.output(c.parameter() == "group" ? c.reshape(y, c.sizes_of(whole)) : y);
}

void map_dequantize_groups(Call& c) {
  const Formula f(c, DType::kF32);
  const ValueId whole = c.tensor("input");
  // Groups that the sizes are known to fit are the blocks of dequantize_linear, which products by stored weights know.
  if (c.parameter() == "group" && c.given("zero_points") && c.rank(whole) == 2 && c.rank(c.tensor("scales")) == 2) {
    const int64_t size = c.integer("group_size", 128);
    const Dim width = c.dim(whole, 1), groups = c.dim(c.tensor("scales"), 1);
    const DType dtype = c.dtype_of(whole), zero_dtype = c.dtype_of(c.tensor("zero_points"));
    if ((dtype == DType::kI8 || dtype == DType::kU8) && (zero_dtype == DType::kI64 || full_range(zero_dtype)) &&
        size > 0 && width.known() && groups.known() && width.size == groups.size * size) {
      c.ignore({"dtype", "quant_min", "quant_max", "output_dtype"});
      const ValueId scale = c.cast(c.tensor("scales"), DType::kF32), zero = c.cast(c.tensor("zero_points"), dtype);
      const ValueId y = c.add("dequantize_linear", {whole, scale, zero}, {{"axis", int64_t{1}}, {"block_size", size}});
      return c.output(c.cast(y, c.out_dtype()));
    }
  }
  ValueId x = c.cast(whole, DType::kF32), scale = c.cast(c.tensor("scales"), DType::kF32);
  ValueId zero = c.given("zero_points") ? c.cast(c.tensor("zero_points"), DType::kF32) : c.constant(0, DType::kF32);
  c.ignore({"dtype", "quant_min", "quant_max", "output_dtype"});
  const bool groups = c.parameter() == "group";
  if (groups) {
    const int64_t size = c.integer("group_size", 128);
    const Dim width = c.dim(whole, -1);
    x = c.reshape(x, std::vector<int64_t>{-1, width.known() && width.size < size ? width.size : size});
    scale = c.reshape(scale, std::vector<int64_t>{-1, 1});
    if (c.rank(zero) > 0) zero = c.reshape(zero, std::vector<int64_t>{-1, 1});
  }
  const ValueId y = c.cast(f("mul", f("sub", x, zero), scale), c.out_dtype());
  c.output(groups ? c.reshape(y, c.sizes_of(whole)) : y);
}

// choose_qparams_per_token: symmetric, zero point 0; the asymmetric form holds the values and zero
void map_choose_rows(Call& c) {
  const DType given = c.dtype_of(c.tensor("input"));
  const Formula f(c, given == DType::kF64 ? DType::kF64 : DType::kF32);
  const ValueId x = c.cast(c.tensor("input"), f.dtype()), over = c.constant_ints({-1});
  c.ignore({"dtype"});
  const auto give = [&](ValueId scale, ValueId zero) {
    c.outputs({c.cast(scale, c.out_dtype(0)), c.cast(zero, c.out_dtype(1))});
  };
  if (c.parameter() == "symmetric") {
    const ValueId reach = c.add("reduce_max", {f("abs", x), over});
    return give(f("div", f("max", reach, 1e-5), 127.0),
                c.expand(c.reshape(f.number(0), std::vector<int64_t>{1}), c.sizes_of(reach)));
  }
  const ValueId least = f("min", c.add("reduce_min", {x, over}), 0.0);
  const ValueId most = f("max", c.add("reduce_max", {x, over}), 0.0);
  const ValueId scale = f("max", f("div", f("sub", most, least), 255.0), 1.1920928955078125e-07);
  const ValueId low = f("div", least, scale), high = f("div", most, scale);
  const ValueId from_low = f("sub", -128.0, low), from_high = f("sub", 127.0, high);
  const ValueId error = f("add", f("add", low, -128.0), f("add", high, 127.0));
  const ValueId zero = f("where", f("greater", error, 0.0), from_low, from_high);
  give(scale, f("round", f("min", f("max", zero, -128.0), 127.0)));
}

/// Weights that are quantised while the model runs are stored as what comes out, by PyTorch's own formula, step by step
/// in float32. kNoValue where something is not constant, or is no byte.
ValueId quantized_constant(Call& c, ValueId x, const Parameters& p, int64_t axis, DType dtype, double low,
                           double high) {
  const ConstantPtr data = c.known(x), scales = c.known(p.scale);
  const ValueId zero = c.given("zero_points") ? c.tensor("zero_points") : p.zero;
  const ConstantPtr zeros = zero == kNoValue ? nullptr : c.known(zero);
  const DType zero_dtype = zero == kNoValue ? DType::kI64 : c.dtype_of(zero);
  if (!data || !scales || (zero != kNoValue && !zeros) || (dtype != DType::kI8 && dtype != DType::kU8)) {
    return kNoValue;
  }
  if (zero_dtype != DType::kI64 && zero_dtype != DType::kI32 && zero_dtype != dtype) return kNoValue;
  const Shape& shape = c.type(x).shape;
  int64_t behind = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; axis >= 0 && i < shape.size(); ++i) behind *= shape[i].size;
  const auto channels = static_cast<int64_t>(scales->bytes() / sizeof(float));
  if (channels != (axis < 0 ? 1 : shape[static_cast<size_t>(axis)].size)) return kNoValue;
  std::vector<uint8_t> made(data->bytes() / sizeof(float));
  for (size_t i = 0; i < made.size(); ++i) {
    const int64_t channel = static_cast<int64_t>(i) / behind % channels;
    const float inverse = 1.0f / reinterpret_cast<const float*>(scales->data())[channel];
    int64_t offset = 0;
    if (zeros) {
      offset = visit(zero_dtype, [&](auto kind) {
        return static_cast<int64_t>(widen(reinterpret_cast<const decltype(kind)*>(zeros->data())[channel]));
      });
    }
    const float rounded = std::nearbyint(reinterpret_cast<const float*>(data->data())[i] * inverse);
    const float q =
        std::min(std::max(rounded + static_cast<float>(offset), static_cast<float>(low)), static_cast<float>(high));
    if (std::isnan(q)) return kNoValue;
    made[i] = static_cast<uint8_t>(static_cast<int32_t>(q));
  }
  return c.constant_bytes(made, dtype, shape);
}

void map_quantize(Call& c) {
  ValueId x = c.cast(c.tensor("input"), DType::kF32);
  const DType dtype = c.out_dtype();
  c.ignore({"dtype", "eps"});
  const auto range = full_range(dtype);
  if (!range) return c.fail("quantisation to this type", std::string(dtype_name(dtype)));
  const Parameters p = parameters(c, dtype);
  const double low = c.number("quant_min", range->low), high = c.number("quant_max", range->high);
  int64_t axis = 0;
  const bool channels = c.given("axis");
  if (channels) axis = c.axis("axis", c.rank(x));
  if (!c.ok()) return;
  if (const ValueId stored = quantized_constant(c, x, p, channels ? axis : -1, dtype, low, high); stored != kNoValue) {
    return c.output(stored);
  }
  if (low != range->low || high != range->high) {
    // A narrower range: what would fall outside is limited before, at values that are exactly representable steps. With
    // scales that are not numbers it is limited after rounding, as PyTorch's own formula has it.
    if (!p.known) return map_quantize_rows(c, x, p, channels ? axis : -1, low, high);
    const double lowest = (low - p.zero_number) * p.scale_number, highest = (high - p.zero_number) * p.scale_number;
    x = c.add("clip", {x, c.constant(lowest, DType::kF32), c.constant(highest, DType::kF32)});
  }
  if (channels)
    return c.output(
        c.add("quantize_linear",
              {x, p.scale, p.zero == kNoValue ? c.full({c.size_of(x, axis)}, c.constant_int(0, dtype)) : p.zero},
              {{"axis", axis}}));
  c.output(c.add("quantize_linear", {x, p.scale, p.zero}));
}

void map_dequantize(Call& c) {
  const ValueId x = c.tensor("input");
  const DType dtype = c.dtype_of(x);
  c.ignore({"dtype", "eps", "quant_min", "quant_max", "out_dtype"});
  if (!full_range(dtype)) return c.fail("dequantisation of this type", std::string(dtype_name(dtype)));
  const Parameters p = parameters(c, dtype);
  ValueId y;
  if (c.given("axis")) {
    y = c.add("dequantize_linear", {x, p.scale, p.zero}, {{"axis", c.axis("axis", c.rank(x))}});
  } else {
    y = c.add("dequantize_linear", {x, p.scale, p.zero});
  }
  c.output(c.cast(y, c.out_dtype()));
}

// choose_qparams.tensor: scale and zero point of an affine range that holds the values and zero
void map_choose(Call& c) {
  const ValueId x = c.cast(c.tensor("input"), DType::kF32);
  const double low = c.number("quant_min", -128), high = c.number("quant_max", 127),
               eps = c.number("eps", 1.1920928955078125e-07);
  c.ignore({"dtype"});
  std::vector<int64_t> axes;
  for (int i = 0; i < c.rank(x); ++i) axes.push_back(i);
  const ValueId over = c.constant_ints(axes), zero = c.constant(0, DType::kF32);
  const ValueId least = c.add("min", {c.add("reduce_min", {x, over}, {{"keepdims", 0}}), zero});
  const ValueId most = c.add("max", {c.add("reduce_max", {x, over}, {{"keepdims", 0}}), zero});
  ValueId scale, offset;
  if (c.parameter() == "symmetric") {
    const ValueId reach = c.add("max", {c.add("neg", {least}), most});
    scale =
        c.add("max", {c.add("div", {reach, c.constant((high - low) / 2, DType::kF32)}), c.constant(eps, DType::kF32)});
    offset = c.constant(low >= 0 ? 128 : 0, DType::kF32);
  } else {
    scale = c.add("max", {c.add("div", {c.add("sub", {most, least}), c.constant(high - low, DType::kF32)}),
                          c.constant(eps, DType::kF32)});
    offset = c.add("sub", {c.constant(low, DType::kF32), c.add("round", {c.add("div", {least, scale})})});
    offset = c.add("clip", {offset, c.constant(low, DType::kF32), c.constant(high, DType::kF32)});
  }
  c.outputs({c.reshape(c.cast(scale, c.out_dtype(0)), std::vector<int64_t>(static_cast<size_t>(c.out_rank(0)), 1)),
             c.reshape(c.cast(offset, c.out_dtype(1)), std::vector<int64_t>(static_cast<size_t>(c.out_rank(1)), 1))});
}

constexpr Mapping kMappings[] = {
    {"quantized_decomposed.choose_qparams", map_choose, ""},
    {"quantized_decomposed.choose_qparams_per_token", map_choose_rows, "symmetric"},
    {"quantized_decomposed.choose_qparams_per_token_asymmetric", map_choose_rows, ""},
    {"quantized_decomposed.choose_qparams_symmetric", map_choose, "symmetric"},
    {"quantized_decomposed.dequantize_per_channel", map_dequantize, ""},
    {"quantized_decomposed.dequantize_per_channel_group", map_dequantize_groups, "group"},
    {"quantized_decomposed.dequantize_per_tensor", map_dequantize, ""},
    {"quantized_decomposed.dequantize_per_token", map_dequantize_groups, ""},
    {"quantized_decomposed.quantize_per_channel", map_quantize, ""},
    {"quantized_decomposed.quantize_per_channel_group", map_quantize_groups, "group"},
    {"quantized_decomposed.quantize_per_tensor", map_quantize, ""},
    {"quantized_decomposed.quantize_per_token", map_quantize_groups, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> quantized_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
