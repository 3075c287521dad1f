// Cases of transpose: permutations.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,3]{1,2,3,4,5,6}", .expect = "f32[3,2]{1,4,2,5,3,6}", .why = "reverse by default"},
    {.inputs = "f32[2,1,3]{1,2,3,4,5,6}", .attributes = "perm=[2,0,1]", .expect = "f32[3,2,1]{1,4,2,5,3,6}",
     .why = "three dimensions"},
    {.inputs = "f32[2,3,4,5]", .attributes = "perm=[0,2,3,1]", .expect = "type f32[2,4,5,3]", .why = "channels last"},
    {.inputs = "bool[2,2]{1,0,0,0}", .expect = "bool[2,2]{1,0,0,0}", .why = "bool"},
    {.inputs = "i64[1,3]{1,2,3}", .expect = "i64[3,1]{1,2,3}", .why = "i64"},
    {.inputs = "f16[2,3]", .attributes = "perm=[0,1]", .expect = "type f16[2,3]", .why = "nothing"},
    {.inputs = "f32[]{4}", .expect = "f32[]{4}", .why = "scalar"},
    {.inputs = "bf16[0,3]", .expect = "bf16[3,0]{}", .why = "empty"},
    {.inputs = "u8[2,3]{scale 0.5, zero 3}", .expect = "type u8[3,2]{scale 0.5, zero 3}", .why = "quantised"},
    {.inputs = "f64[2,3,2]", .attributes = "perm=[1,0,2]", .expect = "type f64[3,2,2]", .why = "inner runs"},
    {.inputs = "f32[2,3]", .attributes = "perm=[0,0]", .expect = "error named twice", .why = "twice"},
    {.inputs = "f32[2,3]", .attributes = "perm=[0]", .expect = "error must have 2", .why = "length"},
    {.inputs = "f32[2,3]", .attributes = "perm=[0,2]", .expect = "error outside rank", .why = "axis"},
    {.inputs = "f32[2,3]", .attributes = "perm=[-1,0]", .expect = "error negative dimension", .why = "from the last"},
    {.inputs = "f32[2,3,1,2,2,3,2,1]", .attributes = "perm=[0,2,4,1,3,5,7,6]", .expect = "type f32[2,1,2,3,2,3,1,2]",
     .why = "eight dimensions"},
    {.inputs = "f32[2,2,2,2,2,2,2,2]", .attributes = "perm=[7,6,5,4,3,2,1,0]", .expect = "type f32[2,2,2,2,2,2,2,2]",
     .why = "eight dimensions, none beside another"},
    {.inputs = "f8e4m3fn[2,3]{1,2,3,4,5,6}", .expect = "f8e4m3fn[3,2]{1,4,2,5,3,6}", .why = "8-bit float"},
};
PINNACE_CASES(transpose, kCases)
}  // namespace pinnace::testing
