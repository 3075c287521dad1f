// Cases of scatter_nd: tuples, slices, reductions.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[8]{1,2,3,4,5,6,7,8};i64[4,1]{4,3,1,7};f32[4]{9,10,11,12}", .expect = "f32[8]{1,11,3,10,9,6,7,12}",
     .why = "elements"},
    {.inputs = "f32[2,2]{1,2,3,4};i64[1,1]{1};f32[1,2]{8,9}", .expect = "f32[2,2]{1,2,8,9}", .why = "a slice"},
    {.inputs = "f32[2,2]{1,2,3,4};i64[2,2]{0,0,-1,-1};f32[2]{8,9}", .expect = "f32[2,2]{8,2,3,9}", .why = "negative"},
    {.inputs = "f32[2]{1,2};i64[2,1]{0,0};f32[2]{3,4}", .attributes = "reduction=\"add\"", .expect = "f32[2]{8,2}",
     .why = "add"},
    {.inputs = "f32[2]{1,2};i64[2,1]{0,0};f32[2]{3,4}", .attributes = "reduction=\"mul\"", .expect = "f32[2]{12,2}",
     .why = "mul"},
    {.inputs = "i64[2]{1,2};i64[1,1]{0};i64{-3}", .attributes = "reduction=\"min\"", .expect = "i64[2]{-3,2}",
     .why = "min"},
    {.inputs = "i64[2]{1,2};i64[1,1]{0};i64{-3}", .attributes = "reduction=\"max\"", .expect = "i64[2]{1,2}",
     .why = "max"},
    {.inputs = "f16[3];i64[0,1]{};f16[0]", .expect = "type f16[3]", .why = "no tuples"},
    {.inputs = "bool[2]{0,0};i64{1};bool[]{1}", .expect = "bool{0,1}", .why = "one tuple"},
    {.inputs = "f32[2]{1,2};i64[1,0]{};f32[1,2]{3,4}", .expect = "f32[2]{3,4}", .why = "empty tuple: all of data"},
    {.inputs = "f32[5,4,3];i64[17,2] in -4..3;f32[17,3]", .attributes = "reduction=\"add\"", .tolerance = {.rel = 1e-6f}, .why = "slices at the same places"},
    {.inputs = "f32[5,4,3];i64[3,7,1] in -5..4;f32[3,7,4,3]", .why = "the last of many slices"},
    {.inputs = "i8[2,3]{scale 0.5, zero 3};i64[4,1] in 0..1;i8[4,3]{scale 0.5, zero 3}", .attributes = "reduction=\"max\"", .why = "quantised"},
    {.inputs = "f32[2,2];i64[1,2]{0,2};f32[1]", .expect = "error index 2 is outside", .why = "too large"},
    {.inputs = "f32[2];i64[1,2]{0,0};f32[1]", .expect = "error name 2 dimensions", .why = "too many"},
    {.inputs = "f32[2];i64[1,1]{0};f32[2]", .expect = "error updates are", .why = "updates"},
};
PINNACE_CASES(scatter_nd, kCases)
}  // namespace pinnace::testing
