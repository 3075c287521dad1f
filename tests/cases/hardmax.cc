// Cases of hardmax: axes, ties, special values.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,3]{1,3,2,5,5,1}", .expect = "f32[2,3]{0,1,0,1,0,0}", .why = "the first of equals"},
    {.inputs = "f32[2,2]{1,3,2,1}", .attributes = "axis=0", .expect = "f32[2,2]{0,1,1,0}", .why = "other axis"},
    {.inputs = "f32[3]{1,nan,inf}", .expect = "f32[3]{0,1,0}", .why = "NaN is largest"},
    {.inputs = "f32[2]{-inf,-inf}", .expect = "f32[2]{1,0}", .why = "-inf only"},
    {.inputs = "f16[4,5,6]", .attributes = "axis=1", .why = "half"},
    {.inputs = "bf16[4,5]", .why = "bfloat16"},
    {.inputs = "f64[4,5]", .why = "double"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "f32[]", .expect = "error is outside rank 0", .why = "scalar"},
};
PINNACE_CASES(hardmax, kCases)
}  // namespace pinnace::testing
