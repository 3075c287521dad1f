// Cases of erf: special values, element types, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 1e-6f};   // a few units of the last place of f32
constexpr Tolerance kHalf{.rel = 1e-3f};  // one rounding to f16
constexpr Tolerance kBf16{.rel = 8e-3f};  // one rounding to bf16
constexpr Case kCases[] = {
    {.inputs = "f32[7]{0,1,-1,9,inf,-inf,nan}", .expect = "f32[7]{0,0.8427008,-0.8427008,1,1,-1,nan}", .tolerance = kF32,
     .why = "saturation, infinities, NaN"},
    {.inputs = "f32{-0}", .expect = "f32{-0}", .why = "-0 stays"},
    {.inputs = "f32[2,3,37]", .tolerance = kF32, .why = "more than a vector, with a rest"},
    {.inputs = "f32[9]{0,1e-30,-1e-20,1e-10,-1e-7,1e-6,-1e-5,5e-5,1e-4}",
     .expect = "f32[9]{0,1.1283792e-30,-1.1283792e-20,1.1283792e-10,-1.1283792e-7,1.1283792e-6,-1.1283792e-5,5.641896e-5,"
               "1.1283791e-4}",
     .tolerance = kF32, .why = "near 0 it is x * 2 / sqrt(pi): 1 - (1 - erf) has no digits there"},
    {.inputs = "f32[5]{0,0,0,-0,0}", .expect = "f32[5]{0,0,0,-0,0}", .why = "0 is 0"},
    {.inputs = "f32[]", .tolerance = kF32, .why = "scalar"},
    {.inputs = "f16[3,5]", .tolerance = kHalf, .why = "half"},
    {.inputs = "bf16[7]", .tolerance = kBf16, .why = "bfloat16"},
    {.inputs = "f64[4,1]", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[7]{scale 0.0625, zero -1}{-128,-9,-1,0,3,9,127}",
     .expect = "i8[7]{scale 0.03125, zero -5}{-37,-22,-5,-3,4,15,27}",
     .output_quantization = "scale 0.03125, zero -5", .why = "by table"},
    {.inputs = "u8[5,7]{scale 0.02, zero 10}", .output_quantization = "scale 0.01, zero 100", .why = "all of u8"},
    {.inputs = "i8{1}", .expect = "error without quantisation", .why = "plain integers have no such function"},
    {.inputs = "i8[2]{scale 0.5, zero 0}", .expect = "error must be declared quantised", .why = "no scale for the result"},
    {.inputs = "i32{1}", .expect = "error takes float32", .why = "element type"},
};
PINNACE_CASES(erf, kCases)
}  // namespace pinnace::testing
