// lower_einsum: which products come of which equations, and what stays an einsum.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

std::string graph(std::string_view a, std::string_view b, std::string_view equation) {
  const std::string second = b.empty() ? "" : str_cat("input %b : ", b);
  return str_cat("graph \"g\" { symbol n 1..8 symbol m 1..8 symbol k 0..8 input %a : ", a, " ", second,
                 " %y = einsum(%a", b.empty() ? "" : ", %b", ") {equation=\"", equation, "\"} output \"y\" %y }");
}

struct Lowered {
  const char *a, *b, *equation, *ops;
};

class LowerEinsum : public ::testing::TestWithParam<Lowered> {};

TEST_P(LowerEinsum, GivesTheSame) {
  const Lowered& c = GetParam();
  const Applied r = apply_pass("lower_einsum", graph(c.a, c.b, c.equation));
  EXPECT_EQ(r.ops, c.ops);
  EXPECT_EQ(r.changes, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, LowerEinsum,
    ::testing::Values(Lowered{"f32[2,3]", "f32[3,4]", "ij,jk->ik", "mat_mul"},
                      Lowered{"f32[2,3]", "f32[3,4]", "ij,jk", "mat_mul"},
                      Lowered{"f32[2,3]", "f32[3,4]", "ij,jk->ki", "transpose transpose mat_mul"},
                      Lowered{"f32[2,3]", "f32[4,3]", "ij,kj->ik", "transpose mat_mul"},
                      Lowered{"f32[5,2,3]", "f32[3,4]", "bij,jk->bik", "mat_mul"},
                      Lowered{"f32[2,3]", "f32[5,3,4]", "ij,bjk->bik", "mat_mul"},
                      Lowered{"f32[5,2,3]", "f32[5,3,4]", "bij,bjk->bik", "mat_mul"},
                      Lowered{"f32[1,2,3]", "f32[5,3,4]", "bij,bjk->bik", "mat_mul"},
                      Lowered{"f32[2,3,4,5]", "f32[3,5,2]", "...ij,...jk->...ik", "mat_mul"},
                      Lowered{"f32[5,7,2,3]", "f32[2,3,4]", "btgi,gih->btgh", "transpose mat_mul transpose"},
                      Lowered{"f32[2,4,3,5]", "f32[2,6,3,5]", "bqhd,bkhd->bhqk", "transpose transpose mat_mul"},
                      Lowered{"f32[2,3]", "f32[3]", "ij,j->i", "unsqueeze mat_mul squeeze"},
                      Lowered{"f32[3]", "f32[3]", "i,i->", "unsqueeze unsqueeze mat_mul squeeze"},
                      Lowered{"f32[4,3]", "f32[4,3]", "bi,bi->b", "unsqueeze unsqueeze mat_mul squeeze"},
                      Lowered{"f32[2,3,4]", "f32[3,4,5]", "ijk,jkl->il", "reshape reshape mat_mul"},
                      Lowered{"f32[n,3,4]", "f32[4,3,5]", "ijk,kjl->il", "transpose reshape reshape mat_mul"},
                      Lowered{"f32[3]", "f32[4]", "i,j->ij", "unsqueeze unsqueeze mul"},
                      Lowered{"f32[3]", "f32[4]", "i,j->ji", "unsqueeze unsqueeze mul"},
                      Lowered{"f32[2,3]", "f32[2,3]", "ij,ij->ij", "mul"},
                      Lowered{"f32[2,1]", "f32[3,4]", "ik,jl->ijkl", "unsqueeze unsqueeze mul"},
                      Lowered{"f32[2,3,4]", "f32[2,4]", "ijk,ik->i", "reduce_sum unsqueeze unsqueeze mat_mul squeeze"},
                      Lowered{"f32[2,3]", "", "ij->ji", "transpose"}, Lowered{"f32[2,3]", "", "ij->", "reduce_sum"},
                      Lowered{"f32[2,3,4]", "", "ijk->ki", "reduce_sum transpose"},
                      Lowered{"f32[2,3]", "", "ij->ij", "identity"},
                      Lowered{"f32[n,3]", "f32[3,m]", "ij,jk->ik", "mat_mul"},
                      Lowered{"f32[n,m]", "f32[m,4]", "ij,jk->ik", "mat_mul"},
                      Lowered{"f32[2,0]", "f32[0,4]", "ij,jk->ik", "mat_mul"},
                      Lowered{"f16[2,3]", "f16[3,4]", "ij,jk->ik", "mat_mul"},
                      Lowered{"bf16[2,3]", "bf16[4,3]", "ij,kj->ki", "transpose mat_mul"},
                      Lowered{"f64[2,3]", "f64[3]", "ij,j->", "reduce_sum unsqueeze unsqueeze mat_mul squeeze"}));

TEST(LowerEinsum, LeavesTheRest) {
  for (const auto& [a, b, equation] : {
           std::tuple{"f32[3,3]", "f32[3]", "ii,i->i"},            // a diagonal
           std::tuple{"f32[2,1]", "f32[3,4]", "ij,jk->ik"},        // a sum that repeats one element
           std::tuple{"f32[n,m]", "f32[k,4]", "ij,jk->ik"},        // which it may be
           std::tuple{"f32[n,m,4]", "f32[m,4,5]", "ijk,jkl->il"},  // no reshape knows the size
           std::tuple{"f16[2,3]", "f16[3,4]", "ij,kl->jkl"},       // two roundings for one
           std::tuple{"f32[0]", "f32[3]", "i,j->j"},               // 0, whatever the other operand is
           std::tuple{"f32[k]", "f32[3]", "i,j->j"},
           std::tuple{"i32[2,3]", "i32[3,4]", "ij,jk->ik"},
       }) {
    EXPECT_EQ(apply_pass("lower_einsum", graph(a, b, equation)).changes, 0) << equation;
  }
  EXPECT_EQ(apply_pass("lower_einsum",
                       "graph \"g\" { input %a : f32[2,3] input %b : f32[3,4] input %c : f32[4,2] "
                       "%y = einsum(%a, %b, %c) {equation=\"ij,jk,kl->il\"} output \"y\" %y }")
                .changes,
            0);
}

}  // namespace
}  // namespace pinnace::testing
