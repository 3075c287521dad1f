// Cases of lp_normalization: norms 1 and 2, zero slices, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{3,4,0,0}", .expect = "f32[2,2]{0.6,0.8,0,0}", .tolerance = {.rel = 1e-7f}, .why = "a norm of 0 gives 0"},
    {.inputs = "f32[2,2]{3,-1,0,4}", .attributes = "p=1, axis=0", .expect = "f32[2,2]{1,-0.2,0,0.8}", .tolerance = {.rel = 1e-7f}, .why = "sum of magnitudes down the columns"},
    {.inputs = "f32[2,3,4,5]", .attributes = "axis=1", .tolerance = {.rel = 1e-6f}, .why = "per channel"},
    {.inputs = "f16[4,8]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[4,8]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[4,8]", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "u8[1,2]{scale 0.5, zero 128}{131,124}", .expect = "u8[1,2]{scale 0.0078125, zero 128}{205,26}", .output_quantization = "scale 0.0078125, zero 128", .why = "quantised: 0.6 and -0.8"},
    {.inputs = "i8[3,40]{scale 0.1, zero 3}", .output_quantization = "scale 0.0078125, zero 0", .why = "signed bits"},
    {.inputs = "i8[3,4,5,6]{scale 0.1, zero 3}", .attributes = "axis=1", .output_quantization = "scale 0.01, zero 5", .why = "another scale, per channel"},
    {.inputs = "f32[2,2]", .attributes = "p=3", .expect = "error must be 1 or 2", .why = "p"},
    {.inputs = "f32[2,2]{nan,1,inf,1}", .expect = "f32[2,2]{nan,nan,nan,0}", .why = "NaN and infinity in a slice"},
    {.inputs = "u8[4,131]{scale 0.1, zero 119}", .attributes = "p=1", .output_quantization = "scale 0.0003, zero 128", .why = "quantised magnitudes"},
};
PINNACE_CASES(lp_normalization, kCases)
}  // namespace pinnace::testing
