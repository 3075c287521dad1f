// Linear algebra beyond products: determinants, inverses, factorisations, distances between rows, cross products.
#include <algorithm>
#include <cmath>

#include "import/torch/mappings/formula.h"
#include "import/torch/views.h"

namespace pinnace::torch_import {
namespace {

using Ints = std::vector<int64_t>;

void map_det(Call& c) {
  const std::string_view form = c.parameter();
  const ValueId x = c.tensor(c.given("A") ? "A" : "self");
  if (form == "det") return c.outputs({c.add("det", {x}), kNoValue, kNoValue});
  // The determinant itself may leave the range of doubles where its logarithm does not.
  const std::vector<ValueId> made = c.add_many("det", {x}, 3);
  if (!c.ok()) return;
  if (form == "sign") return c.outputs({made[1], made[2], kNoValue, kNoValue});
  const Formula f(c, c.dtype_of(x));
  c.output(f("add", made[2], f("log", made[1])));  // NaN below 0
}

/// (sum |x|^p)^(1/p) over the last axis.
ValueId norm_last(Call& c, ValueId x, double p, bool keep) {
  const Formula f(c, c.dtype_of(x));
  const ValueId over = c.constant_ints({-1});
  const auto reduce = [&](const char* op, ValueId v) { return c.add(op, {v, over}, {{"keepdims", keep}}); };
  if (p == 2) return reduce("reduce_l2", x);
  if (p == 1) return reduce("reduce_l1", x);
  x = f("abs", x);
  if (std::isinf(p)) return reduce(p > 0 ? "reduce_max" : "reduce_min", x);
  if (p == 0) return reduce("reduce_sum", c.cast(f.differs(x, 0), f.dtype()));
  return f("pow", reduce("reduce_sum", f("pow", x, p)), 1 / p);
}

// Distances between all rows of x1 [..., P, M] and x2 [..., R, M]: by differences, which lose no digits
void map_cdist(Call& c) {
  const ValueId a = c.tensor("x1"), b = c.tensor("x2");
  const double p = c.number("p", 2);
  const int64_t mode = c.integer("compute_mode", 0);
  const int rank = c.rank(a);
  if (c.dim(a, -1) == Dim(0)) {
    std::vector<Scalar> sizes = c.sizes_of(a);
    sizes.back() = c.size_of(b, -2);
    return c.output(c.full(sizes, c.constant(0, c.dtype_of(a))));
  }
  // Beyond 25 rows PyTorch multiplies out the square, which takes no [n, m, d]; compute_mode 1 always, 2 never.
  const auto most = [&](Dim d) {
    return d.known()       ? d.size
           : d.symbol >= 0 ? c.builder().session.symbols[static_cast<size_t>(d.symbol)].max
                           : INT64_MAX;
  };
  const bool many = most(c.dim(a, -2)) > 25 || most(c.dim(b, -2)) > 25;
  if (p == 2 && mode != 2 && (mode == 1 || many)) {
    const Formula f(c, c.dtype_of(a));
    const auto squares = [&](ValueId x) { return c.add("reduce_sum_square", {x, c.constant_ints({c.rank(x) - 1})}); };
    const ValueId products = f("mat_mul", a, c.swap(b, -2, -1));
    const ValueId sums = f("add", squares(a), c.swap(squares(b), -2, -1));
    return c.output(f("sqrt", f("max", f("sub", sums, f("mul", products, 2.0)), 0.0)));
  }
  c.output(norm_last(c, c.add("sub", {c.unsqueeze(a, {rank - 1}), c.unsqueeze(b, {c.rank(b) - 2})}), p, false));
}

void map_pdist(Call& c) {
  const ValueId x = c.tensor("self");
  const double p = c.number("p", 2);
  const Dim rows = c.dim(x, 0);
  if (!rows.known() || rows.size > 2048) return c.fail("pdist of this many rows", to_string(c.type(x)));
  Ints first, second;
  for (int64_t i = 0; i < rows.size; ++i) {
    for (int64_t k = i + 1; k < rows.size; ++k) {
      first.push_back(i);
      second.push_back(k);
    }
  }
  if (c.dim(x, 1) == Dim(0) || first.empty())
    return c.output(c.full({Scalar::of_int(static_cast<int64_t>(first.size()))}, c.constant(0, c.dtype_of(x))));
  const ValueId a = c.add("gather", {x, c.constant_ints(first)}), b = c.add("gather", {x, c.constant_ints(second)});
  c.output(norm_last(c, c.add("sub", {a, b}), p, false));
}

void map_pairwise_distance(Call& c) {
  const DType dtype = c.out_dtype();
  const Formula f(c, compute_type(dtype));
  const ValueId difference = f("add", f("sub", f.argument("x1"), f.argument("x2")), c.number("eps", 1e-6));
  f.output(norm_last(c, difference, c.number("p", 2), c.boolean("keepdim", false)));
}

void map_dist(Call& c) {
  const Formula f(c, compute_type(c.out_dtype()));
  const ValueId difference = f("sub", f.argument("self"), f.argument("other"));
  f.output(norm_last(c, c.reshape(difference, Ints{-1}), c.number("p", 2), false));
}

void map_cross(Call& c) {
  const DType dtype = c.out_dtype();
  ValueId a = c.cast(c.tensor("self"), dtype), b = c.cast(c.tensor("other"), dtype);
  const int rank = c.out_rank();
  int64_t axis = -1;
  if (c.given("dim")) {
    axis = c.axis("dim", rank);
  } else if (c.parameter() == "linalg") {
    axis = rank - 1;
  } else {  // the first one of size 3
    for (int i = rank; i-- > 0;) {
      if (c.dim(a, i) == Dim(3)) axis = i;
    }
  }
  if (axis < 0) return c.fail("cross without a dimension of 3");
  const int64_t from_end = axis - rank;
  const auto turned = [&](ValueId x, const Ints& order) {
    return c.add("gather", {x, c.constant_ints(order)}, {{"axis", from_end}});
  };
  const Formula f(c, dtype);
  c.output(f("sub", f("mul", turned(a, {1, 2, 0}), turned(b, {2, 0, 1})),
             f("mul", turned(a, {2, 0, 1}), turned(b, {1, 2, 0}))));
}

void map_vecdot(Call& c) {
  const DType dtype = c.out_dtype();
  ValueId a = c.cast(c.tensor("x"), dtype), b = c.cast(c.tensor("y"), dtype);
  const int64_t axis = c.axis("dim", c.out_rank() + 1, -1) - c.out_rank() - 1;
  c.output(c.add("reduce_sum", {c.add("mul", {a, b}), c.constant_ints({axis})}, {{"keepdims", 0}}));
}

// beta * self + alpha * the sum of all products
void map_addbmm(Call& c) {
  const DType dtype = c.out_dtype();
  const Formula f(c, compute_type(dtype));
  const ValueId a = f.argument("batch1"), b = f.argument("batch2");
  const Scalar beta = c.scalar("beta", Scalar::of_int(1)), alpha = c.scalar("alpha", Scalar::of_int(1));
  ValueId y = c.add("reduce_sum", {f("mat_mul", a, b), c.constant_ints({0})}, {{"keepdims", 0}});
  if (!alpha.is(1)) y = f("mul", y, c.as_tensor({kNoValue, alpha}, f.dtype()));
  if (beta.known && beta.number() == 0) return f.output(y);
  ValueId self = f.argument("self");
  if (!beta.is(1)) self = f("mul", self, c.as_tensor({kNoValue, beta}, f.dtype()));
  f.output(f("add", self, y));
}

void map_trace(Call& c) {
  const ValueId x = c.cast(c.tensor("self"), c.out_dtype());
  c.output(c.add("reduce_sum", {diagonal_of(c, x, 0, 1, 0), c.constant_ints({0})}, {{"keepdims", 0}}));
}

// Slices along dim with a norm above maxnorm are scaled down to it.
void map_renorm(Call& c) {
  const DType dtype = c.out_dtype();
  const Formula f(c, compute_type(dtype));
  const ValueId x = f.argument("self");
  const int64_t axis = c.axis("dim", c.rank(x));
  const double p = c.number("p", 2), limit = c.number("maxnorm", 1);
  const Scalar rows = c.size_of(x, axis);
  const ValueId moved = c.swap(x, 0, axis);
  const ValueId norm = norm_last(c, c.reshape(moved, {rows, Scalar::of_int(-1)}), p, true);
  const ValueId factor = f("where", f("greater", norm, limit), f("div", limit, f("add", norm, 1e-7)), 1.0);
  Ints shape(static_cast<size_t>(c.rank(x)), 1);
  shape[0] = -1;
  f.output(f("mul", x, c.swap(c.reshape(factor, shape), 0, axis)));
}

/// The identity as wide as x, [..., n, n].
ValueId identity_like(Call& c, ValueId x) {
  const Dim size = c.dim(x, -1);
  if (!size.known() || size.size > 4096) {
    c.fail("an inverse of symbolic size");
    return x;
  }
  const ValueId numbers = c.add("range", {c.constant_int(0), c.constant_int(size.size), c.constant_int(1)});
  const ValueId eye = c.cast(c.add("equal", {c.unsqueeze(numbers, {1}), numbers}), c.dtype_of(x));
  return c.expand(eye, c.sizes_of(x));
}

void map_inverse(Call& c) {
  const ValueId x = c.tensor(c.given("A") ? "A" : "self");
  c.ignore({"check_errors"});
  if (c.parameter() == "ex") return c.outputs(c.add_many("solve", {x, identity_like(c, x)}, 2));
  c.output(c.add("solve", {x, identity_like(c, x)}));
}

// A x = b, or x A = b; b may be vectors; the batches of both broadcast
void map_solve(Call& c) {
  ValueId a = c.tensor(c.given("A") ? "A" : "self"), b = c.tensor("B");
  c.ignore({"check_errors"});
  const bool left = c.boolean("left", true), triangular = c.parameter() == "triangular";
  const bool vectors =
      !triangular && (c.rank(b) == 1 || (c.rank(b) == c.rank(a) - 1 &&
                                         c.type(b).shape == Shape(c.type(a).shape.begin(), c.type(a).shape.end() - 1)));
  if (vectors) b = c.unsqueeze(b, {c.rank(b)});
  if (!left) {
    a = c.swap(a, -2, -1);
    b = c.swap(b, -2, -1);
  }
  const bool upper = c.boolean("upper", false) == left;
  std::vector<ValueId> made =
      triangular ? c.add_many("solve", {a, b}, 1,
                              {{"form", upper ? "upper" : "lower"}, {"unit", c.boolean("unitriangular", false)}})
                 : c.add_many("solve", {a, b}, c.parameter() == "ex" ? 2 : 1);
  if (!c.ok()) return;
  if (!left) made[0] = c.swap(made[0], -2, -1);
  if (vectors) made[0] = c.squeeze(made[0], {c.rank(made[0]) - 1});
  c.outputs(std::move(made));
}

void map_cholesky(Call& c) {
  const ValueId x = c.tensor("self");
  const bool upper = c.boolean("upper", false);
  c.ignore({"check_errors"});
  std::vector<ValueId> made = c.add_many("cholesky", {upper ? c.swap(x, -2, -1) : x}, c.parameter() == "ex" ? 2 : 1);
  if (!c.ok()) return;
  if (upper) made[0] = c.swap(made[0], -2, -1);
  c.outputs(std::move(made));
}

// cholesky_inverse(l), cholesky_solve(b, l): of the matrix l transposed(l), or transposed(u) u, by both triangles: the
// product would lose what the factors have.
void map_cholesky_solve(Call& c) {
  const bool inverse = c.parameter() == "inverse", upper = c.boolean("upper", false);
  const ValueId given = c.tensor(inverse ? "self" : "input2"), turned = c.swap(given, -2, -1);
  const ValueId b = inverse ? identity_like(c, given) : c.tensor("self");
  const ValueId half = c.add("solve", {upper ? turned : given, b}, {{"form", "lower"}});
  c.output(c.add("solve", {upper ? given : turned, half}, {{"form", "upper"}}));
}

/// Says that vectors have signs of our own, where any of `outputs` is read. kind: the vectors that decide.
void note_signs(Call& c, std::string_view function, std::string_view kind, std::initializer_list<size_t> outputs) {
  if (std::none_of(outputs.begin(), outputs.end(), [&](size_t output) { return c.reads(output); })) return;
  c.builder().session.note(str_cat(
      "the signs of the vectors that ", function,
      " gives are not LAPACK's, which PyTorch has: the first element of each ", kind,
      " with at least 0.9 of its largest magnitude is positive; where an output depends on them, it is verified ",
      "against PyTorch's vectors with these signs"));
}

// (values, vectors), or the values alone; the symmetric matrix's lower triangle unless UPLO says otherwise
void map_eigh(Call& c) {
  const std::string_view form = c.parameter();
  const ValueId x = c.tensor(c.given("A") ? "A" : "self");
  const std::string triangle = c.string("UPLO", "L");
  c.ignore({"compute_v"});
  const bool upper = triangle == "U" || triangle == "u";
  if (form == "values") return c.output(c.add("eigh", {x}, {{"upper", upper}}));
  if (!c.reads(1)) return c.outputs({c.add("eigh", {x}, {{"upper", upper}}), kNoValue});
  note_signs(c, "torch.linalg.eigh", "eigenvector", {1});
  c.outputs(c.add_many("eigh", {x}, 2, {{"upper", upper}}));
}

// (u, s, vh), or the values alone
void map_svd(Call& c) {
  const ValueId x = c.tensor(c.given("A") ? "A" : "self");
  const bool full = c.boolean("full_matrices", true);
  c.ignore({"compute_uv", "driver"});
  if (c.parameter() == "values") return c.output(c.add("svd", {x}));
  if (!c.reads(0) && !c.reads(2)) return c.outputs({kNoValue, c.add("svd", {x}), kNoValue});
  note_signs(c, "torch.linalg.svd", "left singular vector", {0, 2});
  const std::vector<ValueId> made = c.add_many("svd", {x}, 3, {{"full_matrices", full}});
  if (c.ok()) c.outputs({made[1], made[0], made[2]});
}

void map_qr(Call& c) {
  const ValueId x = c.tensor(c.given("A") ? "A" : "self");
  const std::string mode =
      c.given("some") ? (c.boolean("some", true) ? "reduced" : "complete") : c.string("mode", "reduced");
  c.outputs(c.add_node("qr", {x}, 2, {{"mode", Attr(mode)}}));
}

// The pseudo-inverse: singular values above max(atol, rtol * the largest) are inverted, others become 0. In double,
// where PyTorch has its type. rtol is `rcond` in older forms; left out, and without an atol above 0, it is the type's
// epsilon times the larger side.
void map_pinv(Call& c) {
  const ValueId given = c.tensor("self");
  const DType dtype = c.dtype_of(given);
  const bool hermitian = c.boolean("hermitian", false);
  const Formula f(c, DType::kF64);
  const ValueId x = c.cast(given, DType::kF64);
  const auto bound = [&](std::string_view name) {  // of all matrices, or [..., 1]
    const ValueId t = f.argument(name);
    return c.rank(t) == 0 ? t : c.unsqueeze(t, {c.rank(t)});
  };
  const bool old = c.parameter() == "pinverse" || c.given("rcond");
  const ValueId atol = c.given("atol") ? bound("atol") : kNoValue;
  ValueId rtol;
  if (old) {
    rtol = c.given("rcond") ? bound("rcond") : f.number(1e-15);
  } else if (c.given("rtol")) {
    rtol = bound("rtol");
  } else {
    const auto side = [&](int64_t axis) { return c.as_tensor({kNoValue, c.size_of(given, axis)}, DType::kF64); };
    const double epsilon = dtype == DType::kF64 ? 0x1p-52 : 0x1p-23;
    rtol = f("mul", f("max", side(-2), side(-1)), epsilon);
    if (atol != kNoValue) rtol = f("where", f("greater", atol, 0.0), 0.0, rtol);
  }
  ValueId values, magnitudes, largest, left, right;  // left and right [..., M, K], [..., N, K]
  if (hermitian) {
    const std::vector<ValueId> made = c.add_many("eigh", {x}, 2);
    if (!c.ok()) return;
    values = made[0];
    left = right = made[1];
    magnitudes = f("abs", values);
    largest = c.add("reduce_max", {magnitudes, c.constant_ints({-1})});
  } else {
    const std::vector<ValueId> made = c.add_many("svd", {x}, 3);
    if (!c.ok()) return;
    values = magnitudes = made[0];
    left = made[1];
    right = c.swap(made[2], -2, -1);
    largest = c.slice(values, c.rank(values) - 1, Scalar::of_int(0), Scalar::of_int(1));
  }
  ValueId least = f("mul", rtol, largest);
  if (atol != kNoValue) least = f("max", atol, least);
  const ValueId inverses = f("where", f("greater", magnitudes, least), f("reciprocal", values), 0.0);
  const ValueId scaled = f("mul", right, c.unsqueeze(inverses, {c.rank(inverses) - 1}));
  c.output(c.cast(f("mat_mul", scaled, c.swap(left, -2, -1)), dtype));
}

constexpr Mapping kMappings[] = {
    {"aten._cdist_forward", map_cdist, ""},
    {"aten._linalg_det", map_det, "det"},
    {"aten._linalg_eigh", map_eigh, ""},
    {"aten._linalg_slogdet", map_det, "sign"},
    {"aten._linalg_svd", map_svd, ""},
    {"aten._pdist_forward", map_pdist, ""},
    {"aten.addbmm", map_addbmm, ""},
    {"aten.cdist", map_cdist, ""},
    {"aten.cholesky", map_cholesky, ""},
    {"aten.cholesky_inverse", map_cholesky_solve, "inverse"},
    {"aten.cholesky_solve", map_cholesky_solve, ""},
    {"aten.cross", map_cross, ""},
    {"aten.det", map_det, "det"},
    {"aten.dist", map_dist, ""},
    {"aten.inverse", map_inverse, ""},
    {"aten.linalg_cholesky", map_cholesky, ""},
    {"aten.linalg_cholesky_ex", map_cholesky, "ex"},
    {"aten.linalg_cross", map_cross, "linalg"},
    {"aten.linalg_det", map_det, "det"},
    {"aten.linalg_eigh", map_eigh, ""},
    {"aten.linalg_eigvalsh", map_eigh, "values"},
    {"aten.linalg_inv", map_inverse, ""},
    {"aten.linalg_inv_ex", map_inverse, "ex"},
    {"aten.linalg_pinv", map_pinv, ""},
    {"aten.linalg_qr", map_qr, ""},
    {"aten.linalg_slogdet", map_det, "sign"},
    {"aten.linalg_solve", map_solve, ""},
    {"aten.linalg_solve_ex", map_solve, "ex"},
    {"aten.linalg_solve_triangular", map_solve, "triangular"},
    {"aten.linalg_svd", map_svd, ""},
    {"aten.linalg_svdvals", map_svd, "values"},
    {"aten.linalg_vecdot", map_vecdot, ""},
    {"aten.logdet", map_det, "log"},
    {"aten.pairwise_distance", map_pairwise_distance, ""},
    {"aten.pdist", map_pdist, ""},
    {"aten.pinverse", map_pinv, "pinverse"},
    {"aten.qr", map_qr, ""},
    {"aten.renorm", map_renorm, ""},
    {"aten.slogdet", map_det, "sign"},
    {"aten.trace", map_trace, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> linalg_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
