// Cases of compress: short and long conditions, flat and along an axis.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[3,2]{1,2,3,4,5,6};bool{0,1,1}", .attributes = "axis=0", .expect = "f32[2,2]{3,4,5,6}",
     .why = "rows"},
    {.inputs = "f32[3,2]{1,2,3,4,5,6};bool{0,1}", .attributes = "axis=1", .expect = "f32[3,1]{2,4,6}",
     .why = "columns"},
    {.inputs = "f32[3,2]{1,2,3,4,5,6};bool{0,1,0,0,1}", .expect = "f32[2]{2,5}",
     .why = "flat; what is missing is false"},
    {.inputs = "i8[3]{1,2,3};bool{1}", .attributes = "axis=-1", .expect = "i8[1]{1}", .why = "short condition"},
    {.inputs = "bool{1,0,1};bool{1,1,0}", .expect = "bool{1,0}", .why = "bool"},
    {.inputs = "i64{1,2};bool{0,0}", .expect = "i64[0]{}", .why = "nothing chosen"},
    {.inputs = "f16[2,3,2];bool{1,0,1}", .attributes = "axis=1", .expect = "type f16[2,2,2]",
     .why = "half, inner axis"},
    {.inputs = "u8[2]{scale 0.5, zero 3}{4,5};bool{0,1}", .expect = "u8[1]{scale 0.5, zero 3}{5}", .why = "quantised"},
    {.inputs = "f32[2];bool{0,0,0}", .expect = "f32[0]{}", .why = "a longer condition that is false there"},
    {.inputs = "f32[2];bool{0,0,1}", .expect = "error beyond a dimension of size 2", .why = "true beyond the axis"},
    {.inputs = "f32[2];bool[1,1]{1}", .expect = "error must be a vector", .why = "condition"},
};
PINNACE_CASES(compress, kCases)
}  // namespace pinnace::testing
