// Cases of cum_max: ties, NaN, axes, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[6]{1,3,2,3,-1,5}", .outputs = 2, .expect = "f32[6]{1,3,3,3,3,5};i64[6]{0,1,1,3,3,5}",
     .why = "the last of equals"},
    {.inputs = "f32[5]{1,nan,7,nan,inf}", .outputs = 2, .expect = "f32[5]{1,nan,nan,nan,nan};i64[5]{0,1,1,3,3}",
     .why = "NaN stays"},
    {.inputs = "f32[4]{-inf,-0,0,-1}", .outputs = 2, .expect = "f32[4]{-inf,-0,0,0};i64[4]{0,1,2,2}",
     .why = "zeros are equal"},
    {.inputs = "i64[2,3]{1,5,2,4,3,6}", .expect = "i64[2,3]{1,5,2,4,5,6}", .why = "first axis, values only"},
    {.inputs = "i8[2,3]{-128,5,2,4,3,127}", .attributes = "axis=-1", .outputs = 2,
     .expect = "i8[2,3]{-128,5,5,4,4,127};i64[2,3]{0,1,1,0,0,2}", .why = "last axis"},
    {.inputs = "u8[3]{200,100,255}", .expect = "u8[3]{200,200,255}", .why = "unsigned"},
    {.inputs = "f16[2,3]{1,2,0,5,4,6}", .attributes = "axis=1", .expect = "f16[2,3]{1,2,2,5,5,6}", .why = "half"},
    {.inputs = "f64[3,2,4]", .attributes = "axis=1", .outputs = 2, .expect = "type f64[3,2,4];i64[3,2,4]", .why = "inner axis"},
    {.inputs = "f32[2,0]", .attributes = "axis=1", .outputs = 2, .expect = "f32[2,0]{};i64[2,0]{}", .why = "empty"},
    {.inputs = "f32[1]{4}", .outputs = 2, .expect = "f32[1]{4};i64[1]{0}", .why = "size 1"},
    {.inputs = "f32[2]", .attributes = "axis=1", .expect = "error axis 1 is outside", .why = "axis"},
    {.inputs = "bool[2]{1,0}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(cum_max, kCases)
}  // namespace pinnace::testing
