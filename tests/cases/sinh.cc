// Cases of sinh: special values, element types, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 1e-6f};   // a few units of the last place of f32
constexpr Tolerance kHalf{.rel = 1e-3f};  // one rounding to f16
constexpr Tolerance kBf16{.rel = 8e-3f};  // one rounding to bf16
constexpr Case kCases[] = {
    {.inputs = "f32[6]{0,1,-1,100,-inf,nan}", .expect = "f32[6]{0,1.1752012,-1.1752012,inf,-inf,nan}", .tolerance = kF32,
     .why = "overflow, infinity, NaN"},
    {.inputs = "f32{-0}", .expect = "f32{-0}", .why = "-0 stays"},
    {.inputs = "f32[2,3,37] in -5..5", .tolerance = kF32, .why = "more than a vector, with a rest"},
    {.inputs = "f32[] in -5..5", .tolerance = kF32, .why = "scalar"},
    {.inputs = "f16[3,5] in -5..5", .tolerance = kHalf, .why = "half"},
    {.inputs = "bf16[7] in -5..5", .tolerance = kBf16, .why = "bfloat16"},
    {.inputs = "f64[4,1] in -5..5", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[7]{scale 0.0625, zero -1}{-128,-9,-1,0,3,9,127}",
     .expect = "i8[7]{scale 0.03125, zero -5}{-128,-22,-5,-3,3,16,127}",
     .output_quantization = "scale 0.03125, zero -5", .why = "by table"},
    {.inputs = "u8[5,7]{scale 0.02, zero 10}", .output_quantization = "scale 0.01, zero 100", .why = "all of u8"},
    {.inputs = "i8{1}", .expect = "error without quantisation", .why = "plain integers have no such function"},
    {.inputs = "i8[2]{scale 0.5, zero 0}", .expect = "error must be declared quantised", .why = "no scale for the result"},
    {.inputs = "i32{1}", .expect = "error takes float32", .why = "element type"},
};
PINNACE_CASES(sinh, kCases)
}  // namespace pinnace::testing
