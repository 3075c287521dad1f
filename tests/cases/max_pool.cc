// Cases of max_pool: pads, strides, dilations, ceil_mode, indices, special values.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,4]{1,3,2,0}", .attributes = "kernel_shape=[2]", .expect = "f32[1,1,3]{3,3,2}", .why = "one dimension"},
    {.inputs = "f32[1,1,3]{-1,-3,-2}", .attributes = "kernel_shape=[3], pads=[1,1]", .expect = "f32[1,1,3]{-1,-1,-2}", .why = "padding never wins"},
    {.inputs = "f32[1,2,2,2]{1,2,4,3,5,5,5,5}", .attributes = "kernel_shape=[2,2]", .outputs = 2, .expect = "f32[1,2,1,1]{4,5};i64[1,2,1,1]{2,4}", .why = "indices through all of x; first of equals"},
    {.inputs = "f32[1,1,5]{1,2,3,4,5}", .attributes = "kernel_shape=[2], strides=[2], ceil_mode=1", .expect = "f32[1,1,3]{2,4,5}", .why = "ceil_mode"},
    {.inputs = "f32[1,1,2]{1,2}", .attributes = "kernel_shape=[1], strides=[2], ceil_mode=1", .expect = "f32[1,1,1]{1}", .why = "a window behind x is dropped"},
    {.inputs = "f32[1,1,4,4]", .attributes = "kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1], ceil_mode=1", .expect = "type f32[1,1,3,3]", .why = "ceil_mode beside pads"},
    {.inputs = "f32[1,1,3]{1,nan,2}", .attributes = "kernel_shape=[2]", .expect = "f32[1,1,2]{nan,nan}", .why = "NaN wins"},
    {.inputs = "f32[1,1,2]{-inf,-inf}", .attributes = "kernel_shape=[2]", .outputs = 2, .expect = "f32[1,1,1]{-inf};i64[1,1,1]{0}", .why = "-inf is found"},
    {.inputs = "f32[1,1,1]{7}", .attributes = "kernel_shape=[2], dilations=[2], pads=[1,1]", .outputs = 2, .expect = "f32[1,1,1]{-inf};i64[1,1,1]{-1}", .why = "no tap inside x"},
    {.inputs = "f32[2,3,9,11]", .attributes = "kernel_shape=[3,2], strides=[2,3], dilations=[2,1], pads=[1,0,0,1]", .outputs = 2, .why = "uneven"},
    {.inputs = "f32[1,2,5,6,7]", .attributes = "kernel_shape=[2,2,2], strides=[2,2,2]", .why = "three dimensions"},
    {.inputs = "f32[1,1,7,7]", .attributes = "kernel_shape=[3,3], auto_pad=\"same_lower\", strides=[2,2]", .expect = "type f32[1,1,4,4]", .why = "same_lower"},
    {.inputs = "f16[1,3,8,8]", .attributes = "kernel_shape=[2,2], strides=[2,2]", .why = "half"},
    {.inputs = "bf16[1,3,8,8]", .attributes = "kernel_shape=[2,2], strides=[2,2]", .why = "bfloat16"},
    {.inputs = "f64[1,3,8]", .attributes = "kernel_shape=[3]", .why = "double"},
    {.inputs = "u8[1,1,3]{0,255,7}", .attributes = "kernel_shape=[2]", .expect = "u8[1,1,2]{255,255}", .why = "plain unsigned"},
    {.inputs = "i8[1,1,2]{scale 0.5, zero 3}{-128,-5}", .attributes = "kernel_shape=[2]", .expect = "i8[1,1,1]{scale 0.5, zero 3}{-5}", .why = "quantised: integers and parameters stay"},
    {.inputs = "i8[1,1,2]{scale 0.5, zero 3}{1,2}", .attributes = "kernel_shape=[2]", .expect = "error is kept", .output_quantization = "scale 1, zero 3", .why = "no requantisation"},
    {.inputs = "f32[0,3,4,4]", .attributes = "kernel_shape=[2,2]", .expect = "f32[0,3,3,3]{}", .why = "empty batch"},
    {.inputs = "f32[1,1,4]", .attributes = "kernel_shape=[2], pads=[2,0]", .expect = "error must be smaller", .why = "a pad as large as the window"},
    {.inputs = "f32[1,1,4]",
     .attributes = "kernel_shape=[2], storage_order=1",
     .outputs = 2,
     .expect = "error indices are row-major",
     .why = "column-major indices"},
    {.inputs = "f32[1,1,2]{1,2}",
     .attributes = "kernel_shape=[2], storage_order=1",
     .expect = "f32[1,1,1]{2}",
     .why = "the order does not matter without indices"},
    {.inputs = "f32[1,1,4]", .attributes = "kernel_shape=[2,2]", .expect = "error must have 1 entries", .why = "kernel of another rank"},
    {.inputs = "f32[1,1,2]", .attributes = "kernel_shape=[3]", .expect = "error does not fit", .why = "window larger than x"},
    {.inputs = "f32[1,1,3,3]{1,2,3,4,5,6,7,8,9}", .attributes = "kernel_shape=[2147483647,2147483647], auto_pad=\"same_upper\"", .expect = "f32[1,1,3,3]{9,9,9,9,9,9,9,9,9}", .why = "a window of 2^62 taps over nine elements"},
};
PINNACE_CASES(max_pool, kCases)
}  // namespace pinnace::testing
