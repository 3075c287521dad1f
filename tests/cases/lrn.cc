// Cases of lrn: window sizes, parameters.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[1,3,1]{1,2,3}", .attributes = "size=3, alpha=3., beta=1., bias=1.", .expect = "f32[1,3,1]{0.16666667,0.13333333,0.21428571}", .tolerance = {.rel = 1e-7f}, .why = "by hand"},
    {.inputs = "f32[1,3,1]{1,2,3}", .attributes = "size=2, alpha=2., beta=1., bias=0.", .expect = "f32[1,3,1]{0.2,0.15384615,0.33333333}", .tolerance = {.rel = 1e-7f}, .why = "an even window reaches forward"},
    {.inputs = "f32[2,7,4,5]", .attributes = "size=5", .tolerance = kF32, .why = "images"},
    {.inputs = "f32[2,7,5]", .attributes = "size=3, alpha=2., beta=0.5", .tolerance = kF32, .why = "lines"},
    {.inputs = "f32[2,3]", .attributes = "size=99", .tolerance = kF32, .why = "window beyond all channels"},
    {.inputs = "f16[1,5,4]", .attributes = "size=3", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[1,5,4]", .attributes = "size=3", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[1,5,4]", .attributes = "size=3", .tolerance = {.rel = 1e-13f}, .why = "double"},
    {.inputs = "f32[1,0,4]", .attributes = "size=3", .expect = "f32[1,0,4]{}", .why = "no channels"},
    {.inputs = "f32[1,3,4]", .attributes = "size=0", .expect = "error must be 1 or more", .why = "size"},
    {.inputs = "f32[1,2,1]{nan,1}", .attributes = "size=3", .expect = "f32[1,2,1]{nan,nan}", .why = "NaN in a neighbour"},
};
PINNACE_CASES(lrn, kCases)
}  // namespace pinnace::testing
