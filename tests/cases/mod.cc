// Cases of mod: both roundings, signs, special values, divisors of 0.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "i32{7,-7,7,-7};i32{3,3,-3,-3}", .expect = "i32{1,2,-2,-1}", .why = "sign of the divisor"},
    {.inputs = "i32{7,-7,7,-7};i32{3,3,-3,-3}", .attributes = "fmod=1", .expect = "i32{1,-1,1,-1}",
     .why = "sign of the dividend"},
    {.inputs = "i32{-2147483648};i32{-1}", .expect = "i32{0}", .why = "the one overflow"},
    {.inputs = "i64{-9223372036854775808};i64{-1}", .attributes = "fmod=1", .expect = "i64{0}", .why = "64 bits"},
    {.inputs = "u8{200};u8{7}", .expect = "u8{4}", .why = "unsigned"},
    {.inputs = "u64{18446744073709551615};u64{10}", .expect = "u64{5}", .why = "64 bits, unsigned"},
    {.inputs = "i8{-7};i8{3}", .expect = "i8{2}", .why = "i8"},
    {.inputs = "f32[6]{7.5,-7.5,7.5,-7.5,6,-6};f32[6]{3,3,-3,-3,-3,3}", .expect = "f32[6]{1.5,1.5,-1.5,-1.5,-0,0}",
     .why = "floats: sign of the divisor"},
    {.inputs = "f32[6]{7.5,-7.5,7.5,-7.5,6,-6};f32[6]{3,3,-3,-3,-3,3}", .attributes = "fmod=1",
     .expect = "f32[6]{1.5,-1.5,1.5,-1.5,0,-0}", .why = "floats: sign of the dividend"},
    {.inputs = "f32[6]{inf,1,nan,1,-1,-2};f32[6]{3,0,3,inf,inf,-inf}", .expect = "f32[6]{nan,nan,nan,1,inf,-2}",
     .why = "special values"},
    {.inputs = "f32[4]{inf,1,nan,-1};f32[4]{3,0,3,inf}", .attributes = "fmod=1", .expect = "f32[4]{nan,nan,nan,-1}",
     .why = "special values, truncated"},
    {.inputs = "f32[2,3] x9;f32[3] in 1..2", .tolerance = {.rel = 1e-6f}, .why = "row broadcast"},
    {.inputs = "f32[2,1,4] x9;f32[3,1] in 1..2", .attributes = "fmod=1", .tolerance = {.rel = 1e-6f},
     .why = "both broadcast"},
    {.inputs = "f32[5] x9;f32 1.5", .tolerance = {.rel = 1e-6f}, .why = "scalar"},
    {.inputs = "f16[3,5] x9;f16[5] in 1..2", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[7] x9;bf16[] in 1..2", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[3];f64[3] in 1..2", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "i32{1,2};i32{1,0}", .expect = "error element 1 of the divisor is 0", .why = "no value"},
    {.inputs = "i32[0];i32[1]{0}", .expect = "i32[0]{}", .why = "nothing is divided"},
    {.inputs = "f32[0];f32[1]", .expect = "f32[0]{}", .why = "empty"},
    {.inputs = "i32{1};i32{1}", .attributes = "fmod=2", .expect = "error must be 0 or 1", .why = "attribute"},
    {.inputs = "i8[2]{scale 1, zero 0};i8[2]{scale 1, zero 0}", .expect = "error takes plain tensors",
     .why = "quantised"},
    {.inputs = "f32[2];f32[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "f32[2];f16[2]", .expect = "error must be float32", .why = "types differ"},
};
PINNACE_CASES(mod, kCases)
}  // namespace pinnace::testing
