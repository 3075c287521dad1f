// Cases of center_crop_pad: odd and even differences, axes, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[5]{1,2,3,4,5};i64{3}", .expect = "f32[3]{2,3,4}", .why = "crop, even"},
    {.inputs = "f32[5]{1,2,3,4,5};i64{2}", .expect = "f32[2]{2,3}", .why = "crop, odd: one more at the end"},
    {.inputs = "f32[2]{1,2};i32{4}", .expect = "f32[4]{0,1,2,0}", .why = "pad, even"},
    {.inputs = "f32[2]{1,2};i64{5}", .expect = "f32[5]{0,1,2,0,0}", .why = "pad, odd: one more at the end"},
    {.inputs = "i32[3,2]{1,2,3,4,5,6};i64{1,4}", .expect = "i32[1,4]{0,3,4,0}", .why = "both"},
    {.inputs = "u8[2,3,1]{1,2,3,4,5,6};i64{1,2}", .attributes = "axes=[1,0]", .expect = "u8[2,1,1]{2,5}",
     .why = "axes in another order"},
    {.inputs = "f64[2,3]{1,2,3,4,5,6};i64{1}", .attributes = "axes=[-1]", .expect = "f64[2,1]{2,5}",
     .why = "negative axis"},
    {.inputs = "bool[2]{1,1};i64{3}", .expect = "bool[3]{1,1,0}", .why = "bool"},
    {.inputs = "i8[2]{scale 0.5, zero 3}{7,9};i64{4}", .expect = "i8[4]{scale 0.5, zero 3}{3,7,9,3}",
     .why = "quantised: the zero point"},
    {.inputs = "f16[2,3];i64{2,3}", .expect = "type f16[2,3]", .why = "nothing to do"},
    {.inputs = "f32[0];i64{2}", .expect = "f32[2]{0,0}", .why = "from nothing"},
    {.inputs = "f32[2,3];i64{0,3}", .expect = "f32[0,3]{}", .why = "to nothing"},
    {.inputs = "f32[]{5};i64[0]{}", .expect = "f32[]{5}", .why = "scalar"},
    {.inputs = "f32[2,3];i64{1}", .expect = "error 1 sizes for 2 axes", .why = "too few"},
    {.inputs = "f32[2,3];i64{1,-1}", .expect = "error size -1 of axis 1", .why = "negative"},
    {.inputs = "f32[2,3];i64{1,1}", .attributes = "axes=[0,2]", .expect = "error axis 2", .why = "axis"},
};
PINNACE_CASES(center_crop_pad, kCases)
}  // namespace pinnace::testing
