// Tensors made from numbers: arange, full, zeros, eye and their relatives.
#include <algorithm>

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
  c.ignore({"stride", "physical_layout"});  // how memory is laid out has no meaning here
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

// start + i * step up to the middle, end - (steps - 1 - i) * step after it, as PyTorch does; logspace: base to these.
// Bounds that are tensors are computed with in f64.
void map_linspace(Call& c) {
  c.ignore(kOptions);
  const DType dtype = c.out_dtype();
  const int64_t steps = c.integer("steps");
  const Operand start = c.operand("start"), end = c.operand("end");
  const bool log = c.parameter() == "log";
  const double base = log ? c.number("base", 10) : 0;
  if (steps < 0 || steps > (1 << 20)) return c.fail("this number of steps", str_cat(steps));
  const bool real = (dtypes(dtype) & kFloats) != 0;
  const DType in = real && dtype != DType::kF64 && !log ? DType::kF32 : DType::kF64;
  // The bounds are rounded to the result's type first, and so is the step between floats.
  const ValueId low = c.cast(c.as_tensor(start, dtype), in), high = c.cast(c.as_tensor(end, dtype), in);
  const ValueId numbers = c.cast(c.add("range", {c.constant_int(0), c.constant_int(steps), c.constant_int(1)}), in);
  const ValueId left = c.cast(c.add("range", {c.constant_int(steps - 1), c.constant_int(-1), c.constant_int(-1)}), in);
  ValueId step =
      c.add("div", {c.add("sub", {high, low}), c.constant(static_cast<double>(std::max<int64_t>(steps - 1, 1)), in)});
  if (real) step = c.cast(c.cast(step, dtype), in);
  const ValueId rising = c.add("add", {low, c.add("mul", {numbers, step})});
  const ValueId falling = c.add("sub", {high, c.add("mul", {left, step})});
  const ValueId first = c.add("less", {numbers, c.constant(static_cast<double>(steps == 1 ? 1 : steps / 2), in)});
  ValueId y = c.add("where", {first, rising, falling});
  if (log) y = c.add("pow", {c.constant(base, in), y});
  c.output(c.cast(y, dtype));
}

// pinnace::philox of python/pinnace/torch/seeded_random.py
void map_philox(Call& c) {
  const ValueId counter = c.tensor("counter");
  c.output(c.add("random_philox", {counter, c.size_values(c.sizes("sizes"))}, {{"key", c.integer("key")}}));
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
    {"aten.logspace", map_linspace, "log"},
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
    {"pinnace.philox", map_philox, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> creation_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
