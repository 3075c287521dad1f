// Cases of svd: values, signs, sides, full matrices, types, matrices that have no singular values.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{3,0,4,5}", .outputs = 3,
     .expect = "f32[2]{6.70820393,2.23606798};f32[2,2]{0.31622777,0.94868330,0.94868330,-0.31622777};"
               "f32[2,2]{0.70710678,0.70710678,0.70710678,-0.70710678}",
     .tolerance = {.abs = 1e-6f}, .why = "of each column of u the largest element is positive"},
    {.inputs = "f32[2,2]{3,0,4,5}", .expect = "f32[2]{6.70820393,2.23606798}", .tolerance = {.rel = 1e-6f},
     .why = "values alone"},
    {.inputs = "f64[2,2]{0,-2,3,0}", .outputs = 3, .expect = "f64[2]{3,2};f64[2,2]{0,1,1,0};f64[2,2]{1,0,0,-1}",
     .tolerance = {.abs = 1e-15f}, .why = "descending; signs move to vt"},
    {.inputs = "f32[3,1]{0,3,4}", .outputs = 3, .expect = "f32[1]{5};f32[3,1]{0,0.6,0.8};f32[1,1]{1}",
     .tolerance = {.abs = 1e-6f}, .why = "tall"},
    {.inputs = "f32[1,3]{0,-3,-4}", .outputs = 3, .expect = "f32[1]{5};f32[1,1]{1};f32[1,3]{0,-0.6,-0.8}",
     .tolerance = {.abs = 1e-6f}, .why = "wide: the sign is of u"},
    {.inputs = "f32[3,1]{3,4,0}", .attributes = "full_matrices=1", .outputs = 3,
     .expect = "f32[1]{5};f32[3,3]{0.6,-0.8,0,0.8,0.6,0,0,0,1};f32[1,1]{1}", .tolerance = {.abs = 1e-6f},
     .why = "the further columns of qr's q"},
    {.inputs = "f32[1,3]{3,4,0}", .attributes = "full_matrices=1", .outputs = 3,
     .expect = "f32[1]{5};f32[1,1]{1};f32[3,3]{0.6,0.8,0,-0.8,0.6,0,0,0,1}", .tolerance = {.abs = 1e-6f},
     .why = "likewise for vt"},
    {.inputs = "f64[3,3]{1,2,3,4,5,6,7,8,9}", .expect = "f64[3]{16.8481033526142,1.06836951455471,0}",
     .tolerance = {.abs = 1e-13f}, .why = "of rank 2"},
    {.inputs = "f64[2,2]{1e-200,0,0,1}", .expect = "f64[2]{1,1e-200}", .why = "a small value is as exact as a large one"},
    {.inputs = "f64[2,2]{1e300,1e300,1e300,1e300}", .expect = "f64[2]{2e300,0}", .tolerance = {.rel = 1e-15f},
     .why = "squares that overflow"},
    {.inputs = "f32[2,3]{0,0,0,0,0,0}", .outputs = 3, .expect = "f32[2]{0,0};f32[2,2]{1,0,0,1};f32[2,3]{1,0,0,0,1,0}",
     .why = "zero: vectors have length 1"},
    {.inputs = "f32[3,3]{0,4,0,0,0,4,4,0,0}", .expect = "f32[3]{4,4,4}", .why = "equal values"},
    {.inputs = "f16[2,5,3]", .attributes = "full_matrices=1", .outputs = 3,
     .expect = "type f16[2,3];type f16[2,5,5];type f16[2,3,3]", .why = "half"},
    {.inputs = "bf16[3,5]", .outputs = 3, .expect = "type bf16[3];type bf16[3,3];type bf16[3,5]", .why = "bfloat16"},
    {.inputs = "f32[0,2]", .attributes = "full_matrices=1", .outputs = 3,
     .expect = "f32[0]{};f32[0,0]{};f32[2,2]{1,0,0,1}", .why = "no rows: vt is the identity"},
    {.inputs = "f32[2,0]", .outputs = 3, .expect = "f32[0]{};f32[2,0]{};f32[0,0]{}", .why = "no columns"},
    {.inputs = "f32[0,2,3]", .outputs = 3, .expect = "f32[0,2]{};f32[0,2,2]{};f32[0,2,3]{}", .why = "no matrices"},
    {.inputs = "f32[2,1,2]{1,2,3,inf}", .expect = "error matrix 1 of a has inf at [0, 1]", .why = "infinity"},
    {.inputs = "f32[1,1]{nan}", .expect = "error matrix 0 of a has nan at [0, 0]", .why = "NaN"},
    {.inputs = "f32[2,2]", .outputs = 2, .expect = "error u comes with vt", .why = "outputs"},
    {.inputs = "f32[2]", .expect = "error a must be [..., M, N]", .why = "rank"},
};
PINNACE_CASES(svd, kCases)
}  // namespace pinnace::testing
