// Cases of dynamic_quantize_linear: ranges that hold 0, empty and constant data, special values.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[6]{0,2,-3,-2.5,1.34,0.5}", .outputs = 3,
     .expect = "u8[6]{153,255,0,26,221,179};f32[]{0.019607844};u8[]{153}", .why = "both signs"},
    {.inputs = "f32[3]{1,2.1,1.3}", .outputs = 3, .expect = "u8[3]{121,255,158};f32[]{0.0082352934};u8[]{0}",
     .why = "positive: low is 0"},
    {.inputs = "f32[2]{-1,-255}", .outputs = 3, .expect = "u8[2]{254,0};f32[]{1};u8[]{255}",
     .why = "negative: high is 0"},
    {.inputs = "f32[2]{0,0}", .outputs = 3, .expect = "u8[2]{0,0};f32[]{1};u8[]{0}", .why = "constant 0: scale 1"},
    {.inputs = "f32[0,3]", .outputs = 3, .expect = "u8[0,3]{};f32[]{1};u8[]{0}", .why = "empty"},
    {.inputs = "f32[3]{nan,255,0}", .outputs = 3, .expect = "u8[3]{0,255,0};f32[]{1};u8[]{0}",
     .why = "NaN does not count"},
    {.inputs = "f32[2]{inf,-inf}", .outputs = 3, .expect = "u8[2]{0,0};f32[]{inf};u8[]{0}", .why = "infinite range"},
    {.inputs = "f32[2,3,37]", .outputs = 3, .why = "random"},
    {.inputs = "f32[]", .outputs = 3, .why = "scalar"},
    {.inputs = "f16[2]", .outputs = 3, .expect = "error takes float32", .why = "element type"},
};
PINNACE_CASES(dynamic_quantize_linear, kCases)
}  // namespace pinnace::testing
