// Cases of pow: mixed element types, negative powers, special values.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,11,3,4];f32 2", .tolerance = {.rel = 1e-6f}, .why = "squares of images"},
    {.inputs = "f32[7]{4,0,-0,-1,inf,-inf,nan};f32 0.5", .expect = "f32[7]{2,0,0,nan,inf,inf,nan}", .tolerance = {.rel = 1e-6f}, .why = "a power that is nearly a root"},
    {.inputs = "f32[7]{4,0,-0,-1,inf,-inf,nan};f32 -0.5", .expect = "f32[7]{0.5,inf,inf,nan,0,0,nan}", .tolerance = {.rel = 1e-6f}, .why = "and its reciprocal"},
    {.inputs = "f32[7]{2,-2,0,0,-8,nan,inf};f32[7]{3,-1,0,-1,0.5,0,-1}", .expect = "f32[7]{8,-0.5,1,inf,nan,1,0}",
     .why = "C's pow"},
    {.inputs = "f32[8]{-0,-0,-0,-0,0,0,-inf,-inf};f32[8]{-1,-3,-2,3,-1,3,-1,-2}",
     .expect = "f32[8]{-inf,-inf,inf,-0,inf,0,-0,0}", .why = "zeros with a sign"},
    {.inputs = "f32[4]{-0,0,-2,3};f32 -3", .expect = "f32[4]{-inf,inf,-0.125,0.037037037}", .tolerance = {.rel = 1e-6f},
     .why = "one odd power of all"},
    {.inputs = "f32[3]{2,3,-2};i64[3]{3,-1,3}", .expect = "f32[3]{8,0.33333334,-8}", .tolerance = {.rel = 1e-6f},
     .why = "float to integer power"},
    {.inputs = "i32{2,3,-2,7};i32{10,3,3,0}", .expect = "i32{1024,27,-8,1}", .why = "integers"},
    {.inputs = "i32{1,-1,-1,2,0};i32{-5,-5,-4,-1,-1}", .expect = "i32{1,-1,1,0,0}", .why = "negative powers"},
    {.inputs = "i32{3};i32{40}", .expect = "i32{689956897}", .why = "integers wrap"},
    {.inputs = "i32{2,4};f32[2]{0.5,0.5}", .expect = "i32{1,2}", .why = "integer to float power truncates"},
    {.inputs = "i64{3};u8{39}", .expect = "i64{4052555153018976267}", .why = "64 bits are not rounded"},
    {.inputs = "u8{2};i8{7}", .expect = "u8{128}", .why = "unsigned base"},
    {.inputs = "f16[3,5] in 1..2;f16[5]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[7] in 1..2;f32[]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16, exponent f32"},
    {.inputs = "f64[3] in 1..2;f64[3]", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "f32[2,3] in 0.5..2;f32[3]", .tolerance = {.rel = 1e-6f}, .why = "row broadcast"},
    {.inputs = "f32[2,1,4] in 0.5..2;f32[3,1]", .tolerance = {.rel = 1e-6f}, .why = "both broadcast"},
    {.inputs = "f32[5];f32 2", .tolerance = {.rel = 1e-6f}, .why = "square"},
    {.inputs = "f32[0];f32[1]", .expect = "f32[0]{}", .why = "empty"},
    {.inputs = "i8[2]{scale 1, zero 0};f32[2]", .expect = "error takes plain tensors", .why = "quantised"},
    {.inputs = "f32[2];f32[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "bool{1};i32{1}", .expect = "error takes", .why = "element type"},
    {.inputs = "f32[2]{nan,1};f32[2]{0,nan}", .expect = "f32[2]{1,1}", .why = "1 whatever the other is"},
};
PINNACE_CASES(pow, kCases)
}  // namespace pinnace::testing
