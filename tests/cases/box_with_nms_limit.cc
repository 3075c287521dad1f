// Cases of box_with_nms_limit: kernels, limits, images, boxes that are refused.
#include "cases/case.h"

namespace pinnace::testing {
// Four boxes 10 wide and high: the second overlaps the first by 9/11, the third is apart, the fourth equals the third.
#define BOXES                                                                                                       \
  "f32[4,8]{0,0,0,0,0,0,10,10,0,0,0,0,1,0,11,10,0,0,0,0,50,0,60,10,0,0,0,0,50,0,60,10};i32{0,0,0,0}"
constexpr Case kCases[] = {
    {.inputs = "f32[4,2]{1,0.9,1,0.8,1,0.6,1,0.7};" BOXES, .outputs = 4,
     .expect = "f32[4]{0.9,0.7,0,0};f32[4,4]{0,0,10,10,50,0,60,10,1,0,11,10,50,0,60,10};i32[4]{1,1,1,1};i32[4]{0,0,0,0}",
     .why = "hard: suppressed boxes stay with score 0 where the threshold is 0"},
    {.inputs = "f32[4,2]{1,0.9,1,0.8,1,0.6,1,0.7};" BOXES, .attributes = "nms_score_threshold=0.001", .outputs = 4,
     .expect = "f32[2]{0.9,0.7};f32[2,4]{0,0,10,10,50,0,60,10};i32[2]{1,1};i32[2]{0,0}", .why = "hard"},
    {.inputs = "f32[4,2]{1,0.9,1,0.8,1,0.6,1,0.7};" BOXES, .attributes = "score_threshold=0.7, nms_score_threshold=0.1",
     .outputs = 4, .expect = "f32[1]{0.9};f32[1,4]{0,0,10,10};i32[1]{1};i32[1]{0}",
     .why = "a score equal to the threshold is not enough"},
    {.inputs = "f32[4,2]{1,0.9,1,0.8,1,0.6,1,0.7};" BOXES,
     .attributes = "kernel=\"linear\", nms_score_threshold=0.1", .outputs = 4,
     .expect = "f32[3]{0.9,0.7,0.14545454};f32[3,4]{0,0,10,10,50,0,60,10,1,0,11,10};i32[3]{1,1,1};i32[3]{0,0,0}",
     .tolerance = {.abs = 1e-6f}, .why = "linear: 0.8 * (1 - 9/11); 0.6 * (1 - 1) goes"},
    {.inputs = "f32[4,2]{1,0.9,1,0.8,1,0.6,1,0.7};" BOXES,
     .attributes = "kernel=\"gaussian\", sigma=0.5, nms_score_threshold=0.1", .outputs = 4,
     .expect = "f32[3]{0.9,0.7,0.20971905};f32[3,4]{0,0,10,10,50,0,60,10,1,0,11,10};i32[3]{1,1,1};i32[3]{0,0,0}",
     .tolerance = {.abs = 1e-6f}, .why = "gaussian: 0.8 * e^(-2 * (9/11)^2); 0.6 * e^-2 goes"},
    {.inputs = "f32[4,2]{1,0.9,1,0.8,1,0.6,1,0.7};" BOXES, .attributes = "max_detections=1", .outputs = 4,
     .expect = "f32[1]{0.9};f32[1,4]{0,0,10,10};i32[1]{1};i32[1]{0}", .why = "at most one"},
    {.inputs = "f32[4,2]{1,0.9,1,0.8,1,0.6,1,0.7};" BOXES, .attributes = "max_detections=0", .outputs = 4,
     .expect = "f32[0]{};f32[0,4]{};i32[0]{};i32[0]{}", .why = "none asked for"},
    {.inputs = "f32[4,2]{1,nan,1,-1,1,0,1,0};" BOXES, .outputs = 4, .expect = "f32[0]{};f32[0,4]{};i32[0]{};i32[0]{}",
     .why = "none found; NaN is none"},
    {.inputs = "f32[4,2]{1,0.9,1,0.8,1,0.6,1,inf};" BOXES, .attributes = "iou_threshold=1.5", .outputs = 4,
     .expect = "f32[4]{inf,0.9,0.8,0.6};f32[4,4]{50,0,60,10,0,0,10,10,1,0,11,10,50,0,60,10};i32[4]{1,1,1,1};"
               "i32[4]{0,0,0,0}",
     .why = "nothing overlaps that much; infinite scores"},
    {.inputs = "f32[2,3]{0,0.5,0.75,0,0.25,0.5};f32[2,12]{0,0,1,1,0,0,2,2,0,0,3,3,0,0,1,1,9,9,11,11,9,9,12,12};"
               "i64{7,7}",
     .attributes = "max_detections=3", .outputs = 4,
     .expect = "f32[3]{0.5,0.75,0.5};f32[3,4]{0,0,2,2,0,0,3,3,9,9,12,12};i32[3]{1,2,2};i64[3]{7,7,7}",
     .why = "the best three of both classes, in order of classes"},
    {.inputs = "f32[3,2]{0,0.5,0,0.5,0,0.25};f32[3,8]{0,0,1,1,0,0,2,2,0,0,1,1,0,0,2,2,0,0,1,1,9,9,11,11};i32{3,-1,-1}",
     .attributes = "max_detections=1", .outputs = 4,
     .expect = "f32[2]{0.5,0.5};f32[2,4]{0,0,2,2,0,0,2,2};i32[2]{1,1};i32[2]{3,-1}", .why = "images do not compete"},
    {.inputs = "f32[2,2]{0,0.5,0,0.5};f32[2,8]{0,0,1,1,3,3,3,3,0,0,1,1,3,3,3,3};i32{0,0}",
     .attributes = "kernel=\"linear\"", .outputs = 4,
     .expect = "f32[1]{0.5};f32[1,4]{3,3,3,3};i32[1]{1};i32[1]{0}", .why = "the overlap of empty boxes is NaN"},
    {.inputs = "f32[0,3];f32[0,12];i32[0]{}", .outputs = 4, .expect = "f32[0]{};f32[0,4]{};i32[0]{};i32[0]{}",
     .why = "no rows"},
    {.inputs = "f32[2,1];f32[2,4]{0,0,0,0,0,0,0,0};i32{0,0}", .outputs = 4,
     .expect = "f32[0]{};f32[0,4]{};i32[0]{};i32[0]{}", .why = "background alone"},
    {.inputs = "f32[1,2];f32[1,8]{0,0,1,1,2,0,1,1};i32{0}", .outputs = 4, .expect = "error not in order",
     .why = "corners"},
    {.inputs = "f32[1,2];f32[1,8]{0,0,1,1,0,0,1,nan};i32{0}", .outputs = 4, .expect = "error not in order", .why = "NaN"},
    {.inputs = "f32[1,2];f32[1,8];i32{0}", .attributes = "kernel=\"cubic\"", .outputs = 4,
     .expect = "error hard, linear or gaussian", .why = "kernel"},
    {.inputs = "f32[2,2];f32[1,8];i32{0}", .outputs = 4, .expect = "error [R,4*classes]", .why = "lengths"},
    {.inputs = "f32[1,2];f32[1,4];i32{0}", .outputs = 4, .expect = "error [R,4*classes]", .why = "classes"},
};
#undef BOXES
PINNACE_CASES(box_with_nms_limit, kCases)
}  // namespace pinnace::testing
