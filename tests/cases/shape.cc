// Cases of shape: start and end.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,3,4]", .expect = "i64{2,3,4}", .why = "all"},
    {.inputs = "bool[2,3,4]", .attributes = "start=1", .expect = "i64{3,4}", .why = "start"},
    {.inputs = "f32[2,3,4]", .attributes = "start=-2, end=-1", .expect = "i64{3}", .why = "negative"},
    {.inputs = "f32[2,3,4]", .attributes = "start=5", .expect = "i64[0]{}", .why = "beyond"},
    {.inputs = "f32[2,3,4]", .attributes = "start=2, end=1", .expect = "i64[0]{}", .why = "crossed"},
    {.inputs = "f32[2,3,4]", .attributes = "start=-9, end=9", .expect = "i64{2,3,4}", .why = "cut to the rank"},
    {.inputs = "f32[]", .expect = "i64[0]{}", .why = "scalar"},
    {.inputs = "f16[0,5]", .expect = "i64{0,5}", .why = "empty"},
    {.inputs = "i8[3]{scale 0.5, zero 3}", .expect = "i64{3}", .why = "quantised"},
};
PINNACE_CASES(shape, kCases)
}  // namespace pinnace::testing
