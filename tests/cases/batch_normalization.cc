// Cases of batch_normalization: ranks, mixed types, special values.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[1,2,2]{1,2,3,4};f32{2,1};f32{0,10};f32{1,3};f32{3,0}", .attributes = "epsilon=1.", .expect = "f32[1,2,2]{0,1,10,11}", .why = "by hand"},
    {.inputs = "f32[2,3,4,5];f32[3];f32[3];f32[3];f32[3] in 0.5..2", .tolerance = kF32, .why = "images"},
    {.inputs = "f32[4,3];f32[3];f32[3];f32[3];f32[3] in 0.5..2", .tolerance = kF32, .why = "no spatial dimension"},
    {.inputs = "f32[5];f32[1];f32[1];f32[1];f32[1] in 0.5..2", .tolerance = kF32, .why = "one channel"},
    {.inputs = "f16[2,3,4];f32[3];f32[3];f32[3];f32[3] in 0.5..2", .tolerance = {.rel = 1e-3f}, .why = "half with f32 parameters"},
    {.inputs = "bf16[2,3,4];bf16[3];bf16[3];f32[3];f32[3] in 0.5..2", .tolerance = {.rel = 8e-3f}, .why = "three types"},
    {.inputs = "f64[2,3,4];f64[3];f64[3];f64[3];f64[3] in 0.5..2", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "f32[1,1]{1};f32{1};f32{0};f32{0};f32{-1}", .expect = "f32[1,1]{nan}", .why = "a negative variance"},
    {.inputs = "f32[0,2,3];f32[2];f32[2];f32[2];f32[2]", .expect = "f32[0,2,3]{}", .why = "empty"},
    {.inputs = "f32[1,2,3];f32[2];f32[3];f32[2];f32[2]", .expect = "error one element per channel, 2", .why = "parameters"},
};
PINNACE_CASES(batch_normalization, kCases)
}  // namespace pinnace::testing
