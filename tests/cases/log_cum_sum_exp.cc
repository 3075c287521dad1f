// Cases of log_cum_sum_exp: large values, infinities, NaN, axes, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 1e-6f};  // one rounding, and logarithms of the expected numbers written to 7 digits
constexpr Case kCases[] = {
    {.inputs = "f32[3]{0,0,0}", .expect = "f32[3]{0,0.6931472,1.0986123}", .tolerance = kF32, .why = "log 1, 2, 3"},
    {.inputs = "f32[3]{1000,1000,-1000}", .expect = "f32[3]{1000,1000.6931,1000.6931}", .tolerance = kF32,
     .why = "nothing overflows"},
    {.inputs = "f32[4]{-inf,-inf,2,inf}", .expect = "f32[4]{-inf,-inf,2,inf}", .why = "infinities"},
    {.inputs = "f32[3]{1,nan,inf}", .expect = "f32[3]{1,nan,nan}", .why = "NaN stays"},
    {.inputs = "f64[2,2]{0,1,0,1}", .expect = "f64[2,2]{0,1,0.6931471805599453,1.6931471805599454}",
     .tolerance = {.rel = 1e-14f}, .why = "first axis"},
    {.inputs = "f16[2,3]{0,0,0,1,1,1}", .attributes = "axis=-1",
     .expect = "f16[2,3]{0,0.693359375,1.0986328125,1,1.693359375,2.099609375}", .tolerance = {.rel = 1e-3f},
     .why = "half, last axis"},
    {.inputs = "bf16[2,3,4]", .attributes = "axis=1", .expect = "type bf16[2,3,4]", .why = "inner axis"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "f32[2]", .attributes = "axis=2", .expect = "error axis 2 is outside", .why = "axis"},
    {.inputs = "i64[2]", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(log_cum_sum_exp, kCases)
}  // namespace pinnace::testing
