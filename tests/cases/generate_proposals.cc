// Cases of generate_proposals: places, limits, boxes that are left out.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,2,1]{0.5,0.75};f32[1,1,2,4]{0,0,0,0,0,0,0,0};f32[1,4]{0,0,4,4};f32[1,2]{32,32}",
     .attributes = "stride_width=16.0", .outputs = 3, .expect = "f32[2]{0.75,0.5};f32[2,4]{16,0,20,4,0,0,4,4};i32[2]{0,0}",
     .why = "anchors stand where their places are; the best comes first"},
    {.inputs = "f32[1,2,1,1]{0.5,0.75};f32[1,2,1,4]{0,0,0,0,0.5,0,0,0};f32[1,4]{0,0,4,4};f32[1,2]{32,32}",
     .attributes = "stride_height=8.0", .outputs = 3, .expect = "f32[2]{0.75,0.5};f32[2,4]{2,8,6,12,0,0,4,4};i32[2]{0,0}",
     .why = "rows; moved by half a width"},
    {.inputs = "f32[1,1,1,3]{0.5,0.75,0.25};f32[1,1,1,12]{0,0,0,0,0,0,0,0,0,0,0,0};"
               "f32[3,4]{0,0,4,4,0,0,4,5,8,8,9,9};f32[1,2]{32,32}",
     .outputs = 3, .expect = "f32[2]{0.75,0.25};f32[2,4]{0,0,4,5,8,8,9,9};i32[2]{0,0}",
     .why = "the first overlaps the second by 4/5"},
    {.inputs = "f32[1,1,1,3]{0.5,0.75,0.25};f32[1,1,1,12]{0,0,0,0,0,0,0,0,0,0,0,0};"
               "f32[3,4]{0,0,4,4,0,0,4,5,8,8,9,9};f32[1,2]{32,32}",
     .attributes = "iou_threshold=0.9, pre_nms_count=2", .outputs = 3,
     .expect = "f32[2]{0.75,0.5};f32[2,4]{0,0,4,5,0,0,4,4};i32[2]{0,0}", .why = "the best two are looked at"},
    {.inputs = "f32[1,1,1,3]{0.5,0.75,0.25};f32[1,1,1,12]{0,0,0,0,0,0,0,0,0,0,0,0};"
               "f32[3,4]{0,0,4,4,0,0,4,5,8,8,9,9};f32[1,2]{32,32}",
     .attributes = "post_nms_count=1", .outputs = 3, .expect = "f32[1]{0.75};f32[1,4]{0,0,4,5};i32[1]{0}",
     .why = "one is kept"},
    {.inputs = "f32[1,1,1,3]{0.5,0.75,0.25};f32[1,1,1,12]{0,0,0,0,0,0,0,0,0,0,0,0};"
               "f32[3,4]{0,0,4,4,0,0,4,5,8,8,9,9};f32[1,2]{32,32}",
     .attributes = "min_size=4.0, iou_threshold=2.0", .outputs = 3, .expect = "f32[0]{};f32[0,4]{};i32[0]{}",
     .why = "wider than 4 is none"},
    {.inputs = "f32[2,1,1,1]{0.5,0.75};f32[2,1,1,4]{0,0,0,0,0,0,0,0};f32[1,4]{0,0,8,8};f32[2,2]{4,8,8,8}",
     .outputs = 3, .expect = "f32[2]{0.5,0.75};f32[2,4]{0,0,8,4,0,0,8,8};i32[2]{0,1}",
     .why = "cut to the image of each; images in order"},
    {.inputs = "f32[1,1,1,2]{0.5,0.75};f32[1,1,1,8]{0,0,0,0,9,0,0,0};f32[2,4]{0,0,4,4,0,0,4,4};f32[1,2]{32,32}",
     .outputs = 3, .expect = "f32[1]{0.5};f32[1,4]{0,0,4,4};i32[1]{0}", .why = "moved out of the image: nothing is left"},
    {.inputs = "f32[1,1,1,3]{nan,inf,-inf};f32[1,1,1,12]{0,0,0,0,nan,0,0,0,0,0,0,0};"
               "f32[3,4]{0,0,4,4,0,0,4,4,0,0,4,4};f32[1,2]{32,32}",
     .outputs = 3, .expect = "f32[1]{-inf};f32[1,4]{0,0,4,4};i32[1]{0}", .why = "NaN scores and NaN boxes are left out"},
    {.inputs = "f32[2,3,4,3];f32[2,3,4,12];f32[3,4]{0,0,10,10,0,0,20,8,1,1,9,30};f32[2,2]{64,64,50,60}",
     .attributes = "stride_height=16.0, stride_width=16.0, pre_nms_count=20, post_nms_count=7", .outputs = 3,
     .expect = "type f32[?];f32[?,4];i32[?]", .why = "random"},
    {.inputs = "f32[0,3,4,1];f32[0,3,4,4];f32[1,4]{0,0,1,1};f32[0,2]", .outputs = 3,
     .expect = "f32[0]{};f32[0,4]{};i32[0]{}", .why = "no images"},
    {.inputs = "f32[1,0,4,1];f32[1,0,4,4];f32[1,4]{0,0,1,1};f32[1,2]", .outputs = 3,
     .expect = "f32[0]{};f32[0,4]{};i32[0]{}", .why = "no places"},
    {.inputs = "f32[1,1,1,1];f32[1,1,1,4];f32[1,4]{0,0,-1,1};f32[1,2]", .outputs = 3, .expect = "error not in order",
     .why = "anchor"},
    {.inputs = "f32[1,1,1,1];f32[1,1,1,4];f32[1,4]{0,nan,1,1};f32[1,2]", .outputs = 3, .expect = "error not in order",
     .why = "NaN anchor"},
    {.inputs = "f32[1,1,1,2];f32[1,1,1,4];f32[1,4];f32[1,2]", .outputs = 3, .expect = "error must be [N,H,W,A]",
     .why = "anchors per place"},
    {.inputs = "f32[1,1,1,1];f32[1,1,1,4];f32[1,4];f32[2,2]", .outputs = 3, .expect = "error must be [N,H,W,A]",
     .why = "images"},
};
PINNACE_CASES(generate_proposals, kCases)
}  // namespace pinnace::testing
