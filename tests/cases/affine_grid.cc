// Cases of affine_grid: two and three dimensions, corners, sizes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,2,3]{1,0,0,0,1,0};i64{1,1,1,2}", .expect = "f32[1,1,2,2]{-0.5,0,0.5,0}", .why = "the identity"},
    {.inputs = "f32[1,2,3]{1,0,0,0,1,0};i64{1,1,2,2}", .attributes = "align_corners=1",
     .expect = "f32[1,2,2,2]{-1,-1,1,-1,-1,1,1,1}", .why = "corners"},
    {.inputs = "f32[1,2,3]{0,1,5,2,0,7};i64{1,1,2,2}", .attributes = "align_corners=1",
     .expect = "f32[1,2,2,2]{4,5,4,9,6,5,6,9}", .why = "another map"},
    {.inputs = "f64[1,3,4]{1,0,0,0,0,1,0,0,0,0,1,0};i64{1,1,2,1,2}",
     .expect = "f64[1,2,1,2,3]{-0.5,0,-0.5,0.5,0,-0.5,-0.5,0,0.5,0.5,0,0.5}", .why = "three dimensions"},
    {.inputs = "f32[1,2,3]{1,1,1,1,1,1};i64{1,1,1,1}", .attributes = "align_corners=1", .expect = "f32[1,1,1,2]{1,1}",
     .why = "size 1 is at 0"},
    {.inputs = "f32[1,2,3]{1,nan,0,0,1,0};i64{1,1,1,1}", .expect = "f32[1,1,1,2]{nan,0}", .why = "NaN"},
    {.inputs = "f16[2,2,3];i64{2,3,4,5}", .expect = "type f16[2,4,5,2]", .why = "half"},
    {.inputs = "bf16[2,3,4];i64{2,3,4,5,6}", .expect = "type bf16[2,4,5,6,3]", .why = "bfloat16"},
    {.inputs = "f32[1,2,3];i64{1,1,0,2}", .expect = "f32[1,0,2,2]{}", .why = "empty"},
    {.inputs = "f32[1,2,4];i64{1,1,1,1}", .expect = "error theta must be", .why = "theta"},
    {.inputs = "f32[1,2,3];i64{1,1,1}", .expect = "error must have 4 entries", .why = "size"},
    {.inputs = "f32[1,2,3];i64{2,1,1,1}", .expect = "error 2 images", .why = "batch"},
    {.inputs = "f32[1,2,3];i64{1,1,-1,1}", .expect = "error negative", .why = "a negative size"},
};
PINNACE_CASES(affine_grid, kCases)
}  // namespace pinnace::testing
