// Cases of tensor_scatter: places, modes, axes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,3,2]{1,2,3,4,5,6};f32[1,1,2]{8,9};i64{1}", .expect = "f32[1,3,2]{1,2,8,9,5,6}", .why = "one row"},
    {.inputs = "f32[2,3,1]{1,2,3,4,5,6};f32[2,2,1]{7,8,9,10};i64{1,0}", .expect = "f32[2,3,1]{1,7,8,9,10,6}",
     .why = "a place per batch entry"},
    {.inputs = "i32[1,3,1]{1,2,3};i32[1,2,1]{8,9};none", .expect = "i32[1,3,1]{8,9,3}", .why = "no places: 0"},
    {.inputs = "f16[1,3,1]{1,2,3};f16[1,2,1]{8,9}", .expect = "f16[1,3,1]{8,9,3}", .why = "no places, missing"},
    {.inputs = "f32[1,3,1]{1,2,3};f32[1,2,1]{8,9};i64{2}", .attributes = "mode=\"circular\"",
     .expect = "f32[1,3,1]{9,2,8}", .why = "around the end"},
    {.inputs = "f32[1,3,1]{1,2,3};f32[1,1,1]{8};i64{-1}", .attributes = "mode=\"circular\"",
     .expect = "f32[1,3,1]{1,2,8}", .why = "any place modulo the axis"},
    {.inputs = "u8[2,2]{1,2,3,4};u8[2,1]{8,9};i64{1,0}", .attributes = "axis=1", .expect = "u8[2,2]{1,8,9,4}",
     .why = "the last axis"},
    {.inputs = "f64[2,3,4,5];f64[2,3,2,5];i64{2,1}", .expect = "type f64[2,3,4,5]", .why = "heads"},
    {.inputs = "i8[1,2,1]{scale 0.5, zero 3}{1,2};i8[1,1,1]{scale 0.5, zero 3}{9};i64{0}",
     .expect = "i8[1,2,1]{scale 0.5, zero 3}{9,2}", .why = "quantised"},
    {.inputs = "bool[1,2,1]{0,0};bool[1,1,1]{1};i64{1}", .expect = "bool[1,2,1]{0,1}", .why = "bool"},
    {.inputs = "f32[1,2,1]{1,2};f32[1,0,1];i64{2}", .expect = "f32[1,2,1]{1,2}", .why = "nothing to write"},
    {.inputs = "f32[0,2,1];f32[0,1,1];i64[0]{}", .expect = "f32[0,2,1]{}", .why = "empty"},
    {.inputs = "f32[1,2,1];f32[1,1,1];i64{2}", .expect = "error write index 2", .why = "beyond the end"},
    {.inputs = "f32[1,2,1];f32[1,1,1];i64{-1}", .expect = "error write index -1", .why = "before the start"},
    {.inputs = "f32[1,2,1];f32[1,3,1]", .expect = "error is longer than past", .why = "too long"},
    {.inputs = "f32[1,2,1];f32[1,1,2]", .expect = "error differ in dimension 2", .why = "shapes"},
    {.inputs = "f32[1,2,1];f32[1,1,1]", .attributes = "axis=0", .expect = "error axis 0 is the batch", .why = "axis"},
    {.inputs = "f32[1,2,1];f32[1,1,1]", .attributes = "mode=\"ring\"", .expect = "error mode is 'ring'",
     .why = "mode"},
};
PINNACE_CASES(tensor_scatter, kCases)
}  // namespace pinnace::testing
