// Products of matrices: linear, matmul and their relatives.
#include <algorithm>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

bool is_one(const Scalar& s) {
  return s.known && s.number() == 1;
}

ValueId scaled(Call& c, ValueId x, const Scalar& by) {
  return is_one(by) ? x : c.add("mul", {x, c.as_tensor({kNoValue, by}, c.dtype_of(x))});
}

// x [..., in], weight [out, in], bias [out]
void map_linear(Call& c) {
  const ValueId x = c.tensor("input"), weight = c.tensor("weight"), bias = c.optional_tensor("bias");
  const bool real = (dtypes(c.dtype_of(x)) & kFloats) != 0;
  if (real && c.rank(x) == 2 && c.rank(weight) == 2)
    return c.output(c.add("gemm", {x, weight, bias}, {{"trans_b", 1}}));
  if (c.rank(weight) == 1) {  // one output feature without a dimension
    const ValueId y = c.add("mat_mul", {x, weight});
    return c.output(bias == kNoValue ? y : c.add("add", {y, bias}));
  }
  if (!real && bias != kNoValue) return c.output(c.add("add", {c.add("mat_mul", {x, c.swap(weight, 0, 1)}), bias}));
  c.output(c.add("mat_mul", {x, c.swap(weight, 0, 1), bias}));
}

void map_matmul(Call& c) {
  c.output(c.add("mat_mul", {c.tensor("self"), c.tensor(c.parameter())}));
}

// beta * self + alpha * (mat1 @ mat2)
void map_addmm(Call& c) {
  const bool batches = c.parameter() == "batch1";
  const std::string_view left = c.parameter();
  const std::string_view right = batches ? "batch2" : left == "mat" ? "vec" : "mat2";
  const ValueId self = c.tensor("self"), a = c.tensor(left), b = c.tensor(right);
  const Scalar beta = c.scalar("beta", Scalar::of_int(1)), alpha = c.scalar("alpha", Scalar::of_int(1));
  const bool real = (dtypes(c.dtype_of(a)) & kFloats) != 0;
  if (left == "mat1" && real && alpha.known && beta.known) {
    // With beta 0, what self holds does not count, not even NaN.
    if (beta.number() == 0) return c.output(c.add("gemm", {a, b}, {{"alpha", alpha.number()}}));
    return c.output(c.add("gemm", {a, b, self}, {{"alpha", alpha.number()}, {"beta", beta.number()}}));
  }
  const DType dtype = c.out_dtype(), in = compute_type(dtype);
  const ValueId product = scaled(c, c.add("mat_mul", {c.cast(a, in), c.cast(b, in)}), alpha);
  if (beta.known && beta.number() == 0) return c.output(c.cast(product, dtype));
  c.output(c.cast(c.add("add", {scaled(c, c.cast(self, in), beta), product}), dtype));
}

void map_outer(Call& c) {
  const ValueId a = c.tensor("self"), b = c.tensor("vec2");
  const DType dtype = c.out_dtype();
  c.output(c.add(dtype == DType::kBool ? "and" : "mul", {c.unsqueeze(c.cast(a, dtype), {1}), c.cast(b, dtype)}));
}

/// An operand of an einsum: a letter per dimension.
struct Lettered {
  ValueId id;
  std::string letters;
};

/// The dimensions in the order of `letters`, which has the same ones.
ValueId ordered(Call& c, const Lettered& x, const std::string& letters) {
  std::vector<int64_t> order;
  for (char letter : letters) order.push_back(static_cast<int64_t>(x.letters.find(letter)));
  return c.transpose(x.id, order);
}

/// Sums over the letters that nothing else needs.
Lettered summed(Call& c, Lettered x, const std::string& needed) {
  std::vector<int64_t> axes;
  std::string kept;
  for (size_t i = 0; i < x.letters.size(); ++i) {
    if (needed.find(x.letters[i]) == std::string::npos) {
      axes.push_back(static_cast<int64_t>(i));
    } else {
      kept.push_back(x.letters[i]);
    }
  }
  if (axes.empty()) return x;
  return {c.paired_like(x.id, c.add("reduce_sum", {x.id, c.constant_ints(axes)}, {{"keepdims", 0}})), kept};
}

/// One product of matrices: letters of both that are needed are batches, the other ones of both are summed over.
Lettered contracted(Call& c, Lettered a, Lettered b, const std::string& needed) {
  a = summed(c, a, needed + b.letters);
  b = summed(c, b, needed + a.letters);
  std::string batch, rows, inner, columns;
  std::vector<Scalar> sizes;
  for (char letter : a.letters) {
    const bool both = b.letters.find(letter) != std::string::npos;
    (!both ? rows : needed.find(letter) != std::string::npos ? batch : inner).push_back(letter);
  }
  for (char letter : b.letters) {
    if (a.letters.find(letter) == std::string::npos) columns.push_back(letter);
  }
  const auto size = [&](const Lettered& x, char letter) {
    return c.size_of(x.id, static_cast<int64_t>(x.letters.find(letter)));
  };
  const auto product = [&](const Lettered& x, const std::string& letters) {
    Scalar all = Scalar::of_int(1);
    for (char letter : letters) all = c.multiply_sizes(all, size(x, letter));
    return all;
  };
  const Scalar batches = product(a, batch), m = product(a, rows), k = product(a, inner), n = product(b, columns);
  for (char letter : batch + rows) sizes.push_back(size(a, letter));
  for (char letter : columns) sizes.push_back(size(b, letter));
  const ValueId left = c.reshape(ordered(c, a, batch + rows + inner), {batches, m, k});
  const ValueId right = c.reshape(ordered(c, b, batch + inner + columns), {batches, k, n});
  return {c.reshape(matrix_product(c, left, right), sizes), batch + rows + columns};
}

