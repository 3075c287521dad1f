// Cases of attention: head layouts, masks, windows, caches, the optional outputs.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums and exponentials in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,1,2]{1,0};f32[1,1,2,2]{0,0,0,0};f32[1,1,2,1]{2,4}", .expect = "f32[1,1,1,1]{3}", .why = "even scores: the mean"},
    {.inputs = "f32[2,3,4,8];f32[2,3,6,8];f32[2,3,6,5]", .tolerance = kF32, .why = "rank 4, cross"},
    {.inputs = "f32[2,4,24];f32[2,6,24];f32[2,6,15]", .attributes = "q_num_heads=3, kv_num_heads=3", .tolerance = kF32, .why = "rank 3"},
    {.inputs = "f32[2,4,32];f32[2,6,16];f32[2,6,10]", .attributes = "q_num_heads=4, kv_num_heads=2", .expect = "type f32[2,4,20]", .tolerance = kF32, .why = "two query heads per key head"},
    {.inputs = "f32[1,2,4,8];f32[1,2,4,8];f32[1,2,4,8]", .attributes = "is_causal=1, scale=0.5", .tolerance = kF32, .why = "causal"},
    {.inputs = "f32[1,2,4,8];f32[1,2,6,8];f32[1,2,6,8];f32[4,6]", .attributes = "softcap=2.", .outputs = 4, .tolerance = kF32, .why = "float mask, soft cap, all outputs"},
    {.inputs = "f32[1,1,2,2];f32[1,1,3,2];f32[1,1,3,1]{1,2,3};bool[2,3]{1,0,0,0,0,0}", .expect = "f32[1,1,2,1]{1,0}", .why = "a query that sees nothing gives 0"},
    {.inputs = "f32[1,1,1,2];f32[1,1,2,2]{1,1,nan,inf};f32[1,1,2,1]{7,nan};bool[1,1]{1}", .expect = "f32[1,1,1,1]{7}", .why = "a short mask; what is masked may hold anything"},
    {.inputs = "f32[2,2,3,4];f32[2,2,3,4];f32[2,2,3,4];f32[2,1,3,8];f32[2,2,5,4];f32[2,2,5,4]", .attributes = "is_causal=1, qk_matmul_output_mode=3", .outputs = 4, .tolerance = kF32, .why = "cache, causal beyond it"},
    {.inputs = "f32[2,2,3,4];f32[2,2,6,4];f32[2,2,6,4];none;none;none;i64{6,4}", .attributes = "is_causal=1, qk_matmul_output_mode=2", .outputs = 4, .tolerance = kF32, .why = "lengths per batch"},
    {.inputs = "f32[1,1,6,4];f32[1,1,6,4];f32[1,1,6,4]", .attributes = "left_window_size=2, right_window_size=1", .tolerance = kF32, .why = "window"},
    {.inputs = "f32[2,3,37,64];f32[2,3,70,64];f32[2,3,70,64]", .tolerance = kF32, .why = "queries and keys of several tiles, cut off"},
    {.inputs = "f32[1,2,40,20];f32[1,2,50,20];f32[1,2,50,132];f32[2,1,50]", .attributes = "is_causal=1", .tolerance = kF32, .why = "values wider than a chunk of columns, a mask by head"},
    {.inputs = "f32[2,33,30];f32[2,65,15];f32[2,65,21];bool[2,1,33,65]", .attributes = "q_num_heads=6, kv_num_heads=3", .tolerance = kF32, .why = "rank 3, odd widths, shared keys, a mask of bool"},
    {.inputs = "f32[1,2,50,8];f32[1,2,90,8];f32[1,2,90,8]", .attributes = "left_window_size=20, right_window_size=3", .tolerance = kF32, .why = "a window that skips whole tiles"},
    {.inputs = "f32[1,1,20,4];f32[1,1,45,4];f32[1,1,45,4];f32[20,40]", .tolerance = kF32, .why = "a mask shorter than the keys"},
    {.inputs = "f16[1,2,4,8];f16[1,2,4,8];f16[1,2,4,8];f16[2,4,4]", .tolerance = {.rel = 2e-3f}, .why = "half"},
    {.inputs = "bf16[1,2,4,8];bf16[1,2,4,8];bf16[1,2,4,8]", .tolerance = {.rel = 1.6e-2f}, .why = "bfloat16"},
    {.inputs = "f64[1,2,4,8];f64[1,2,4,8];f64[1,2,4,8]", .tolerance = {.rel = 1e-13f}, .why = "double"},
    {.inputs = "f32[1,1,2,2];f32[1,1,0,2];f32[1,1,0,3]", .expect = "f32[1,1,2,3]{0,0,0,0,0,0}", .why = "no keys"},
    {.inputs = "f32[1,2,4,8];f32[1,2,4,8];f32[1,2,4,8];none;f32[1,2,1,8]", .expect = "error must be given together", .why = "half a cache"},
    {.inputs = "f32[1,3,4,8];f32[1,2,4,8];f32[1,2,4,8]", .expect = "error do not divide 3 query heads", .why = "groups"},
    {.inputs = "f32[1,4,24];f32[1,4,24];f32[1,4,24]", .expect = "error rank 3 needs", .why = "heads"},
    {.inputs = "f32[1,1,4,8];f32[1,1,4,8];f32[1,1,4,8];f32[4,5]", .expect = "error does not broadcast", .why = "mask"},
    {.inputs = "f32[1,1,2,2];f32[1,1,2,2];f32[1,1,2,2];none;none;none;i64{3}", .expect = "error must be in [0, 2]", .why = "a length beyond the keys"},
    {.inputs = "f32[1,1,1,2]{nan,1};f32[1,1,2,2]{1,1,1,1};f32[1,1,2,2]{1,1,1,1}", .expect = "f32[1,1,1,2]{nan,nan}", .why = "NaN in a query"},
};
PINNACE_CASES(attention, kCases)
}  // namespace pinnace::testing
