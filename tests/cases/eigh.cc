// Cases of eigh: values, signs, triangles, types, matrices that have no eigenvalues.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{2,1,1,2}", .outputs = 2,
     .expect = "f32[2]{1,3};f32[2,2]{0.70710678,0.70710678,-0.70710678,0.70710678}", .tolerance = {.abs = 1e-6f},
     .why = "of (1, -1) the first element is positive"},
    {.inputs = "f32[2,2]{2,1,1,2}", .expect = "f32[2]{1,3}", .tolerance = {.abs = 1e-6f}, .why = "values alone"},
    {.inputs = "f32[2,2]{2,99,1,2}", .expect = "f32[2]{1,3}", .tolerance = {.abs = 1e-6f},
     .why = "the upper triangle is not read"},
    {.inputs = "f32[2,2]{2,1,nan,2}", .attributes = "upper=1", .expect = "f32[2]{1,3}", .tolerance = {.abs = 1e-6f},
     .why = "the lower triangle is not read"},
    {.inputs = "f64[3,3]{5,0,0,0,-3,0,0,0,1}", .outputs = 2, .expect = "f64[3]{-3,1,5};f64[3,3]{0,0,1,1,0,0,0,1,0}",
     .why = "a diagonal: ascending"},
    {.inputs = "f64[3,3]{2,-1,0,-1,2,-1,0,-1,2}", .outputs = 2,
     .expect = "f64[3]{0.585786437626905,2,3.414213562373095};f64[3,3]{0.5,0.707106781186548,-0.5,0.707106781186548,0,"
               "0.707106781186548,0.5,-0.707106781186548,-0.5}",
     .tolerance = {.abs = 1e-14f}, .why = "2 - 2 cos(k pi / 4); the largest element is positive"},
    {.inputs = "f64[4,4]{1,0.5,0.333333333333333333,0.25,0.5,0.333333333333333333,0.25,0.2,0.333333333333333333,0.25,0.2,"
               "0.166666666666666667,0.25,0.2,0.166666666666666667,0.142857142857142857}",
     .expect = "f64[4]{9.67023040225868e-5,0.00673827360576076,0.169141220221450,1.50021428005924}",
     .tolerance = {.abs = 1e-14f}, .why = "Hilbert's matrix"},
    {.inputs = "f64[2,2]{1e300,1e300,1e300,1e300}", .expect = "f64[2]{0,2e300}", .tolerance = {.rel = 1e-15f},
     .why = "squares that overflow"},
    {.inputs = "f32[3,3]{4,0,0,0,4,0,0,0,4}", .outputs = 2, .expect = "f32[3]{4,4,4};f32[3,3]{1,0,0,0,1,0,0,0,1}",
     .why = "equal values"},
    {.inputs = "f32[2,1,1]{9,-16}", .outputs = 2, .expect = "f32[2,1]{9,-16};f32[2,1,1]{1,1}", .why = "several of one element"},
    {.inputs = "f16[2,3,3]", .outputs = 2, .expect = "type f16[2,3];type f16[2,3,3]", .why = "half"},
    {.inputs = "bf16[1,1]{0.25}", .expect = "bf16[1]{0.25}", .why = "bfloat16"},
    {.inputs = "f32[0,0]", .outputs = 2, .expect = "f32[0]{};f32[0,0]{}", .why = "empty"},
    {.inputs = "f32[0,2,2]", .outputs = 2, .expect = "f32[0,2]{};f32[0,2,2]{}", .why = "no matrices"},
    {.inputs = "f32[2,2,2]{1,0,0,1,1,0,nan,1}", .expect = "error matrix 1 of a has nan at [1, 0]", .why = "NaN"},
    {.inputs = "f32[1,1]{inf}", .expect = "error matrix 0 of a has inf at [0, 0]", .why = "infinity"},
    {.inputs = "f32[2,3]", .expect = "error not square", .why = "not square"},
    {.inputs = "f32[2]", .expect = "error a must be [..., M, M]", .why = "rank"},
};
PINNACE_CASES(eigh, kCases)
}  // namespace pinnace::testing
