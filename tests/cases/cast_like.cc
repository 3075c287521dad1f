// Cases of cast_like: the element type of the second input.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2]{1.9,-1.9};i32[3]", .expect = "i32[2]{1,-1}", .why = "truncates"},
    {.inputs = "i64{5};f16[]", .expect = "f16[1]{5}", .why = "to half"},
    {.inputs = "i32{0,7};bool[1]", .expect = "bool{0,1}", .why = "to bool"},
    {.inputs = "f32[3]{1,2,3};u4[5]", .expect = "u4[3]{1,2,3}", .why = "to a packed type"},
    {.inputs = "i4[2]{-8,7};f64[0]", .expect = "f64[2]{-8,7}", .why = "from a packed type; target empty"},
    {.inputs = "bf16[2,3];f32[2,3]", .why = "wider"},
    {.inputs = "f32[0,3];i8[1]", .expect = "i8[0,3]{}", .why = "empty"},
    {.inputs = "u8[];bf16[]", .why = "scalar"},
    {.inputs = "f32[2]{1e9,1.1};f8e5m2[1]{0}", .attributes = "saturate=0", .expect = "f8e5m2[2]{inf,1}",
     .why = "saturate"},
    {.inputs = "f32[2]{3,1};f8e8m0[1]{1}", .attributes = "round_mode=\"down\"", .expect = "f8e8m0[2]{2,1}",
     .why = "round_mode"},
};
PINNACE_CASES(cast_like, kCases)
}  // namespace pinnace::testing
