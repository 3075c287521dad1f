// Cases of mat_mul: vectors, batches that broadcast, bias and activation, integers that wrap, quantised arithmetic.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums of up to 300 products in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{1,2,3,4};f32[2,2]{5,6,7,8}", .expect = "f32[2,2]{19,22,43,50}", .why = "matrices"},
    {.inputs = "f32{1,2};f32{3,4}", .expect = "f32[]{11}", .why = "dot product"},
    {.inputs = "f32{1,2};f32[2,2]{5,6,7,8}", .expect = "f32[2]{19,22}", .why = "vector times matrix"},
    {.inputs = "f32[2,2]{5,6,7,8};f32{1,2}", .expect = "f32[2]{17,23}", .why = "matrix times vector"},
    {.inputs = "f32[2,3,4,5];f32[5,6]", .tolerance = kF32, .why = "b for every batch"},
    {.inputs = "f32[2,1,4,5];f32[3,5,6]", .tolerance = kF32, .why = "batches broadcast both ways"},
    {.inputs = "f32[2,3,5];f32[5]", .expect = "type f32[2,3]", .tolerance = kF32, .why = "batch times vector"},
    {.inputs = "f32[5];f32[2,5,3]", .expect = "type f32[2,3]", .tolerance = kF32, .why = "vector times batch"},
    {.inputs = "f32[1,70,300];f32[300,37];f32[37]", .attributes = "activation=\"relu\"", .tolerance = kF32, .why = "bias and relu, several row blocks"},
    {.inputs = "f32[2,8,16];f32[2,16,8];f32[1]", .attributes = "activation=\"gelu\"", .tolerance = kF32, .why = "one bias for all"},
    {.inputs = "f16[3,8];f16[8,5]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[3,8];bf16[8,5]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[3,8];f64[8,5]", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "i32[1,2]{65536,1};i32[2,1]{65536,7}", .expect = "i32[1,1]{7}", .why = "2^32 wraps to 0"},
    {.inputs = "i64[1,2]{3,-4};i64[2,2]{1,2,3,4};i64{10,20}", .expect = "i64[1,2]{1,10}", .why = "integers with bias"},
    {.inputs = "f32[2,0];f32[0,3]", .expect = "f32[2,3]{0,0,0,0,0,0}", .why = "no products"},
    {.inputs = "f32[0,2,3];f32[3,4]", .expect = "f32[0,2,4]{}", .why = "empty batch"},
    {.inputs = "f32[1,2]{inf,1};f32[2,1]{0,nan}", .expect = "f32[1,1]{nan}", .why = "IEEE"},
    {.inputs = "i8[1,2]{scale 1, zero 1}{2,3};i8[2,1]{scale 1, zero 0}{10,-20};i32{5}", .attributes = "activation=\"relu\"",
     .expect = "i8[1,1]{scale 1, zero 0}{0}", .output_quantization = "scale 1, zero 0", .why = "10 - 40 + 5 is negative"},
    {.inputs = "u8[1,2]{scale 1, zero 128}{129,131};u8[2,2]{scale 0.5, zero 3}{4,3,3,8}", .expect = "u8[1,2]{scale 1, zero 7}{7,15}",
     .output_quantization = "scale 1, zero 7", .why = "0.5 rounds to 0, 7.5 to 8: half to even"},
    {.inputs = "i8[2,4,32]{scale 0.05, zero -3};i8[2,32,8]{scale 0.02, zero 0};i32[8]", .output_quantization = "scale 0.08, zero 4", .why = "batch of bits"},
    {.inputs = "f32[2,3];f32[2,3]", .expect = "error has rows of 3", .why = "sizes"},
    {.inputs = "f32[];f32[2]", .expect = "error no scalars", .why = "scalar"},
    {.inputs = "f32[2,2,3];f32[3,3,2]", .expect = "error do not broadcast", .why = "batches"},
    {.inputs = "f32[2,3];f32[3,4];f32[3]", .expect = "error one per column", .why = "bias"},
    {.inputs = "i32[2,3];i32[3,4]", .attributes = "activation=\"relu\"", .expect = "error plain integers take none", .why = "activation on integers"},
    {.inputs = "i32[1,2]{scale 0.5, zero 3}{1,2};i32[2,1]{scale 0.5, zero 3}{2,3}", .expect = "error takes plain tensors only", .why = "scales would be lost"},
    {.inputs = "f32[1,2]{0,1};f32[2,1]{inf,1}", .expect = "f32[1,1]{nan}", .why = "0 times infinity"},
    {.inputs = "i8[2,5,37]{scale 0.05, zero -7};i8[37,35]{scale 0.01, zero 0};i32[35]", .output_quantization = "scale 0.06, zero 5", .why = "kernels of 8-bit weights"},
    {.inputs = "u8[2,5,37]{scale 0.05, zero 121};i8[37,35]{scale 0.01, zero 0};i32[35]", .output_quantization = "scale 0.06, zero 133", .why = "kernels of 8-bit weights"},
    {.inputs = "u8[2,5,37]{scale 0.05, zero 121};u8[37,35]{scale 0.01, zero 140};i32[35]", .output_quantization = "scale 0.06, zero 133", .why = "unsigned weights with a zero point"},
};
PINNACE_CASES(mat_mul, kCases)
}  // namespace pinnace::testing
