// Cases of unsqueeze: axes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[3];i64{0}", .expect = "type f32[1,3]", .why = "front"},
    {.inputs = "f32[3];i64{-1}", .expect = "type f32[3,1]", .why = "end"},
    {.inputs = "f32[3,4];i64{3,0}", .expect = "type f32[1,3,4,1]", .why = "unordered"},
    {.inputs = "i64[]{5};i64{0}", .expect = "i64{5}", .why = "scalar to vector"},
    {.inputs = "bool[0];i64{1}", .expect = "bool[0,1]{}", .why = "empty"},
    {.inputs = "f16[2];i64[0]{}", .expect = "type f16[2]", .why = "none"},
    {.inputs = "i8[2]{scale 0.5, zero 3};i64{0}", .expect = "type i8[1,2]{scale 0.5, zero 3}", .why = "quantised"},
    {.inputs = "f32[3];i64{2}", .expect = "error outside rank", .why = "axis"},
    {.inputs = "f32[3];i64{0,0}", .expect = "error named twice", .why = "twice"},
    {.inputs = "f32[3];i64[1,1]{0}", .expect = "error must be a vector", .why = "axes"},
    {.inputs = "u2[3]{1,2,3};i64{0}", .expect = "u2[1,3]{1,2,3}", .why = "packed"},
};
PINNACE_CASES(unsqueeze, kCases)
}  // namespace pinnace::testing
