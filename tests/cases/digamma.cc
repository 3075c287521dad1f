// Cases of digamma: special values, element types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 1e-6f};  // expected numbers are written to 8 digits
constexpr Case kCases[] = {
    {.inputs = "f32[8]{1,2,0.5,10,-0.5,-2,inf,nan}",
     .expect = "f32[8]{-0.57721566,0.42278434,-1.9635100,2.2517526,0.036489974,nan,inf,nan}", .tolerance = kF32,
     .why = "poles, infinity, NaN"},
    {.inputs = "f32[3]{0,-0,-inf}", .expect = "f32[3]{-inf,inf,nan}", .why = "zeros"},
    {.inputs = "f64[2]{1.4616321449683622,100}", .expect = "f64[2]{0,4.600161852738087}", .tolerance = {.abs = 1e-14f, .rel = 1e-14f},
     .why = "the root, and a large one"},
    {.inputs = "f16[3,5] in 0.1..0.9", .expect = "type f16[3,5]", .why = "half"},
    {.inputs = "bf16[7] in 0.1..0.9", .expect = "type bf16[7]", .why = "bfloat16"},
    {.inputs = "f32[] in 0.1..0.9", .expect = "type f32[]", .why = "scalar"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i32{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(digamma, kCases)
}  // namespace pinnace::testing
