// Cases of mean: one, two and more inputs, rounding, broadcasting.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2]{1,5};f32[2]{2,4}", .expect = "f32[2]{1.5,4.5}", .why = "two"},
    {.inputs = "f32[1]{16777216};f32[1]{1};f32[1]{1};f32[1]{2}", .expect = "f32[1]{4194305}",
     .why = "rounded once, at the end"},
    {.inputs = "f32[2]{1,nan}", .expect = "f32[2]{1,nan}", .why = "one"},
    {.inputs = "f32[2]{inf,nan};f32[2]{-inf,1}", .expect = "f32[2]{nan,nan}", .why = "IEEE"},
    {.inputs = "f16[3,5];f16[5];f16[]", .why = "half"},
    {.inputs = "bf16[7];bf16[]", .why = "bfloat16"},
    {.inputs = "f64[3];f64[3]", .why = "double"},
    {.inputs = "f32[2,3];f32[3];f32[2,1]", .tolerance = {.rel = 1e-6f}, .why = "three broadcast"},
    {.inputs = "f32[2,1,4];f32[3,1]", .tolerance = {.rel = 1e-6f}, .why = "both broadcast"},
    {.inputs = "f32[];f32[5]", .tolerance = {.rel = 1e-6f}, .why = "scalar first"},
    {.inputs = "f32[0];f32[1]", .expect = "f32[0]{}", .why = "empty"},
    {.inputs = "", .expect = "error one input or more", .why = "none"},
    {.inputs = "i32{1};i32{0}", .expect = "error takes", .why = "element type"},
    {.inputs = "f32[2];f32[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "f32[2];f16[2]", .expect = "error must be float32", .why = "types differ"},
};
PINNACE_CASES(mean, kCases)
}  // namespace pinnace::testing
