// Cases of max_unpool: places, sizes, padding.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,1,2]{5,6};i64[1,1,1,2]{4,3}", .attributes = "kernel_shape=[2,2], strides=[2,2]",
     .expect = "f32[1,1,2,4]{0,0,0,6,5,0,0,0}", .why = "two windows"},
    {.inputs = "f32[1,1,2]{1,2};i64[1,1,2]{1,3};i64{1,1,5}", .attributes = "kernel_shape=[2], strides=[2]",
     .expect = "f32[1,1,5]{0,1,0,2,0}", .why = "a larger output"},
    {.inputs = "f32[1,1,2,2]{1,2,3,4};i64[1,1,2,2]{5,7,13,15};i64{1,1,5,5}",
     .attributes = "kernel_shape=[2,2], strides=[2,2]",
     .expect = "f32[1,1,5,5]{0,0,0,0,0,0,1,0,2,0,0,0,0,0,0,0,3,0,4,0,0,0,0,0,0}",
     .why = "places count through the unpooled 4 x 4"},
    {.inputs = "f64[1,2,1]{1,2};i64[1,2,1]{1,2}", .attributes = "kernel_shape=[2]", .expect = "f64[1,2,2]{0,1,2,0}",
     .why = "places count through channels"},
    {.inputs = "f16[1,1,2]{1,2};i64[1,1,2]{0,0}", .attributes = "kernel_shape=[2]", .expect = "f16[1,1,3]{2,0,0}",
     .why = "the later one wins"},
    {.inputs = "f32[1,1,2]{1,nan};i64[1,1,2]{0,1}", .attributes = "kernel_shape=[3], strides=[2], pads=[1,1]",
     .expect = "f32[1,1,3]{1,nan,0}", .why = "pads"},
    {.inputs = "bf16[1,1,1,1,2]{1,2};i64[1,1,1,1,2]{0,7}", .attributes = "kernel_shape=[2,2,1]",
     .expect = "bf16[1,1,2,2,2]{1,0,0,0,0,0,0,2}", .why = "three dimensions"},
    {.inputs = "f32[0,1,2];i64[0,1,2]{}", .attributes = "kernel_shape=[2]", .expect = "f32[0,1,3]{}", .why = "empty"},
    {.inputs = "f32[1,1,1]{1};i64[1,1,1]{2}", .attributes = "kernel_shape=[2]", .expect = "error index 2 is outside",
     .why = "a place outside"},
    {.inputs = "f32[1,1,1]{1};i64[1,1,1]{-1}", .attributes = "kernel_shape=[2]",
     .expect = "error index -1 is outside", .why = "a window that held nothing"},
    {.inputs = "f32[1,1,1];i64[1,1,2]{0,0}", .attributes = "kernel_shape=[2]", .expect = "error differ in shape",
     .why = "shapes"},
    {.inputs = "f32[1,1,1];i64[1,1,1]{0};i64{1,1,1}", .attributes = "kernel_shape=[2]",
     .expect = "error output_shape has 1", .why = "too small"},
    {.inputs = "f32[1,1,1];i64[1,1,1]{0};i64{2,1,2}", .attributes = "kernel_shape=[2]",
     .expect = "error output_shape has 2 in dimension 0", .why = "batch"},
    {.inputs = "f32[1,1];i64[1,1]{0}", .attributes = "kernel_shape=[2]", .expect = "error rank 3 to 5", .why = "rank"},
};
PINNACE_CASES(max_unpool, kCases)
}  // namespace pinnace::testing
