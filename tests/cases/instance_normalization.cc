// Cases of instance_normalization: planes, constant planes, special values.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,2]{1,3};f32{2};f32{1}", .attributes = "epsilon=0.", .expect = "f32[1,1,2]{-1,3}", .why = "by hand"},
    {.inputs = "f32[2,3,4,5];f32[3];f32[3]", .tolerance = kF32, .why = "images"},
    {.inputs = "f32[1,2,3]{5,5,5,1,1,1};f32{1,1};f32{0,7}", .expect = "f32[1,2,3]{0,0,0,7,7,7}", .why = "no variance: the bias"},
    {.inputs = "f16[2,3,16];f16[3];f16[3]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[2,3,16];bf16[3];bf16[3]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[2,3,16];f64[3];f64[3]", .tolerance = {.rel = 1e-13f}, .why = "double"},
    {.inputs = "f32[2,3,0];f32[3];f32[3]", .expect = "f32[2,3,0]{}", .why = "empty planes"},
    {.inputs = "f32[2];f32[2];f32[2]", .expect = "error must be [N, C, ...]", .why = "rank"},
    {.inputs = "f32[1,2,2]{nan,1,3,3};f32[2]{1,1};f32[2]{0,0}", .expect = "f32[1,2,2]{nan,nan,0,0}", .why = "NaN stays in its plane"},
};
PINNACE_CASES(instance_normalization, kCases)
}  // namespace pinnace::testing
