// Cases of where: broadcasting of all three, element types, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "bool{1,0};f32[2]{1,nan};f32[2]{nan,-0}", .expect = "f32[2]{1,-0}", .why = "bits stay"},
    {.inputs = "bool{1,0,1};i64[]{1};i64{2,3,4}", .expect = "i64{1,3,1}", .why = "scalar x"},
    {.inputs = "bool[]{0};f32[2];f32[3,1]", .expect = "type f32[3,2]", .why = "scalar condition"},
    {.inputs = "bool[2,1];f32[3];f32[]", .why = "all three broadcast"},
    {.inputs = "bool[2,3,4];f32[2,3,4];f32[2,3,4]", .why = "equal shapes"},
    {.inputs = "bool[2];bool{1,0};bool{0,1}", .why = "bool"},
    {.inputs = "bool[3];f16[3];f16[3]", .why = "half"},
    {.inputs = "bool[3];bf16[3];bf16[3]", .why = "bfloat16"},
    {.inputs = "bool[3];f64[3];f64[3]", .why = "double"},
    {.inputs = "bool{1,0};u8{1,2};u8{3,4}", .expect = "u8{1,4}", .why = "u8"},
    {.inputs = "bool{1,0};i32{1,2};i32{3,4}", .expect = "i32{1,4}", .why = "i32"},
    {.inputs = "bool[0];f32[0];f32[1]", .expect = "f32[0]{}", .why = "empty"},
    {.inputs = "bool{1,0,0};i8[3]{scale 0.5, zero 0}{2,4,6};i8[3]{scale 0.25, zero 1}{1,5,127}",
     .expect = "i8[3]{scale 0.5, zero 3}{5,5,66}", .output_quantization = "scale 0.5, zero 3",
     .why = "quantised again"},
    {.inputs = "bool{1,0};i8[2]{scale 0.1, zero -128}{-128,127};i8[2]{scale 0.1, zero -128}{-128,127}",
     .expect = "i8[2]{scale 0.1, zero -128}{-128,127}", .output_quantization = "scale 0.1, zero -128",
     .why = "equal parameters: exact"},
    {.inputs = "bool[3,1,5];u8[4,1]{scale 0.1, zero 99};u8[3,4,5]{scale 0.13, zero 7}",
     .output_quantization = "scale 0.15, zero 50", .why = "quantised, broadcast"},
    {.inputs = "bool[2];i8[2]{scale 1, zero 0};i8[2]", .expect = "error without quantisation",
     .output_quantization = "scale 1, zero 0", .why = "quantised with plain"},
    {.inputs = "bool[2];f32[3];f32[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "bool[2];f32[2];f16[2]", .expect = "error must be float32", .why = "types differ"},
    {.inputs = "i32[2];f32[2];f32[2]", .expect = "error takes bool", .why = "condition"},
};
PINNACE_CASES(where, kCases)
}  // namespace pinnace::testing
