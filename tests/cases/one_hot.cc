// Cases of one_hot: axes, indices outside, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "i64{1,0};i64[]{3};f32{0,1}", .expect = "f32[2,3]{0,1,0,1,0,0}", .why = "default axis"},
    {.inputs = "i64{1,0};i64{3};f32{0,1}", .attributes = "axis=0", .expect = "f32[3,2]{0,1,1,0,0,0}",
     .why = "first axis, depth as a vector"},
    {.inputs = "i32{-1,3,-4};i32[]{3};i8{2,5}", .expect = "i8[3,3]{2,2,5,2,2,2,2,2,2}",
     .why = "from the end; outside: off"},
    {.inputs = "f32[3]{1.9,nan,-1.5};f32[]{2};bool{0,1}", .expect = "bool[3,2]{0,1,0,0,0,1}",
     .why = "fractions are cut off, NaN is outside"},
    {.inputs = "u64{18446744073709551615};i64[]{2};f32{0,1}", .expect = "f32[1,2]{0,0}",
     .why = "beyond i64 is outside"},
    {.inputs = "i64[]{1};i64[]{2};f16{0,1}", .expect = "f16[2]{0,1}", .why = "scalar index"},
    {.inputs = "i64[0]{};i64[]{2};f32{0,1}", .expect = "f32[0,2]{}", .why = "no indices"},
    {.inputs = "i64{1};i64[]{0};f32{0,1}", .expect = "f32[1,0]{}", .why = "depth 0"},
    {.inputs = "i64{1};i64[]{-1};f32{0,1}", .expect = "error negative", .why = "depth"},
    {.inputs = "i64{1};f32[]{inf};f32{0,1}", .expect = "error not a size", .why = "depth"},
    {.inputs = "i64{1};i64[]{2};f32{0,1,2}", .expect = "error must be [2]", .why = "values"},
    {.inputs = "i64{1};i64{2,3};f32{0,1}", .expect = "error must be one number", .why = "depth"},
    {.inputs = "i64{1};u16[]{3};f32{0,1}", .expect = "f32[1,3]{0,1,0}", .why = "an unsigned depth"},
    {.inputs = "i64{1};u64[]{18446744073709551615};f32{0,1}", .expect = "error does not fit int64", .why = "a depth that is no size"},
};
PINNACE_CASES(one_hot, kCases)
}  // namespace pinnace::testing
