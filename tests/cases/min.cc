// Cases of min: one, two and more inputs, NaN, integers, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[3]{1,5,-3};f32[3]{2,4,-2}", .expect = "f32[3]{1,4,-3}", .why = "two"},
    {.inputs = "f32[3]{1,5,-3};f32[3]{2,4,-2};f32[3]{0,9,-9}", .expect = "f32[3]{0,4,-9}", .why = "three"},
    {.inputs = "f32[3]{1,nan,-0}", .expect = "f32[3]{1,nan,-0}", .why = "one"},
    {.inputs = "f32[4]{nan,1,nan,inf};f32[4]{1,nan,nan,-inf}", .expect = "f32[4]{nan,nan,nan,-inf}",
     .why = "NaN in either gives NaN"},
    {.inputs = "f32[2]{0,-0};f32[2]{-0,0}", .expect = "f32[2]{0,-0}", .why = "of equal values the first"},
    {.inputs = "i64{9007199254740993};i64{9007199254740992}", .expect = "i64{9007199254740992}",
     .why = "64 bits are not rounded"},
    {.inputs = "u8{200,3};u8{100,4}", .expect = "u8{100,3}", .why = "unsigned"},
    {.inputs = "i8{-1};i8{1};i8{0}", .expect = "i8{-1}", .why = "i8"},
    {.inputs = "i32{-5};i32{5}", .expect = "i32{-5}", .why = "i32"},
    {.inputs = "f16[3,5];f16[5]", .why = "half"},
    {.inputs = "bf16[7];bf16[]", .why = "bfloat16"},
    {.inputs = "f64[3];f64[3]", .why = "double"},
    {.inputs = "f32[2,3];f32[3];f32[2,1]", .why = "three broadcast"},
    {.inputs = "f32[2,1,4];f32[3,1]", .why = "both broadcast"},
    {.inputs = "f32[];f32[5]", .why = "scalar first"},
    {.inputs = "f32[2,3,37];f32[2,3,37]", .why = "equal shapes"},
    {.inputs = "f32[0];f32[1]", .expect = "f32[0]{}", .why = "empty"},
    {.inputs = "i8[3]{scale 0.5, zero 0}{2,4,-127};i8[3]{scale 0.25, zero 1}{1,11,127}",
     .expect = "i8[3]{scale 0.5, zero 0}{0,4,-127}", .output_quantization = "scale 0.5, zero 0",
     .why = "quantised: real values are compared"},
    {.inputs = "u8[2,3]{scale 0.02, zero 100};u8[3]{scale 0.03, zero 7};u8[]{scale 0.01, zero 50}",
     .output_quantization = "scale 0.05, zero 128", .why = "quantised, three broadcast"},
    {.inputs = "", .expect = "error one input or more", .why = "none"},
    {.inputs = "bool{1};bool{0}", .expect = "error takes", .why = "element type"},
    {.inputs = "f32[2];f32[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "f32[2];f16[2]", .expect = "error must be float32", .why = "types differ"},
    {.inputs = "i8[2]{scale 1, zero 0};i8[2]", .expect = "error without quantisation",
     .output_quantization = "scale 1, zero 0", .why = "quantised with plain"},
    {.inputs = "i8[2]{scale 1, zero 0};i8[2]{scale 1, zero 0}", .expect = "error must be declared quantised",
     .why = "no scale for the result"},
};
PINNACE_CASES(min, kCases)
}  // namespace pinnace::testing
