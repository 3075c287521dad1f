// Cases of slice: directions, limits, axes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,4]{1,2,3,4,5,6,7,8};i64{1,0};i64{2,3};i64{0,1};i64{1,2}", .expect = "f32[1,2]{5,7}",
     .why = "axes and steps"},
    {.inputs = "f32[2,4]{1,2,3,4,5,6,7,8};i64{0,1};i64{-1,1000}", .expect = "f32[1,3]{2,3,4}",
     .why = "first axes, cut to size"},
    {.inputs = "f32[4]{1,2,3,4};i64{-1};i64{-9223372036854775807};i64{0};i64{-1}", .expect = "f32[4]{4,3,2,1}",
     .why = "reversed"},
    {.inputs = "f32[4]{1,2,3,4};i64{9};i64{0};i64{0};i64{-2}", .expect = "f32[2]{4,2}", .why = "backwards by two"},
    {.inputs = "f32[4]{1,2,3,4};i64{1};i64{3};i64{-1}", .expect = "f32[2]{2,3}", .why = "negative axis"},
    {.inputs = "i32[5]{1,2,3,4,5};i32{1};i32{5};i32{0};i32{3}", .expect = "i32[2]{2,5}", .why = "i32 indices"},
    {.inputs = "f32[4];i64{3};i64{1}", .expect = "f32[0]{}", .why = "crossed"},
    {.inputs = "f16[0,3];i64{0};i64{5}", .expect = "f16[0,3]{}", .why = "empty"},
    {.inputs = "bool{1,0,1};i64{1};i64{3}", .expect = "bool{0,1}", .why = "bool"},
    {.inputs = "f64[3,4,5];i64{1};i64{-1};i64{1}", .expect = "type f64[3,2,5]", .why = "middle axis"},
    {.inputs = "f32[4]{1,2,3,4};i64{0};i64{4};i64{0};i64{9223372036854775807}", .expect = "f32[1]{1}",
     .why = "a step beyond the axis"},
    {.inputs = "f32[4]{1,2,3,4};i64{3};i64{-5};i64{0};i64{-9223372036854775808}", .expect = "f32[1]{4}",
     .why = "the lowest step"},
    {.inputs = "u8[3]{scale 0.5, zero 3}{1,2,3};i64{2};i64{3}", .expect = "u8[1]{scale 0.5, zero 3}{3}",
     .why = "quantised"},
    {.inputs = "f32[2];i64[0]{};i64[0]{}", .expect = "type f32[2]", .why = "no axes"},
    {.inputs = "f32[4];i64{0};i64{4};i64{0};i64{0}", .expect = "error is 0", .why = "step"},
    {.inputs = "f32[4];i64{0};i64{4,1}", .expect = "error must have 1", .why = "lengths"},
    {.inputs = "f32[4];i64{0};i64{4};i64{1}", .expect = "error outside rank", .why = "axis"},
    {.inputs = "f32[4,4];i64{0,0};i64{4,4};i64{0,-2}", .expect = "error named twice", .why = "axis twice"},
    {.inputs = "f32[4];i64{0};i32{4}", .expect = "error must be int64", .why = "types"},
    {.inputs = "f32[4];i64{0,0};i64{4,4}", .expect = "error outside rank", .why = "too many"},
};
PINNACE_CASES(slice, kCases)
}  // namespace pinnace::testing