/// "bij,bjk->bik" on tensors, from left to right. Refused: a letter twice in one operand.
ValueId einsum(Call& c, std::string equation, const std::vector<ValueId>& tensors) {
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char ch : left) {
    if (ch == ',') {
      terms.emplace_back();
    } else {
      terms.back().push_back(ch);
    }
  }
  if (terms.size() != tensors.size()) {
    c.fail("einsum with another number of operands", equation);
    return kNoValue;
  }
  // "..." stands for as many dimensions as are left; digits name them, the last one '9', so that they line up.
  size_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t dots = terms[i].find("...");
    const size_t named = terms[i].size() - (dots == std::string::npos ? 0 : 3);
    const size_t rank = static_cast<size_t>(c.rank(tensors[i]));
    if (rank < named || (dots == std::string::npos && rank != named) || rank - named > 9) {
      c.fail("einsum with operands of other ranks", equation);
      return kNoValue;
    }
    if (dots == std::string::npos) continue;
    widest = std::max(widest, rank - named);
    terms[i].replace(dots, 3, std::string("123456789").substr(9 - (rank - named)));
  }
  const std::string dots = std::string("123456789").substr(9 - widest);
  std::string out;
  if (arrow != std::string::npos) {
    out = equation.substr(arrow + 2);
    if (const size_t at = out.find("..."); at != std::string::npos) out.replace(at, 3, dots);
  } else {  // letters that appear once, in alphabetical order, behind the dots
    out = dots;
    for (char letter = 'A'; letter <= 'z'; ++letter) {
      if (std::count(left.begin(), left.end(), letter) == 1) out.push_back(letter);
    }
  }
  for (const std::string& term : terms) {
    for (char letter : term) {
      const bool known =
          (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '1' && letter <= '9');
      if (!known || std::count(term.begin(), term.end(), letter) != 1) {
        c.fail("einsum with a letter twice in one operand", equation);
        return kNoValue;
      }
    }
  }
  Lettered result{tensors[0], terms[0]};
  for (size_t i = 1; i < terms.size() && c.ok(); ++i) {
    std::string needed = out;
    for (size_t k = i + 1; k < terms.size(); ++k) needed += terms[k];
    for (char letter : result.letters) {  // sizes of 1 that broadcast are not what a product of matrices does
      const size_t other = terms[i].find(letter);
      if (other == std::string::npos) continue;
      const Dim x = c.dim(result.id, static_cast<int64_t>(result.letters.find(letter))),
                y = c.dim(tensors[i], static_cast<int64_t>(other));
      if (x.known() && y.known() && x != y) c.fail("einsum that broadcasts", equation);
    }
    if (c.ok()) result = contracted(c, result, {tensors[i], terms[i]}, needed);
  }
  if (!c.ok()) return kNoValue;
  result = summed(c, result, out);
  if (result.letters.size() != out.size()) {
    c.fail("einsum whose result has other letters", equation);
    return kNoValue;
  }
  for (char letter : out) {
    if (result.letters.find(letter) == std::string::npos) c.fail("einsum whose result has other letters", equation);
  }
  return c.ok() ? ordered(c, result, out) : kNoValue;
}

void map_einsum(Call& c) {
  c.ignore({"path"});
  const std::string equation = c.string("equation");
  const std::vector<ValueId> tensors = c.tensors("tensors");
  if (!c.ok()) return;
  const ValueId y = einsum(c, equation, tensors);
  if (c.ok() && tensors.size() == 1 && c.rank(y) == c.rank(tensors[0])) c.shares(Sharing::kView);  // permuted
  c.output(y);
}

// input1 [..., in1], input2 [..., in2], weight [out, in1, in2]
void map_bilinear(Call& c) {
  const ValueId a = c.tensor("input1"), b = c.tensor("input2"), weight = c.tensor("weight"),
                bias = c.optional_tensor("bias");
  if (!c.ok()) return;
  const ValueId y = einsum(c, "...i,oij,...j->...o", {a, weight, b});
  c.output(bias == kNoValue ? y : c.add("add", {y, bias}));
}

// What bilinear decomposes to: a product of three, each with dimensions of 1 put in, summed over some.
void map_trilinear(Call& c) {
  c.ignore({"unroll_dim"});
  const ValueId a = c.unsqueeze(c.tensor("i1"), c.ints("expand1")), b = c.unsqueeze(c.tensor("i2"), c.ints("expand2"));
  const ValueId product = c.add("mul", {c.add("mul", {a, b}), c.unsqueeze(c.tensor("i3"), c.ints("expand3"))});
  const std::vector<int64_t> over = c.ints("sumdim");
  c.output(over.empty() ? product : c.add("reduce_sum", {product, c.constant_ints(over)}, {{"keepdims", 0}}));
}

constexpr Mapping kMappings[] = {
    {"aten.__matmul__", map_matmul, "other"},
    {"aten._trilinear", map_trilinear, ""},
    {"aten.addmm", map_addmm, "mat1"},
    {"aten.addmv", map_addmm, "mat"},
    {"aten.baddbmm", map_addmm, "batch1"},
    {"aten.bilinear", map_bilinear, ""},
    {"aten.bmm", map_matmul, "mat2"},
    {"aten.dot", map_matmul, "tensor"},
    {"aten.einsum", map_einsum, ""},
    {"aten.ger", map_outer, ""},
    {"aten.linalg_matmul", map_matmul, "other"},
    {"aten.linear", map_linear, ""},
    {"aten.matmul", map_matmul, "other"},
    {"aten.mm", map_matmul, "mat2"},
    {"aten.mv", map_matmul, "vec"},
    {"aten.outer", map_outer, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> matmul_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
