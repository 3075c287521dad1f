// Cases of dequantize_linear: granularities, element types, refusals.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "u8[3]{0,128,255};f32 0.5;u8[]{128}", .expect = "f32[3]{-64,0,63.5}", .why = "u8"},
    {.inputs = "i8[2]{-128,127};f32 0.5", .expect = "f32[2]{-64,63.5}", .why = "without zero point"},
    {.inputs = "i16[2]{-32768,7};f32 0.5;i16[]{1}", .expect = "f32[2]{-16384.5,3}", .why = "i16"},
    {.inputs = "u16[2]{65535,7};f32 1;u16[]{7}", .expect = "f32[2]{65528,0}", .why = "u16"},
    {.inputs = "i32{16777217,-4};f32 0.5", .expect = "f32[2]{8388608,-2}", .why = "i32 rounds to f32 first"},
    {.inputs = "i32{-2147483648};f32 1;i32[]{2147483647}", .expect = "f32[1]{-4294967296}", .why = "no overflow"},
    {.inputs = "i4[3]{-8,7,1};f32 2;i4[]{1}", .expect = "f32[3]{-18,12,0}", .why = "i4"},
    {.inputs = "u4[3]{15,0,1};f32 2", .expect = "f32[3]{30,0,2}", .why = "u4"},
    {.inputs = "i8[2,3]{1,2,3,1,2,3};f32{1,0.5,0.25};i8{0,1,2}", .expect = "f32[2,3]{1,0.5,0.25,1,0.5,0.25}",
     .why = "per axis 1"},
    {.inputs = "i8[2,2]{1,2,1,2};f32{1,0.5}", .attributes = "axis=0", .expect = "f32[2,2]{1,2,0.5,1}",
     .why = "per axis 0"},
    {.inputs = "i8[2,2]{1,2,1,2};f32{1,0.5}", .attributes = "axis=-2", .expect = "f32[2,2]{1,2,0.5,1}",
     .why = "negative axis"},
    {.inputs = "i8[2,5]{1,2,3,4,5,1,2,3,4,5};f32[2,3]{1,2,3,4,5,6};i8[2,3]{0,0,0,1,1,1}",
     .attributes = "block_size=2", .expect = "f32[2,5]{1,2,6,8,15,0,4,10,15,24}", .why = "per block, last one short"},
    {.inputs = "u4[3,2]{1,2,3,4,5,6};f32[2,2]{1,2,3,4}", .attributes = "block_size=2, axis=0",
     .expect = "f32[3,2]{1,4,3,8,15,24}", .why = "packed, per block of axis 0"},
    {.inputs = "i8[2]{1,3};f16[]{0.5}", .expect = "f16[2]{0.5,1.5}", .why = "half"},
    {.inputs = "i8[2]{1,3};bf16[]{0.5}", .expect = "bf16[2]{0.5,1.5}", .why = "bfloat16"},
    {.inputs = "i8[2]{1,3};f16[]{0.5}", .attributes = "output_dtype=\"f32\"", .expect = "f32[2]{0.5,1.5}",
     .why = "output_dtype"},
    {.inputs = "u8[1]{3};f32 0.33333334", .attributes = "output_dtype=\"f16\"", .expect = "f16[1]{1}",
     .why = "rounded once"},
    {.inputs = "i8[0,3];f32 1", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[];f32 0.1;i8[]", .why = "scalar"},
    {.inputs = "u8[3,4,5];f32[4];u8[4]", .why = "random"},
    {.inputs = "i8[2,3];f32[2]", .expect = "error does not fit axis 1", .why = "scale length"},
    {.inputs = "i8[2,3];f32[3]", .attributes = "axis=2", .expect = "error axis 2", .why = "axis"},
    {.inputs = "i8[2,3];f32[2,2]", .attributes = "block_size=1", .expect = "error does not fit blocks of 1",
     .why = "blocks"},
    {.inputs = "i8[2];f32[];i8[1]", .expect = "error differs in shape", .why = "zero point"},
    {.inputs = "i8[2];f32[];u8[]", .expect = "error must be i8", .why = "zero point of another type"},
    {.inputs = "i8[2];f32[]", .attributes = "output_dtype=\"i8\"", .expect = "error output_dtype", .why = "type"},
    {.inputs = "i8[2]{scale 1, zero 0};f32[]", .expect = "error takes plain tensors", .why = "already quantised"},
    {.inputs = "f32[2];f32[]", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(dequantize_linear, kCases)
}  // namespace pinnace::testing
