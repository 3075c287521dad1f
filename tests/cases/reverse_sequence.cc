// Cases of reverse_sequence: lengths and axes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[4,2]{0,4,1,5,2,6,3,7};i64{4,2}", .expect = "f32[4,2]{3,5,2,4,1,6,0,7}", .why = "time first"},
    {.inputs = "f32[2,4]{0,1,2,3,4,5,6,7};i64{1,3}", .attributes = "batch_axis=0, time_axis=1",
     .expect = "f32[2,4]{0,1,2,3,6,5,4,7}", .why = "batch first"},
    {.inputs = "i8[3,1]{1,2,3};i64{0}", .expect = "i8[3,1]{1,2,3}", .why = "length 0"},
    {.inputs = "f16[3,2,5];i64{3,1}", .expect = "type f16[3,2,5]", .why = "slices"},
    {.inputs = "bool[2,1]{1,0};i32{2}", .expect = "bool[2,1]{0,1}", .why = "bool, i32 lengths"},
    {.inputs = "f32[2,3,4];i64{4,1}", .attributes = "batch_axis=0, time_axis=2", .expect = "type f32[2,3,4]",
     .why = "other axes"},
    {.inputs = "f32[0,2];i64{0,0}", .expect = "f32[0,2]{}", .why = "empty"},
    {.inputs = "u8[2,1]{scale 0.5, zero 3}{4,5};i64{2}", .expect = "u8[2,1]{scale 0.5, zero 3}{5,4}",
     .why = "quantised"},
    {.inputs = "f32[2,1];i64{3}", .expect = "error outside [0,2]", .why = "too long"},
    {.inputs = "f32[2,1];i64{-1}", .expect = "error outside [0,2]", .why = "negative"},
    {.inputs = "f32[2,2];i64{1}", .expect = "error do not fit", .why = "batch"},
    {.inputs = "f32[2,2];i64{1,1}", .attributes = "batch_axis=0", .expect = "error both 0", .why = "axes"},
};
PINNACE_CASES(reverse_sequence, kCases)
}  // namespace pinnace::testing
