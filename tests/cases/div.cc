// Cases of div: broadcasting, integer rounding, divisors of 0, quantised arithmetic.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,20,5,6];f32[2,20,5,6]", .why = "two images"},
    {.inputs = "f32[2,19,3,9];f32[1,19,1,1]", .why = "one number for each channel"},
    {.inputs = "f32[2,9,4,3];f32[1]", .why = "an image and a number"},
    {.inputs = "f32[2,3];f32[3]", .tolerance = {.rel = 1e-6f}, .why = "row broadcast"},
    {.inputs = "f32[2,1,4];f32[3,1]", .tolerance = {.rel = 1e-6f}, .why = "both broadcast"},
    {.inputs = "f32[2,3,4,5];f32[3,1,1]", .tolerance = {.rel = 1e-6f}, .why = "per channel"},
    {.inputs = "f32[];f32[5]", .tolerance = {.rel = 1e-6f}, .why = "scalar first"},
    {.inputs = "f32[5];f32[]", .tolerance = {.rel = 1e-6f}, .why = "scalar second"},
    {.inputs = "f32[2,3,37];f32[2,3,37]", .tolerance = {.rel = 1e-6f}, .why = "equal shapes"},
    {.inputs = "f32[0];f32[1]", .expect = "f32[0]{}", .why = "empty"},
    {.inputs = "f32[0,3];f32[2,1,3]", .expect = "f32[2,0,3]{}", .why = "empty, both broadcast"},
    {.inputs = "f32[4]{1,-1,0,inf};f32[4]{0,0,0,inf}", .expect = "f32[4]{inf,-inf,nan,nan}", .why = "IEEE"},
    {.inputs = "i32{7,-7,7,-7};i32{2,2,-2,-2}", .expect = "i32{3,-3,-3,3}", .why = "toward zero"},
    {.inputs = "i32{-2147483648};i32{-1}", .expect = "i32{-2147483648}", .why = "the one overflow wraps"},
    {.inputs = "i64{-9223372036854775808};i64{-1}", .expect = "i64{-9223372036854775808}", .why = "64 bits"},
    {.inputs = "i8{-128};i8{-1}", .expect = "i8{-128}", .why = "i8"},
    {.inputs = "u8{200};u8{3}", .expect = "u8{66}", .why = "unsigned"},
    {.inputs = "u64{18446744073709551615};u64{2}", .expect = "u64{9223372036854775807}", .why = "64 bits, unsigned"},
    {.inputs = "i32{1,2};i32{1,0}", .expect = "error element 1 of the divisor is 0", .why = "no value"},
    {.inputs = "i32[0];i32[1]{0}", .expect = "i32[0]{}", .why = "nothing is divided"},
    {.inputs = "f16[3,5];f16[5] in 1..2", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[7];bf16[] in 1..2", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[3];f64[3] in 1..2", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "i8[4]{scale 0.5, zero 0}{2,4,-2,0};i8[4]{scale 0.25, zero 1}{5,3,1,1}",
     .expect = "i8[4]{scale 0.5, zero 3}{5,11,-128,3}", .output_quantization = "scale 0.5, zero 3",
     .why = "1, 4, -inf, 0 / 0"},
    {.inputs = "u8[2,3]{scale 0.02, zero 100};u8[3]{scale 0.03, zero 7}",
     .output_quantization = "scale 0.05, zero 128", .why = "quantised, broadcast"},
    {.inputs = "f32[2];f32[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "f32[2];f16[2]", .expect = "error must be float32", .why = "types differ"},
    {.inputs = "i8[2]{scale 1, zero 0};i8[2]", .expect = "error without quantisation",
     .output_quantization = "scale 1, zero 0", .why = "quantised with plain"},
    {.inputs = "i8[2]{scale 1, zero 0};i8[2]{scale 1, zero 0}", .expect = "error must be declared quantised",
     .why = "no scale for the result"},
};
PINNACE_CASES(div, kCases)
}  // namespace pinnace::testing
