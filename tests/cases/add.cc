// Cases of add: broadcasting, wrapping, quantised arithmetic.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,3];f32[3]", .why = "row broadcast"},
    {.inputs = "f32[2,1,4];f32[3,1]", .why = "both broadcast"},
    {.inputs = "f16[5];f16[]", .why = "scalar"},
    {.inputs = "i32{2147483647};i32{1}", .expect = "i32{-2147483648}", .why = "integers wrap"},
    {.inputs = "u8{250};u8{10}", .expect = "u8{4}", .why = "unsigned wraps"},
    {.inputs = "f32[2]{inf,nan};f32[2]{-inf,1}", .expect = "f32[2]{nan,nan}", .why = "IEEE"},
    {.inputs = "f32[0];f32[1]", .expect = "f32[0]{}", .why = "empty"},
    {.inputs = "f32[2];f32[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "f32[2];f16[2]", .expect = "error must be f32", .why = "types differ"},
    {.inputs = "i8[3]{scale 0.5, zero 0}{2,4,127};i8[3]{scale 0.25, zero 1}{1,5,127}",
     .expect = "i8[3]{scale 0.5, zero 0}{2,6,127}", .output_quantization = "scale 0.5, zero 0", .why = "dequantise, add, quantise, clamp"},
};
PINNACE_CASES(add, kCases)
}  // namespace pinnace::testing
