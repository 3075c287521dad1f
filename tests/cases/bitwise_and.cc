// Cases of bitwise_and: every width, broadcasting.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "i32{-1,12,5};i32{10,10,-8}", .expect = "i32{10,8,0}", .why = "signed"},
    {.inputs = "u8{255,12};u8{10,10}", .expect = "u8{10,8}", .why = "unsigned"},
    {.inputs = "i8{-128};i8{127}", .expect = "i8{0}", .why = "i8"},
    {.inputs = "i16{-2};i16{3}", .expect = "i16{2}", .why = "16 bits"},
    {.inputs = "u16{65535};u16{256}", .expect = "u16{256}", .why = "16 bits, unsigned"},
    {.inputs = "u32{4294967295};u32{1}", .expect = "u32{1}", .why = "32 bits"},
    {.inputs = "i64{-2};i64{4294967297}", .expect = "i64{4294967296}", .why = "64 bits"},
    {.inputs = "u64{18446744073709551615};u64{1}", .expect = "u64{1}", .why = "64 bits, unsigned"},
    {.inputs = "i32[2,3];i32[3]", .why = "row broadcast"},
    {.inputs = "i32[2,1,4];i32[3,1]", .why = "both broadcast"},
    {.inputs = "i32[5];i32[]", .why = "scalar"},
    {.inputs = "i32[0];i32[1]", .expect = "i32[0]{}", .why = "empty"},
    {.inputs = "i32[2];i64[2]", .expect = "error must be int32", .why = "types differ"},
    {.inputs = "i8[2]{scale 1, zero 0};i8[2]{scale 1, zero 0}", .expect = "error takes plain tensors",
     .why = "quantised"},
    {.inputs = "f32[2];f32[2]", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(bitwise_and, kCases)
}  // namespace pinnace::testing
