// Cases of search_sorted: both sides, rows, NaN, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[4]{1,3,3,5};f32[2,3]{0,1,2,3,5,6}", .expect = "i64[2,3]{0,0,1,1,3,4}", .why = "left, one row"},
    {.inputs = "f32[4]{1,3,3,5};f32[6]{0,1,2,3,5,6}", .attributes = "right=1", .expect = "i64[6]{0,1,1,3,4,4}",
     .why = "right"},
    {.inputs = "i64[2,3]{1,2,3,4,5,6};i64[2,2]{2,9,4,0}", .expect = "i64[2,2]{1,3,0,0}", .why = "row by row"},
    {.inputs = "f32[4]{-inf,0,inf,nan};f32[6]{-inf,-0,inf,nan,0,-1}", .expect = "i64[6]{0,1,2,3,1,1}",
     .why = "NaN behind all, zeros are equal"},
    {.inputs = "f32[3]{0,nan,nan};f32[3]{nan,-0,1}", .attributes = "right=1", .expect = "i64[3]{3,1,1}",
     .why = "NaN is equal to itself"},
    {.inputs = "f32[4]{1,2,nan,nan};f32[3]{2.5,nan,1}", .attributes = "unordered_nan=1", .expect = "i64[3]{4,4,4}",
     .why = "a NaN in the middle sends all to the right"},
    {.inputs = "f32[4]{1,2,3,nan};f32[3]{1,nan,2}", .attributes = "right=1, unordered_nan=1", .expect = "i64[3]{1,4,2}",
     .why = "NaN where no search passes"},
    {.inputs = "u8[3]{1,100,255};u8[]{200}", .expect = "i64[]{2}", .why = "unsigned, a number"},
    {.inputs = "f16[2]{1,2};f16[3]{0.5,1.5,2.5}", .expect = "i64[3]{0,1,2}", .why = "half"},
    {.inputs = "i8[2]{-128,127};i8[2]{0,-128}", .attributes = "right=1", .expect = "i64[2]{1,1}", .why = "signed"},
    {.inputs = "f64[3,5];f64[3,4]", .expect = "type i64[3,4]", .why = "double"},
    {.inputs = "f32[0];f32[2]{1,2}", .expect = "i64[2]{0,0}", .why = "nothing to search"},
    {.inputs = "f32[2]{1,2};f32[0]", .expect = "i64[0]{}", .why = "no values"},
    {.inputs = "f32[2,3];f32[4]", .expect = "error do not have the rows", .why = "rank"},
    {.inputs = "f32[2,3];f32[3,4]", .expect = "error do not have the rows", .why = "rows"},
    {.inputs = "f32[];f32[4]", .expect = "error no dimensions", .why = "no row"},
    {.inputs = "bool[2];bool[2]", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(search_sorted, kCases)
}  // namespace pinnace::testing
