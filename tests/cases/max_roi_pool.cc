// Cases of max_roi_pool: bins, rounding, boxes partly and wholly outside, refusals.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,2,2]{1,2,3,4};f32[1,5]{0,0,0,1,1}", .attributes = "pooled_shape=[1,1]",
     .expect = "f32[1,1,1,1]{4}", .why = "the whole; corners are included"},
    {.inputs = "f32[1,1,2,2]{1,2,3,4};f32[1,5]{0,0,0,1,1}", .attributes = "pooled_shape=[2,2]",
     .expect = "f32[1,1,2,2]{1,2,3,4}", .why = "one element per bin"},
    {.inputs = "f32[1,1,1,3]{1,5,2};f32[1,5]{0,0,0,2,0}", .attributes = "pooled_shape=[1,2]",
     .expect = "f32[1,1,1,2]{5,5}", .why = "bins of 1.5 elements overlap"},
    {.inputs = "f32[1,1,1,4]{1,2,3,4};f32[1,5]{0,1,0,5,0}", .attributes = "pooled_shape=[1,1], spatial_scale=0.5",
     .expect = "f32[1,1,1,1]{4}", .why = "0.5 is rounded to 1, 2.5 to 3"},
    {.inputs = "f32[1,1,2,2]{-1,-2,-3,-4};f32[2,5]{0,50,50,60,60,0,1,1,9,9}", .attributes = "pooled_shape=[1,1]",
     .expect = "f32[2,1,1,1]{0,-4}", .why = "outside is 0, partly outside is what is there"},
    {.inputs = "f32[1,1,2,2]{1,2,3,4};f32[1,5]{0,1,1,0,0}", .attributes = "pooled_shape=[1,1]",
     .expect = "f32[1,1,1,1]{4}", .why = "upside down: one element"},
    {.inputs = "f32[1,1,1,2]{1,nan};f32[1,5]{0,0,0,1,0}", .attributes = "pooled_shape=[1,1]",
     .expect = "f32[1,1,1,1]{nan}", .why = "NaN"},
    {.inputs = "f16[2,3,6,5];f16[2,5]{0,0,0,4,3,1,1,2,4,5}", .attributes = "pooled_shape=[2,3]",
     .expect = "type f16[2,3,2,3]", .why = "half, batch and channels"},
    {.inputs = "f64[1,1,2,2]{1,2,3,4};f64[0,5]", .attributes = "pooled_shape=[2,2]", .expect = "f64[0,1,2,2]{}",
     .why = "no boxes"},
    {.inputs = "f32[1,1,2,2];f32[1,5]{1,0,0,1,1}", .attributes = "pooled_shape=[1,1]", .expect = "error image 1",
     .why = "an image that x lacks"},
    {.inputs = "f32[1,1,2,2];f32[1,5]{0,0,nan,1,1}", .attributes = "pooled_shape=[1,1]", .expect = "error out of range",
     .why = "NaN as a corner"},
    {.inputs = "f32[1,1,2,2];f32[1,4]", .attributes = "pooled_shape=[1,1]", .expect = "error must be [R,5]",
     .why = "rois"},
    {.inputs = "f32[1,1,2];f32[1,5]", .attributes = "pooled_shape=[1,1]", .expect = "error must be [N,C,H,W]",
     .why = "rank"},
    {.inputs = "f32[1,1,2,2];f32[1,5]", .attributes = "pooled_shape=[1]", .expect = "error two positive numbers",
     .why = "pooled_shape"},
};
PINNACE_CASES(max_roi_pool, kCases)
}  // namespace pinnace::testing
