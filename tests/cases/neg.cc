// Cases of neg: special values, the smallest integers, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,11,3,4]", .why = "images"},
    {.inputs = "f32[5]{-1,0,-0,inf,nan}", .expect = "f32[5]{1,-0,0,-inf,nan}", .why = "zeros change sign"},
    {.inputs = "i32{-5,7,-2147483648}", .expect = "i32{5,-7,-2147483648}", .why = "the smallest value wraps"},
    {.inputs = "i8{-128,1}", .expect = "i8{-128,-1}", .why = "the smallest value of i8"},
    {.inputs = "i64{5}", .expect = "i64{-5}", .why = "64 bits"},
    {.inputs = "f16[3,5]", .why = "half"},
    {.inputs = "bf16[7]", .why = "bfloat16"},
    {.inputs = "f64[2,2]", .why = "double"},
    {.inputs = "f32[]", .why = "scalar"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[4]{scale 0.5, zero 3}{-128,3,4,127}", .expect = "i8[4]{scale 0.5, zero -1}{127,-1,-2,-125}",
     .output_quantization = "scale 0.5, zero -1", .why = "clamped at 127"},
    {.inputs = "u8[4]{scale 0.5, zero 128}{0,127,129,255}", .expect = "u8[4]{scale 0.5, zero 128}{255,129,127,1}",
     .output_quantization = "scale 0.5, zero 128", .why = "unsigned, quantised"},
    {.inputs = "u8{1}", .expect = "error without quantisation", .why = "plain u8 has no negative"},
    {.inputs = "u32{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(neg, kCases)
}  // namespace pinnace::testing
