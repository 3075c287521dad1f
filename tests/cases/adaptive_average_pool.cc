// Cases of adaptive_average_pool: bins that overlap, more bins than elements, quantised means.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,5]{1,2,3,4,5}", .attributes = "output_size=[2]", .expect = "f32[1,1,2]{2,4}", .why = "bins share the middle"},
    {.inputs = "f32[1,1,2]{1,3}", .attributes = "output_size=[3]", .expect = "f32[1,1,3]{1,2,3}", .why = "more bins than elements"},
    {.inputs = "f32[2,3,7,9]", .attributes = "output_size=[1,1]", .tolerance = kF32, .why = "global"},
    {.inputs = "f32[2,3,7,9]", .attributes = "output_size=[7,7]", .tolerance = kF32, .why = "classifier head"},
    {.inputs = "f32[2,5,9,4]", .attributes = "output_size=[4,10]", .tolerance = kF32, .why = "bins that overlap, and more bins than elements"},
    {.inputs = "f32[2,3,7]", .attributes = "output_size=[3]", .tolerance = kF32, .why = "one dimension"},
    {.inputs = "f32[1,2,5,6,7]", .attributes = "output_size=[2,3,4]", .tolerance = kF32, .why = "three dimensions"},
    {.inputs = "f16[1,2,6,6]", .attributes = "output_size=[3,3]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "f32[1,1,5]{1,2,3,4,5};i64{2}", .expect = "f32[1,1,2]{2,4}", .why = "sizes as an input"},
    {.inputs = "f32[2,5,9,4];i64{4,10}", .tolerance = kF32, .why = "two sizes as an input"},
    {.inputs = "f32[2,3,4,5];i64{1,1}", .tolerance = kF32, .why = "global by sizes as an input"},
    {.inputs = "f32[1,1,4];i64{0}", .expect = "f32[1,1,0]{}", .why = "no bins, by an input"},
    {.inputs = "f32[1,1,4]", .attributes = "output_size=[0]", .expect = "f32[1,1,0]{}", .why = "no bins"},
    {.inputs = "f32[1,1,0]", .attributes = "output_size=[2]", .expect = "f32[1,1,2]{nan,nan}", .why = "mean of nothing"},
    {.inputs = "i8[1,1,4]{scale 0.5, zero 1}{1,3,5,6}", .attributes = "output_size=[2]", .expect = "i8[1,1,2]{scale 0.5, zero 1}{2,5}", .output_quantization = "scale 0.5, zero 1", .why = "4.5 steps become 4: half to even"},
    {.inputs = "f32[1,1,4]", .attributes = "output_size=[1,1]", .expect = "error must have 1 entries", .why = "rank"},
    {.inputs = "f32[1,1,4]", .attributes = "output_size=[-1]", .expect = "error is outside", .why = "negative"},
    {.inputs = "f32[1,1,4];i64{1,1}", .expect = "error sizes has 2 elements, must have 1", .why = "rank by an input"},
    {.inputs = "f32[1,1,4];i64{-1}", .expect = "error size -1 is outside", .why = "negative by an input"},
    {.inputs = "f32[1,1,4];i64{2}", .attributes = "output_size=[2]", .expect = "error is given both", .why = "two answers"},
    {.inputs = "f32[1,1,4]", .expect = "error must have 1 entries", .why = "no answer"},
    {.inputs = "f16[1,1,4]", .attributes = "output_size=[2]", .expect = "error declared quantised", .output_quantization = "scale 0.5, zero 1", .why = "a float result has no scale"},
};
PINNACE_CASES(adaptive_average_pool, kCases)
}  // namespace pinnace::testing
