// Cases of less_or_equal: special values, every element type, broadcasting, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[6]{1,2,-0,nan,nan,inf};f32[6]{2,1,0,nan,1,inf}", .expect = "bool[6]{1,0,1,0,0,1}",
     .why = "NaN, zeros, infinities"},
    {.inputs = "i64{9007199254740993,-1};i64{9007199254740992,1}", .expect = "bool{0,1}",
     .why = "64 bits are not rounded"},
    {.inputs = "u64{18446744073709551615};u64{1}", .expect = "bool{0}", .why = "unsigned"},
    {.inputs = "u8{200,3};u8{100,3}", .expect = "bool{0,1}", .why = "u8"},
    {.inputs = "i8{-1,3};i8{1,3}", .expect = "bool{1,1}", .why = "i8"},
    {.inputs = "i32{-1,3};i32{1,3}", .expect = "bool{1,1}", .why = "i32"},
    {.inputs = "f16[3]{1,2,3};f16[3]{2,2,2}", .expect = "bool[3]{1,1,0}", .why = "half"},
    {.inputs = "bf16[3]{1,2,3};bf16[3]{2,2,2}", .expect = "bool[3]{1,1,0}", .why = "bfloat16"},
    {.inputs = "f64[1]{1};f64[1]{1.0000000001}", .expect = "bool[1]{1}", .why = "double"},
    {.inputs = "f32[2,3];f32[3]", .why = "row broadcast"},
    {.inputs = "f32[2,1,4];f32[3,1]", .why = "both broadcast"},
    {.inputs = "f32[];f32[5]", .why = "scalar first"},
    {.inputs = "f32[0];f32[1]", .expect = "bool[0]{}", .why = "empty"},
    {.inputs = "i8[3]{scale 0.5, zero 0}{2,4,6};i8[3]{scale 0.25, zero 1}{5,10,12}", .expect = "bool[3]{1,1,0}",
     .why = "quantised: real values are compared"},
    {.inputs = "u8[3,1,5]{scale 0.1, zero 120};u8[4,1]{scale 0.12, zero 131}", .why = "quantised, broadcast"},
    {.inputs = "i8[2]{scale 1, zero 0};i8[2]", .expect = "error both must be quantised", .why = "quantised with plain"},
    {.inputs = "f32[2];f32[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "f32[2];i32[2]", .expect = "error must be float32", .why = "types differ"},
    {.inputs = "bool{0};bool{1}", .expect = "error takes", .why = "bool has no order"},
};
PINNACE_CASES(less_or_equal, kCases)
}  // namespace pinnace::testing
