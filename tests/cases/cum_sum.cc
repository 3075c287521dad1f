// Cases of cum_sum: directions, exclusive, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[5]{1,2,3,4,5};i32[]{0}", .expect = "f32[5]{1,3,6,10,15}", .why = "running sums"},
    {.inputs = "f32[5]{1,2,3,4,5};i32[]{0}", .attributes = "exclusive=1", .expect = "f32[5]{0,1,3,6,10}",
     .why = "exclusive"},
    {.inputs = "f32[5]{1,2,3,4,5};i32[]{0}", .attributes = "reverse=1", .expect = "f32[5]{15,14,12,9,5}",
     .why = "reverse"},
    {.inputs = "f32[5]{1,2,3,4,5};i64{-1}", .attributes = "reverse=1, exclusive=1", .expect = "f32[5]{14,12,9,5,0}",
     .why = "both, axis as a vector"},
    {.inputs = "f32[2,3]{1,2,3,4,5,6};i32[]{0}", .expect = "f32[2,3]{1,2,3,5,7,9}", .why = "first axis"},
    {.inputs = "f32[2,3]{1,2,3,4,5,6};i32[]{1}", .expect = "f32[2,3]{1,3,6,4,9,15}", .why = "last axis"},
    {.inputs = "i32{2147483647,1};i32[]{0}", .expect = "i32{2147483647,-2147483648}", .why = "integers wrap"},
    {.inputs = "u8{200,100};i32[]{0}", .expect = "u8{200,44}", .why = "unsigned wraps"},
    {.inputs = "f16[4]{2048,1,1,1};i64[]{0}", .expect = "f16[4]{2048,2048,2050,2052}",
     .why = "summed in double, each sum rounded once"},
    {.inputs = "f32[3]{inf,-inf,1};i64[]{0}", .expect = "f32[3]{inf,nan,nan}", .why = "IEEE"},
    {.inputs = "f64[2,0];i64[]{0}", .expect = "f64[2,0]{}", .why = "empty"},
    {.inputs = "f32[2];i64[]{1}", .expect = "error axis 1 is outside", .why = "axis"},
    {.inputs = "i8[2]{scale 1, zero 0};i64[]{0}", .expect = "error quantised", .why = "quantised"},
    {.inputs = "f32[3]{1,nan,2};i64[]{0}", .expect = "f32[3]{1,nan,nan}", .why = "NaN from there on"},
};
PINNACE_CASES(cum_sum, kCases)
}  // namespace pinnace::testing
