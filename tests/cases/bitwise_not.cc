// Cases of bitwise_not: every width.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "i32{0,-1,5}", .expect = "i32{-1,0,-6}", .why = "signed"},
    {.inputs = "u8{0,255,5}", .expect = "u8{255,0,250}", .why = "unsigned"},
    {.inputs = "i8{127}", .expect = "i8{-128}", .why = "i8"},
    {.inputs = "u16{1}", .expect = "u16{65534}", .why = "16 bits"},
    {.inputs = "i16{1}", .expect = "i16{-2}", .why = "16 bits, signed"},
    {.inputs = "u32{0}", .expect = "u32{4294967295}", .why = "32 bits"},
    {.inputs = "i64{1}", .expect = "i64{-2}", .why = "64 bits"},
    {.inputs = "u64{0}", .expect = "u64{18446744073709551615}", .why = "64 bits, unsigned"},
    {.inputs = "i32[2,3]", .why = "matrix"},
    {.inputs = "i32[]", .why = "scalar"},
    {.inputs = "i32[0,3]", .expect = "i32[0,3]{}", .why = "empty"},
    {.inputs = "i8[2]{scale 0.5, zero 0}", .expect = "error takes plain tensors",
     .why = "bits of quantised values mean nothing"},
    {.inputs = "f32{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(bitwise_not, kCases)
}  // namespace pinnace::testing
