// Cases of non_max_suppression: thresholds, box forms, counts.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,3,4]{0,0,1,1,0,0.1,1,1.1,0,10,1,11};f32[1,1,3]{0.9,0.75,0.6};i64{3};f32{0.5}",
     .expect = "i64[2,3]{0,0,0,0,0,2}", .why = "the second overlaps"},
    {.inputs = "f32[1,3,4]{0,0,1,1,0,0.1,1,1.1,0,10,1,11};f32[1,1,3]{0.9,0.75,0.6};i64{3};f32{0.5};f32{0.7}",
     .expect = "i64[1,3]{0,0,0}", .why = "score threshold"},
    {.inputs = "f32[1,3,4]{0,0,1,1,0,0.1,1,1.1,0,10,1,11};f32[1,1,3]{0.9,0.75,0.6};i64{1};f32{0.5}",
     .expect = "i64[1,3]{0,0,0}", .why = "at most one"},
    {.inputs = "f32[1,3,4]{0,0,1,1,0,0.1,1,1.1,0,10,1,11};f32[1,1,3]{0.9,0.75,0.6}", .expect = "i64[0,3]{}",
     .why = "none by default"},
    {.inputs = "f32[1,2,4]{1,1,0,0,0,0,1,1};f32[1,1,2]{0.5,0.5};i64[]{2};f32[]{0}", .expect = "i64[1,3]{0,0,0}",
     .why = "corners in any order; equal scores"},
    {.inputs = "f32[1,2,4]{0.5,0.5,1,1,0.6,0.5,1,1};f32[1,1,2]{0.5,0.6};i64{2};f32{0.5}",
     .attributes = "center_point_box=1", .expect = "i64[1,3]{0,0,1}", .why = "centre form"},
    {.inputs = "f32[1,2,4]{0,0,1,1,5,5,6,6};f32[1,2,2]{0.5,0.6,0.7,nan};i64{2};f32{0.5}",
     .expect = "i64[3,3]{0,0,1,0,0,0,0,1,0}", .why = "two classes; NaN is left out"},
    {.inputs = "f32[2,9,4];f32[2,2,9];i64{4};f32{0.3}", .why = "random"},
    {.inputs = "f32[1,0,4];f32[1,2,0];i64{4}", .expect = "i64[0,3]{}", .why = "no boxes"},
    {.inputs = "f32[1,2,4]{0,0,0,0,0,0,0,0};f32[1,1,2]{1,2};i64{2};f32{0.5}", .expect = "i64[2,3]{0,0,1,0,0,0}",
     .why = "boxes without area do not overlap"},
    {.inputs = "f32[1,3,4]{10,10,0,0,0,0,10,10,0,10,10,0};f32[1,1,3]{0.9,0.8,0.7};i64{3};f32{0.5}",
     .attributes = "ordered_corners=1", .expect = "i64[3,3]{0,0,0,0,0,1,0,0,2}", .why = "corners stay as they are"},
    {.inputs = "f32[1,2,4]{0,0,10,1,0,0,9,1};f32[1,1,2]{0.9,0.8};i64{3};f32{0.5}",
     .attributes = "ordered_corners=1", .expect = "i64[1,3]{0,0,0}", .why = "corners in order overlap"},
    {.inputs = "f32[1,2,4];f32[1,1,2];i64{2}", .attributes = "ordered_corners=1, center_point_box=1",
     .expect = "error no ordered_corners", .why = "two forms"},
    {.inputs = "f32[1,2,4];f32[1,1,2];i64{2};f32{1.5}", .expect = "error outside [0,1]", .why = "threshold"},
    {.inputs = "f32[1,2,4];f32[1,1,3];i64{2}", .expect = "error must be [N,B,4]", .why = "sizes"},
    {.inputs = "f32[1,2,4];f32[1,1,2];i64{2}", .attributes = "center_point_box=2", .expect = "error neither 0 nor 1",
     .why = "form"},
};
PINNACE_CASES(non_max_suppression, kCases)
}  // namespace pinnace::testing
