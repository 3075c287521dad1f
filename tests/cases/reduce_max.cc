// Cases of reduce_max: axes, empty rows, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,19,5,3];i64{2,3}", .tolerance = {.rel = 1e-6f}, .why = "all pixels of images"},
    {.inputs = "f32[3,70,9];i64{0,1}", .tolerance = {.rel = 1e-6f}, .why = "leading axes"},
    {.inputs = "f32[2,2]{1,-2,-3,4}", .expect = "f32[1,1]{4}", .tolerance = {.rel = 1e-6f}, .why = "all axes"},
    {.inputs = "f32[2,2]{1,-2,-3,4};i64{1}", .expect = "f32[2,1]{1,4}", .tolerance = {.rel = 1e-6f}, .why = "one axis"},
    {.inputs = "f32[2,2]{1,-2,-3,4};i64{-1}", .attributes = "keepdims=0", .expect = "f32[2]{1,4}",
     .tolerance = {.rel = 1e-6f}, .why = "the axis goes"},
    {.inputs = "f32[2,2]{1,-2,-3,4};i64[0]{}", .attributes = "noop_with_empty_axes=1", .expect = "type f32[2,2]",
     .why = "no axes"},
    {.inputs = "f32[2,2]{1,-2,-3,4};i64[0]{}", .expect = "f32[1,1]{4}", .tolerance = {.rel = 1e-6f},
     .why = "empty axes are all axes"},
    {.inputs = "f32[2,0,3];i64{1}", .attributes = "keepdims=0", .expect = "f32[2,3]{-inf,-inf,-inf,-inf,-inf,-inf}",
     .why = "empty rows"},
    {.inputs = "f32[0,3];i64{1}", .expect = "f32[0,1]{}", .why = "no rows"},
    {.inputs = "f32[2,3,4,5];i64{1,-1}", .attributes = "keepdims=0", .expect = "type f32[2,4]", .why = "two axes"},
    {.inputs = "f32[3,17,5] in 0.1..2;i64{0,2}", .expect = "type f32[1,17,1]", .why = "outer and inner axis"},
    {.inputs = "f16[4,9] in 0.1..2;i64{1}", .why = "half"},
    {.inputs = "bf16[4,9] in 0.1..2;i64{0}", .why = "bfloat16"},
    {.inputs = "f64[2,3] in 0.1..2", .why = "double"},
    {.inputs = "f32[]{1}", .expect = "type f32[]", .why = "scalar"},
    {.inputs = "i32[2,3] in 1..9;i64{0}", .expect = "type i32[1,3]", .why = "integers"},
    {.inputs = "f32[2];i64{1}", .expect = "error outside rank", .why = "axis"},
    {.inputs = "f32[2];i64{0,-1}", .expect = "error named twice", .why = "axis twice"},
    {.inputs = "f32[2];i64[1,1]{0}", .expect = "error must be a vector", .why = "axes"},
    {.inputs = "f32[3]{1,nan,2}", .expect = "f32[1]{nan}", .why = "NaN wins"},
    {.inputs = "bool[2,2]{1,0,0,0};i64{1}", .expect = "bool[2,1]{1,0}", .why = "bool"},
    {.inputs = "bool[0]", .expect = "bool[1]{0}", .why = "no bool"},
    {.inputs = "i8[0]", .expect = "i8{-128}", .why = "no integers"},
    {.inputs = "u64{18446744073709551615,1}", .expect = "u64{18446744073709551615}", .why = "unsigned 64 bits"},
    {.inputs = "i8[3]{scale 0.5, zero 3}{-5,7,1}", .expect = "i8[1]{scale 0.5, zero 3}{7}",
     .why = "quantised: the input's parameters"},
    {.inputs = "u8[2,9,4]{scale 0.05, zero 9};i64{0,2}", .output_quantization = "scale 0.07, zero 99",
     .why = "quantised, other parameters"},
    {.inputs = "i8[4]{scale 0, zero 3}{5,7,9,1}", .expect = "i8[1]{scale 0, zero 3}{3}",
     .why = "a scale of 0: no number is left but its zero point"},
};
PINNACE_CASES(reduce_max, kCases)
}  // namespace pinnace::testing
