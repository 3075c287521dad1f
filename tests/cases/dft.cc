// Cases of dft: lengths, directions, halves, axes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f64[4,1]{1,0,0,0}", .expect = "f64[4,2]{1,0,1,0,1,0,1,0}", .why = "an impulse"},
    {.inputs = "f64[4,1]{0,1,0,0}", .expect = "f64[4,2]{1,0,0,-1,-1,0,0,1}", .tolerance = {.abs = 1e-15f},
     .why = "an impulse later: the sign of the exponent"},
    {.inputs = "f32[3,1]{1,1,1}", .expect = "f32[3,2]{3,0,0,0,0,0}", .tolerance = {.abs = 1e-15f},
     .why = "no power of two"},
    {.inputs = "f32[1,2]{3,4}", .expect = "f32[1,2]{3,4}", .why = "length 1"},
    {.inputs = "f64[2,2]{0,1,0,1}", .expect = "f64[2,2]{0,2,0,0}", .why = "complex"},
    {.inputs = "f32[2,1]{1,1};i64[]{4}", .expect = "f32[4,2]{2,0,1,-1,0,0,1,1}", .tolerance = {.abs = 1e-7f},
     .why = "continued with zeros"},
    {.inputs = "f32[2,0,2];i64[]{3}", .expect = "f32[2,3,2]{0,0,0,0,0,0,0,0,0,0,0,0}",
     .tolerance = {.abs = 1e-15f}, .why = "nothing but those zeros"},
    {.inputs = "f32[3,1]{1,2,9};i32[]{2}", .expect = "f32[2,2]{3,0,-1,0}", .why = "cut"},
    {.inputs = "f32[5,1]{1,1,1,1,1}", .attributes = "onesided=1", .expect = "f32[3,2]{5,0,0,0,0,0}",
     .tolerance = {.abs = 1e-15f}, .why = "half of an odd length"},
    {.inputs = "f32[2,2]{6,2,0,4}", .attributes = "inverse=1", .expect = "f32[2,2]{3,3,3,-1}", .why = "inverse"},
    {.inputs = "f32[3,2]{4,9,0,0,0,7}", .attributes = "inverse=1, onesided=1", .expect = "f32[4,1]{1,1,1,1}",
     .tolerance = {.abs = 1e-7f}, .why = "inverse of a half: imaginary parts of the ends have no part"},
    {.inputs = "f32[2,2]{5,0,0,0};i64[]{5}", .attributes = "inverse=1, onesided=1", .expect = "f32[5,1]{1,1,1,1,1}",
     .tolerance = {.abs = 1e-7f}, .why = "odd, and shorter than half"},
    {.inputs = "f32[2,3,1]{1,2,3,4,5,6};none;i64[]{0}",
     .expect = "f32[2,3,2]{5,0,7,0,9,0,-3,0,-3,0,-3,0}", .why = "axis"},
    {.inputs = "f16[3,10,2];none;i64[]{-2}", .expect = "type f16[3,10,2]", .why = "half precision"},
    {.inputs = "bf16[3,12,1,1];none;i64[]{1}", .attributes = "onesided=1", .expect = "type bf16[3,7,1,2]",
     .why = "bfloat16"},
    {.inputs = "f32[2,1]{nan,1}", .expect = "f32[2,2]{nan,0,nan,0}", .why = "NaN"},
    {.inputs = "f32[0,4,1]", .expect = "f32[0,4,2]{}", .why = "empty"},
    {.inputs = "f32[4]", .expect = "error rank 2 or more", .why = "rank"},
    {.inputs = "f32[4,3]", .expect = "error must be 1 or 2", .why = "parts"},
    {.inputs = "f32[4,2]", .attributes = "onesided=1", .expect = "error onesided is for real x", .why = "complex half"},
    {.inputs = "f32[4,1];none;i64[]{-1}", .expect = "error is the last one", .why = "axis of parts"},
    {.inputs = "f32[4,1];i64[]{0}", .expect = "error not positive", .why = "length"},
    {.inputs = "f32[0,1]", .expect = "error nothing to transform", .why = "nothing"},
    {.inputs = "f32[1,0,2]", .attributes = "inverse=1, onesided=1", .expect = "error is half of nothing", .why = "a half of no elements"},
};
PINNACE_CASES(dft, kCases)
}  // namespace pinnace::testing
