// Cases of col2im: overlap, padding, strides, dilations, dimensions.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,4,1]{1,2,3,4};i64{2,2};i64{2,2}", .expect = "f32[1,1,2,2]{1,2,3,4}", .why = "one block"},
    {.inputs = "f32[1,2,2]{1,2,3,4};i64{3};i64{2}", .expect = "f32[1,1,3]{1,5,4}", .why = "overlap adds up"},
    {.inputs = "f32[1,1,2]{1,2};i64{1,4};i64{1,1}", .attributes = "strides=[1,3]", .expect = "f32[1,1,1,4]{1,0,0,2}",
     .why = "what no block covers is 0"},
    {.inputs = "f32[1,2,2]{1,2,3,4};i64{1};i64{2}", .attributes = "pads=[1,1]", .expect = "f32[1,1,1]{5}",
     .why = "padding is dropped"},
    {.inputs = "f32[1,2,1]{1,2};i64{1,3};i64{1,2}", .attributes = "dilations=[1,2]",
     .expect = "f32[1,1,1,3]{1,0,2}", .why = "dilation"},
    {.inputs = "f64[2,12,12];i64{3,4,5};i64{1,1,2}", .attributes = "strides=[1,2,2]", .expect = "type f64[2,6,3,4,5]",
     .why = "three dimensions"},
    {.inputs = "u8[1,2,2]{200,100,100,1};i64{3};i64{2}", .expect = "u8[1,1,3]{200,200,1}", .why = "bytes"},
    {.inputs = "i8[1,2,2]{1,100,100,1};i64{3};i64{2}", .expect = "i8[1,1,3]{1,-56,1}", .why = "integers wrap"},
    {.inputs = "f16[1,2,2]{1,2048,1,1};i64{3};i64{2}", .expect = "f16[1,1,3]{1,2048,1}",
     .why = "half: rounded once, to even"},
    {.inputs = "f32[1,2,2]{1,inf,-inf,nan};i64{3};i64{2}", .expect = "f32[1,1,3]{1,nan,nan}", .why = "IEEE"},
    {.inputs = "f32[0,4,1];i64{2,2};i64{2,2}", .expect = "f32[0,1,2,2]{}", .why = "empty"},
    {.inputs = "f32[1,5,1];i64{2,2};i64{2,2}", .expect = "error no multiple", .why = "channels"},
    {.inputs = "f32[1,4,2];i64{2,2};i64{2,2}", .expect = "error 2 columns for 1 places", .why = "columns"},
    {.inputs = "f32[1,4,1];i64{1,2};i64{2,2}", .expect = "error does not fit", .why = "block larger than the image"},
    {.inputs = "f32[1,4,1];i64{2,2};i64{0,2}", .expect = "error kernel size 0", .why = "block"},
    {.inputs = "f32[1,4,1];i64{-1,2};i64{2,2}", .expect = "error image_shape has -1", .why = "image"},
    {.inputs = "f32[1,4,1];i64{2,2};i64{4}", .expect = "error one length", .why = "ranks"},
};
PINNACE_CASES(col2im, kCases)
}  // namespace pinnace::testing
