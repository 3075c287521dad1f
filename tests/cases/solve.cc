// Cases of solve: pivots, batches that broadcast, types, singular matrices.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{2,0,0,4};f32[2,1]{2,2}", .expect = "f32[2,1]{1,0.5}", .why = "a diagonal"},
    {.inputs = "f32[2,2]{0,1,2,0};f32[2,2]{1,0,0,1}", .expect = "f32[2,2]{0,0.5,1,0}", .why = "an inverse; rows change places"},
    {.inputs = "f64[3,3]{4,-2,1,-2,4,-2,1,-2,4};f64[3,1]{11,-16,17}", .expect = "f64[3,1]{1,-2,3}",
     .tolerance = {.rel = 1e-14f}, .why = "elimination"},
    {.inputs = "f32[2,1,1]{2,4};f32[1,2]{8,4}", .expect = "f32[2,1,2]{4,2,2,1}", .why = "b is repeated"},
    {.inputs = "f32[2,2]{1,1,0,1};f32[2,2,1]{3,1,5,2}", .expect = "f32[2,2,1]{2,1,3,2}", .why = "a is repeated"},
    {.inputs = "f16[1,1]{2};f16[1,1]{3}", .expect = "f16[1,1]{1.5}", .why = "half"},
    {.inputs = "bf16[1,1]{4};bf16[1,1]{1}", .expect = "bf16[1,1]{0.25}", .why = "bfloat16"},
    {.inputs = "f32[2,2]{1,0,0,1};f32[2,1]{inf,-0}", .expect = "f32[2,1]{inf,-0}", .why = "what is not finite passes"},
    {.inputs = "f32[0,0];f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "f32[0,2,2];f32[2,1]", .expect = "f32[0,2,1]{}", .why = "no matrices"},
    {.inputs = "f32[2,2]{1,2,2,4};f32[2,1]", .expect = "error matrix 0 of a is singular", .why = "singular"},
    {.inputs = "f32[1,1]{nan};f32[1,1]", .expect = "f32[1,1]{nan}", .why = "NaN passes"},
    {.inputs = "f32[3,2,2]{1,2,2,4,0,0,0,0,2,0,0,4};f32[2,1]{1,1}", .outputs = 2,
     .expect = "f32[3,2,1]{-inf,inf,nan,inf,0.5,0.25};i32[3]{2,1,0}", .why = "singular, with info"},
    {.inputs = "f32[2,2]{1,0,0,0};f32[2,0]", .outputs = 2, .expect = "f32[2,0]{};i32[]{2}", .why = "info alone"},
    {.inputs = "f32[2,2]{2,nan,1,4};f32[2,1]{2,9}", .attributes = "form=\"lower\"", .expect = "f32[2,1]{1,2}",
     .why = "the upper triangle is not read"},
    {.inputs = "f32[2,2]{2,1,nan,4};f32[2,1]{4,8}", .attributes = "form=\"upper\"", .expect = "f32[2,1]{1,2}",
     .why = "the lower triangle is not read"},
    {.inputs = "f32[2,2]{nan,0,3,nan};f32[2,1]{1,5}", .attributes = "form=\"lower\", unit=1", .expect = "f32[2,1]{1,2}",
     .why = "nor is a diagonal of ones"},
    {.inputs = "f32[2,2]{1,0,1,0};f32[2,1]{1,2}", .attributes = "form=\"lower\"", .outputs = 2,
     .expect = "f32[2,1]{1,inf};i32[]{0}", .why = "a diagonal with 0"},
    {.inputs = "f32[1,1];f32[1,1]", .attributes = "form=\"left\"", .expect = "error no form is called left", .why = "form"},
    {.inputs = "f32[2,3];f32[2,1]", .expect = "error not square", .why = "not square"},
    {.inputs = "f32[2,2];f32[3,1]", .expect = "error other rows", .why = "rows"},
    {.inputs = "f32[2];f32[2,1]", .expect = "error must be matrices", .why = "rank"},
};
PINNACE_CASES(solve, kCases)
}  // namespace pinnace::testing
