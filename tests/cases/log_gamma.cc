// Cases of log_gamma: special values, element types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 1e-6f};  // expected numbers are written to 8 digits
constexpr Case kCases[] = {
    {.inputs = "f32[9]{1,2,0.5,5,-0.5,0,-3,inf,nan}",
     .expect = "f32[9]{0,0,0.57236494,3.1780538,1.2655121,inf,inf,inf,nan}", .tolerance = kF32, .why = "poles, NaN"},
    {.inputs = "f64[2]{1e-10,171}", .expect = "f64[2]{23.025850929882736,706.5730622457873}", .tolerance = {.rel = 1e-13f},
     .why = "small and large"},
    {.inputs = "f32{-inf}", .expect = "f32{inf}", .why = "minus infinity"},
    {.inputs = "f16[3,5] in 0.1..0.9", .expect = "type f16[3,5]", .why = "half"},
    {.inputs = "bf16[7] in 0.1..0.9", .expect = "type bf16[7]", .why = "bfloat16"},
    {.inputs = "f32[] in 0.1..0.9", .expect = "type f32[]", .why = "scalar"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i32{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(log_gamma, kCases)
}  // namespace pinnace::testing
