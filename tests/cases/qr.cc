// Cases of qr: signs, modes, sides, types, what depends on rounding alone.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{3,1,4,2}", .outputs = 2, .expect = "f32[2,2]{-0.6,-0.8,-0.8,0.6};f32[2,2]{-5,-2.2,0,0.4}",
     .tolerance = {.abs = 1e-6f}, .why = "LAPACK's signs: -5 where 3 was; the last column has nothing below it"},
    {.inputs = "f32[2,2]{-3,-1,-4,-2}", .outputs = 2, .expect = "f32[2,2]{-0.6,-0.8,-0.8,0.6};f32[2,2]{5,2.2,0,-0.4}",
     .tolerance = {.abs = 1e-6f}, .why = "5 where -3 was"},
    {.inputs = "f32[2,1]{-0,1}", .outputs = 2, .expect = "f32[2,1]{-0,-1};f32[1,1]{-1}", .tolerance = {.abs = 1e-7f},
     .why = "the sign of 0 is 1"},
    {.inputs = "f64[2,2]{1,2,0,-3}", .outputs = 2, .expect = "f64[2,2]{1,0,0,1};f64[2,2]{1,2,0,-3}",
     .why = "triangular already"},
    {.inputs = "f32[3,2]{3,1,4,2,0,0}", .attributes = "mode=\"complete\"", .outputs = 2,
     .expect = "f32[3,3]{-0.6,-0.8,0,-0.8,0.6,0,0,0,1};f32[3,2]{-5,-2.2,0,0.4,0,0}", .tolerance = {.abs = 1e-6f},
     .why = "a square q"},
    {.inputs = "f32[2,2]{3,1,4,2}", .attributes = "mode=\"r\"", .outputs = 2, .expect = "f32[0]{};f32[2,2]{-5,-2.2,0,0.4}",
     .tolerance = {.abs = 1e-6f}, .why = "r alone"},
    {.inputs = "f32[1,3]{2,4,6}", .outputs = 2, .expect = "f32[1,1]{1};f32[1,3]{2,4,6}", .why = "wide"},
    {.inputs = "f64[2,1]{3e300,4e300}", .outputs = 2, .expect = "f64[2,1]{-0.6,-0.8};f64[1,1]{-5e300}",
     .tolerance = {.rel = 1e-15f}, .why = "squares that overflow"},
    {.inputs = "f64[2,1]{3e-300,4e-300}", .outputs = 2, .expect = "f64[2,1]{-0.6,-0.8};f64[1,1]{-5e-300}",
     .tolerance = {.rel = 1e-15f}, .why = "squares that vanish"},
    {.inputs = "f32[1,1]{nan}", .outputs = 2, .expect = "f32[1,1]{1};f32[1,1]{nan}", .why = "NaN passes"},
    {.inputs = "f16[2,5,3]", .outputs = 2, .expect = "type f16[2,5,3];type f16[2,3,3]", .why = "half, tall"},
    {.inputs = "bf16[3,5]", .attributes = "mode=\"complete\"", .outputs = 2, .expect = "type bf16[3,3];type bf16[3,5]",
     .why = "bfloat16, wide"},
    {.inputs = "f32[0,2]", .attributes = "mode=\"complete\"", .outputs = 2, .expect = "f32[0,0]{};f32[0,2]{}",
     .why = "no rows"},
    {.inputs = "f32[2,0]", .attributes = "mode=\"complete\"", .outputs = 2, .expect = "f32[2,2]{1,0,0,1};f32[2,0]{}",
     .why = "no columns: q is the identity"},
    {.inputs = "f32[0,2,2]", .outputs = 2, .expect = "f32[0,2,2]{};f32[0,2,2]{}", .why = "no matrices"},
    {.inputs = "f32[2,2]", .attributes = "mode=\"full\"", .outputs = 2, .expect = "error no mode is called full",
     .why = "mode"},
    {.inputs = "f32[2]", .outputs = 2, .expect = "error a must be [..., M, N]", .why = "rank"},
};
PINNACE_CASES(qr, kCases)
}  // namespace pinnace::testing
