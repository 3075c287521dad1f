// Cases of rotary_embedding: layouts, partial and interleaved rotation, positions.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,1,2]{1,2};f32[1,1,1]{0};f32[1,1,1]{1}", .expect = "f32[1,1,1,2]{-2,1}", .why = "a quarter turn"},
    {.inputs = "f32[1,1,1,6]{1,2,3,4,5,6};f32[1,1,2]{0,0};f32[1,1,2]{1,1}", .attributes = "rotary_embedding_dim=4", .expect = "f32[1,1,1,6]{-3,-4,1,2,5,6}", .why = "halves; the rest stays"},
    {.inputs = "f32[1,1,1,4]{1,2,3,4};f32[1,1,2]{0,0};f32[1,1,2]{1,1}", .attributes = "interleaved=1", .expect = "f32[1,1,1,4]{-2,1,-4,3}", .why = "neighbours"},
    {.inputs = "f32[2,3,4,8];f32[10,4];f32[10,4];i64[2,4]{0,1,2,3,9,8,7,6}", .tolerance = {.rel = 1e-6f}, .why = "positions"},
    {.inputs = "f32[2,4,24];f32[10,4];f32[10,4];i64[2,4]{0,1,2,3,9,8,7,6}", .attributes = "num_heads=3", .tolerance = {.rel = 1e-6f}, .why = "rank 3"},
    {.inputs = "f16[1,2,3,4];f16[1,3,2];f16[1,3,2]", .tolerance = {.rel = 2e-3f}, .why = "half"},
    {.inputs = "bf16[1,2,3,4];bf16[1,3,2];bf16[1,3,2]", .tolerance = {.rel = 1.6e-2f}, .why = "bfloat16"},
    {.inputs = "f32[0,2,3,4];f32[0,3,2];f32[0,3,2]", .expect = "f32[0,2,3,4]{}", .why = "empty"},
    {.inputs = "f32[1,1,1,2];f32[3,1];f32[3,1];i64[1,1]{3}", .expect = "error must be in [0, 3)", .why = "a position beyond the cache"},
    {.inputs = "f32[1,1,1,3];f32[1,1,1];f32[1,1,1]", .expect = "error must be even", .why = "odd head"},
    {.inputs = "f32[1,4,6];f32[1,4,3];f32[1,4,3]", .expect = "error num_heads 0 does not divide", .why = "heads"},
    {.inputs = "f32[1,1,2,4];f32[1,3,2];f32[1,3,2]", .expect = "error does not fit", .why = "cache"},
};
PINNACE_CASES(rotary_embedding, kCases)
}  // namespace pinnace::testing
