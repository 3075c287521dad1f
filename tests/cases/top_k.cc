// Cases of top_k: both ends, ties, NaN.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[4]{1,4,2,4};i64{2}", .outputs = 2, .expect = "f32[2]{4,4};i64{1,3}",
     .why = "ties: lower index first"},
    {.inputs = "f32[4]{1,4,2,1};i64{3}", .attributes = "largest=0", .outputs = 2, .expect = "f32[3]{1,1,2};i64{0,3,2}",
     .why = "smallest"},
    {.inputs = "f32[3]{1,nan,inf};i64[]{2}", .outputs = 2, .expect = "f32[2]{nan,inf};i64{1,2}",
     .why = "NaN is largest"},
    {.inputs = "f32[3]{1,nan,inf};i64[]{3}", .attributes = "largest=0, sorted=0", .outputs = 2,
     .expect = "f32[3]{1,inf,nan};i64{0,2,1}", .why = "NaN comes last"},
    {.inputs = "f32[2,3]{1,2,3,6,5,4};i64{1}", .attributes = "axis=0", .outputs = 2,
     .expect = "f32[1,3]{6,5,4};i64[1,3]{1,1,1}", .why = "first axis"},
    {.inputs = "i8[3]{-5,7,0};i64{1}", .outputs = 2, .expect = "i8{7};i64{1}", .why = "integers"},
    {.inputs = "f16[2,4,3];i64{2}", .attributes = "axis=1", .outputs = 2, .expect = "type f16[2,2,3];type i64[2,2,3]",
     .why = "middle axis"},
    {.inputs = "u64{1,18446744073709551615};i64{1}", .outputs = 2, .expect = "u64{18446744073709551615};i64{1}",
     .why = "unsigned 64 bits"},
    {.inputs = "i64[4]{0,-9223372036854775808,9223372036854775807,-1};i64{4}", .outputs = 2,
     .expect = "i64[4]{9223372036854775807,0,-1,-9223372036854775808};i64{2,0,3,1}", .why = "signed 64 bits"},
    {.inputs = "f64[6]{-0,-inf,nan,0,-1,nan};i64{6}", .outputs = 2,
     .expect = "f64[6]{nan,nan,-0,0,-1,-inf};i64{2,5,0,3,4,1}", .why = "-0 equals 0, NaN equals NaN"},
    {.inputs = "f32[2,3];i64{0}", .outputs = 2, .expect = "f32[2,0]{};i64[2,0]{}", .why = "none"},
    {.inputs = "f32[0,3];i64{2}", .outputs = 2, .expect = "f32[0,2]{};i64[0,2]{}", .why = "empty"},
    {.inputs = "i8[3]{scale 0.5, zero 3}{1,9,2};i64{1}", .outputs = 2, .expect = "i8[1]{scale 0.5, zero 3}{9};i64{1}",
     .why = "quantised"},
    {.inputs = "f32[3];i64{4}", .outputs = 2, .expect = "error k is 4", .why = "too many"},
    {.inputs = "f32[3];i64{-1}", .outputs = 2, .expect = "error k is -1", .why = "negative"},
    {.inputs = "f32[3];i64{1,1}", .outputs = 2, .expect = "error must be one number", .why = "k"},
    {.inputs = "f32[];i64{1}", .outputs = 2, .expect = "error outside rank", .why = "scalar"},
};
PINNACE_CASES(top_k, kCases)
}  // namespace pinnace::testing
