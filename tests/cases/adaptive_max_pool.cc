// Cases of adaptive_max_pool: bins that overlap, more bins than elements, indices, special values.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,5]{1,2,9,4,5}", .attributes = "output_size=[2]", .outputs = 2, .expect = "f32[1,1,2]{9,9};i64[1,1,2]{2,2}", .why = "bins share the middle"},
    {.inputs = "f32[1,1,2]{1,3}", .attributes = "output_size=[3]", .outputs = 2, .expect = "f32[1,1,3]{1,3,3};i64[1,1,3]{0,1,1}", .why = "more bins than elements"},
    {.inputs = "f32[1,2,2,2]{1,2,4,3,5,5,5,5}", .attributes = "output_size=[1,1]", .outputs = 2, .expect = "f32[1,2,1,1]{4,5};i64[1,2,1,1]{2,0}", .why = "indices through one plane; first of equals"},
    {.inputs = "f32[1,1,4]{1,nan,nan,2}", .attributes = "output_size=[1]", .outputs = 2, .expect = "f32[1,1,1]{nan};i64[1,1,1]{2}", .why = "NaN wins, the last one"},
    {.inputs = "f32[1,1,2]{-inf,-inf}", .attributes = "output_size=[1]", .outputs = 2, .expect = "f32[1,1,1]{-inf};i64[1,1,1]{0}", .why = "-inf is found"},
    {.inputs = "f32[2,3,7,9]", .attributes = "output_size=[7,7]", .outputs = 2, .why = "two dimensions"},
    {.inputs = "f32[2,5,7,9]", .attributes = "output_size=[4,12]", .why = "the largest alone; a block of channels is not full"},
    {.inputs = "f32[1,1,2,3]{1,nan,2,4,-inf,-1}", .attributes = "output_size=[2,2]", .expect = "f32[1,1,2,2]{nan,nan,4,-1}", .why = "NaN and -inf in bins that share a column"},
    {.inputs = "f32[2,3,7]", .attributes = "output_size=[3]", .why = "one dimension, the largest alone"},
    {.inputs = "f32[1,2,5,6]", .attributes = "output_size=[1,1]", .why = "global"},
    {.inputs = "u8[1,5,6,7]{scale 0.5, zero 1}", .attributes = "output_size=[4,3]", .why = "quantised, two dimensions"},
    {.inputs = "f32[1,2,5,6,7]", .attributes = "output_size=[2,3,4]", .outputs = 2, .why = "three dimensions"},
    {.inputs = "f16[1,2,6,6]", .attributes = "output_size=[4,3]", .outputs = 2, .why = "half"},
    {.inputs = "bf16[1,2,6,6]", .attributes = "output_size=[4,3]", .why = "bfloat16"},
    {.inputs = "f64[1,2,6]", .attributes = "output_size=[4]", .why = "double"},
    {.inputs = "u8[1,1,3]{0,255,7}", .attributes = "output_size=[2]", .expect = "u8[1,1,2]{255,255}", .why = "plain unsigned"},
    {.inputs = "i8[1,1,4]{scale 0.5, zero 1}{1,3,5,6}", .attributes = "output_size=[2]", .expect = "i8[1,1,2]{scale 0.5, zero 1}{3,6}", .why = "quantised: integers and parameters stay"},
    {.inputs = "i8[1,1,2]{scale 0.5, zero 3}{1,2}", .attributes = "output_size=[1]", .expect = "error is kept", .output_quantization = "scale 1, zero 3", .why = "no requantisation"},
    {.inputs = "f32[1,1,4]", .attributes = "output_size=[0]", .outputs = 2, .expect = "f32[1,1,0]{};i64[1,1,0]{}", .why = "no bins"},
    {.inputs = "f32[1,1,0]", .attributes = "output_size=[2]", .outputs = 2, .expect = "f32[1,1,2]{-inf,-inf};i64[1,1,2]{-1,-1}", .why = "the largest of nothing"},
    {.inputs = "f32[0,3,4,4]", .attributes = "output_size=[2,2]", .expect = "f32[0,3,2,2]{}", .why = "empty batch"},
    {.inputs = "f32[1,1,4]", .attributes = "output_size=[1,1]", .expect = "error must have 1 entries", .why = "rank"},
    {.inputs = "f32[1,1,4]", .attributes = "output_size=[-1]", .expect = "error is outside", .why = "negative"},
};
PINNACE_CASES(adaptive_max_pool, kCases)
}  // namespace pinnace::testing
