// Cases of size: counts.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,3,4]", .expect = "i64[]{24}", .why = "three dimensions"},
    {.inputs = "bool[]{1}", .expect = "i64[]{1}", .why = "scalar"},
    {.inputs = "f16[0,5]", .expect = "i64[]{0}", .why = "empty"},
    {.inputs = "i8[3]{scale 0.5, zero 3}", .expect = "i64[]{3}", .why = "quantised"},
};
PINNACE_CASES(size, kCases)
}  // namespace pinnace::testing
