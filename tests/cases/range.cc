// Cases of range: directions, rounding of counts, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "i64[]{0};i64[]{5};i64[]{2}", .expect = "i64{0,2,4}", .why = "up"},
    {.inputs = "i64[]{5};i64[]{0};i64[]{-2}", .expect = "i64{5,3,1}", .why = "down"},
    {.inputs = "i32{3};i32{3};i32{1}", .expect = "i32[0]{}", .why = "nothing, as vectors"},
    {.inputs = "i64[]{3};i64[]{0};i64[]{1}", .expect = "i64[0]{}", .why = "the wrong way"},
    {.inputs = "f32[]{0};f32[]{1};f32[]{0.25}", .expect = "f32[4]{0,0.25,0.5,0.75}", .why = "floats"},
    {.inputs = "f32[]{1};f32[]{0};f32[]{-0.4}", .expect = "f32[3]{1,0.6,0.2}", .tolerance = {.rel = 1e-6f},
     .why = "floats down"},
    {.inputs = "f16[]{0};f16[]{3};f16[]{1}", .expect = "f16[3]{0,1,2}", .why = "half"},
    {.inputs = "f64[]{0};f64[]{2.5};f64[]{1}", .expect = "f64[3]{0,1,2}", .why = "double"},
    {.inputs = "i64[]{9223372036854775805};i64[]{9223372036854775807};i64[]{1}",
     .expect = "i64{9223372036854775805,9223372036854775806}", .why = "near the end of i64"},
    {.inputs = "i64[]{-9223372036854775807};i64[]{9223372036854775807};i64[]{9223372036854775807}",
     .expect = "i64{-9223372036854775807,0}", .why = "a distance beyond i64"},
    {.inputs = "i64[]{0};i64[]{1};i64[]{0}", .expect = "error delta is 0", .why = "delta"},
    {.inputs = "f32[]{0};f32[]{1};f32[]{0}", .expect = "error no usable length", .why = "delta"},
    {.inputs = "f32[]{0};f32[]{nan};f32[]{1}", .expect = "error no usable length", .why = "NaN"},
    {.inputs = "f32[]{0};f32[]{inf};f32[]{1}", .expect = "error no usable length", .why = "inf"},
    {.inputs = "i64[]{0};i64[]{9223372036854775807};i64[]{1}", .expect = "error larger than memory", .why = "overflow"},
    {.inputs = "i64{0,1};i64[]{5};i64[]{2}", .expect = "error must be one number", .why = "start"},
    {.inputs = "i32[]{scale 0.5, zero 0}{1};i32[]{scale 0.5, zero 0}{4};i32[]{scale 0.5, zero 0}{1}", .expect = "error takes plain tensors only", .why = "scales would be lost"},
    {.inputs = "f32[]{nan};f32[]{3};f32[]{1}", .expect = "error", .why = "no count of NaN"},
};
PINNACE_CASES(range, kCases)
}  // namespace pinnace::testing
