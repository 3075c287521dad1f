// Cases of cum_prod: directions, exclusive, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[5]{1,2,3,4,5};i32[]{0}", .expect = "f32[5]{1,2,6,24,120}", .why = "running products"},
    {.inputs = "f32[4]{2,3,4,5};i32[]{0}", .attributes = "exclusive=1", .expect = "f32[4]{1,2,6,24}",
     .why = "exclusive"},
    {.inputs = "f32[4]{2,3,4,5};i32[]{0}", .attributes = "reverse=1", .expect = "f32[4]{120,60,20,5}",
     .why = "reverse"},
    {.inputs = "f32[4]{2,3,4,5};i64{-1}", .attributes = "reverse=1, exclusive=1", .expect = "f32[4]{60,20,5,1}",
     .why = "both, axis as a vector"},
    {.inputs = "f32[2,3]{1,2,3,4,5,6};i32[]{0}", .expect = "f32[2,3]{1,2,3,4,10,18}", .why = "first axis"},
    {.inputs = "f64[2,3]{1,2,3,4,5,6};i32[]{1}", .expect = "f64[2,3]{1,2,6,4,20,120}", .why = "last axis"},
    {.inputs = "i32{65536,65536,3};i32[]{0}", .expect = "i32{65536,0,0}", .why = "integers wrap"},
    {.inputs = "i8{-100,2};i32[]{0}", .expect = "i8{-100,56}", .why = "signed wraps"},
    {.inputs = "u8{200,2};i32[]{0}", .expect = "u8{200,144}", .why = "unsigned wraps"},
    {.inputs = "f16[4]{2048,1.0009765625,1.0009765625,1};i64[]{0}", .expect = "f16[4]{2048,2050,2052,2052}",
     .why = "multiplied in double, each product rounded once"},
    {.inputs = "bf16[2,3];i64[]{1}", .expect = "type bf16[2,3]", .why = "bfloat16"},
    {.inputs = "f32[4]{-0,1,inf,2};i64[]{0}", .expect = "f32[4]{-0,-0,nan,nan}", .why = "IEEE"},
    {.inputs = "f64[2,0];i64[]{0}", .expect = "f64[2,0]{}", .why = "empty"},
    {.inputs = "f32[2,1]{3,4};i64[]{1}", .attributes = "exclusive=1", .expect = "f32[2,1]{1,1}", .why = "size 1"},
    {.inputs = "f32[2];i64[]{1}", .expect = "error axis 1 is outside", .why = "axis"},
    {.inputs = "i8[2]{scale 1, zero 0};i64[]{0}", .expect = "error quantised", .why = "quantised"},
    {.inputs = "f32[3]{2,nan,2};i64[]{0}", .expect = "f32[3]{2,nan,nan}", .why = "NaN from there on"},
};
PINNACE_CASES(cum_prod, kCases)
}  // namespace pinnace::testing
