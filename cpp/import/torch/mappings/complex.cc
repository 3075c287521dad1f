// Operators on complex tensors, each held as a pair: a real tensor with a last dimension of 2 for the real and the
// imaginary part. What an operator's function does not speak of here is refused by name.
#include <algorithm>
#include <array>
#include <cmath>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

/// A pair, or a real tensor beside one. The number of an argument is a pair without dimensions if it is complex.
ValueId term(Call& c, std::string_view name, DType dtype) {
  const Argument* a = c.argument(name);
  if (a && a->kind == ArgumentKind::kComplex) {
    const ValueId number =
        c.add("concat", {c.constant(a->real, dtype, {1}), c.constant(a->imaginary, dtype, {1})}, {{"axis", 0}});
    c.mark_pair(number);
    return number;
  }
  return c.as_tensor(c.operand(name), dtype);
}

ValueId as_pair(Call& c, ValueId id) {
  return c.is_pair(id) ? id : pair_of(c, id);
}

/// An elementwise operator on the parts of pairs, or of a pair and a real tensor that goes with both parts.
ValueId on_parts(Call& c, std::string_view op, ValueId a, ValueId b) {
  const auto wide = [&](ValueId id) { return c.is_pair(id) || c.rank(id) == 0 ? id : c.unsqueeze(id, {c.rank(id)}); };
  const ValueId y = c.add(op, {wide(a), wide(b)});
  c.mark_pair(y);
  return y;
}

ValueId multiply(Call& c, ValueId a, ValueId b) {
  if (!c.is_pair(a) || !c.is_pair(b)) return on_parts(c, "mul", a, b);
  const ValueId ar = part_of(c, a, 0), ai = part_of(c, a, 1), br = part_of(c, b, 0), bi = part_of(c, b, 1);
  const auto mul = [&](ValueId x, ValueId y) { return c.add("mul", {x, y}); };
  return pair_of(c, c.add("sub", {mul(ar, br), mul(ai, bi)}), c.add("add", {mul(ar, bi), mul(ai, br)}));
}

ValueId magnitude(Call& c, ValueId z) {
  return c.add("reduce_l2", {z, c.constant_ints({c.rank(z)})}, {{"keepdims", 0}});
}

// Both parts of the divisor are brought below 1 first, so that its square neither overflows nor vanishes.
ValueId divide(Call& c, ValueId a, ValueId b) {
  if (!c.is_pair(b)) return on_parts(c, "div", a, b);
  const ValueId scale = c.add("reduce_max", {c.add("abs", {b}), c.constant_ints({c.rank(b)})}, {{"keepdims", 0}});
  const ValueId small = on_parts(c, "div", b, scale);
  const ValueId square = c.add("reduce_sum_square", {small, c.constant_ints({c.rank(b)})}, {{"keepdims", 0}});
  const ValueId top = multiply(c, a, conjugate(c, small));
  return on_parts(c, "div", on_parts(c, "div", top, square), scale);
}

void map_sum(Call& c) {
  const DType dtype = c.out_dtype();
  ValueId a = term(c, "self", dtype), b = term(c, "other", dtype);
  const bool reversed = c.parameter() == "rsub";
  if (c.given("alpha")) {
    const ValueId alpha = term(c, "alpha", dtype);
    (reversed ? a : b) = c.is_pair(alpha) || c.is_pair(reversed ? a : b) ? multiply(c, reversed ? a : b, alpha)
                                                                         : c.add("mul", {reversed ? a : b, alpha});
  }
  if (reversed) std::swap(a, b);
  c.output(on_parts(c, c.parameter() == "add" ? "add" : "sub", as_pair(c, a), as_pair(c, b)));
}

void map_mul(Call& c) {
  const DType dtype = c.out_dtype();
  const ValueId a = term(c, "self", dtype), b = term(c, "other", dtype);
  c.output(multiply(c, a, b));
}

