// Cases of split: equal and given sizes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[4]{1,2,3,4}", .outputs = 2, .expect = "f32[2]{1,2};f32[2]{3,4}", .why = "equal"},
    {.inputs = "f32[5]{1,2,3,4,5}", .attributes = "num_outputs=2", .outputs = 2, .expect = "f32[3]{1,2,3};f32[2]{4,5}",
     .why = "the last is smaller"},
    {.inputs = "f32[2,4]{1,2,3,4,5,6,7,8};i64{1,3}", .attributes = "axis=1", .outputs = 2,
     .expect = "f32[2,1]{1,5};f32[2,3]{2,3,4,6,7,8}", .why = "given"},
    {.inputs = "i8[3]{1,2,3};i64{0,3}", .attributes = "axis=-1", .outputs = 2, .expect = "i8[0]{};i8[3]{1,2,3}",
     .why = "an empty piece"},
    {.inputs = "f32[5]", .outputs = 4, .expect = "type f32[2];type f32[2];type f32[1];type f32[0]",
     .why = "nothing left for the last"},
    {.inputs = "bool{1,0}", .expect = "bool{1,0}", .why = "one piece"},
    {.inputs = "f16[0,2]", .outputs = 2, .expect = "f16[0,2]{};f16[0,2]{}", .why = "empty"},
    {.inputs = "u8[2]{scale 0.5, zero 3}{1,2}", .outputs = 2,
     .expect = "u8[1]{scale 0.5, zero 3}{1};u8[1]{scale 0.5, zero 3}{2}", .why = "quantised"},
    {.inputs = "f32[3];i64{1,1}", .outputs = 2, .expect = "error sum to 2", .why = "sum"},
    {.inputs = "f32[3];i64{4,-1}", .outputs = 2, .expect = "error is negative", .why = "negative"},
    {.inputs = "f32[3];i64{3}", .outputs = 2, .expect = "error there are 2 outputs", .why = "count"},
    {.inputs = "f32[3]", .attributes = "num_outputs=3", .outputs = 2, .expect = "error there are 2 outputs",
     .why = "count"},
    {.inputs = "f32[3]", .attributes = "axis=1", .outputs = 2, .expect = "error outside rank", .why = "axis"},
};
PINNACE_CASES(split, kCases)
}  // namespace pinnace::testing
