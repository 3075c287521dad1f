// Cases of mul: broadcasting, wrapping, quantised arithmetic.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,20,5,6];f32[2,20,5,6]", .why = "two images"},
    {.inputs = "f32[2,19,3,9];f32[2,19,1,1]", .why = "one for each image and channel"},
    {.inputs = "f32[2,9,4,3];f32[1]", .why = "an image and a number"},
    {.inputs = "f32[2,3];f32[3]", .why = "row broadcast"},
    {.inputs = "f32[2,1,4];f32[3,1]", .why = "both broadcast"},
    {.inputs = "f32[2,3,4,5];f32[3,1,1]", .why = "per channel"},
    {.inputs = "f32[];f32[5]", .why = "scalar first"},
    {.inputs = "f32[5];f32[]", .why = "scalar second"},
    {.inputs = "f32[2,3,37];f32[2,3,37]", .why = "equal shapes"},
    {.inputs = "f32[0];f32[1]", .expect = "f32[0]{}", .why = "empty"},
    {.inputs = "f32[0,3];f32[2,1,3]", .expect = "f32[2,0,3]{}", .why = "empty, both broadcast"},
    {.inputs = "f32[3]{inf,nan,-1};f32[3]{0,1,0}", .expect = "f32[3]{nan,nan,-0}", .why = "IEEE"},
    {.inputs = "i32{65536};i32{65537}", .expect = "i32{65536}", .why = "integers wrap"},
    {.inputs = "u8{16};u8{17}", .expect = "u8{16}", .why = "unsigned wraps"},
    {.inputs = "u16{65535};u16{65535}", .expect = "u16{1}", .why = "u16 does not overflow int"},
    {.inputs = "i64{3};i64{-7}", .expect = "i64{-21}", .why = "64 bits"},
    {.inputs = "f16[3,5];f16[5]", .why = "half"},
    {.inputs = "bf16[7];bf16[]", .why = "bfloat16"},
    {.inputs = "f64[3];f64[3]", .why = "double"},
    {.inputs = "i8[3]{scale 0.5, zero 0}{2,4,127};i8[3]{scale 0.25, zero 1}{5,-3,127}",
     .expect = "i8[3]{scale 0.5, zero 0}{2,-4,127}", .output_quantization = "scale 0.5, zero 0",
     .why = "dequantise, multiply, quantise, clamp"},
    {.inputs = "u8[2,3]{scale 0.02, zero 100};u8[3]{scale 0.03, zero 7}",
     .output_quantization = "scale 0.05, zero 128", .why = "quantised, broadcast"},
    {.inputs = "f32[2];f32[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "f32[2];f16[2]", .expect = "error must be float32", .why = "types differ"},
    {.inputs = "i8[2]{scale 1, zero 0};i8[2]", .expect = "error without quantisation",
     .output_quantization = "scale 1, zero 0", .why = "quantised with plain"},
    {.inputs = "i8[2]{scale 1, zero 0};i8[2]{scale 1, zero 0}", .expect = "error must be declared quantised",
     .why = "no scale for the result"},
    {.inputs = "i8[2,19,3,5]{scale 0.05, zero -7};i8[2,19,3,5]{scale 0.06, zero 5}", .output_quantization = "scale 0.05, zero -7", .why = "kernels of images"},
    {.inputs = "u8[2,19,3,5]{scale 0.05, zero 121};u8[2,19,3,5]{scale 0.06, zero 133}", .output_quantization = "scale 0.05, zero 121", .why = "kernels of images"},
    {.inputs = "i8[2,70,3,5]{scale 0.05, zero -7};i8[2,70,1,1]{scale 0.06, zero 5}", .output_quantization = "scale 0.05, zero -7", .why = "one pixel for all"},
    {.inputs = "u8[2,70,3,5]{scale 0.05, zero 121};u8[2,70,1,1]{scale 0.06, zero 133}", .output_quantization = "scale 0.05, zero 121", .why = "one pixel for all"},
    {.inputs = "i8[131]{scale 0.05, zero -7};i8[131]{scale 0.06, zero 5}", .output_quantization = "scale 0.06, zero 5", .why = "dense"},
    {.inputs = "u8[131]{scale 0.05, zero 121};u8[131]{scale 0.06, zero 133}", .output_quantization = "scale 0.06, zero 133", .why = "dense"},
};
PINNACE_CASES(mul, kCases)
}  // namespace pinnace::testing
