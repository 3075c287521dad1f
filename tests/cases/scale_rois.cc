// Cases of scale_rois: strides per direction, boxes that are refused.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,4]{0,0,8,4,2,1,2,1}",
     .attributes = "height=8, width=4, stride_height=0.5, stride_width=2.0",
     .expect = "f32[2,4]{0,0,4,8,1,2,1,2}", .why = "x and y have their own strides; edges belong to the map"},
    {.inputs = "f32[1,4]{1,2,3,4}", .attributes = "height=4, width=3", .expect = "f32[1,4]{1,2,3,4}", .why = "stride 1"},
    {.inputs = "f32[0,4]", .attributes = "height=4, width=3", .expect = "f32[0,4]{}", .why = "no boxes"},
    {.inputs = "f32[1,4]{-0,0,0,0}", .attributes = "height=0, width=0", .expect = "f32[1,4]{-0,0,0,0}",
     .why = "an empty map holds an empty box"},
    {.inputs = "f32[1,4]{0,0,4,1}", .attributes = "height=4, width=3", .expect = "error is not within", .why = "too far"},
    {.inputs = "f32[1,4]{-1,0,1,1}", .attributes = "height=4, width=3", .expect = "error is not within",
     .why = "negative"},
    {.inputs = "f32[1,4]{0,2,1,1}", .attributes = "height=4, width=3", .expect = "error is not within",
     .why = "upside down"},
    {.inputs = "f32[1,4]{0,0,nan,1}", .attributes = "height=4, width=3", .expect = "error is not within", .why = "NaN"},
    {.inputs = "f32[1,4]", .attributes = "height=4, width=3, stride_width=0.0", .expect = "error is not positive",
     .why = "stride"},
    {.inputs = "f32[1,4]", .attributes = "height=-1, width=3", .expect = "error is negative", .why = "size"},
    {.inputs = "f32[1,5]", .attributes = "height=4, width=3", .expect = "error must be [R,4]", .why = "shape"},
};
PINNACE_CASES(scale_rois, kCases)
}  // namespace pinnace::testing
