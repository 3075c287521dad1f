// Cases of global_average_pool: ranks, element types, empty planes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[1,2,2,2]{1,2,3,6,-1,-2,-3,-6}", .expect = "f32[1,2,1,1]{3,-3}", .why = "two channels"},
    {.inputs = "f32[2,3]", .expect = "type f32[2,3]", .why = "no spatial dimension"},
    {.inputs = "f32[2,3,4,5,6]", .tolerance = kF32, .why = "three spatial dimensions"},
    {.inputs = "f32[1,1,3]{1,nan,2}", .expect = "f32[1,1,1]{nan}", .why = "NaN"},
    {.inputs = "f32[1,1,0]", .expect = "f32[1,1,1]{nan}", .why = "of nothing"},
    {.inputs = "f32[0,2,3]", .expect = "f32[0,2,1]{}", .why = "empty batch"},
    {.inputs = "f16[1,4,7,7]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[1,4,7,7]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[1,4,7]", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "u8[1,1,4]{scale 0.5, zero 10}{10,11,12,17}", .expect = "u8[1,1,1]{scale 0.25, zero 0}{5}", .output_quantization = "scale 0.25, zero 0", .why = "quantised"},
    {.inputs = "f32[3]", .expect = "error must be [N, C, ...]", .why = "rank 1"},
    {.inputs = "f16[1,1,4]", .expect = "error declared quantised", .output_quantization = "scale 0.5, zero 1", .why = "a float result has no scale"},
    {.inputs = "i8[2,19,7,8]{scale 0.05, zero -7}", .output_quantization = "scale 0.06, zero 5", .why = "kernels of images"},
    {.inputs = "u8[2,19,7,8]{scale 0.05, zero 121}", .output_quantization = "scale 0.06, zero 133", .why = "kernels of images"},
};
PINNACE_CASES(global_average_pool, kCases)
}  // namespace pinnace::testing
