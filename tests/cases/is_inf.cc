// Cases of is_inf: signs, element types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[5]{inf,-inf,nan,0,3e38}", .expect = "bool[5]{1,1,0,0,0}", .why = "both signs"},
    {.inputs = "f32[2]{inf,-inf}", .attributes = "detect_negative=0", .expect = "bool[2]{1,0}", .why = "positive only"},
    {.inputs = "f32[2]{inf,-inf}", .attributes = "detect_positive=0", .expect = "bool[2]{0,1}", .why = "negative only"},
    {.inputs = "f32[2]{inf,-inf}", .attributes = "detect_positive=0, detect_negative=0", .expect = "bool[2]{0,0}",
     .why = "neither"},
    {.inputs = "f16[2]{inf,65504}", .expect = "bool[2]{1,0}", .why = "half"},
    {.inputs = "bf16[2]{-inf,1}", .expect = "bool[2]{1,0}", .why = "bfloat16"},
    {.inputs = "f64[2]{inf,1e300}", .expect = "bool[2]{1,0}", .why = "double"},
    {.inputs = "f32[]", .why = "scalar"},
    {.inputs = "f32[0,3]", .expect = "bool[0,3]{}", .why = "empty"},
    {.inputs = "i32{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(is_inf, kCases)
}  // namespace pinnace::testing
