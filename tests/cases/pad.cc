// Cases of pad: modes, negative pads, axes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[3]{1,2,3};i64{1,2}", .expect = "f32[6]{0,1,2,3,0,0}", .why = "constant 0"},
    {.inputs = "f32[3]{1,2,3};i64{1,2};f32[]{9}", .expect = "f32[6]{9,1,2,3,9,9}", .why = "constant 9"},
    {.inputs = "f32[3]{1,2,3};i64{1,2}", .attributes = "mode=\"edge\"", .expect = "f32[6]{1,1,2,3,3,3}", .why = "edge"},
    {.inputs = "f32[3]{1,2,3};i64{2,2}", .attributes = "mode=\"reflect\"", .expect = "f32[7]{3,2,1,2,3,2,1}",
     .why = "reflect"},
    {.inputs = "f32[3]{1,2,3};i64{5,3}", .attributes = "mode=\"reflect\"", .expect = "f32[11]{2,1,2,3,2,1,2,3,2,1,2}",
     .why = "reflects several times"},
    {.inputs = "f32[1]{4};i64{2,1}", .attributes = "mode=\"reflect\"", .expect = "f32[4]{4,4,4,4}",
     .why = "one element"},
    {.inputs = "f32[3]{1,2,3};i64{4,2}", .attributes = "mode=\"wrap\"", .expect = "f32[9]{3,1,2,3,1,2,3,1,2}",
     .why = "wrap"},
    {.inputs = "f32[4]{1,2,3,4};i64{-1,-2}", .expect = "f32[1]{2}", .why = "both ends cut"},
    {.inputs = "f32[4]{1,2,3,4};i64{-1,2}", .attributes = "mode=\"reflect\"", .expect = "f32[5]{2,3,4,3,2}",
     .why = "one end cut, the other reflected"},
    {.inputs = "f32[4]{1,2,3,4};i64{-5,1}", .expect = "f32[0]{}", .why = "all cut"},
    {.inputs = "f32[2,2]{1,2,3,4};i64{1,0,0,1}", .expect = "f32[3,3]{0,0,0,1,2,0,3,4,0}", .why = "two dimensions"},
    {.inputs = "f32[2,2]{1,2,3,4};i64{1,1};none;i64{-1}", .expect = "f32[2,4]{0,1,2,0,0,3,4,0}", .why = "one axis"},
    {.inputs = "f32[2,2]{1,2,3,4};i64{0,1,1,0};none;i32{1,0}", .attributes = "mode=\"edge\"",
     .expect = "f32[3,3]{1,2,2,1,2,2,3,4,4}", .why = "axes in another order"},
    {.inputs = "bool{1};i64{1,0};bool[]{1}", .expect = "bool{1,1}", .why = "bool"},
    {.inputs = "i8[2]{scale 0.5, zero 3}{1,2};i64{1,0}", .expect = "i8[3]{scale 0.5, zero 3}{3,1,2}",
     .why = "quantised: the zero point"},
    {.inputs = "f16[2,3,4];i64{0,1,2,3,0,1}", .expect = "type f16[5,4,7]", .why = "half, three dimensions"},
    {.inputs = "f32[0,2];i64{1,0,0,0}", .expect = "f32[1,2]{0,0}", .why = "an empty axis"},
    {.inputs = "f32[]{3};i64[0]{}", .expect = "f32[]{3}", .why = "scalar"},
    {.inputs = "i64[2]{1,2};i64{1,1};i64{-5}", .expect = "i64{-5,1,2,-5}", .why = "i64, value as a vector"},
    {.inputs = "f32[0];i64{1,0}", .attributes = "mode=\"edge\"", .expect = "error nothing to repeat",
     .why = "empty edge"},
    {.inputs = "f32[3];i64{-2,-2}", .expect = "error cut more", .why = "too much"},
    {.inputs = "f32[3];i64{1,2,3}", .expect = "error must have 2", .why = "length"},
    {.inputs = "f32[3];i64{9223372036854775807,9223372036854775807}", .expect = "error is beyond", .why = "overflow"},
    {.inputs = "f32[3];i64{4611686018427387904,0}", .expect = "error is beyond", .why = "overflow"},
    {.inputs = "f32[3];i64{1,1};none;i64{1}", .expect = "error outside rank", .why = "axis"},
    {.inputs = "f32[3];i64{1,1}", .attributes = "mode=\"mirror\"", .expect = "error must be constant", .why = "mode"},
    {.inputs = "f32[3];i64{1,1};f16[]{1}", .expect = "error must be f32", .why = "value type"},
};
PINNACE_CASES(pad, kCases)
}  // namespace pinnace::testing
