// torchao.*, and the products by stored integers that its tensors compute: blocks of elements that share a scale and a
// zero point are those of quantize_linear and dequantize_linear, per tensor, per index of an axis, or along the last
// axis. Weights stay the integers that are stored; those of four bits that stand in bytes are packed.
#include <algorithm>
#include <cmath>

#include "import/torch/mappings/formula.h"

namespace pinnace::torch_import {
namespace {

/// Which elements share a scale, and the scales' shape there.
struct Blocks {
  std::vector<std::pair<std::string, Attr>> attrs;  ///< axis and block_size
  std::vector<Scalar> sizes;                        ///< of the scales
  bool rows = false;                                ///< each is a row of the last axis
  bool whole = false;                               ///< the tensor is one block
};

/// block_size, a number for each dimension of x, as attributes; nothing, after a refusal, for other blocks.
std::optional<Blocks> blocks_of(Call& c, ValueId x) {
  const std::vector<Scalar> given = c.sizes("block_size");
  if (!c.ok()) return std::nullopt;
  const int rank = c.rank(x);
  if (static_cast<int>(given.size()) != rank) {
    c.fail("block_size must have a number for each dimension", str_cat(given.size()));
    return std::nullopt;
  }
  // A dimension is in blocks of 1, in one block, or in several of several.
  std::vector<bool> single(given.size()), one(given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const Dim size = c.dim(x, static_cast<int64_t>(i));
    single[i] = given[i].known && given[i].integer == 1;
    // A block of a dynamic size is that of the dimension itself.
    one[i] = !given[i].known || (size.known() && given[i].integer == size.size);
  }
  Blocks blocks;
  const auto count = [](const std::vector<bool>& of) { return std::count(of.begin(), of.end(), true); };
  const auto last = static_cast<size_t>(rank - 1);
  // Rows of activations are blocks of the last axis, so that all ranks have one form.
  blocks.rows = rank > 1 && one[last] && count(single) - (single[last] ? 1 : 0) == rank - 1;
  if (!(blocks.rows && !c.known(x) && c.dim(x, rank - 1).known())) {
    if (count(one) == rank) {
      blocks.whole = true;
      return blocks;
    }
    for (size_t i = 0; i < given.size(); ++i) {  // per index of one axis
      if (!single[i] || count(one) - (one[i] ? 1 : 0) != rank - 1) continue;
      blocks.attrs = {{"axis", static_cast<int64_t>(i)}};
      blocks.sizes = {c.size_of(x, static_cast<int64_t>(i))};
      return blocks;
    }
  }
  const Dim width = c.dim(x, rank - 1);
  const int64_t size = one[last] && width.known() ? width.size : given[last].known ? given[last].integer : 0;
  if (count(single) - (single[last] ? 1 : 0) != rank - 1 || size < 1 || !width.known() || width.size % size != 0) {
    c.fail("blocks that are neither the tensor, indices of an axis, nor parts of the last axis");
    return std::nullopt;
  }
  blocks.attrs = {{"axis", static_cast<int64_t>(rank - 1)}, {"block_size", size}};
  for (int i = 0; i + 1 < rank; ++i) blocks.sizes.push_back(c.size_of(x, i));
  blocks.sizes.push_back(Scalar::of_int(width.size / size));
  return blocks;
}

ValueId add_linear(Call& c, std::string_view op, std::vector<ValueId> inputs, const Blocks& blocks) {
  const std::vector<ValueId> made = c.add_node(op, std::move(inputs), 1, blocks.attrs);
  return made.empty() ? kNoValue : made[0];
}

/// A constant of integers in bytes whose range is that of four bits, as those.
ValueId four_bits(Call& c, ValueId x) {
  const ConstantPtr data = c.known(x);
  if (!data || c.dtype_of(x) != DType::kI8) return kNoValue;
  std::vector<uint8_t> made((data->bytes() + 1) / 2);
  for (size_t i = 0; i < data->bytes(); ++i) {
    const auto q = static_cast<int8_t>(data->data()[i]);
    if (q < -8 || q > 7) return kNoValue;
    made[i / 2] |= static_cast<uint8_t>((q & 15) << (i % 2 * 4));
  }
  return c.constant_bytes(made, DType::kI4, c.type(x).shape);
}

bool all_zero(const ConstantPtr& data) {
  return data && std::all_of(data->data(), data->data() + data->bytes(), [](std::byte b) { return b == std::byte{}; });
}

/// Zero points in the blocks' shape and in that type; kNoValue where there are none, or where all are 0.
ValueId zero_points(Call& c, const Blocks& blocks, DType dtype) {
  if (!c.given("zero_point")) return kNoValue;
  const ValueId zero = c.tensor("zero_point");
  if (!c.ok() || c.type(zero).elements() == 0 || all_zero(c.known(zero))) return kNoValue;
  return c.reshape(c.cast(zero, dtype), blocks.sizes);
}

void map_quantize_affine(Call& c) {
  const ValueId x = c.cast(c.tensor("input"), DType::kF32);
  const DType dtype = c.out_dtype();
  c.ignore({"output_dtype"});
  const bool bytes = dtype == DType::kI8 || dtype == DType::kU8;
  const double least = dtype == DType::kU8 ? 0 : -128, most = dtype == DType::kU8 ? 255 : 127;
  const double low = c.number("quant_min", least), high = c.number("quant_max", most);
  if (!bytes) return c.fail("quantisation to this type", std::string(dtype_name(dtype)));
  const auto blocks = blocks_of(c, x);
  if (!blocks) return;
  const ValueId scale = c.reshape(c.cast(c.tensor("scale"), DType::kF32), blocks->sizes);
  const ValueId zero = zero_points(c, *blocks, dtype);
  // Left out, they would make the result u8.
  const bool none = zero == kNoValue && dtype == DType::kI8;
  const ValueId point = none ? c.full(blocks->sizes, c.constant_int(0, dtype)) : zero;
  ValueId q = add_linear(c, "quantize_linear", {x, scale, point}, *blocks);
  if (low > least || high < most) q = c.add("clip", {q, c.constant(low, dtype), c.constant(high, dtype)});
  c.output(q);
}

void map_dequantize_affine(Call& c) {
  ValueId x = c.tensor("input");
  c.ignore({"input_dtype", "output_dtype", "quant_min", "quant_max"});
  if (!c.ok()) return;
  const DType stored = c.dtype_of(x);
  if (stored != DType::kI8 && stored != DType::kU8) {
    return c.fail("dequantisation of this type", std::string(dtype_name(stored)));
  }
  const auto blocks = blocks_of(c, x);
  if (!blocks) return;
  const ValueId scale = c.reshape(c.cast(c.tensor("scale"), DType::kF32), blocks->sizes);
  ValueId zero = zero_points(c, *blocks, stored);
  if (!c.ok()) return;
  if (const ValueId packed = four_bits(c, x); packed != kNoValue && zero == kNoValue) x = packed;
  c.output(c.cast(add_linear(c, "dequantize_linear", {x, scale, zero}, *blocks), c.out_dtype()));
}

/// Scale and zero point of each block's own range, as torchao has them step by step.
void map_choose_affine(Call& c) {
  const ValueId whole = c.tensor("input");
  const DType given = c.dtype_of(whole);
  const Formula f(c, DType::kF32);
  const ValueId x = c.cast(whole, DType::kF32);
  const std::string mapping = c.string("mapping_type");
  const double low = c.number("quant_min", -128), high = c.number("quant_max", 127);
  const double smallest = given == DType::kF16 ? 0x1p-14 : 0x1p-126;
  const double eps = c.number("eps", smallest);
  c.ignore({"target_dtype", "scale_dtype", "zero_point_dtype"});
  const bool keepdim = c.boolean("keepdim", false);
  const auto blocks = blocks_of(c, x);
  if (!blocks) return;
  std::vector<int64_t> axes;
  if (blocks->whole) {
    for (int i = 0; i < c.rank(x); ++i) axes.push_back(i);
  } else if (blocks->rows) {
    axes = {c.rank(x) - 1};
  } else {
    return c.fail("ranges of parts of rows");
  }
  const ValueId over = c.constant_ints(axes);
  const AttrList dims = {{"keepdims", keepdim ? 1 : 0}};
  ValueId scale, zero;
  if (mapping == "SYMMETRIC") {
    // max(-min(least, 0), max(most, 0)) is the largest magnitude.
    scale = f("max", f("div", c.add("reduce_max", {f("abs", x), over}, dims), (high - low) / 2), eps);
    zero = c.expand(c.constant(std::trunc((high + low + 1) / 2), DType::kF32), c.sizes_of(scale));
  } else if (mapping == "ASYMMETRIC") {
    const ValueId least = f("min", c.add("reduce_min", {x, over}, dims), 0.0);
    const ValueId most = f("max", c.add("reduce_max", {x, over}, dims), 0.0);
    scale = f("max", f("div", f("sub", most, least), high - low), eps);
    zero = f("min", f("max", f("sub", low, f("round", f("div", least, scale))), low), high);
  } else {
    return c.fail("ranges of this kind", mapping);
  }
  c.outputs({c.cast(scale, c.out_dtype(0)), c.cast(zero, c.out_dtype(1))});
}

void map_int_mm(Call& c) {
  c.output(c.add("mat_mul_integer", {c.tensor("self"), c.tensor("mat2")}));
}

// self times the transpose of mat2 [N, K], whose rows have scales
void map_weight_int8pack_mm(Call& c) {
  const ValueId x = c.tensor("self"), w = c.tensor("mat2"), scales = c.cast(c.tensor("scales"), DType::kF32);
  const ValueId real = c.add("dequantize_linear", {w, scales}, {{"axis", int64_t{0}}});
  const Formula f(c, DType::kF32);
  f.output(f("mat_mul", c.cast(x, DType::kF32), c.swap(real, 0, 1)));
}

constexpr Mapping kMappings[] = {
    {"aten._int_mm", map_int_mm, ""},
    {"aten._weight_int8pack_mm", map_weight_int8pack_mm, ""},
    {"torchao.choose_qparams_affine", map_choose_affine, ""},
    {"torchao.dequantize_affine", map_dequantize_affine, ""},
    {"torchao.quantize_affine", map_quantize_affine, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> torchao_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
