// Cases of rms_normalization: axes, types of scale.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[4,3,4];f32[4,3,1]", .attributes = "axis=1", .tolerance = {.rel = 1e-5f},
     .why = "as many scales as a row has elements, but of another shape"},
    {.inputs = "f32[1,2]{3,4};f32{1,2}", .attributes = "epsilon=0.", .expect = "f32[1,2]{0.84852814,2.2627417}", .tolerance = {.rel = 1e-7f}, .why = "by hand"},
    {.inputs = "f32[2,8,64];f32[64]", .tolerance = kF32, .why = "transformer"},
    {.inputs = "f32[2,3,4];f32[3,4]", .attributes = "axis=1", .tolerance = kF32, .why = "two dimensions"},
    {.inputs = "f16[2,8];f32[8]", .expect = "type f32[2,8]", .tolerance = kF32, .why = "the result has scale's type"},
    {.inputs = "f16[2,8];f16[8]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[2,8];bf16[8]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[2,8];f64[1]", .tolerance = {.rel = 1e-13f}, .why = "double, one scale"},
    {.inputs = "f32[2,0];f32[0]", .expect = "f32[2,0]{}", .why = "empty"},
    {.inputs = "f32[2,3];f32[2]", .expect = "error does not broadcast", .why = "scale"},
    {.inputs = "f32[2,2]{nan,1,inf,1};f32[2]{1,1}", .expect = "f32[2,2]{nan,nan,nan,0}", .why = "NaN and infinity in a row"},
};
PINNACE_CASES(rms_normalization, kCases)
}  // namespace pinnace::testing
