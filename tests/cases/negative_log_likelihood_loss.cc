// Cases of negative_log_likelihood_loss: reductions, weights, ignored targets.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,3]{-1,-2,-3,-4,-5,-6};i64{0,2}", .expect = "f32[]{3.5}", .why = "mean"},
    {.inputs = "f32[2,3]{-1,-2,-3,-4,-5,-6};i64{0,2}", .attributes = "reduction=\"sum\"", .expect = "f32[]{7}",
     .why = "sum"},
    {.inputs = "f32[2,3]{-1,-2,-3,-4,-5,-6};i32{0,2}", .attributes = "reduction=\"none\"", .expect = "f32[2]{1,6}",
     .why = "none"},
    {.inputs = "f32[2,3]{-1,-2,-3,-4,-5,-6};i64{0,2};f32{2,9,0.5}", .expect = "f32[]{2}",
     .why = "the mean is by weight: (2 + 3) / 2.5"},
    {.inputs = "f32[2,3]{-1,-2,-3,-4,-5,-6};i64{0,-7}", .attributes = "ignore_index=-7", .expect = "f32[]{1}",
     .why = "an ignored target has no weight"},
    {.inputs = "f32[2,2]{-1,-2,nan,nan};i64{1,5};f32{3,2}", .attributes = "ignore_index=5, reduction=\"none\"",
     .expect = "f32[2]{4,0}", .why = "ignored beyond the classes, and NaN is not read"},
    {.inputs = "f64[1,2,3]{-1,-2,-3,-4,-5,-6};i64[1,3]{0,1,0}", .attributes = "reduction=\"none\"",
     .expect = "f64[1,3]{1,5,3}", .why = "more dimensions"},
    {.inputs = "f16[4,5,2,3];i64[4,2,3]{0,1,2,3,4,0,1,2,3,4,0,1,2,3,4,0,1,2,3,4,0,1,2,3}", .expect = "type f16[]",
     .why = "half"},
    {.inputs = "bf16[1,1]{-2};i64{0};bf16{0.5}", .attributes = "reduction=\"none\"", .expect = "bf16[1]{1}",
     .why = "bfloat16, size 1"},
    {.inputs = "f32[0,3];i64[0]{}", .expect = "f32[]{nan}", .why = "the mean of nothing"},
    {.inputs = "f32[0,3];i64[0]{}", .attributes = "reduction=\"sum\"", .expect = "f32[]{0}", .why = "nothing"},
    {.inputs = "f32[2,3];i64{0,3}", .expect = "error target 3 of place 1", .why = "outside"},
    {.inputs = "f32[2,3];i64{0,-1}", .expect = "error target -1", .why = "negative"},
    {.inputs = "f32[2,3];i64[2,1]{0,0}", .expect = "error must be [N,C,...]", .why = "ranks"},
    {.inputs = "f32[2,3];i64{0}", .expect = "error differ in size", .why = "batch"},
    {.inputs = "f32[2,3];i64{0,0};f32[2]", .expect = "error one element per channel, 3", .why = "weights"},
    {.inputs = "f32[2,3];i64{0,0}", .attributes = "reduction=\"max\"", .expect = "error reduction is 'max'",
     .why = "reduction"},
};
PINNACE_CASES(negative_log_likelihood_loss, kCases)
}  // namespace pinnace::testing
