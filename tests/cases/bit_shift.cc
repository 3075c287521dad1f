// Cases of bit_shift: directions, amounts beyond the width, signs.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "u8{1,2,255};u8{1,7,4}", .attributes = "direction=\"LEFT\"", .expect = "u8{2,0,240}",
     .why = "bits are lost"},
    {.inputs = "u8{128,255,3};u8{7,4,1}", .attributes = "direction=\"RIGHT\"", .expect = "u8{1,15,1}",
     .why = "zeros come in"},
    {.inputs = "i32{-8,8,-1};i32{1,1,31}", .attributes = "direction=\"RIGHT\"", .expect = "i32{-4,4,-1}",
     .why = "the sign stays"},
    {.inputs = "i32{1,-1};i32{31,31}", .attributes = "direction=\"LEFT\"", .expect = "i32{-2147483648,-2147483648}",
     .why = "into the sign"},
    {.inputs = "i32{-8,8,-8,8};i32{32,32,-1,100}", .attributes = "direction=\"RIGHT\"", .expect = "i32{-1,0,-1,0}",
     .why = "beyond the width only the fill"},
    {.inputs = "i32{-8,8};i32{32,-1}", .attributes = "direction=\"LEFT\"", .expect = "i32{0,0}",
     .why = "beyond the width nothing"},
    {.inputs = "u8{255};u8{8}", .attributes = "direction=\"RIGHT\"", .expect = "u8{0}", .why = "unsigned beyond"},
    {.inputs = "i8{-128};i8{7}", .attributes = "direction=\"RIGHT\"", .expect = "i8{-1}", .why = "i8"},
    {.inputs = "u16{1};u16{15}", .attributes = "direction=\"LEFT\"", .expect = "u16{32768}", .why = "16 bits"},
    {.inputs = "i16{1};i16{15}", .attributes = "direction=\"LEFT\"", .expect = "i16{-32768}", .why = "16 bits, signed"},
    {.inputs = "u32{1};u32{31}", .attributes = "direction=\"LEFT\"", .expect = "u32{2147483648}", .why = "32 bits"},
    {.inputs = "i64{1};i64{62}", .attributes = "direction=\"LEFT\"", .expect = "i64{4611686018427387904}",
     .why = "64 bits"},
    {.inputs = "u64{1};u64{63}", .attributes = "direction=\"LEFT\"", .expect = "u64{9223372036854775808}",
     .why = "64 bits, unsigned"},
    {.inputs = "u32[2,3];u32[3]", .attributes = "direction=\"RIGHT\"", .why = "row broadcast"},
    {.inputs = "u32[];u32[4]", .attributes = "direction=\"LEFT\"", .why = "scalar first"},
    {.inputs = "u8[0];u8[1]", .attributes = "direction=\"LEFT\"", .expect = "u8[0]{}", .why = "empty"},
    {.inputs = "u8{1};u8{1}", .attributes = "direction=\"UP\"", .expect = "error must be", .why = "unknown direction"},
    {.inputs = "u8{1};u8{1}", .expect = "error direction", .why = "direction is required"},
    {.inputs = "f32{1};f32{1}", .attributes = "direction=\"LEFT\"", .expect = "error takes", .why = "element type"},
    {.inputs = "i8[2]{scale 1, zero 0};i8[2]{scale 1, zero 0}", .attributes = "direction=\"LEFT\"",
     .expect = "error takes plain tensors", .why = "quantised"},
};
PINNACE_CASES(bit_shift, kCases)
}  // namespace pinnace::testing
