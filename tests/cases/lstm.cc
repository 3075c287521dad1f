// Cases of lstm: directions, layouts, lengths, activations, refusals.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[5,2,3];f32[1,16,3];f32[1,16,4];f32[1,32];none;f32[1,2,4];f32[1,2,4]", .attributes = "hidden_size=4", .outputs = 3, .tolerance = kF32, .why = "forward"},
    {.inputs = "f32[5,2,3];f32[1,16,3];f32[1,16,4]", .outputs = 3, .tolerance = kF32, .why = "only what is required"},
    {.inputs = "f32[5,2,3];f32[1,16,3];f32[1,16,4];f32[1,32];none;f32[1,2,4];f32[1,2,4]", .attributes = "direction=\"reverse\"", .outputs = 3, .tolerance = kF32, .why = "backwards"},
    {.inputs = "f32[5,2,3];f32[2,16,3];f32[2,16,4];f32[2,32];none;f32[2,2,4];f32[2,2,4]", .attributes = "direction=\"bidirectional\"", .outputs = 3, .tolerance = kF32, .why = "both directions"},
    {.inputs = "f32[2,5,3];f32[2,16,3];f32[2,16,4];f32[2,32];none;f32[2,2,4];f32[2,2,4]", .attributes = "direction=\"bidirectional\", layout=1", .outputs = 3, .tolerance = kF32, .why = "batch first"},
    {.inputs = "f32[5,2,3];f32[2,16,3];f32[2,16,4];f32[2,32];i32{5,0};f32[2,2,4];f32[2,2,4]", .attributes = "direction=\"bidirectional\"", .outputs = 3, .tolerance = kF32, .why = "lengths, one of them 0"},
    {.inputs = "f32[5,2,3];f32[1,16,3];f32[1,16,4];f32[1,32];i32{2,4};f32[1,2,4];f32[1,2,4]", .attributes = "direction=\"reverse\", clip=0.5", .outputs = 3, .tolerance = kF32, .why = "short sequences backwards; clip"},
    {.inputs = "f16[5,2,3];f16[1,16,3];f16[1,16,4];f16[1,32];none;f16[1,2,4];f16[1,2,4]", .tolerance = {.abs = 2e-3f}, .why = "half"},
    {.inputs = "bf16[5,2,3];bf16[1,16,3];bf16[1,16,4];bf16[1,32];none;bf16[1,2,4];bf16[1,2,4]", .tolerance = {.abs = 2e-2f}, .why = "bfloat16"},
    {.inputs = "f64[5,2,3];f64[1,16,3];f64[1,16,4];f64[1,32];none;f64[1,2,4];f64[1,2,4]", .tolerance = {.abs = 1e-13f}, .why = "double"},
    {.inputs = "f32[0,2,3];f32[1,16,3];f32[1,16,4]", .outputs = 2, .expect = "f32[0,1,2,4]{};f32[1,2,4]{0,0,0,0,0,0,0,0}", .why = "no time"},
    {.inputs = "f32[1,1,1]{1};f32[1,4,1]{0,0,0,1};f32[1,4,1]{0,0,0,0};none;none;f32[1,1,1]{0};f32[1,1,1]{4}", .attributes = "activations=[\"sigmoid\",\"affine\",\"affine\"]", .outputs = 3,
     .expect = "f32[1,1,1,1]{1.25};f32[1,1,1]{1.25};f32[1,1,1]{2.5}", .why = "by hand: gates 0.5, c = 2 + 0.5"},
    {.inputs = "f32[1,1,1]{1};f32[1,4,1]{0,0,0,1};f32[1,4,1]{0,0,0,0};none;none;f32[1,1,1]{0};f32[1,1,1]{4};f32[1,3]{100,0,0}", .attributes = "activations=[\"sigmoid\",\"affine\",\"affine\"], input_forget=1", .outputs = 3,
     .expect = "f32[1,1,1,1]{0.5};f32[1,1,1]{0.5};f32[1,1,1]{1}", .why = "peephole opens the input gate, which closes the forget gate"},
    {.inputs = "f32[1,1,1]{0};f32[1,4,1]{0,0,0,0};f32[1,4,1]{0,0,0,0};none;none;none;f32[1,1,1]{inf}", .outputs = 3,
     .expect = "f32[1,1,1,1]{0.5};f32[1,1,1]{0.5};f32[1,1,1]{inf}", .why = "an infinite cell without peepholes"},
    {.inputs = "f32[5,2,3];f32[2,16,3];f32[2,16,4];f32[2,32];none;none;none;f32[2,12]", .attributes = "direction=\"bidirectional\"", .outputs = 3, .tolerance = kF32, .why = "peepholes"},
    {.inputs = "f32[5,2,3];f32[1,16,3];f32[1,16,2];f32[1,32];none;f32[1,2,2];f32[1,2,4];none;f32[1,2,4]", .attributes = "hidden_size=4", .outputs = 3, .tolerance = kF32, .why = "a projection"},
    {.inputs = "f32[5,2,3];f32[2,80,3];f32[2,80,19] x0.2;f32[2,160];i32{5,2};f32[2,2,19];f32[2,2,20];f32[2,60];f32[2,19,20] x0.3", .attributes = "direction=\"bidirectional\"", .outputs = 3, .tolerance = {.rel = 4e-6f}, .why = "a projection of both directions, lengths, peepholes; blocks that are not whole"},
    {.inputs = "f32[2,1,3];f32[1,80,3];f32[1,80,35];none;none;none;none;none;f32[1,35,20]", .attributes = "direction=\"reverse\"", .outputs = 3, .tolerance = kF32, .why = "a projection wider than the cell, backwards, few rows"},
    {.inputs = "f32[3,5,3];f32[1,16,3];f32[1,16,2];none;i32{3,0,1};f32[3,1,2];f32[3,1,4];none;f32[1,2,4]", .attributes = "layout=1", .outputs = 3, .tolerance = kF32, .why = "a projection, batch first, lengths, one of them 0"},
    {.inputs = "f16[5,2,3];f16[1,16,3];f16[1,16,2];none;none;none;none;none;f16[1,2,4]", .tolerance = {.abs = 2e-3f}, .why = "a projection of half"},
    {.inputs = "f32[1,1,1]{1};f32[1,4,1]{0,0,0,1};f32[1,4,2]{0,0,0,0,0,0,0,0};none;none;none;f32[1,1,1]{4};none;f32[1,2,1]{2,-4}", .attributes = "activations=[\"sigmoid\",\"affine\",\"affine\"]", .outputs = 3,
     .expect = "f32[1,1,1,2]{2.5,-5};f32[1,1,2]{2.5,-5};f32[1,1,1]{2.5}", .why = "by hand: 1.25 times 2 and -4"},
    {.inputs = "f32[5,2,3];f32[1,16,3];f32[1,16,4];none;none;none;none;none;f32[1,2,4]", .expect = "error projection is float32[1,2,4], must be float32[1,4,4]", .why = "r of another width than the projection"},
    {.inputs = "f32[5,2,3];f32[1,16,3];f32[1,16,2];none;none;none;none;none;f32[2,4]", .expect = "error projection is float32[2,4], must have rank 3", .why = "a projection without directions"},
    {.inputs = "f32[5,2,3];f32[1,16,3];f32[1,16,4];f32[1,32];i32{6,1};f32[1,2,4];f32[1,2,4]", .expect = "error sequence_lens[0] is 6", .why = "a length beyond T"},
    {.inputs = "f32[5,2,3];f32[1,16,3];f32[1,16,4];f32[1,32];none;f32[1,2,4];f32[1,2,4]", .attributes = "hidden_size=5", .expect = "error hidden_size is 5", .why = "hidden_size"},
    {.inputs = "f32[5,2,3];f32[1,16,3];f32[1,16,4];f32[1,32];none;f32[1,2,4];f32[1,2,4]", .attributes = "direction=\"sideways\"", .expect = "error is not one of forward", .why = "direction"},
    {.inputs = "f32[5,2,3];f32[1,16,3];f32[1,16,4];f32[1,32];none;f32[1,2,4];f32[1,2,4]", .attributes = "activations=[\"cube\"]", .expect = "error activation", .why = "activations"},
};
PINNACE_CASES(lstm, kCases)
}  // namespace pinnace::testing