void map_div(Call& c) {
  const DType dtype = c.out_dtype();
  if (c.given("rounding_mode")) return c.fail("a complex division with a rounding mode");
  c.output(divide(c, as_pair(c, term(c, "self", dtype)), term(c, "other", dtype)));
}

void map_reciprocal(Call& c) {
  c.output(divide(c, pair_of(c, c.constant(1, c.out_dtype())), c.tensor("self")));
}

void map_square(Call& c) {
  const Argument* exponent = c.argument("exponent");
  if (exponent && (exponent->kind == ArgumentKind::kTensor || exponent->kind == ArgumentKind::kComplex ||
                   c.scalar_of(*exponent).number() != 2)) {
    return c.fail("a complex power that is not the square");
  }
  const ValueId z = c.tensor("self");
  c.output(multiply(c, z, z));
}

void map_neg(Call& c) {
  const ValueId z = c.tensor("self");
  if (c.parameter() == "view") c.shares(Sharing::kUncertain);
  c.output(c.paired_like(z, c.add("neg", {z})));
}

void map_abs(Call& c) {
  c.output(magnitude(c, c.tensor("self")));
}

void map_angle(Call& c) {
  const ValueId z = c.tensor("self");
  c.output(angle_of(c, part_of(c, z, 1), part_of(c, z, 0)));
}

// z / |z|, 0 of 0
void map_sign(Call& c) {
  const ValueId z = c.tensor("self"), size = magnitude(c, z);
  const ValueId zero = c.constant(0, c.dtype_of(z)), one = c.constant(1, c.dtype_of(z));
  c.output(on_parts(c, "div", z, c.add("where", {c.add("equal", {size, zero}), one, size})));
}

void map_exp(Call& c) {
  const ValueId z = c.tensor("self"), size = c.add("exp", {part_of(c, z, 0)}), angle = part_of(c, z, 1);
  c.output(pair_of(c, c.add("mul", {size, c.add("cos", {angle})}), c.add("mul", {size, c.add("sin", {angle})})));
}

void map_log(Call& c) {
  const ValueId z = c.tensor("self");
  c.output(pair_of(c, c.add("log", {magnitude(c, z)}), angle_of(c, part_of(c, z, 1), part_of(c, z, 0))));
}

void map_equal(Call& c) {
  const std::array<ValueId, 2> given = {c.tensor("self"), kNoValue};
  const DType dtype = c.dtype_of(given[0]);
  if (!c.is_pair(given[0])) return c.fail("a real tensor compared with a complex one");
  const ValueId other = as_pair(c, term(c, "other", dtype));
  const ValueId same = on_parts(c, "equal", given[0], other);
  const ValueId both = c.add("and", {part_of(c, same, 0), part_of(c, same, 1)});
  c.output(c.parameter() == "not" ? c.add("not", {both}) : both);
}

// real, imag; view_as_real and view_as_complex, which are the pair itself
void map_part(Call& c) {
  const ValueId z = c.tensor("self");
  c.shares(Sharing::kView);
  c.output(part_of(c, z, c.parameter() == "real" ? 0 : 1));
}

void map_same_elements(Call& c) {
  const ValueId z = c.tensor("self");
  c.shares(c.parameter().empty() ? Sharing::kView : Sharing::kUncertain);
  c.output(z);
}

void map_conjugate(Call& c) {
  const ValueId z = c.tensor("self");
  c.shares(c.parameter() == "copy" ? Sharing::kNone : Sharing::kView);
  c.output(conjugate(c, z));
}

void map_adjoint(Call& c) {
  const ValueId z = c.tensor("self");
  c.shares(Sharing::kView);
  c.output(conjugate(c, c.swap(z, -2, -1)));
}

