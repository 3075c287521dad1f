// Cases of reduce_log_sum: axes, empty rows, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,19,5,3] in 0.1..2;i64{2,3}", .tolerance = {.rel = 1e-6f}, .why = "all pixels of images"},
    {.inputs = "f32[2,2]{1,0,1,0}", .expect = "f32[1,1]{0.6931472}", .tolerance = {.rel = 1e-6f}, .why = "all axes"},
    {.inputs = "f32[2,2]{1,0,1,0};i64{1}", .expect = "f32[2,1]{0,0}", .tolerance = {.rel = 1e-6f}, .why = "one axis"},
    {.inputs = "f32[2,2]{1,0,1,0};i64{-1}", .attributes = "keepdims=0", .expect = "f32[2]{0,0}",
     .tolerance = {.rel = 1e-6f}, .why = "the axis goes"},
    {.inputs = "f32[2,2]{1,0,1,0};i64[0]{}", .attributes = "noop_with_empty_axes=1", .expect = "type f32[2,2]",
     .why = "no axes"},
    {.inputs = "f32[2,2]{1,0,1,0};i64[0]{}", .expect = "f32[1,1]{0.6931472}", .tolerance = {.rel = 1e-6f},
     .why = "empty axes are all axes"},
    {.inputs = "f32[2,0,3];i64{1}", .attributes = "keepdims=0", .expect = "f32[2,3]{-inf,-inf,-inf,-inf,-inf,-inf}",
     .why = "empty rows"},
    {.inputs = "f32[0,3];i64{1}", .expect = "f32[0,1]{}", .why = "no rows"},
    {.inputs = "f32[2,3,4,5] in 0.1..2;i64{1,-1}", .attributes = "keepdims=0", .expect = "type f32[2,4]", .why = "two axes"},
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
    {.inputs = "f32[2]{-1,0.5}", .expect = "f32[1]{nan}", .why = "a negative sum"},
    {.inputs = "i8[1,3,4,4]{scale 0.1, zero -3};i64{2,3}", .output_quantization = "scale 0.05, zero 5",
     .why = "quantised, all pixels of images"},
    {.inputs = "u8[2,5,3,7]{scale 0.0317, zero 90};i64{1,3}", .attributes = "keepdims=0",
     .output_quantization = "scale 0.03, zero 9", .why = "quantised, two axes that are no neighbours"},
    {.inputs = "i8[3,131]{scale 0.1, zero -3};i64{-1}", .output_quantization = "scale 0.05, zero -100",
     .why = "quantised, rows of two rounds and more"},
};
PINNACE_CASES(reduce_log_sum, kCases)
}  // namespace pinnace::testing
