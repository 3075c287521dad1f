// Cases of trilu: diagonals.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[3,3]{1,2,3,4,5,6,7,8,9}", .expect = "f32[3,3]{1,2,3,0,5,6,0,0,9}", .why = "upper"},
    {.inputs = "f32[3,3]{1,2,3,4,5,6,7,8,9}", .attributes = "upper=0", .expect = "f32[3,3]{1,0,0,4,5,0,7,8,9}",
     .why = "lower"},
    {.inputs = "f32[2,3]{1,2,3,4,5,6};i64[]{1}", .expect = "f32[2,3]{0,2,3,0,0,6}", .why = "above"},
    {.inputs = "f32[2,3]{1,2,3,4,5,6};i64{-1}", .attributes = "upper=0", .expect = "f32[2,3]{0,0,0,4,0,0}",
     .why = "below"},
    {.inputs = "i8[2,2,2]{1,2,3,4,5,6,7,8}", .expect = "i8[2,2,2]{1,2,0,4,5,6,0,8}", .why = "batch"},
    {.inputs = "bool[2,2]{1,1,1,1}", .expect = "bool[2,2]{1,1,0,1}", .why = "bool"},
    {.inputs = "f16[2,2];i64[]{9}", .attributes = "upper=0", .expect = "type f16[2,2]", .why = "all kept"},
    {.inputs = "f32[2,2]{1,2,3,4};i64[]{9223372036854775807}", .expect = "f32[2,2]{0,0,0,0}", .why = "none kept"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "u8[2,2]{scale 0.5, zero 3}{1,2,4,5}", .expect = "u8[2,2]{scale 0.5, zero 3}{1,2,3,5}",
     .why = "quantised: the zero point"},
    {.inputs = "f32[2]", .expect = "error two dimensions", .why = "rank"},
    {.inputs = "f32[2,2];i64{1,2}", .expect = "error must be one number", .why = "k"},
};
PINNACE_CASES(trilu, kCases)
}  // namespace pinnace::testing
