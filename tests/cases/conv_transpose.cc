// Cases of conv_transpose: sizes by pads, output_padding, output_shape and auto_pad; groups; quantised arithmetic.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,2]{1,2};f32[1,1,2]{10,1}", .expect = "f32[1,1,3]{10,21,2}", .why = "overlapping taps add"},
    {.inputs = "f32[1,1,2]{1,2};f32[1,1,2]{10,1};f32{100}", .attributes = "strides=[2]", .expect = "f32[1,1,4]{110,101,120,102}", .why = "stride and bias"},
    {.inputs = "f32[1,1,2]{1,2};f32[1,1,2]{10,1}", .attributes = "strides=[3], output_padding=[1]", .expect = "f32[1,1,6]{10,1,0,20,2,0}", .why = "output_padding adds at the end"},
    {.inputs = "f32[1,1,2]{1,2};f32[1,1,3]{1,1,1}", .attributes = "pads=[1,0]", .expect = "f32[1,1,3]{3,3,2}", .why = "pads cut"},
    {.inputs = "f32[1,1,2]{1,2};f32[1,1,3]{1,1,1}", .attributes = "strides=[2], auto_pad=\"same_upper\"", .expect = "f32[1,1,4]{1,1,3,2}", .why = "one too many, cut at the end"},
    {.inputs = "f32[1,1,2]{1,2};f32[1,1,3]{1,1,1}", .attributes = "strides=[2], auto_pad=\"same_lower\"", .expect = "f32[1,1,4]{1,3,2,2}", .why = "cut at the begin"},
    {.inputs = "f32[1,1,2]{1,2};f32[1,1,3]{1,1,1}", .attributes = "strides=[2], output_shape=[4]", .expect = "f32[1,1,4]{1,3,2,2}", .why = "a wanted size"},
    {.inputs = "f32[3,8,1,1];f32[8,17,2,2]", .attributes = "strides=[2,3], output_shape=[1,1]", .tolerance = kF32},
    {.inputs = "f32[1,1,2]{1,2};f32[1,1,3]{1,1,1};f32{5}", .attributes = "strides=[2], output_shape=[7]", .expect = "f32[1,1,7]{6,6,8,7,7,5,5}", .why = "a larger size than there are taps: the bias"},
    {.inputs = "f32[2,3,5,6];f32[3,4,3,2];f32[4]", .attributes = "strides=[2,3], pads=[1,0,0,1], dilations=[2,1]", .tolerance = kF32, .why = "two dimensions"},
    {.inputs = "f32[1,4,5,5];f32[4,2,3,3]", .attributes = "group=2, strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]", .tolerance = kF32, .why = "groups"},
    {.inputs = "f32[1,2,3,3,3];f32[2,2,2,2,2];f32[2]", .attributes = "strides=[2,2,2], activation=\"relu\"", .tolerance = kF32, .why = "three dimensions"},
    {.inputs = "f32[2,19,5,6];f32[19,1,4,4];f32[19]", .attributes = "group=19, strides=[2,2], pads=[1,1,1,1], activation=\"relu\"", .tolerance = kF32, .why = "depthwise, to twice the size"},
    {.inputs = "f32[1,8,7];f32[8,1,3];f32[8]", .attributes = "group=8, strides=[2], dilations=[2], output_padding=[1]", .tolerance = kF32, .why = "depthwise, every other output without taps"},
    {.inputs = "f32[1,3,4,5];f32[3,9,1,2];f32[9]", .attributes = "strides=[2,3], output_padding=[1,2], activation=\"sigmoid\"", .tolerance = kF32, .why = "outputs that are only the bias"},
    {.inputs = "f32[2,3,1];f32[3,62,4];f32[62]", .attributes = "strides=[3], output_shape=[1]", .tolerance = kF32, .why = "one output of several that a stride reaches"},
    {.inputs = "f32[2,21,7,9];f32[21,13,4,4];f32[13]", .attributes = "strides=[2,2], pads=[1,1,1,1], activation=\"relu\"", .tolerance = kF32, .why = "to twice the size, channels that fill no block"},
    {.inputs = "f32[1,8,5,6];f32[8,12,2,3]", .attributes = "strides=[3,5], pads=[0,1,1,0], dilations=[1,3], activation=\"gelu\"", .tolerance = kF32, .why = "strides beyond the window"},
    {.inputs = "f32[1,16,6,11];f32[16,8,3,3];f32[16]", .attributes = "group=2, pads=[2,2,1,1], dilations=[2,2]", .tolerance = kF32, .why = "groups of whole blocks, no stride"},
    {.inputs = "f32[1,6,5,8];f32[6,3,3,3]", .attributes = "group=2, strides=[2,1]", .tolerance = kF32, .why = "groups that share a block"},
    {.inputs = "f16[1,3,4,4];f16[3,2,3,3]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[1,3,4,4];bf16[3,2,3,3]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[1,3,4];f64[3,2,3]", .attributes = "kernel_shape=[3]", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "f32[0,1,2];f32[1,1,2]", .expect = "f32[0,1,3]{}", .why = "empty batch"},
    {.inputs = "i8[1,1,2]{scale 1, zero 2}{3,1};i8[1,1,2]{scale 0.5, zero 0}{4,2};i32{2}", .expect = "i8[1,1,3]{scale 0.5, zero 1}{7,1,1}",
     .output_quantization = "scale 0.5, zero 1", .why = "sums 6, 0, 0 with m 1"},
    {.inputs = "u8[1,4,5,5]{scale 0.02, zero 120};i8[4,3,3,3]{scale 0.01, zero 0};i32[3]", .attributes = "strides=[2,2], pads=[1,1,1,1], activation=\"relu\"",
     .output_quantization = "scale 0.02, zero 0", .why = "bits of a typical layer"},
    {.inputs = "f32[1,4,5];f32[3,2,3]", .expect = "error has 4 channels", .why = "channels"},
    {.inputs = "f32[1,3,5];f32[3,2,3]", .attributes = "group=2", .expect = "error do not divide into 2 groups", .why = "groups"},
    {.inputs = "f32[1,1,2];f32[1,1,2]", .attributes = "pads=[3,3]", .expect = "error take more than the size", .why = "pads beyond the result"},
    {.inputs = "i8[1,6,7]{scale 0.02, zero 12};i8[6,2,3]{scale 0.01, zero 0};i32[4]", .attributes = "group=2, strides=[2]",
     .output_quantization = "scale 0.05, zero 3", .why = "groups of lines"},
    {.inputs = "f32[2,21,19,1];f32[21,13,4,1];f32[13]", .attributes = "strides=[2,1], pads=[1,0,1,0], activation=\"relu\"", .tolerance = kF32, .why = "one pixel wide"},
    {.inputs = "u8[2,21,19,1]{scale 0.02, zero 120};i8[21,13,4,1]{scale 0.01, zero 0};i32[13]", .attributes = "strides=[2,1], pads=[1,0,1,0]", .output_quantization = "scale 0.02, zero 0", .why = "one pixel wide"},
};
PINNACE_CASES(conv_transpose, kCases)
}  // namespace pinnace::testing
