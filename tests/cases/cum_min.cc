// Cases of cum_min: ties, NaN, axes, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[6]{4,3,5,3,6,-1}", .outputs = 2, .expect = "f32[6]{4,3,3,3,3,-1};i64[6]{0,1,1,3,3,5}",
     .why = "the last of equals"},
    {.inputs = "f32[5]{1,nan,-7,nan,-inf}", .outputs = 2, .expect = "f32[5]{1,nan,nan,nan,nan};i64[5]{0,1,1,3,3}",
     .why = "NaN stays"},
    {.inputs = "i64[2,3]{1,5,2,4,3,6}", .expect = "i64[2,3]{1,5,2,1,3,2}", .why = "first axis, values only"},
    {.inputs = "i8[2,3]{127,5,6,4,-128,3}", .attributes = "axis=-1", .outputs = 2,
     .expect = "i8[2,3]{127,5,5,4,-128,-128};i64[2,3]{0,1,1,0,1,1}", .why = "last axis"},
    {.inputs = "bf16[3]{2,1,3}", .expect = "bf16[3]{2,1,1}", .why = "bfloat16"},
    {.inputs = "f32[2,0]", .attributes = "axis=1", .outputs = 2, .expect = "f32[2,0]{};i64[2,0]{}", .why = "empty"},
    {.inputs = "f32[2,1]{4,3}", .attributes = "axis=1", .outputs = 2, .expect = "f32[2,1]{4,3};i64[2,1]{0,0}", .why = "size 1"},
    {.inputs = "f32[2]", .attributes = "axis=-2", .expect = "error axis -2 is outside", .why = "axis"},
};
PINNACE_CASES(cum_min, kCases)
}  // namespace pinnace::testing
