// Cases of reduce_sum: axes, empty rows, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,19,5,3];i64{2,3}", .tolerance = {.rel = 1e-6f}, .why = "all pixels of images"},
    {.inputs = "f32[3,70,9];i64{0,1}", .tolerance = {.rel = 1e-6f}, .why = "leading axes"},
    {.inputs = "f32[2,2]{1,-2,-3,4}", .expect = "f32[1,1]{0}", .tolerance = {.rel = 1e-6f}, .why = "all axes"},
    {.inputs = "f32[2,2]{1,-2,-3,4};i64{1}", .expect = "f32[2,1]{-1,1}", .tolerance = {.rel = 1e-6f},
     .why = "one axis"},
    {.inputs = "f32[2,2]{1,-2,-3,4};i64{-1}", .attributes = "keepdims=0", .expect = "f32[2]{-1,1}",
     .tolerance = {.rel = 1e-6f}, .why = "the axis goes"},
    {.inputs = "f32[2,2]{1,-2,-3,4};i64[0]{}", .attributes = "noop_with_empty_axes=1", .expect = "type f32[2,2]",
     .why = "no axes"},
    {.inputs = "f32[2,2]{1,-2,-3,4};i64[0]{}", .expect = "f32[1,1]{0}", .tolerance = {.rel = 1e-6f},
     .why = "empty axes are all axes"},
    {.inputs = "f32[2,0,3];i64{1}", .attributes = "keepdims=0", .expect = "f32[2,3]{0,0,0,0,0,0}", .why = "empty rows"},
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
    {.inputs = "bool[2]", .expect = "error takes", .why = "bool"},
    {.inputs = "i32{2147483647,1}", .expect = "i32{-2147483648}", .why = "integers wrap"},
    {.inputs = "u8{200,100}", .expect = "u8{44}", .why = "unsigned wraps"},
    {.inputs = "f32[3]{16777216,1,1}", .expect = "f32[1]{16777218}", .why = "summed in double"},
    {.inputs = "f32[2]{inf,-inf}", .expect = "f32[1]{nan}", .why = "IEEE"},
    {.inputs = "i8[2]{scale 0.5, zero 0}{100,100}", .expect = "i8[1]{scale 1, zero 0}{100}",
     .output_quantization = "scale 1, zero 0", .why = "quantised"},
    {.inputs = "u8[3,70,2]{scale 0.0371, zero 127};i64{1}", .output_quantization = "scale 0.61, zero 90",
     .why = "quantised, longer rows"},
    {.inputs = "f32[2]{nan,1}", .expect = "f32[1]{nan}", .why = "NaN in a row"},
    {.inputs = "f32[1,2,9,2,2,3,4];i64{2}", .attributes = "keepdims=0", .expect = "type f32[1,2,2,2,3,4]",
     .tolerance = {.rel = 1e-6f}, .why = "seven dimensions"},
};
PINNACE_CASES(reduce_sum, kCases)
}  // namespace pinnace::testing
