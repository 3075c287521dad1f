// Products of matrices: linear, matmul and their relatives.
#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

bool is_one(const Scalar& s) { return s.known && s.number() == 1; }

ValueId scaled(Call& c, ValueId x, const Scalar& by) {
  return is_one(by) ? x : c.add("mul", {x, c.as_tensor({kNoValue, by}, c.dtype_of(x))});
}

// x [..., in], weight [out, in], bias [out]
void map_linear(Call& c) {
  const ValueId x = c.tensor("input"), weight = c.tensor("weight"), bias = c.optional_tensor("bias");
  if (c.rank(x) == 2 && c.rank(weight) == 2) return c.output(c.add("gemm", {x, weight, bias}, {{"trans_b", 1}}));
  if (c.rank(weight) == 1) {  // one output feature without a dimension
    const ValueId y = c.add("mat_mul", {x, weight});
    return c.output(bias == kNoValue ? y : c.add("add", {y, bias}));
  }
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
    return c.output(c.add("gemm", {a, b, self}, {{"alpha", alpha.number()}, {"beta", beta.number()}}));
  }
  const ValueId product = scaled(c, c.add("mat_mul", {a, b}), alpha);
  if (beta.known && beta.number() == 0) return c.output(product);
  c.output(c.add("add", {scaled(c, self, beta), product}));
}

void map_outer(Call& c) {
  const ValueId a = c.tensor("self"), b = c.tensor("vec2");
  c.output(c.add("mul", {c.unsqueeze(a, {1}), b}));
}

void map_einsum(Call& c) {
  c.ignore({"path"});
  std::string equation;
  for (char ch : c.string("equation")) {
    if (ch != ' ') equation.push_back(ch);
  }
  const std::vector<ValueId> tensors = c.tensors("tensors");
  c.output(c.add("einsum", tensors, {{"equation", equation}}));
}

// input1 [..., in1], input2 [..., in2], weight [out, in1, in2]
void map_bilinear(Call& c) {
  const ValueId a = c.tensor("input1"), b = c.tensor("input2"), weight = c.tensor("weight"), bias = c.optional_tensor("bias");
  const ValueId y = c.add("einsum", {a, weight, b}, {{"equation", "...i,oij,...j->...o"}});
  c.output(bias == kNoValue ? y : c.add("add", {y, bias}));
}

constexpr Mapping kMappings[] = {
    {"aten.__matmul__", map_matmul, "other"},
    {"aten.addmm", map_addmm, "mat1"},
    {"aten.addmv", map_addmm, "mat"},
    {"aten.baddbmm", map_addmm, "batch1"},
    {"aten.bilinear", map_bilinear, ""},
    {"aten.bmm", map_matmul, "mat2"},
    {"aten.dot", map_matmul, "tensor"},
    {"aten.einsum", map_einsum, ""},
    {"aten.linalg_matmul", map_matmul, "other"},
    {"aten.linear", map_linear, ""},
    {"aten.matmul", map_matmul, "other"},
    {"aten.mm", map_matmul, "mat2"},
    {"aten.mv", map_matmul, "vec"},
    {"aten.outer", map_outer, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> matmul_mappings() { return kMappings; }

}  // namespace pinnace::torch_import
