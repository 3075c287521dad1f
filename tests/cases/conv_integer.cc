// Cases of conv_integer: zero points per tensor and per channel, padding, types that differ.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "u8[1,1,3,3]{2,3,4,5,6,7,8,9,10};u8[1,1,2,2]{1,1,1,1};u8 1", .expect = "i32[1,1,2,2]{12,16,24,28}", .why = "ONNX's example"},
    {.inputs = "u8[1,1,3,3]{2,3,4,5,6,7,8,9,10};u8[1,1,2,2]{1,1,1,1};u8 1", .attributes = "pads=[1,1,1,1]",
     .expect = "i32[1,1,4,4]{1,3,5,3,5,12,16,9,11,24,28,15,7,15,17,9}", .why = "padding is the zero point"},
    {.inputs = "i8[1,1,2]{-128,127};u8[2,1,1]{200,3};none;u8{200,0}", .expect = "i32[1,2,2]{0,0,-384,381}", .why = "zero point per channel, mixed signs"},
    {.inputs = "u8[2,4,7,7];i8[6,2,3,3];u8{128};i8{3}", .attributes = "group=2, strides=[2,2], dilations=[2,2], pads=[2,1,2,1]", .why = "groups and dilations"},
    {.inputs = "i8[1,2,9];i8[3,2,3]", .attributes = "auto_pad=\"same_upper\"", .expect = "type i32[1,3,9]", .why = "one dimension"},
    {.inputs = "u8[1,1,3,3];u8[1,1,2,2];i8 1", .expect = "error must be uint8", .why = "zero point of another type"},
    {.inputs = "u8[1,1,3,3];u8[1,1,2,2];u8{1,2}", .expect = "error must have one element", .why = "x has one zero point"},
    {.inputs = "u8[1,1,2]{scale 0.5, zero 3}{1,2};u8[1,1,1]{2}", .expect = "error takes plain tensors only", .why = "scales would be lost"},
    {.inputs = "u8[2,21,13,70];u8[35,21,3,3];u8{113};u8{101}", .attributes = "pads=[1,1,1,1], strides=[1,1]", .why = "unsigned weights with a zero point, rows of more than one run"},
    {.inputs = "u8[1,3,31,33];i8[40,3,3,3];u8{113}", .attributes = "pads=[0,1,2,1], strides=[2,2]", .why = "pixels that touch"},
    {.inputs = "i8[2,16,150,1];u8[34,8,5,1];i8{-7};u8{128}", .attributes = "group=2, pads=[2,0,2,0], dilations=[1,1]", .why = "one pixel wide, groups, weights that are signed bytes"},
    {.inputs = "i8[1,9,40];i8[5,9,3];i8{100};i8{1,-2,3,0,127}", .attributes = "pads=[4,4], dilations=[4]", .why = "one dimension, zero points of each channel"},
};
PINNACE_CASES(conv_integer, kCases)
}  // namespace pinnace::testing
