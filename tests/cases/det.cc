// Cases of det: sizes, pivots, singular matrices.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{0,1,2,3}", .expect = "f32[]{-2}", .why = "a pivot that is 0: rows change places"},
    {.inputs = "f32[3,3]{2,0,0,0,3,0,0,0,4}", .expect = "f32[]{24}", .why = "diagonal"},
    {.inputs = "f64[3,2,2]{1,2,3,4,1,2,2,1,1,3,3,1}", .expect = "f64[3]{-2,-3,-8}", .tolerance = {.rel = 1e-15f},
     .why = "batch"},
    {.inputs = "f32[2,2]{1,2,2,4}", .expect = "f32[]{0}", .why = "singular"},
    {.inputs = "f32[1,1]{-5}", .expect = "f32[]{-5}", .why = "one element"},
    {.inputs = "f32[0,0]", .expect = "f32[]{1}", .why = "nothing"},
    {.inputs = "f32[0,2,2]", .expect = "f32[0]{}", .why = "no matrices"},
    {.inputs = "f32[2,2]{0,0,nan,1}", .expect = "f32[]{nan}", .why = "NaN"},
    {.inputs = "f32[2,2]{1e30,0,0,1e30}", .expect = "f32[]{inf}", .why = "too large"},
    {.inputs = "f32[2,2,2]{0,1,2,3,1,2,2,4}", .outputs = 3, .expect = "f32[2]{-2,0};f32[2]{-1,0};f32[2]{0.6931472,-inf}",
     .tolerance = {.abs = 1e-7f}, .why = "sign and logarithm"},
    {.inputs = "f64[3,3]{1e-200,0,0,0,-1e-200,0,0,0,1e-200}", .outputs = 3,
     .expect = "f64[]{0};f64[]{-1};f64[]{-1381.5510557964274}", .tolerance = {.rel = 1e-15f},
     .why = "a determinant that vanishes has a sign and a logarithm"},
    {.inputs = "f64[4,4]{1e200,0,0,0,0,1e200,0,0,0,0,1e-200,0,0,0,0,1e-200}", .outputs = 3,
     .expect = "f64[]{1};f64[]{1};f64[]{0}", .tolerance = {.abs = 1e-14f}, .why = "a product that overflows on its way"},
    {.inputs = "f32[1,1]{nan}", .outputs = 3, .expect = "f32[]{nan};f32[]{0};f32[]{nan}", .why = "NaN has no sign"},
    {.inputs = "f32[1,1]{-inf}", .outputs = 3, .expect = "f32[]{-inf};f32[]{-1};f32[]{inf}", .why = "infinity"},
    {.inputs = "f32[0,0]", .outputs = 3, .expect = "f32[]{1};f32[]{1};f32[]{0}", .why = "the sign of nothing"},
    {.inputs = "f16[2,2]{3,0,0,0.5}", .expect = "f16[]{1.5}", .why = "half"},
    {.inputs = "bf16[2,3,3]", .expect = "type bf16[2]", .why = "bfloat16"},
    {.inputs = "f32[2,3]", .expect = "error not square", .why = "shape"},
    {.inputs = "f32[2]", .expect = "error must be [..., M, M]", .why = "rank"},
};
PINNACE_CASES(det, kCases)
}  // namespace pinnace::testing
