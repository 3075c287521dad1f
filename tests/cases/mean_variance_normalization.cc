// Cases of mean_variance_normalization: axes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,1,2]{1,3}", .expect = "f32[1,1,1,2]{-1,1}", .why = "per channel by default"},
    {.inputs = "f32[2,3,4,5]", .tolerance = kF32, .why = "images"},
    {.inputs = "f32[2,3,4,5]", .attributes = "axes=[1,-1]", .tolerance = kF32, .why = "axes apart"},
    {.inputs = "f32[2,3]{1,1,1,5,5,5}", .attributes = "axes=[1]", .expect = "f32[2,3]{0,0,0,0,0,0}", .why = "no variance"},
    {.inputs = "f16[2,8]", .attributes = "axes=[1]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[2,8]", .attributes = "axes=[0,1]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[2,8]", .attributes = "axes=[1]", .tolerance = {.rel = 1e-13f}, .why = "double"},
    {.inputs = "f32[0,3,2,2]", .expect = "f32[0,3,2,2]{}", .why = "empty"},
    {.inputs = "f32[2,3]", .expect = "error is outside rank 2", .why = "the default axes need rank 4"},
    {.inputs = "f32[2,3]", .attributes = "axes=[1,-1]", .expect = "error is named twice", .why = "twice the same"},
    {.inputs = "f32[1,2,1,2]{nan,1,3,3}", .expect = "f32[1,2,1,2]{nan,nan,0,0}", .why = "NaN stays in its channel"},
};
PINNACE_CASES(mean_variance_normalization, kCases)
}  // namespace pinnace::testing
