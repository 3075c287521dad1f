// Cases of sign: special values, integers, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[6]{-3,-0,0,2,inf,nan}", .expect = "f32[6]{-1,0,0,1,1,nan}", .why = "-0 becomes 0, NaN stays"},
    {.inputs = "f32[2,5,3,7]", .why = "images"},
    {.inputs = "i32{-5,0,7}", .expect = "i32{-1,0,1}", .why = "integers"},
    {.inputs = "i8{-128,127}", .expect = "i8{-1,1}", .why = "i8"},
    {.inputs = "u8{0,200}", .expect = "u8{0,1}", .why = "unsigned"},
    {.inputs = "u64{18446744073709551615}", .expect = "u64{1}", .why = "64 bits, unsigned"},
    {.inputs = "f16[3,5]", .why = "half"},
    {.inputs = "bf16[7]", .why = "bfloat16"},
    {.inputs = "f64[2,2]", .why = "double"},
    {.inputs = "f32[]", .why = "scalar"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[3]{scale 0.5, zero 3}{-128,3,4}", .expect = "i8[3]{scale 0.25, zero 0}{-4,0,4}",
     .output_quantization = "scale 0.25, zero 0", .why = "by table"},
    {.inputs = "bool{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(sign, kCases)
}  // namespace pinnace::testing
