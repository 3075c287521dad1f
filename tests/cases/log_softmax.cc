// Cases of log_softmax: axes, overflow, special values, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[2]{0,0}", .expect = "f32[2]{-0.6931472,-0.6931472}", .tolerance = {.rel = 1e-7f}, .why = "even"},
    {.inputs = "f32[1,1000]", .tolerance = kF32, .why = "classifier head"},
    {.inputs = "f32[2,3,5,7]", .attributes = "axis=1", .tolerance = kF32, .why = "inner axis"},
    {.inputs = "f32[2,3,5,2,4]", .attributes = "axis=2", .tolerance = kF32, .why = "five dimensions"},
    {.inputs = "f32[4,3]", .attributes = "axis=-2", .tolerance = kF32, .why = "negative axis"},
    {.inputs = "f32[3,17] x1e4", .tolerance = kF32, .why = "overflows unless the largest is taken off"},
    {.inputs = "f32[3]{-inf,0,-inf}", .expect = "f32[3]{-inf,0,-inf}", .why = "-inf takes no part"},
    {.inputs = "f32[2]{-inf,-inf}", .expect = "f32[2]{nan,nan}", .why = "nothing takes part"},
    {.inputs = "f32[2]{nan,1}", .expect = "f32[2]{nan,nan}", .why = "NaN spreads"},
    {.inputs = "f32[3,1]{5,nan,-3}", .expect = "f32[3,1]{0,nan,0}", .why = "slices of one"},
    {.inputs = "f32[4,0]", .expect = "f32[4,0]{}", .why = "empty slices"},
    {.inputs = "f16[8,64]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[8,64]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[8,64]", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "u8[1,2]{scale 0.5, zero 10}{10,10}", .expect = "u8[1,2]{scale 0.0625, zero 255}{244,244}",
     .output_quantization = "scale 0.0625, zero 255", .why = "quantised"},
    {.inputs = "i8[3,40]{scale 0.1, zero 3}", .output_quantization = "scale 0.125, zero 127", .why = "bits"},
    {.inputs = "f32[2,3]", .attributes = "axis=2", .expect = "error is outside rank 2", .why = "axis"},
    {.inputs = "u8[2,7,3]{scale 0.05, zero 131}", .attributes = "axis=1", .output_quantization = "scale 0.05, zero 250",
     .why = "quantised, inner axis"},
};
PINNACE_CASES(log_softmax, kCases)
}  // namespace pinnace::testing