void map_make(Call& c) {
  const DType dtype = c.out_dtype();
  if (c.parameter() == "polar") {
    const ValueId size = c.cast(c.tensor("abs"), dtype), angle = c.cast(c.tensor("angle"), dtype);
    return c.output(
        pair_of(c, c.add("mul", {size, c.add("cos", {angle})}), c.add("mul", {size, c.add("sin", {angle})})));
  }
  c.output(pair_of(c, c.cast(c.tensor("real"), dtype), c.cast(c.tensor("imag"), dtype)));
}

// A real tensor becomes a pair; of a pair that becomes real the imaginary part is dropped, as PyTorch does.
void map_to(Call& c) {
  const ValueId x = c.tensor("self");
  c.ignore({"dtype", "other", "device", "layout", "pin_memory", "non_blocking", "copy", "memory_format"});
  const TensorMeta* stated = c.meta();
  const bool complex = stated && stated->part_dtype();
  if ((dtypes(c.out_dtype()) & kFloats) == 0) return c.fail("a complex tensor converted to integers or bools");
  ValueId y = complex || !c.is_pair(x) ? x : part_of(c, x, 0);
  y = c.cast(y, c.out_dtype());
  if (complex) y = as_pair(c, y);
  if (y == x && c.parameter() != "copy" && !c.boolean("copy", false)) c.shares(Sharing::kSame);
  c.output(y);
}

void map_cat(Call& c) {
  const DType dtype = c.out_dtype();
  const int64_t axis = c.axis("dim", c.out_rank(), 0);
  std::vector<ValueId> parts;
  for (ValueId id : c.tensors("tensors")) {
    if (c.out_rank() > 1 && c.rank(id) == 1 && c.dim(id, 0) == Dim(0)) continue;
    const ValueId pair = as_pair(c, c.cast(id, dtype));
    parts.push_back(c.parameter() == "stack" ? c.unsqueeze(pair, {axis}) : pair);
  }
  c.output(c.concat(std::move(parts), axis));
}

void map_where(Call& c) {
  const DType dtype = c.out_dtype();
  const bool fill = c.parameter() == "fill";
  ValueId a = as_pair(c, term(c, fill ? "value" : "self", dtype));
  ValueId b = as_pair(c, term(c, fill ? "self" : "other", dtype));
  const ValueId condition = c.cast(c.tensor(fill ? "mask" : "condition"), DType::kBool);
  const ValueId y = c.add("where", {c.unsqueeze(condition, {c.rank(condition)}), a, b});
  c.mark_pair(y);
  c.output(y);
}

void map_reduce(Call& c) {
  const DType dtype = c.out_dtype();
  const ValueId z = as_pair(c, c.cast(c.tensor("self"), dtype));
  const std::vector<int64_t> axes = c.axes("dim", c.rank(z));
  const int64_t keep = c.boolean("keepdim", false);
  c.ignore({"dtype"});
  if (axes.empty()) return c.output(z);
  const ValueId y = c.add(c.parameter(), {z, c.constant_ints(axes)}, {{"keepdims", keep}});
  c.mark_pair(y);
  c.output(y);
}

void map_product(Call& c) {
  const DType dtype = c.out_dtype();
  const bool matrix = c.given("mat2");
  const ValueId a = c.cast(c.tensor("self"), dtype);
  const char* other = matrix ? "mat2" : c.given("vec") ? "vec" : c.given("tensor") ? "tensor" : "other";
  const ValueId b = c.cast(c.tensor(other), dtype);
  c.output(matrix_product(c, a, b));
}

// input times the transposed weight, and a bias
void map_linear(Call& c) {
  const DType dtype = c.out_dtype();
  const ValueId x = as_pair(c, c.cast(c.tensor("input"), dtype)), w = as_pair(c, c.cast(c.tensor("weight"), dtype));
  const ValueId bias = c.optional_tensor("bias");
  if (!c.ok()) return;
  const ValueId y = matrix_product(c, x, c.swap(w, 0, 1));
  c.output(bias == kNoValue ? y : on_parts(c, "add", y, as_pair(c, c.cast(bias, dtype))));
}

