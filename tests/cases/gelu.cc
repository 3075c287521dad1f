// Cases of gelu: both forms, special values, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,11,4,9]", .why = "an image"},
    {.inputs = "f32[7]{0,1,-1,-9,100,inf,nan}",
     .expect = "f32[7]{0,0.8413447,-0.15865526,-1.0157271e-18,100,inf,nan}", .tolerance = {.rel = 1e-6f},
     .why = "the left tail keeps its digits"},
    {.inputs = "f32[5]{0,1,-1,100,nan}", .attributes = "approximate=\"tanh\"",
     .expect = "f32[5]{0,0.841192,-0.158808,100,nan}", .tolerance = {.rel = 1e-6f}, .why = "with tanh"},
    {.inputs = "f32[1]{-inf}", .expect = "f32[1]{nan}", .why = "the formula gives NaN"},
    {.inputs = "f32[2,3,37] x3", .tolerance = {.rel = 1e-6f}, .why = "more than a vector, with a rest"},
    {.inputs = "f32[2,3,37] x3", .attributes = "approximate=\"tanh\"", .tolerance = {.rel = 1e-6f}, .why = "with tanh"},
    {.inputs = "f32[]", .tolerance = {.rel = 1e-6f}, .why = "scalar"},
    {.inputs = "f16[3,5] x3", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[7] x3", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[4] x3", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[5]{scale 0.0625, zero -1}{-128,-17,-1,15,127}",
     .expect = "i8[5]{scale 0.03125, zero -5}{-5,-10,-5,22,127}", .output_quantization = "scale 0.03125, zero -5",
     .why = "by table"},
    {.inputs = "u8[5,7]{scale 0.02, zero 100}", .attributes = "approximate=\"tanh\"",
     .output_quantization = "scale 0.01, zero 20", .why = "all of u8"},
    {.inputs = "f32[1]", .attributes = "approximate=\"fast\"", .expect = "error must be", .why = "unknown form"},
    {.inputs = "i8{1}", .expect = "error without quantisation", .why = "plain integers"},
    {.inputs = "i32{1}", .expect = "error takes float32", .why = "element type"},
    {.inputs = "i8[1,5,3,4]{scale 0.05, zero -7}", .output_quantization = "scale 0.06, zero 5", .why = "kernels of images"},
    {.inputs = "u8[1,5,3,4]{scale 0.05, zero 121}", .output_quantization = "scale 0.06, zero 133", .why = "kernels of images"},
};
PINNACE_CASES(gelu, kCases)
}  // namespace pinnace::testing
