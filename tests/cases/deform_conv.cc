// Cases of deform_conv: offsets, masks, groups, windows.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,2,2]{1,2,3,4};f32[1,1,1,1]{2};f32[1,2,2,2]{0,0,0,0,0,0,0,0}",
     .expect = "f32[1,1,2,2]{2,4,6,8}", .why = "no offsets: a convolution"},
    {.inputs = "f32[1,1,1,2]{1,2};f32[1,1,1,1]{1};f32[1,2,1,2]{0,0,0.5,0.5}", .expect = "f32[1,1,1,2]{1.5,1}",
     .why = "half to the right: the mixture, with 0 beyond the edge"},
    {.inputs = "f32[1,1,2,1]{1,2};f32[1,1,1,1]{1};f32[1,2,2,1]{1,-5,0,0}", .expect = "f32[1,1,2,1]{2,0}",
     .why = "down, and far outside"},
    {.inputs = "f32[1,1,1,1]{3};f32[1,1,1,1]{1};f32[1,2,1,1]{nan,0}", .expect = "f32[1,1,1,1]{0}",
     .why = "a NaN place is outside"},
    {.inputs = "f32[1,1,1,1]{3};f32[2,1,1,1]{1,2};f32[1,2,1,1]{0,0};f32{10,20};f32[1,1,1,1]{0.5}",
     .expect = "f32[1,2,1,1]{11.5,23}", .why = "bias and mask"},
    {.inputs = "f32[1,2,1,1]{1,2};f32[2,1,1,1]{1,1};f32[1,4,1,1]{0,0,9,9}", .attributes = "group=2, offset_group=2",
     .expect = "f32[1,2,1,1]{1,0}", .why = "groups of channels and of offsets"},
    {.inputs = "f64[2,4,7,8];f64[6,2,3,2];f64[2,24,4,3];none;f64[2,12,4,3]",
     .attributes = "group=2, offset_group=2, kernel_shape=[3,2], strides=[2,3], pads=[1,0,1,1], dilations=[1,2]",
     .expect = "type f64[2,6,4,3]", .why = "everything"},
    {.inputs = "f16[1,2,5,5];f16[3,2,2,2];f16[1,8,4,4]", .expect = "type f16[1,3,4,4]", .why = "half"},
    {.inputs = "bf16[1,2,5,5];bf16[3,2,2,2];bf16[1,8,4,4];bf16[3]", .expect = "type bf16[1,3,4,4]",
     .why = "bfloat16"},
    {.inputs = "f32[0,1,2,2];f32[1,1,1,1];f32[0,2,2,2]", .expect = "f32[0,1,2,2]{}", .why = "empty"},
    {.inputs = "f32[1,0,2,2];f32[1,0,1,1];f32[1,2,2,2]", .expect = "f32[1,1,2,2]{0,0,0,0}", .why = "no channels"},
    {.inputs = "f32[1,1,2,2];f32[1,1,1,1];f32[1,3,2,2]", .expect = "error offset float32[1,3,2,2] does not fit",
     .why = "offsets"},
    {.inputs = "f32[1,1,2,2];f32[1,1,1,1];f32[1,2,2,2];none;f32[1,2,2,2]",
     .expect = "error mask float32[1,2,2,2] does not fit", .why = "mask"},
    {.inputs = "f32[1,3,2,2];f32[2,1,1,1];f32[1,2,2,2]", .attributes = "group=2", .expect = "error do not fit 2 groups",
     .why = "groups"},
    {.inputs = "f32[1,1,2,2];f32[1,1,3,3];f32[1,18,1,1]", .expect = "error does not fit into", .why = "kernel"},
    {.inputs = "f32[1,1,2];f32[1,1,1];f32[1,1,2]", .expect = "error must have rank 4", .why = "rank"},
};
PINNACE_CASES(deform_conv, kCases)
}  // namespace pinnace::testing