// self * beta + a b * alpha; the parameter names a
void map_sum_and_product(Call& c) {
  const DType dtype = c.out_dtype();
  const bool batches = c.parameter() == "batch1";
  const ValueId self = as_pair(c, c.cast(c.tensor("self"), dtype));
  const ValueId a = as_pair(c, c.cast(c.tensor(c.parameter()), dtype));
  const ValueId b = as_pair(c, c.cast(c.tensor(batches ? "batch2" : "mat2"), dtype));
  if (!c.ok()) return;
  const auto times = [&](ValueId x, std::string_view name) {
    return c.given(name) ? multiply(c, x, term(c, name, dtype)) : x;
  };
  c.output(on_parts(c, "add", times(matrix_product(c, a, b), "alpha"), times(self, "beta")));
}

// zeros, ones, full and their relatives
void map_full(Call& c) {
  c.ignore({"dtype", "layout", "device", "pin_memory", "memory_format"});
  const DType dtype = c.out_dtype();
  const std::string_view form = c.parameter();
  const bool like = form.ends_with("like");
  if (form.starts_with("new")) c.ignore({"self"});
  const std::vector<Scalar> sizes = like ? c.sizes_of(c.tensor("self")) : c.sizes("size");
  if (const TensorMeta* stated = c.meta(); like && stated && !stated->part_dtype()) {  // a real one like a complex one
    Operand value{kNoValue, Scalar::of_int(form == "ones_like")};
    if (form == "full_like") value = c.operand("fill_value");
    return c.output(c.full(sizes, c.as_tensor(value, dtype)));
  }
  const ValueId value = form.find("full") != std::string_view::npos
                            ? as_pair(c, term(c, "fill_value", dtype))
                            : pair_of(c, c.constant(form.find("one") != std::string_view::npos, dtype));
  c.output(c.full(sizes, value));
}

void map_scalar_tensor(Call& c) {
  c.ignore({"dtype", "layout", "device", "pin_memory"});
  c.output(as_pair(c, term(c, "s", c.out_dtype())));
}

void map_fill(Call& c) {
  const ValueId self = c.tensor("self");
  const DType dtype = c.dtype_of(self);
  if (!c.is_pair(self)) return c.fail("a real tensor filled with a complex number");
  const ValueId value = c.parameter() == "zero" ? c.constant(0, dtype) : term(c, "value", dtype);
  c.output(c.expand(as_pair(c, value), c.sizes_of(self)));
}

void map_copy(Call& c) {  // self takes the elements of src
  const ValueId self = c.tensor("self"), source = as_pair(c, term(c, "src", c.dtype_of(self)));
  c.ignore({"non_blocking"});
  if (!c.is_pair(self)) return c.fail("a complex tensor copied into a real one");
  c.output(c.expand(source, c.sizes_of(self)));
}

