// Cases of group_normalization: group counts, refusals.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[1,2,1]{1,3};f32{1,2};f32{0,1}", .attributes = "num_groups=1, epsilon=0.", .expect = "f32[1,2,1]{-1,3}", .why = "by hand"},
    {.inputs = "f32[2,6,4,5];f32[6];f32[6]", .attributes = "num_groups=3", .tolerance = kF32, .why = "images"},
    {.inputs = "f32[2,4,7];f32[4];f32[4]", .attributes = "num_groups=4", .tolerance = kF32, .why = "a group per channel"},
    {.inputs = "f32[2,4];f32[4];f32[4]", .attributes = "num_groups=2", .tolerance = kF32, .why = "no spatial dimension"},
    {.inputs = "f16[2,4,16];f16[4];f16[4]", .attributes = "num_groups=2", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[2,4,16];bf16[4];bf16[4]", .attributes = "num_groups=2", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[2,4,16];f64[4];f64[4]", .attributes = "num_groups=2", .tolerance = {.rel = 1e-13f}, .why = "double"},
    {.inputs = "f32[0,4,3];f32[4];f32[4]", .attributes = "num_groups=2", .expect = "f32[0,4,3]{}", .why = "empty"},
    {.inputs = "f32[1,4,3];f32[4];f32[4]", .attributes = "num_groups=3", .expect = "error does not divide", .why = "groups"},
    {.inputs = "f32[1,2,2]{inf,1,3,3};f32[2]{1,1};f32[2]{0,0}", .attributes = "num_groups=2", .expect = "f32[1,2,2]{nan,nan,0,0}", .why = "an infinity stays in its group"},
};
PINNACE_CASES(group_normalization, kCases)
}  // namespace pinnace::testing
