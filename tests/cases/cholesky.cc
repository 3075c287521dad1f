// Cases of cholesky: values, batches, types, matrices that have none.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{4,99,2,10}", .expect = "f32[2,2]{2,0,1,3}", .why = "the upper triangle is not read"},
    {.inputs = "f64[3,3]{4,12,-16,12,37,-43,-16,-43,98}", .expect = "f64[3,3]{2,0,0,6,1,0,-8,5,3}", .why = "three rows"},
    {.inputs = "f32[2,1,1]{9,16}", .expect = "f32[2,1,1]{3,4}", .why = "several"},
    {.inputs = "f16[1,1]{4}", .expect = "f16[1,1]{2}", .why = "half"},
    {.inputs = "bf16[1,1]{0.25}", .expect = "bf16[1,1]{0.5}", .why = "bfloat16"},
    {.inputs = "f32[0,0]", .expect = "f32[0,0]{}", .why = "empty"},
    {.inputs = "f32[0,2,2]", .expect = "f32[0,2,2]{}", .why = "none"},
    {.inputs = "f32[2,2,2]{1,0,0,1,1,0,2,1}", .expect = "error matrix 1 of a is not positive definite", .why = "indefinite"},
    {.inputs = "f32[3,2,2]{1,0,2,1,4,9,2,10,nan,9,2,3}", .outputs = 2,
     .expect = "f32[3,2,2]{1,0,2,-3,2,0,1,3,nan,0,2,3};i32[3]{2,0,1}", .why = "info"},
    {.inputs = "f32[1,1]{nan}", .expect = "error not positive definite", .why = "NaN"},
    {.inputs = "f32[2,3]", .expect = "error not square", .why = "not square"},
    {.inputs = "f32[2]", .expect = "error must be", .why = "rank"},
};
PINNACE_CASES(cholesky, kCases)
}  // namespace pinnace::testing
