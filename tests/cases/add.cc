// Cases of add: broadcasting, wrapping, quantised arithmetic.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,20,5,6];f32[2,20,5,6]", .why = "two images"},
    {.inputs = "f32[2,19,3,9];f32[1,19,1,1]", .why = "one number for each channel"},
    {.inputs = "f32[2,20,3,4];f32[2,20,1,1]", .attributes = "activation=\"relu\"", .why = "one for each image and channel"},
    {.inputs = "f32[1];f32[2,9,4,3]", .why = "a number before an image"},
    {.inputs = "f32[2,3];f32[3]", .why = "row broadcast"},
    {.inputs = "f32[2,1,4];f32[3,1]", .why = "both broadcast"},
    {.inputs = "f16[5];f16[]", .why = "scalar"},
    {.inputs = "i32{2147483647};i32{1}", .expect = "i32{-2147483648}", .why = "integers wrap"},
    {.inputs = "i64[2]{9223372036854775807,-5};i64[]{1}", .expect = "i64[2]{-9223372036854775808,-4}",
     .why = "i64"},
    {.inputs = "u8{250};u8{10}", .expect = "u8{4}", .why = "unsigned wraps"},
    {.inputs = "f32[2]{inf,nan};f32[2]{-inf,1}", .expect = "f32[2]{nan,nan}", .why = "IEEE"},
    {.inputs = "f32[0];f32[1]", .expect = "f32[0]{}", .why = "empty"},
    {.inputs = "f32[2];f32[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "f32[2];f16[2]", .expect = "error must be float32", .why = "types differ"},
    {.inputs = "i8[3]{scale 0.5, zero 0}{2,4,127};i8[3]{scale 0.25, zero 1}{1,5,127}",
     .expect = "i8[3]{scale 0.5, zero 0}{2,6,127}", .output_quantization = "scale 0.5, zero 0", .why = "dequantise, add, quantise, clamp"},
    {.inputs = "f32{-3,1};f32{1,1}", .attributes = "activation=\"relu\"", .expect = "f32{0,2}", .why = "relu"},
    {.inputs = "f32[4];f32[4]", .attributes = "activation=\"hard_sigmoid\", activation_params=[0.2,0.5]", .tolerance = {.abs = 2e-7f}, .why = "two parameters"},
    {.inputs = "f32{-8,9};f32{0,0}", .attributes = "activation=\"leaky_relu\", activation_params=[0.125]", .expect = "f32{-1,9}", .why = "leaky"},
    {.inputs = "f32[3]{-100,0,100};f32{0}", .attributes = "activation=\"sigmoid\"", .expect = "f32[3]{3.7835e-44,0.5,1}", .tolerance = {.abs = 1e-44f}, .why = "tails"},
    {.inputs = "i8[3]{scale 1, zero 0}{-5,3,9};i8[3]{scale 1, zero 0}{0,0,0}", .attributes = "activation=\"clip\", activation_params=[0.,6.]",
     .expect = "i8[3]{scale 1, zero 0}{0,3,6}", .output_quantization = "scale 1, zero 0", .why = "clip on stored integers"},
    {.inputs = "i32{1};i32{2}", .attributes = "activation=\"relu\"", .expect = "error plain integers take none", .why = "activation on integers"},
    {.inputs = "i8[2,19,3,5]{scale 0.05, zero -7};i8[2,19,3,5]{scale 0.06, zero 5}", .output_quantization = "scale 0.05, zero -7", .why = "kernels of images"},
    {.inputs = "u8[2,19,3,5]{scale 0.05, zero 121};u8[2,19,3,5]{scale 0.06, zero 133}", .output_quantization = "scale 0.05, zero 121", .why = "kernels of images"},
    {.inputs = "i8[2,70,3,5]{scale 0.05, zero -7};i8[2,70,1,1]{scale 0.06, zero 5}", .output_quantization = "scale 0.05, zero -7", .why = "one pixel for all"},
    {.inputs = "u8[2,70,3,5]{scale 0.05, zero 121};u8[2,70,1,1]{scale 0.06, zero 133}", .output_quantization = "scale 0.05, zero 121", .why = "one pixel for all"},
    {.inputs = "i8[131]{scale 0.05, zero -7};i8[131]{scale 0.06, zero 5}", .output_quantization = "scale 0.06, zero 5", .why = "dense"},
    {.inputs = "u8[131]{scale 0.05, zero 121};u8[131]{scale 0.06, zero 133}", .output_quantization = "scale 0.06, zero 133", .why = "dense"},
    {.inputs = "f32[1,2,2,3,2,2,3,2];f32[1,2,2,3,2,1,3,1]", .expect = "type f32[1,2,2,3,2,2,3,2]",
     .why = "eight dimensions, a relative position of one of three"},
    {.inputs = "i32[2,1,2,1,2,1,2,1];i32[1,2,1,2,1,2,1,2]", .expect = "type i32[2,2,2,2,2,2,2,2]",
     .why = "eight dimensions that no two of lie as one"},
};
PINNACE_CASES(add, kCases)
}  // namespace pinnace::testing
