// Cases of flatten: every axis.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,3,4]", .expect = "type f32[2,12]", .why = "default"},
    {.inputs = "f32[2,3,4]", .attributes = "axis=0", .expect = "type f32[1,24]", .why = "one row"},
    {.inputs = "f32[2,3,4]", .attributes = "axis=3", .expect = "type f32[24,1]", .why = "one column"},
    {.inputs = "f32[2,3,4]", .attributes = "axis=-1", .expect = "type f32[6,4]", .why = "negative"},
    {.inputs = "bool[]{1}", .attributes = "axis=0", .expect = "bool[1,1]{1}", .why = "scalar"},
    {.inputs = "i8[2,2]{scale 0.5, zero 3}", .expect = "type i8[2,2]{scale 0.5, zero 3}", .why = "quantised"},
    {.inputs = "f16[0,3]", .expect = "f16[0,3]{}", .why = "empty"},
    {.inputs = "f32[2]", .attributes = "axis=2", .expect = "error outside", .why = "axis"},
    {.inputs = "f6e2m3[1,3]{1,2,3}", .expect = "f6e2m3[1,3]{1,2,3}", .why = "packed"},
};
PINNACE_CASES(flatten, kCases)
}  // namespace pinnace::testing
