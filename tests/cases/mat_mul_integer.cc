// Cases of mat_mul_integer: zero points per tensor, row and column; batches.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "u8[4,3]{11,7,3,10,6,2,9,5,1,8,4,0};u8[3,2]{1,4,2,5,3,6};u8{12};u8{0}", .expect = "i32[4,2]{-38,-83,-44,-98,-50,-113,-56,-128}", .why = "ONNX's example"},
    {.inputs = "i8[1,2]{-128,127};u8[2,1]{255,255}", .expect = "i32[1,1]{-255}", .why = "mixed signs, no zero points"},
    {.inputs = "u8[2,2]{5,6,7,8};i8[2,2]{1,2,3,4};u8{5,7};i8{1,2}", .expect = "i32[2,2]{2,2,2,2}", .why = "per row and per column"},
    {.inputs = "u8[2,2,3];i8[2,3,4];u8[2,2,1];i8[2,1,4]", .why = "zero points of a batch"},
    {.inputs = "u8[3,1,2,5];i8[2,5,4];u8 128", .expect = "type i32[3,2,2,4]", .why = "batches broadcast"},
    {.inputs = "u8[5];i8[5]", .expect = "type i32[]", .why = "vectors"},
    {.inputs = "u8[2,0];u8[0,2];u8 3", .expect = "i32[2,2]{0,0,0,0}", .why = "no products"},
    {.inputs = "u8[2,3];u8[3,2];u8{1,2,3}", .expect = "error one per row", .why = "zero points do not fit"},
    {.inputs = "u8[1,2]{scale 0.5, zero 3}{1,2};u8[2,1]{2,3}", .expect = "error takes plain tensors only", .why = "scales would be lost"},
    {.inputs = "i8[2,5,37];i8[37,35];i8{-3}", .why = "kernels of 8-bit weights"},
    {.inputs = "u8[2,5,37];i8[37,35];u8{200}", .why = "kernels of 8-bit weights"},
    {.inputs = "u8[2,5,37];u8[37,35];u8{200};u8{77}", .why = "unsigned weights with a zero point"},
    {.inputs = "i8[59,37];u8[37,3];i8{-3};u8{0,255,128}", .why = "zero points of each column"},
};
PINNACE_CASES(mat_mul_integer, kCases)
}  // namespace pinnace::testing
