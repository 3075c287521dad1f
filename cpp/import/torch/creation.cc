// Tensors made from numbers: arange, full, zeros, eye and their relatives.
#include <cmath>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

const std::initializer_list<std::string_view> kOptions = {"dtype",         "layout",        "device", "pin_memory",
                                                          "memory_format", "requires_grad", "names"};

void map_arange(Call& c) {
  c.ignore(kOptions);
  const DType dtype = c.out_dtype();
  const Scalar zero = Scalar::of_int(0), one = Scalar::of_int(1);
  const Scalar start = c.scalar("start", zero), end = c.scalar("end"), step = c.scalar("step", one);
  if (start.known && end.known && step.known && start.kind != Scalar::Kind::kFloat &&
      end.kind != Scalar::Kind::kFloat && step.kind != Scalar::Kind::kFloat && dtype != DType::kI64) {
    // Integers counted as integers, then converted: no rounding of the bounds.
    const ValueId numbers =
        c.add("range", {c.constant_int(start.integer), c.constant_int(end.integer), c.constant_int(step.integer)});
    return c.output(c.cast(numbers, dtype));
  }
  const bool whole =
      start.kind != Scalar::Kind::kFloat && end.kind != Scalar::Kind::kFloat && step.kind != Scalar::Kind::kFloat;
  const bool real = (dtypes(dtype) & kFloats) != 0;
  const DType in = whole || !real ? DType::kI64 : DType::kF64;
  const ValueId numbers = c.add("range", {c.as_tensor({kNoValue, start}, in), c.as_tensor({kNoValue, end}, in),
                                          c.as_tensor({kNoValue, step}, in)});
  c.output(c.cast(numbers, dtype));
}

// size, or like self; filled with a number or what the parameter says
void map_full(Call& c) {
  c.ignore(kOptions);
  const DType dtype = c.out_dtype();
  const std::string_view form = c.parameter();
  std::vector<Scalar> sizes;
  const bool like = form.ends_with("_like");
  if (like) {
    sizes = c.sizes_of(c.tensor("self"));
  } else {
    if (form.starts_with("new_")) c.ignore({"self"});
    sizes = c.sizes("size");
  }
  if (form.find("strided") != std::string_view::npos) c.ignore({"stride"});
  Operand value;
  if (form.find("ones") != std::string_view::npos) value.scalar = Scalar::of_int(1);
  if (form.find("full") != std::string_view::npos) value = c.operand("fill_value");
  c.output(c.full(sizes, c.as_tensor(value, dtype)));
}

void map_scalar_tensor(Call& c) {
  c.ignore(kOptions);
  c.output(c.as_tensor(c.operand("s"), c.out_dtype()));
}

void map_eye(Call& c) {
  c.ignore(kOptions);
  const DType dtype = c.out_dtype();
  const Scalar n = c.scalar("n"), m = c.scalar("m", n);
  const ValueId rows = c.add("range", {c.constant_int(0), c.as_tensor({kNoValue, n}, DType::kI64), c.constant_int(1)});
  const ValueId columns =
      c.add("range", {c.constant_int(0), c.as_tensor({kNoValue, m}, DType::kI64), c.constant_int(1)});
  c.output(c.cast(c.add("equal", {c.unsqueeze(rows, {1}), columns}), dtype));
}

// start + i * step up to the middle, end - (steps - 1 - i) * step after it, as PyTorch does
void map_linspace(Call& c) {
  c.ignore(kOptions);
  const DType dtype = c.out_dtype();
  const int64_t steps = c.integer("steps");
  const double start = c.number("start", 0), end = c.number("end", 0);
  if (steps < 0 || steps > (1 << 20) || dtype != DType::kF32)
    return c.fail("linspace with this number of steps or type", str_cat(steps));
  std::vector<float> values;
  const auto first = static_cast<float>(start), last = static_cast<float>(end);
  const float step = steps > 1 ? (last - first) / static_cast<float>(steps - 1) : 0;
  for (int64_t i = 0; i < steps; ++i) {
    values.push_back(i < steps / 2 || steps == 1 ? first + step * static_cast<float>(i)
                                                 : last - step * static_cast<float>(steps - 1 - i));
  }
  c.output(c.constant_floats(values, {steps}));
}

constexpr Mapping kMappings[] = {
    {"aten.arange", map_arange, ""},
    {"aten.empty", map_full, "empty"},
    {"aten.empty_like", map_full, "empty_like"},
    {"aten.empty_permuted", map_full, "empty_physical"},
    {"aten.empty_strided", map_full, "empty_strided"},
    {"aten.eye", map_eye, ""},
    {"aten.full", map_full, "full"},
    {"aten.full_like", map_full, "full_like"},
    {"aten.linspace", map_linspace, ""},
    {"aten.new_empty", map_full, "new_empty"},
    {"aten.new_empty_strided", map_full, "new_empty_strided"},
    {"aten.new_full", map_full, "new_full"},
    {"aten.new_ones", map_full, "new_ones"},
    {"aten.new_zeros", map_full, "new_zeros"},
    {"aten.ones", map_full, "ones"},
    {"aten.ones_like", map_full, "ones_like"},
    {"aten.scalar_tensor", map_scalar_tensor, ""},
    {"aten.zeros", map_full, "zeros"},
    {"aten.zeros_like", map_full, "zeros_like"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> creation_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
