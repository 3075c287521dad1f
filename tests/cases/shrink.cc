// Cases of shrink: thresholds, bias, integers.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[6]{-2,-0.5,0.25,0.5,2,nan}", .expect = "f32[6]{-2,0,0,0,2,0}", .why = "default: hard; NaN gives 0"},
    {.inputs = "f32[4]{-2,-1,1.5,2}", .attributes = "bias=1.5, lambd=1.5", .expect = "f32[4]{-0.5,0,0,0.5}",
     .why = "soft"},
    {.inputs = "i32{-3,0,5}", .attributes = "bias=1.5, lambd=1.0", .expect = "i32{-1,0,3}", .why = "integers truncate"},
    {.inputs = "u8{1,5}", .attributes = "bias=1.0, lambd=2.0", .expect = "u8{0,4}", .why = "unsigned"},
    {.inputs = "f32[2,3,37]", .attributes = "bias=0.5", .tolerance = {.rel = 1e-6f}, .why = "rows"},
    {.inputs = "f32[]", .why = "scalar"},
    {.inputs = "f16[3,5]", .attributes = "bias=0.25", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[7]", .why = "bfloat16"},
    {.inputs = "f64[3]", .why = "double"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[3]{scale 0.5, zero 0}{-4,1,4}", .attributes = "bias=0.5",
     .expect = "i8[3]{scale 0.25, zero 0}{-6,0,6}", .output_quantization = "scale 0.25, zero 0", .why = "by table"},
    {.inputs = "bool{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(shrink, kCases)
}  // namespace pinnace::testing
