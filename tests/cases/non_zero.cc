// Cases of non_zero: types and special values.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{1,0,0,2}", .expect = "i64[2,2]{0,1,0,1}", .why = "two"},
    {.inputs = "f32[4]{nan,-0,0,inf}", .expect = "i64[1,2]{0,3}", .why = "NaN counts, -0 does not"},
    {.inputs = "bool[2,2]{1,1,0,1}", .expect = "i64[2,3]{0,0,1,0,1,1}", .why = "bool"},
    {.inputs = "i8[3]{0,-1,0}", .expect = "i64[1,1]{1}", .why = "integers"},
    {.inputs = "f16[2]{0,0}", .expect = "i64[1,0]{}", .why = "none"},
    {.inputs = "f32[]{5}", .expect = "i64[0,1]{}", .why = "scalar"},
    {.inputs = "f32[]{0}", .expect = "i64[0,0]{}", .why = "zero scalar"},
    {.inputs = "bf16[0,3]", .expect = "i64[2,0]{}", .why = "empty"},
    {.inputs = "f64[2,3,2]", .why = "three dimensions"},
    {.inputs = "i8[2]{scale 1, zero 1}", .expect = "error quantised", .why = "quantised"},
};
PINNACE_CASES(non_zero, kCases)
}  // namespace pinnace::testing
