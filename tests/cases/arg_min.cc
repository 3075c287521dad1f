// Cases of arg_min: ties, NaN, axes, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,3]{1,5,2,7,0,7}", .attributes = "axis=1", .expect = "i64[2,1]{0,1}",
     .why = "rows, first of equals"},
    {.inputs = "f32[2,3]{1,5,2,7,0,7}", .attributes = "axis=1, select_last_index=1", .expect = "i64[2,1]{0,1}",
     .why = "last of equals"},
    {.inputs = "f32[2,3]{1,5,2,7,0,7}", .attributes = "keepdims=0", .expect = "i64[3]{0,1,0}",
     .why = "columns, axis gone"},
    {.inputs = "f32[4]{1,nan,-inf,nan}", .expect = "i64[1]{1}", .why = "NaN wins, the first one"},
    {.inputs = "f32[4]{1,nan,-inf,nan}", .attributes = "select_last_index=1", .expect = "i64[1]{3}",
     .why = "the last NaN"},
    {.inputs = "i8[4]{-128,127,5,0}", .expect = "i64[1]{0}", .why = "integers"},
    {.inputs = "u8[3]{0,255,7}", .expect = "i64[1]{0}", .why = "unsigned"},
    {.inputs = "i64{9223372036854775807,-9223372036854775807}", .expect = "i64[1]{1}",
     .why = "64 bits are compared as such"},
    {.inputs = "f16[2,3,4]", .attributes = "axis=-2", .expect = "type i64[2,1,4]", .why = "half, negative axis"},
    {.inputs = "bf16[3,5]", .attributes = "axis=1", .expect = "type i64[3,1]", .why = "bfloat16"},
    {.inputs = "f64[3,1]", .attributes = "axis=1", .expect = "i64[3,1]{0,0,0}", .why = "one element"},
    {.inputs = "i8[3]{scale 0.5, zero 7}{1,9,3}", .expect = "i64[1]{0}", .why = "quantised"},
    {.inputs = "f32[0,3]", .attributes = "axis=1", .expect = "i64[0,1]{}", .why = "nothing asked for"},
    {.inputs = "f32[0,3]", .attributes = "axis=0", .expect = "error no elements", .why = "nothing to choose from"},
    {.inputs = "f32[2]", .attributes = "axis=1", .expect = "error axis 1 is outside rank 1", .why = "axis"},
};
PINNACE_CASES(arg_min, kCases)
}  // namespace pinnace::testing
