// Cases of average_pool: divisors with and without pads, ceil_mode, quantised means.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,4]{1,3,2,0}", .attributes = "kernel_shape=[2]", .expect = "f32[1,1,3]{2,2.5,1}", .why = "one dimension"},
    {.inputs = "f32[1,1,2]{4,8}", .attributes = "kernel_shape=[3], pads=[1,1]", .expect = "f32[1,1,2]{6,6}", .why = "pads are not counted"},
    {.inputs = "f32[1,1,2]{3,9}", .attributes = "kernel_shape=[3], pads=[1,1], count_include_pad=1", .expect = "f32[1,1,2]{4,4}", .why = "pads are counted"},
    {.inputs = "f32[1,1,5]{1,2,3,4,6}", .attributes = "kernel_shape=[3], strides=[2], ceil_mode=1, pads=[1,1], count_include_pad=1",
     .expect = "f32[1,1,3]{1,3,3.3333333}", .tolerance = {.rel = 1e-7f}, .why = "all inside the padding"},
    {.inputs = "f32[1,1,4]{1,2,3,6}", .attributes = "kernel_shape=[3], strides=[2], ceil_mode=1, count_include_pad=1", .expect = "f32[1,1,2]{2,4.5}", .why = "what hangs over is not counted"},
    {.inputs = "f32[2,3,9,11]", .attributes = "kernel_shape=[3,2], strides=[2,3], pads=[1,0,0,1], dilations=[2,1]", .tolerance = kF32, .why = "uneven"},
    {.inputs = "f32[1,2,5,6,7]", .attributes = "kernel_shape=[2,3,2], count_include_pad=1, pads=[1,1,1,0,0,0]", .tolerance = kF32, .why = "three dimensions"},
    {.inputs = "f32[1,1,7,7]", .attributes = "kernel_shape=[2,2], auto_pad=\"same_upper\", strides=[2,2]", .expect = "type f32[1,1,4,4]", .why = "same_upper"},
    {.inputs = "f16[1,3,8,8]", .attributes = "kernel_shape=[2,2], strides=[2,2]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[1,3,8,8]", .attributes = "kernel_shape=[3,3]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[1,3,8]", .attributes = "kernel_shape=[3]", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "f32[1,1,2]{inf,-inf}", .attributes = "kernel_shape=[2]", .expect = "f32[1,1,1]{nan}", .why = "IEEE"},
    {.inputs = "u8[1,1,4]{scale 0.5, zero 10}{10,11,13,255}", .attributes = "kernel_shape=[2]", .expect = "u8[1,1,3]{scale 0.5, zero 0}{0,2,124}",
     .output_quantization = "scale 0.5, zero 0", .why = "means 0.5, 2, 124 (248/2) steps: half to even"},
    {.inputs = "i8[1,2,9,9]{scale 0.03, zero -5}", .attributes = "kernel_shape=[3,3], pads=[1,1,1,1]", .output_quantization = "scale 0.02, zero 7", .why = "another scale"},
    {.inputs = "i8[1,1,4]", .attributes = "kernel_shape=[2]", .expect = "error integers must be quantised", .why = "plain integers have no mean"},
    {.inputs = "i8[1,1,4]{scale 1, zero 0}", .attributes = "kernel_shape=[2]", .expect = "error declared quantisation", .why = "no scale for the result"},
    {.inputs = "f32[1,0,4]", .attributes = "kernel_shape=[2]", .expect = "f32[1,0,3]{}", .why = "no channels"},
    {.inputs = "f16[1,1,4]", .attributes = "kernel_shape=[2]", .expect = "error declared quantised", .output_quantization = "scale 0.5, zero 1", .why = "a float result has no scale"},
    {.inputs = "i8[2,19,7,8]{scale 0.05, zero -7}", .attributes = "kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]", .output_quantization = "scale 0.06, zero 5", .why = "kernels of images"},
    {.inputs = "u8[2,19,7,8]{scale 0.05, zero 121}", .attributes = "kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]", .output_quantization = "scale 0.06, zero 133", .why = "kernels of images"},
};
PINNACE_CASES(average_pool, kCases)
}  // namespace pinnace::testing
