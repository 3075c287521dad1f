// Cases of erfcx: values on both sides of 20, special values, element types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF64{.abs = 0, .rel = 1e-14f};
constexpr Case kCases[] = {
    {.inputs = "f64[7]{0,1,-1,5,19.9,20.1,10000000000}",
     .expect = "f64[7]{1,0.427583576155807,5.008980080762283,0.1107046377330686,0.02831557398318577,"
               "0.02803452352696688,5.641895835477563e-11}",
     .tolerance = kF64, .why = "values"},
    {.inputs = "f64[2]{-26,-27}", .expect = "f64[2]{7.657724931490568e+293,inf}", .tolerance = kF64, .why = "overflow"},
    {.inputs = "f32[4]{inf,-inf,nan,-0}", .expect = "f32[4]{0,inf,nan,1}", .why = "special values"},
    {.inputs = "f16[3,5] in 0.1..0.9", .expect = "type f16[3,5]", .why = "half"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i32{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(erfcx, kCases)
}  // namespace pinnace::testing
