// Cases of axis_aligned_bbox_transform: moving, resizing, cutting, boxes that are refused.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,4]{10,20,30,60};f32[1,4]{0,0,0,0};i32{0};f32[1,2]{100,100}", .expect = "f32[1,4]{10,20,30,60}",
     .why = "no deltas"},
    {.inputs = "f32[1,4]{10,20,30,60};f32[1,8]{0.5,0,0,0,0,-0.25,0,0};i32{0};f32[1,2]{100,100}",
     .expect = "f32[1,8]{20,20,40,60,10,10,30,50}", .why = "moved by half a width, by a quarter height; two classes"},
    {.inputs = "f32[1,4]{10,20,30,60};f32[1,4]{0,0,0.6931472,-0.6931472};i64{0};f32[1,2]{100,100}",
     .expect = "f32[1,4]{0,30,40,50}", .tolerance = {.abs = 1e-5f}, .why = "twice as wide, half as high"},
    {.inputs = "f32[2,4]{0,0,8,8,0,0,8,8};f32[2,4]{-0.5,0,0,0,1,0.5,0,0};i32{0,1};f32[2,2]{10,10,6,12}",
     .expect = "f32[2,4]{0,0,4,8,8,4,12,6}", .why = "cut to the image of each: height before width"},
    {.inputs = "f32[1,4]{0,0,8,8};f32[1,4]{0,0,1e9,0};i32{0};f32[1,2]{10,12}", .expect = "f32[1,4]{0,0,12,8}",
     .why = "an infinite width is cut"},
    {.inputs = "f32[1,4]{0,0,8,8};f32[1,4]{nan,0,0,0};i32{0};f32[1,2]{10,12}", .expect = "f32[1,4]{nan,0,nan,8}",
     .why = "NaN stays"},
    {.inputs = "f32[7,4] in 0..0;f32[7,12];i32{0,0,0,1,1,2,2};f32[3,2] in 5..9", .expect = "type f32[7,12]",
     .why = "random"},
    {.inputs = "f32[0,4];f32[0,8];i32[0]{};f32[1,2]", .expect = "f32[0,8]{}", .why = "no boxes"},
    {.inputs = "f32[1,4]{0,0,1,1};f32[1,4];i32{1};f32[1,2]", .expect = "error batch index 1", .why = "image"},
    {.inputs = "f32[1,4]{0,0,1,1};f32[1,4];i32{-1};f32[1,2]", .expect = "error batch index -1", .why = "negative image"},
    {.inputs = "f32[1,4]{2,0,1,1};f32[1,4];i32{0};f32[1,2]", .expect = "error not in order", .why = "corners"},
    {.inputs = "f32[1,4]{0,nan,1,1};f32[1,4];i32{0};f32[1,2]", .expect = "error not in order", .why = "NaN corner"},
    {.inputs = "f32[1,3];f32[1,4];i32{0};f32[1,2]", .expect = "error must be [R,4]", .why = "rois"},
    {.inputs = "f32[1,4];f32[1,6];i32{0};f32[1,2]", .expect = "error must be [R,4*classes]", .why = "deltas"},
    {.inputs = "f32[1,4];f32[1,4];i32{0,0};f32[1,2]", .expect = "error equal length", .why = "lengths"},
    {.inputs = "f32[1,4];f32[1,4];i32{0};f32[1,3]", .expect = "error must be [N,2]", .why = "sizes"},
    {.inputs = "f32[1,4];f32[1,4];i32[]{0};f32[1,2]", .expect = "error must have rank 1", .why = "ranks"},
};
PINNACE_CASES(axis_aligned_bbox_transform, kCases)
}  // namespace pinnace::testing
