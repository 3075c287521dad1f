// Cases of einsum: explicit and implicit outputs, diagonals, ellipses, refusals.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{1,2,3,4};f32[2,2]{5,6,7,8}", .attributes = "equation=\"ij,jk->ik\"", .expect = "f32[2,2]{19,22,43,50}", .why = "product"},
    {.inputs = "f32[2,2]{1,2,3,4};f32[2,2]{5,6,7,8}", .attributes = "equation=\"ij, jk\"", .expect = "f32[2,2]{19,22,43,50}", .why = "implicit output, spaces"},
    {.inputs = "f32[2,2]{1,2,3,4}", .attributes = "equation=\"ii\"", .expect = "f32[]{5}", .why = "trace"},
    {.inputs = "f32[2,2]{1,2,3,4}", .attributes = "equation=\"ii->i\"", .expect = "f32[2]{1,4}", .why = "diagonal"},
    {.inputs = "f32[2,3]{1,2,3,4,5,6}", .attributes = "equation=\"ba\"", .expect = "f32[3,2]{1,4,2,5,3,6}", .why = "implicit output is sorted: a transpose"},
    {.inputs = "f32[2,3]{1,2,3,4,5,6}", .attributes = "equation=\"ij->\"", .expect = "f32[]{21}", .why = "sum of all"},
    {.inputs = "f32[2,3,4,5];f32[3,5,2]", .attributes = "equation=\"...ij,...jk->...ik\"", .expect = "type f32[2,3,4,2]", .tolerance = kF32, .why = "ellipses of different length broadcast"},
    {.inputs = "f32[2,3,4];f32[3,4]", .attributes = "equation=\"...j,...j\"", .expect = "type f32[2,3]", .tolerance = kF32, .why = "implicit ellipsis"},
    {.inputs = "f32[2,3];f32[3,4];f32[4,5]", .attributes = "equation=\"ij,jk,kl->li\"", .tolerance = kF32, .why = "three inputs"},
    {.inputs = "f32[2,1];f32[3,4]", .attributes = "equation=\"ij,jk->ijk\"", .expect = "type f32[2,3,4]", .tolerance = kF32, .why = "a size of 1 repeats"},
    {.inputs = "f32{1,2};f32{3,4,5}", .attributes = "equation=\"A,a->aA\"", .expect = "f32[3,2]{3,6,4,8,5,10}", .why = "upper case is another letter"},
    {.inputs = "i32{65536,3};i32{65536,4}", .attributes = "equation=\"i,i->\"", .expect = "i32[]{12}", .why = "integers wrap"},
    {.inputs = "f16[3,4];f16[4]", .attributes = "equation=\"ij,j->i\"", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[3,4];bf16[4]", .attributes = "equation=\"ij,j->i\"", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[3,4];f64[4]", .attributes = "equation=\"ij,j->i\"", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "f32[2,0];f32[0,2]", .attributes = "equation=\"ij,jk->ik\"", .expect = "f32[2,2]{0,0,0,0}", .why = "a sum of nothing"},
    {.inputs = "f32[0,2]", .attributes = "equation=\"ij->ji\"", .expect = "f32[2,0]{}", .why = "empty"},
    {.inputs = "f32[2,3];f32[2,3]", .attributes = "equation=\"ij,jk->ik\"", .expect = "error do not broadcast", .why = "sizes"},
    {.inputs = "f32[2,3]", .attributes = "equation=\"i->i\"", .expect = "error to an input of rank 2", .why = "rank"},
    {.inputs = "f32[2,3]", .attributes = "equation=\"ij->k\"", .expect = "error that no input has", .why = "unknown letter"},
    {.inputs = "f32[2,3]", .attributes = "equation=\"ij->ii\"", .expect = "error a letter twice", .why = "repeated output"},
    {.inputs = "f32[2,3]", .attributes = "equation=\"ij,jk->ik\"", .expect = "error has 2 terms for 1", .why = "inputs"},
    {.inputs = "f32[2,3]", .attributes = "equation=\"i1->i\"", .expect = "error where a letter must be", .why = "digit"},
    {.inputs = "i8[2,2]{scale 0.5, zero 3}{1,2,3,4};i8[2,2]{scale 0.5, zero 3}{1,2,3,4}", .attributes = "equation=\"ij,jk->ik\"", .expect = "error takes plain tensors only", .why = "scales would be lost"},
    {.inputs = "f32[2]{0,1};f32[2]{inf,1}", .attributes = "equation=\"i,i->\"", .expect = "f32[]{nan}", .why = "0 times infinity"},
};
PINNACE_CASES(einsum, kCases)
}  // namespace pinnace::testing
