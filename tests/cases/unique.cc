// Cases of unique: order, axis, all outputs.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[6]{2,1,1,3,4,3}", .outputs = 4,
     .expect = "f32[4]{1,2,3,4};i64{1,0,3,4};i64{1,0,0,2,3,2};i64{2,1,2,1}", .why = "sorted"},
    {.inputs = "f32[6]{2,1,1,3,4,3}", .attributes = "sorted=0", .outputs = 4,
     .expect = "f32[4]{2,1,3,4};i64{0,1,3,4};i64{0,1,1,2,3,2};i64{1,2,2,1}", .why = "first come first"},
    {.inputs = "f32[3,3]{1,0,0,1,0,0,2,3,4}", .attributes = "axis=0", .outputs = 4,
     .expect = "f32[2,3]{1,0,0,2,3,4};i64{0,2};i64{0,0,1};i64{2,1}", .why = "rows"},
    {.inputs = "f32[2,4,2]{1,1,0,1,2,1,0,1,1,1,0,1,2,1,0,1}", .attributes = "axis=1", .outputs = 4,
     .expect = "f32[2,3,2]{0,1,1,1,2,1,0,1,1,1,2,1};i64{1,0,2};i64{1,0,2,0};i64{2,1,1}", .why = "inner slices"},
    {.inputs = "i16[4,2]{1,2,1,-2,0,9,1,2}", .attributes = "axis=0", .outputs = 4,
     .expect = "i16[3,2]{0,9,1,-2,1,2};i64{2,1,0};i64{2,1,0,2};i64{1,1,2}", .why = "rows that begin alike"},
    {.inputs = "f32[5]{nan,1,nan,-0,0}", .outputs = 4,
     .expect = "f32[3]{-0,1,nan};i64{3,1,0};i64{2,1,2,0,0};i64{2,1,2}",
     .why = "NaN equals NaN and comes last; -0 equals 0"},
    {.inputs = "f32[4]{nan,5,nan,5}", .attributes = "equal_nan=0", .outputs = 4,
     .expect = "f32[3]{5,nan,nan};i64{1,0,2};i64{1,0,2,0};i64{2,1,1}", .why = "NaN differs from NaN"},
    {.inputs = "f32[4,2]{1,nan,0,2,1,nan,0,2}", .attributes = "axis=0, equal_nan=0", .outputs = 4,
     .expect = "f32[3,2]{0,2,1,nan,1,nan};i64{1,0,2};i64{1,0,2,0};i64{2,1,1}", .why = "rows with NaN differ"},
    {.inputs = "f32[3]{nan,5,nan}", .attributes = "sorted=0, equal_nan=0", .outputs = 4,
     .expect = "f32[3]{nan,5,nan};i64{0,1,2};i64{0,1,2};i64{1,1,1}", .why = "NaN in order of occurrence"},
    {.inputs = "i8[3]{5,-5,5}", .expect = "i8[2]{-5,5}", .why = "one output"},
    {.inputs = "bool[2,2]{1,0,1,1}", .outputs = 2, .expect = "bool{0,1};i64{1,0}", .why = "flat"},
    {.inputs = "f16[0]", .outputs = 3, .expect = "f16[0]{};i64[0]{};i64[0]{}", .why = "empty"},
    {.inputs = "i64[]{3}", .outputs = 4, .expect = "i64{3};i64{0};i64{0};i64{1}", .why = "scalar"},
    {.inputs = "f32[2,0]", .attributes = "axis=0", .outputs = 4, .expect = "f32[1,0]{};i64{0};i64{0,0};i64{2}",
     .why = "empty slices are equal"},
    {.inputs = "u8[2]{scale 0.5, zero 3}{4,4}", .expect = "u8[1]{scale 0.5, zero 3}{4}", .why = "quantised"},
    {.inputs = "f32[2]", .attributes = "axis=1", .expect = "error outside rank", .why = "axis"},
};
PINNACE_CASES(unique, kCases)
}  // namespace pinnace::testing
