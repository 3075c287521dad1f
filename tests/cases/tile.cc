// Cases of tile: repeats.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2]{1,2};i64{3}", .expect = "f32[6]{1,2,1,2,1,2}", .why = "a vector"},
    {.inputs = "f32[2,2]{1,2,3,4};i64{2,2}", .expect = "f32[4,4]{1,2,1,2,3,4,3,4,1,2,1,2,3,4,3,4}", .why = "a matrix"},
    {.inputs = "f32[2,2]{1,2,3,4};i64{1,2}", .expect = "f32[2,4]{1,2,1,2,3,4,3,4}", .why = "columns"},
    {.inputs = "i8[1];i64{4}", .expect = "type i8[4]", .why = "one element"},
    {.inputs = "bool{1};i64{2}", .expect = "bool{1,1}", .why = "bool"},
    {.inputs = "f16[2,3];i64{0,2}", .expect = "f16[0,6]{}", .why = "zero times"},
    {.inputs = "f32[0];i64{5}", .expect = "f32[0]{}", .why = "empty"},
    {.inputs = "f32[]{7};i64[0]{}", .expect = "f32[]{7}", .why = "scalar"},
    {.inputs = "u8[1]{scale 0.5, zero 3}{4};i64{2}", .expect = "u8[2]{scale 0.5, zero 3}{4,4}", .why = "quantised"},
    {.inputs = "f32[2];i64{-1}", .expect = "error is negative", .why = "negative"},
    {.inputs = "f32[2];i64{1,1}", .expect = "error has 2 elements", .why = "length"},
    {.inputs = "f32[2];i64{4611686018427387904}", .expect = "error larger than memory", .why = "overflow"},
};
PINNACE_CASES(tile, kCases)
}  // namespace pinnace::testing