constexpr Mapping kMappings[] = {
    {"aten._conj", map_conjugate, ""},
    {"aten._conj_physical", map_conjugate, "copy"},
    {"aten._neg_view", map_neg, "view"},
    {"aten._to_copy", map_to, "copy"},
    {"aten.abs", map_abs, ""},
    {"aten.absolute", map_abs, ""},
    {"aten.add", map_sum, "add"},
    {"aten.addmm", map_sum_and_product, "mat1"},
    {"aten.adjoint", map_adjoint, ""},
    {"aten.angle", map_angle, ""},
    {"aten.baddbmm", map_sum_and_product, "batch1"},
    {"aten.bmm", map_product, ""},
    {"aten.cat", map_cat, ""},
    {"aten.complex", map_make, ""},
    {"aten.concat", map_cat, ""},
    {"aten.conj", map_conjugate, ""},
    {"aten.conj_physical", map_conjugate, "copy"},
    {"aten.copy", map_copy, ""},
    {"aten.div", map_div, ""},
    {"aten.divide", map_div, ""},
    {"aten.dot", map_product, ""},
    {"aten.eq", map_equal, ""},
    {"aten.exp", map_exp, ""},
    {"aten.fill", map_fill, ""},
    {"aten.full", map_full, "full"},
    {"aten.full_like", map_full, "full_like"},
    {"aten.imag", map_part, "imag"},
    {"aten.linear", map_linear, ""},
    {"aten.log", map_log, ""},
    {"aten.mH", map_adjoint, ""},
    {"aten.masked_fill", map_where, "fill"},
    {"aten.matmul", map_product, ""},
    {"aten.matrix_H", map_adjoint, ""},
    {"aten.mean", map_reduce, "reduce_mean"},
    {"aten.mm", map_product, ""},
    {"aten.mul", map_mul, ""},
    {"aten.multiply", map_mul, ""},
    {"aten.mv", map_product, ""},
    {"aten.ne", map_equal, "not"},
    {"aten.neg", map_neg, ""},
    {"aten.negative", map_neg, ""},
    {"aten.new_full", map_full, "new_full"},
    {"aten.new_ones", map_full, "new_ones"},
    {"aten.new_zeros", map_full, "new_zeros"},
    {"aten.ones", map_full, "ones"},
    {"aten.ones_like", map_full, "ones_like"},
    {"aten.polar", map_make, "polar"},
    {"aten.pow", map_square, ""},
    {"aten.real", map_part, "real"},
    {"aten.reciprocal", map_reciprocal, ""},
    {"aten.resolve_conj", map_same_elements, "maybe a copy"},
    {"aten.resolve_neg", map_same_elements, "maybe a copy"},
    {"aten.rsub", map_sum, "rsub"},
    {"aten.scalar_tensor", map_scalar_tensor, ""},
    {"aten.sgn", map_sign, ""},
    {"aten.square", map_square, ""},
    {"aten.stack", map_cat, "stack"},
    {"aten.sub", map_sum, "sub"},
    {"aten.subtract", map_sum, "sub"},
    {"aten.sum", map_reduce, "reduce_sum"},
    {"aten.to", map_to, ""},
    {"aten.true_divide", map_div, ""},
    {"aten.view_as_complex", map_same_elements, ""},
    {"aten.view_as_real", map_same_elements, ""},
    {"aten.where", map_where, ""},
    {"aten.zero", map_fill, "zero"},
    {"aten.zeros", map_full, "zeros"},
    {"aten.zeros_like", map_full, "zeros_like"},
};
static_assert(sorted(kMappings));

constexpr std::string_view kOfBoth[] = {
    "aten._assert_tensor_metadata",
    "aten._index_put_impl",
    "aten._reshape_alias",
    "aten._unsafe_index",
    "aten._unsafe_index_put",
    "aten._unsafe_view",
    "aten.alias",
    "aten.broadcast_to",
    "aten.chunk",
    "aten.clone",
    "aten.constant_pad_nd",
    "aten.contiguous",
    "aten.detach",
    "aten.detach_",
    "aten.diagonal",
    "aten.diagonal_scatter",
    "aten.dsplit",
    "aten.einsum",
    "aten.expand",
    "aten.expand_as",
    "aten.flatten",
    "aten.flip",
    "aten.fliplr",
    "aten.flipud",
    "aten.hsplit",
    "aten.index",
    "aten.index_add",
    "aten.index_copy",
    "aten.index_put",
    "aten.index_select",
    "aten.lift",
    "aten.lift_fresh",
    "aten.lift_fresh_copy",
    "aten.mT",
    "aten.movedim",
    "aten.narrow",
    "aten.numpy_T",
    "aten.pad",
    "aten.permute",
    "aten.positive",
    "aten.ravel",
    "aten.repeat",
    "aten.reshape",
    "aten.reshape_as",
    "aten.roll",
    "aten.select",
    "aten.select_scatter",
    "aten.slice",
    "aten.slice_scatter",
    "aten.split",
    "aten.split_with_sizes",
    "aten.squeeze",
    "aten.swapaxes",
    "aten.swapdims",
    "aten.sym_numel",
    "aten.sym_size",
    "aten.t",
    "aten.tensor_split",
    "aten.tile",
    "aten.transpose",
    "aten.unbind",
    "aten.unflatten",
    "aten.unfold",
    "aten.unsafe_chunk",
    "aten.unsafe_split",
    "aten.unsafe_split_with_sizes",
    "aten.unsqueeze",
    "aten.view",
    "aten.view_as",
    "aten.vsplit",
};
static_assert(std::is_sorted(std::begin(kOfBoth), std::end(kOfBoth)));

}  // namespace

