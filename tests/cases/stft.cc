// Cases of stft: pieces, windows, halves.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,5,1]{1,2,3,4,5};i64[]{2};none;i64[]{2}", .expect = "f32[1,2,2,2]{3,0,-1,0,7,0,-1,0}",
     .why = "two pieces, the fifth element is in none"},
    {.inputs = "f32[1,4]{1,2,3,4};i32[]{1};f32{1,2};i32[]{2}", .expect = "f32[1,3,2,2]{5,0,-3,0,8,0,-4,0,11,0,-5,0}",
     .why = "a window, overlap, no third dimension"},
    {.inputs = "f32[1,4,1]{1,2,3,4};i64[]{2};f32{1,2}", .attributes = "onesided=0",
     .expect = "f32[1,2,2,2]{5,0,-3,0,11,0,-5,0}", .why = "the window gives the length"},
    {.inputs = "f64[1,2,2]{0,1,0,1};i64[]{1}", .attributes = "onesided=0", .expect = "f64[1,1,2,2]{0,2,0,0}",
     .why = "complex, the whole signal"},
    {.inputs = "f32[2,30,1];i64[]{7};f32[9];i64[]{9}", .expect = "type f32[2,4,5,2]", .why = "odd length"},
    {.inputs = "f16[2,8,1];i64[]{4};f16[4]", .expect = "type f16[2,2,3,2]", .why = "half"},
    {.inputs = "bf16[2,8,1];i64[]{4};bf16[4]", .expect = "type bf16[2,2,3,2]", .why = "bfloat16"},
    {.inputs = "f32[1,3,1];i64[]{1};f32[4]", .expect = "f32[1,0,3,2]{}", .why = "shorter than a piece"},
    {.inputs = "f32[0,8,1];i64[]{4};f32[4]", .expect = "f32[0,2,3,2]{}", .why = "empty"},
    {.inputs = "f32[1,8,3];i64[]{4}", .expect = "error signal must be", .why = "parts"},
    {.inputs = "f32[1,8,2];i64[]{4}", .expect = "error onesided is for real signals", .why = "complex half"},
    {.inputs = "f32[1,8,1];i64[]{0}", .expect = "error frame_step 0", .why = "step"},
    {.inputs = "f32[1,8,1];i64[]{4};f32[4];i64[]{5}", .expect = "error differs from the window's length 4",
     .why = "lengths"},
    {.inputs = "f32[1,8,1];i64[]{4};none;i64[]{-1}", .expect = "error frame_length -1", .why = "length"},
};
PINNACE_CASES(stft, kCases)
}  // namespace pinnace::testing
