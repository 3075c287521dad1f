// Cases of lp_pool: exponents, pads as zeros.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,3]{3,4,-12}", .attributes = "kernel_shape=[2]", .expect = "f32[1,1,2]{5,12.649111}", .tolerance = {.rel = 1e-7f}, .why = "p = 2"},
    {.inputs = "f32[1,1,3]{3,-4,12}", .attributes = "kernel_shape=[2], p=1", .expect = "f32[1,1,2]{7,16}", .why = "p = 1 takes magnitudes"},
    {.inputs = "f32[1,1,2]{-3,4}", .attributes = "kernel_shape=[3], p=3, pads=[1,1]", .expect = "f32[1,1,2]{4.4979414,4.4979414}", .tolerance = {.rel = 1e-7f}, .why = "p = 3, pads add nothing"},
    {.inputs = "f32[2,3,9,8]", .attributes = "kernel_shape=[3,2], strides=[2,2], dilations=[1,2], ceil_mode=1", .tolerance = kF32, .why = "uneven"},
    {.inputs = "f16[1,2,5,5]", .attributes = "kernel_shape=[2,2]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "i8[1,1,2]{scale 1, zero 0}{3,-4}", .attributes = "kernel_shape=[2]", .expect = "i8[1,1,1]{scale 0.5, zero 1}{11}", .output_quantization = "scale 0.5, zero 1", .why = "quantised"},
    {.inputs = "f32[1,1,3]", .attributes = "kernel_shape=[2], p=0", .expect = "error must be 1 or more", .why = "p"},
    {.inputs = "f16[1,1,4]", .attributes = "kernel_shape=[2]", .expect = "error declared quantised", .output_quantization = "scale 0.5, zero 1", .why = "a float result has no scale"},
    {.inputs = "f32[1,1,3]{nan,1,0}", .attributes = "kernel_shape=[2]", .expect = "f32[1,1,2]{nan,1}", .why = "NaN in one window"},
    {.inputs = "u8[2,7,9,8]{scale 0.03, zero 120}", .attributes = "kernel_shape=[3,2], strides=[2,1], dilations=[1,2], pads=[1,0,1,1]", .output_quantization = "scale 0.02, zero 7", .why = "quantised, uneven"},
    {.inputs = "i8[1,5,6,6]{scale 0.1, zero -3}", .attributes = "kernel_shape=[3,3], p=3", .output_quantization = "scale 0.2, zero -128", .why = "quantised, cubes"},
    {.inputs = "i8[2,3,11]{scale 0.1, zero -3}", .attributes = "kernel_shape=[4], p=1", .output_quantization = "scale 0.1, zero -128", .why = "quantised lines, magnitudes"},
    {.inputs = "i8[1,2,4,4,3]{scale 0.1, zero -3}", .attributes = "kernel_shape=[2,2,2]", .output_quantization = "scale 0.2, zero -128", .why = "quantised volumes"},
};
PINNACE_CASES(lp_pool, kCases)
}  // namespace pinnace::testing