std::span<const Mapping> complex_mappings() {
  return kMappings;
}

bool takes_pairs(std::string_view target) {
  return std::binary_search(std::begin(kOfBoth), std::end(kOfBoth), target);
}

ValueId part_of(Call& c, ValueId pair, int which) {
  return c.add("gather", {pair, c.constant_int(which)}, {{"axis", c.rank(pair)}});
}

ValueId pair_of(Call& c, ValueId real, ValueId imaginary) {
  if (!c.ok()) return kNoValue;
  const Shape a = c.type(real).shape, b = c.type(imaginary).shape;
  if (a != b) {
    std::vector<Scalar> sizes;
    const size_t rank = std::max(a.size(), b.size());
    for (size_t i = 0; i < rank; ++i) {
      const int64_t at = static_cast<int64_t>(i) - static_cast<int64_t>(rank);  // from the end, as broadcasting goes
      const bool first = rank - i <= a.size() && (rank - i > b.size() || c.dim(real, at) != Dim(1));
      sizes.push_back(first ? c.size_of(real, at) : c.size_of(imaginary, at));
    }
    real = c.expand(real, sizes);
    imaginary = c.expand(imaginary, sizes);
  }
  const int64_t last = c.rank(real);
  const ValueId y = c.add("concat", {c.unsqueeze(real, {last}), c.unsqueeze(imaginary, {last})}, {{"axis", last}});
  c.mark_pair(y);
  return y;
}

ValueId pair_of(Call& c, ValueId real) {
  const int64_t last = c.rank(real);
  std::vector<int64_t> pads(static_cast<size_t>(2 * last + 2), 0);
  pads.back() = 1;
  const ValueId y =
      c.add("pad", {c.unsqueeze(real, {last}), c.constant_ints(pads), c.constant_int(0, c.dtype_of(real))});
  c.mark_pair(y);
  return y;
}

ValueId matrix_product(Call& c, ValueId a, ValueId b) {
  const auto product = [&](ValueId x, ValueId y) { return c.add("mat_mul", {x, y}); };
  if (!c.is_pair(a) && !c.is_pair(b)) return product(a, b);
  if (!c.is_pair(b)) return pair_of(c, product(part_of(c, a, 0), b), product(part_of(c, a, 1), b));
  if (!c.is_pair(a)) return pair_of(c, product(a, part_of(c, b, 0)), product(a, part_of(c, b, 1)));
  const ValueId ar = part_of(c, a, 0), ai = part_of(c, a, 1);
  const ValueId br = part_of(c, b, 0), bi = part_of(c, b, 1);
  return pair_of(c, c.add("sub", {product(ar, br), product(ai, bi)}), c.add("add", {product(ar, bi), product(ai, br)}));
}

ValueId paired(Call& c, ValueId model, ValueId id) {
  return c.is_pair(model) && !c.is_pair(id) ? pair_of(c, id) : id;
}

ValueId conjugate(Call& c, ValueId pair) {
  const DType dtype = c.dtype_of(pair);
  const ValueId signs = c.add("concat", {c.constant(1, dtype, {1}), c.constant(-1, dtype, {1})}, {{"axis", 0}});
  return c.paired_like(pair, c.add("mul", {pair, signs}));
}

}  // namespace pinnace::torch_import
