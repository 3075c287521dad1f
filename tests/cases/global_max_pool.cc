// Cases of global_max_pool: ranks, element types, empty planes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,2,2,2]{1,2,3,6,-1,-2,-3,-6}", .expect = "f32[1,2,1,1]{6,-1}", .why = "two channels"},
    {.inputs = "f32[2,3]", .expect = "type f32[2,3]", .why = "no spatial dimension"},
    {.inputs = "f32[2,3,4,5,6]", .why = "three spatial dimensions"},
    {.inputs = "f32[1,1,3]{1,nan,2}", .expect = "f32[1,1,1]{nan}", .why = "NaN"},
    {.inputs = "f32[1,1,0]", .expect = "f32[1,1,1]{-inf}", .why = "of nothing"},
    {.inputs = "f32[0,2,3]", .expect = "f32[0,2,1]{}", .why = "empty batch"},
    {.inputs = "f16[1,4,7,7]", .why = "half"},
    {.inputs = "bf16[1,4,7,7]", .why = "bfloat16"},
    {.inputs = "f64[1,4,7]", .why = "double"},
    {.inputs = "u8[1,1,4]{scale 0.5, zero 10}{10,11,12,17}", .expect = "u8[1,1,1]{scale 0.5, zero 10}{17}", .why = "quantised"},
    {.inputs = "i8[2,6,5,7]{scale 0.5, zero 10}", .why = "quantised image"},
    {.inputs = "f32[3]", .expect = "error must be [N, C, ...]", .why = "rank 1"},
};
PINNACE_CASES(global_max_pool, kCases)
}  // namespace pinnace::testing
