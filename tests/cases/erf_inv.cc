// Cases of erf_inv: special values, element types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 1e-6f};  // expected numbers are written to 8 digits
constexpr Case kCases[] = {
    {.inputs = "f32[7]{0,0.5,-0.5,1,-1,1.5,nan}", .expect = "f32[7]{0,0.47693628,-0.47693628,inf,-inf,nan,nan}",
     .tolerance = kF32, .why = "ends, outside, NaN"},
    {.inputs = "f32{-0}", .expect = "f32{-0}", .why = "-0 stays"},
    {.inputs = "f64[3]{1e-10,0.99999,-0.999999999999}", .expect = "f64[3]{8.862269254527581e-11,3.123413274341571,-5.042031898572696}",
     .tolerance = {.rel = 1e-11f}, .why = "small values, and close to the ends"},
    {.inputs = "f16[3,5] in 0.1..0.9", .expect = "type f16[3,5]", .why = "half"},
    {.inputs = "bf16[7] in 0.1..0.9", .expect = "type bf16[7]", .why = "bfloat16"},
    {.inputs = "f32[] in 0.1..0.9", .expect = "type f32[]", .why = "scalar"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i32{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(erf_inv, kCases)
}  // namespace pinnace::testing
