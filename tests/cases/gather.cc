// Cases of gather: axes, negative indices, ranks of indices.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[3,2]{1,2,3,4,5,6};i64{2,0}", .expect = "f32[2,2]{5,6,1,2}", .why = "rows"},
    {.inputs = "f32[3,2]{1,2,3,4,5,6};i64{1}", .attributes = "axis=1", .expect = "f32[3,1]{2,4,6}", .why = "columns"},
    {.inputs = "f32[3,2]{1,2,3,4,5,6};i32[]{-1}", .expect = "f32[2]{5,6}", .why = "scalar index, negative, i32"},
    {.inputs = "f16[2,3,4];i64[2,2]{0,1,2,-3}", .attributes = "axis=1", .expect = "type f16[2,2,2,4]",
     .why = "indices of rank 2"},
    {.inputs = "bool{1,0};i64{1,0}", .expect = "bool{0,1}", .why = "bool"},
    {.inputs = "i64{7,8,9};i64[]{1}", .expect = "i64[]{8}", .why = "one element of a shape"},
    {.inputs = "bf16[3,2];i64[0]{}", .expect = "bf16[0,2]{}", .why = "no indices"},
    {.inputs = "f64[3,0];i64{0}", .expect = "f64[1,0]{}", .why = "empty slices"},
    {.inputs = "i8[3]{scale 0.5, zero 3}{1,2,3};i64{2}", .expect = "i8[1]{scale 0.5, zero 3}{3}", .why = "quantised"},
    {.inputs = "f32[3];i64{3}", .expect = "error index 3 is outside", .why = "too large"},
    {.inputs = "f32[3];i64{-4}", .expect = "error index -4 is outside", .why = "too small"},
    {.inputs = "f32[0];i64{0}", .expect = "error index 0 is outside a dimension of size 0", .why = "nothing there"},
    {.inputs = "f32[];i64{0}", .expect = "error outside rank 0", .why = "scalar"},
    {.inputs = "f32[3];f32{0}", .expect = "error takes int32 int64", .why = "index type"},
    {.inputs = "f32[3]{1,2,3};i32[1]{scale 0.5, zero 0}{1}", .expect = "error takes plain", .why = "a scale here has no meaning"},
    {.inputs = "f8e8m0[3]{1,2,4};i64{2,0}", .expect = "f8e8m0[2]{4,1}", .why = "8-bit float"},
};
PINNACE_CASES(gather, kCases)
}  // namespace pinnace::testing
