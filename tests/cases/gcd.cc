// Cases of gcd: signs, zeros, the smallest value, broadcasting, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "i64[6]{12,-12,0,7,0,1};i64[6]{18,18,5,-7,0,100}", .expect = "i64[6]{6,6,5,7,0,1}", .why = "signs, zeros"},
    {.inputs = "i64[2]{-9223372036854775808,-9223372036854775808};i64[2]{0,6}",
     .expect = "i64[2]{-9223372036854775808,2}", .why = "the smallest value"},
    {.inputs = "i8[3]{-128,-128,-128};i8[3]{-128,64,0}", .expect = "i8[3]{-128,64,-128}", .why = "wraps"},
    {.inputs = "i32[2,1]{12,20};i32[3]{8,10,15}", .expect = "i32[2,3]{4,2,3,4,10,5}", .why = "broadcast"},
    {.inputs = "u8[2]{200,255};u8[]{150}", .expect = "u8[2]{50,15}", .why = "unsigned"},
    {.inputs = "i64[0,3];i64[3]", .expect = "i64[0,3]{}", .why = "empty"},
    {.inputs = "i64[2];i32[2]", .expect = "error", .why = "two types"},
    {.inputs = "f32[2];f32[2]", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(gcd, kCases)
}  // namespace pinnace::testing
