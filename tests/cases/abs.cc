// Cases of abs: special values, the smallest integers, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,11,3,4]", .why = "images"},
    {.inputs = "f32[6]{-1,-0,2,inf,-inf,nan}", .expect = "f32[6]{1,0,2,inf,inf,nan}", .why = "-0 loses its sign"},
    {.inputs = "i32{-5,7,-2147483648}", .expect = "i32{5,7,-2147483648}", .why = "the smallest value wraps"},
    {.inputs = "i8{-128,-1}", .expect = "i8{-128,1}", .why = "the smallest value of i8"},
    {.inputs = "i64{-9223372036854775807}", .expect = "i64{9223372036854775807}", .why = "64 bits"},
    {.inputs = "u8{0,255}", .expect = "u8{0,255}", .why = "unsigned"},
    {.inputs = "f16[3,5]", .why = "half"},
    {.inputs = "bf16[7]", .why = "bfloat16"},
    {.inputs = "f64[2,2]", .why = "double"},
    {.inputs = "f32[]", .why = "scalar"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[4]{scale 0.5, zero 3}{-128,3,4,127}", .expect = "i8[4]{scale 0.25, zero -1}{127,-1,1,127}",
     .output_quantization = "scale 0.25, zero -1", .why = "dequantise, abs, quantise"},
    {.inputs = "u8[5,7]{scale 0.02, zero 100}", .output_quantization = "scale 0.01, zero 0", .why = "all of u8"},
    {.inputs = "i8[2]{scale 0.5, zero 0}", .expect = "error must be declared quantised",
     .why = "no scale for the result"},
    {.inputs = "bool{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(abs, kCases)
}  // namespace pinnace::testing
