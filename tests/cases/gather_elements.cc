// Cases of gather_elements: axes and smaller indices.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{1,2,3,4};i64[2,2]{0,0,1,0}", .attributes = "axis=1", .expect = "f32[2,2]{1,1,4,3}",
     .why = "last axis"},
    {.inputs = "f32[3,3]{1,2,3,4,5,6,7,8,9};i64[2,3]{1,2,0,2,0,0}", .attributes = "axis=0",
     .expect = "f32[2,3]{4,8,3,7,2,3}", .why = "first axis"},
    {.inputs = "f32[3,3]{1,2,3,4,5,6,7,8,9};i32[1,2]{-1,-2}", .expect = "f32[1,2]{7,5}",
     .why = "negative, fewer columns"},
    {.inputs = "bool[2]{1,0};i64{1,1,0}", .expect = "bool{0,0,1}", .why = "more than the axis has"},
    {.inputs = "f16[2,0];i64[2,0]{}", .attributes = "axis=1", .expect = "f16[2,0]{}", .why = "empty"},
    {.inputs = "u8[2]{scale 0.5, zero 3}{4,5};i64{1}", .expect = "u8[1]{scale 0.5, zero 3}{5}", .why = "quantised"},
    {.inputs = "f32[2,2];i64[1,1]{2}", .expect = "error index 2 is outside", .why = "too large"},
    {.inputs = "f32[2,2];i64{0}", .expect = "error must have the rank", .why = "rank"},
    {.inputs = "f32[2,2];i64[2,3]{0,0,0,0,0,0}", .expect = "error larger than", .why = "wider than x"},
};
PINNACE_CASES(gather_elements, kCases)
}  // namespace pinnace::testing
