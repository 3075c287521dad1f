// Cases of layer_normalization: axes, broadcast scales, the optional outputs.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[4,3,4];f32[4,3,1]", .attributes = "axis=1", .tolerance = {.rel = 1e-5f},
     .why = "as many scales as a row has elements, but of another shape"},
    {.inputs = "f32[4,3,4];f32[3,4];f32[4,3,1]", .attributes = "axis=1", .tolerance = {.rel = 1e-5f},
     .why = "such a bias"},
    {.inputs = "f32[1,2]{1,3};f32{2,1};f32{1,0}", .attributes = "epsilon=0.", .expect = "f32[1,2]{-1,1}", .why = "by hand"},
    {.inputs = "f32[2,8,64];f32[64];f32[64]", .tolerance = kF32, .why = "transformer"},
    {.inputs = "f32[2,8,64];f32[64]", .tolerance = kF32, .why = "no bias"},
    {.inputs = "f32[2,3,4,5];f32[3,4,5];f32[3,4,5]", .attributes = "axis=1", .tolerance = kF32, .why = "several dimensions"},
    {.inputs = "f32[2,3,4];f32[3,1];f32[1]", .attributes = "axis=-2, epsilon=0.1", .tolerance = kF32, .why = "scale broadcasts"},
    {.inputs = "f32[2,3];f32[2,3];f32[2,1]", .attributes = "axis=0", .tolerance = kF32, .why = "everything is one slice"},
    {.inputs = "f32[2,2]{1,3,4,4};f32{1,1};f32{0,0}", .attributes = "epsilon=1.", .outputs = 3, .expect = "f32[2,2]{-0.70710678,0.70710678,0,0};f32[2,1]{2,4};f32[2,1]{0.70710678,1}",
     .tolerance = {.rel = 1e-7f}, .why = "mean and inverse deviation"},
    {.inputs = "f16[2,8];f16[8];f16[8]", .outputs = 3, .tolerance = {.rel = 1e-3f}, .why = "half; statistics in f32"},
    {.inputs = "bf16[2,8];bf16[8];bf16[8]", .attributes = "stash_type=\"bf16\"", .outputs = 2, .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[2,8];f64[8];f64[8]", .tolerance = {.rel = 1e-13f}, .why = "double"},
    {.inputs = "f32[0,3];f32[3];f32[3]", .outputs = 2, .expect = "f32[0,3]{};f32[0,1]{}", .why = "no slices"},
    {.inputs = "f32[2,0];f32[0]", .outputs = 2, .expect = "f32[2,0]{};f32[2,1]{nan,nan}", .why = "empty slices"},
    {.inputs = "f32[2,3];f32[4]", .expect = "error does not broadcast", .why = "scale"},
    {.inputs = "f32[2,3];f32[3]", .attributes = "stash_type=\"i8\"", .expect = "error is not a float type", .why = "stash_type"},
    {.inputs = "f32[2,2]{nan,1,inf,1};f32[2]{1,1}", .expect = "f32[2,2]{nan,nan,nan,nan}", .why = "NaN and infinity in a row"},
};
PINNACE_CASES(layer_normalization, kCases)
}  // namespace pinnace::testing
