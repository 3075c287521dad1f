// Cases of is_nan: special values, element types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[4]{inf,nan,-nan,0}", .expect = "bool[4]{0,1,1,0}", .why = "NaN of both signs"},
    {.inputs = "f16[2]{nan,1}", .expect = "bool[2]{1,0}", .why = "half"},
    {.inputs = "bf16[2]{nan,1}", .expect = "bool[2]{1,0}", .why = "bfloat16"},
    {.inputs = "f64[2]{nan,1}", .expect = "bool[2]{1,0}", .why = "double"},
    {.inputs = "f32[]", .why = "scalar"},
    {.inputs = "f32[0,3]", .expect = "bool[0,3]{}", .why = "empty"},
    {.inputs = "i32{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(is_nan, kCases)
}  // namespace pinnace::testing
