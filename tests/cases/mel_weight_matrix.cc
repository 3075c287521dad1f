// Cases of mel_weight_matrix: bands, edges, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "i64[]{2};i64[]{8};i64[]{8000};f32[]{0};f32[]{4000}", .expect = "f32[5,2]{1,0,0,1,0,0,0,0,0,0}",
     .why = "narrow bands: points 0, 0, 1 and 2"},
    {.inputs = "i32[]{2};i32[]{8};i32[]{8000};f64[]{0};f64[]{8000}",
     .expect = "type f32[5,2]", .why = "wider bands"},
    {.inputs = "i64[]{8};i64[]{16};i64[]{8192};f32[]{0};f32[]{4096}", .expect = "type f32[9,8]", .why = "ONNX's example"},
    {.inputs = "i64[]{4};i64[]{16};i64[]{8192};f16[]{0};bf16[]{4096}", .attributes = "output_datatype=\"f16\"",
     .expect = "type f16[9,4]", .why = "half"},
    {.inputs = "i64[]{2};i64[]{8};i64[]{8000};f32[]{0};f32[]{4000}", .attributes = "output_datatype=\"i8\"",
     .expect = "i8[5,2]{1,0,0,1,0,0,0,0,0,0}", .why = "integers"},
    {.inputs = "i64[]{0};i64[]{8};i64[]{8000};f32[]{0};f32[]{4000}", .expect = "f32[5,0]{}", .why = "no bands"},
    {.inputs = "i64[]{2};i64[]{8};i64[]{800};f32[]{0};f32[]{40000}", .expect = "error ends at bin",
     .why = "beyond the spectrum"},
    {.inputs = "i64[]{2};i64[]{8};i64[]{8000};f32[]{-800};f32[]{4000}", .expect = "error ascending order",
     .why = "no frequency"},
    {.inputs = "i64[]{2};i64[]{8};i64[]{8000};f32[]{0};f32[]{nan}", .expect = "error ascending order", .why = "NaN"},
    {.inputs = "i64[]{-2};i64[]{8};i64[]{8000};f32[]{0};f32[]{1}", .expect = "error num_mel_bins -2", .why = "bands"},
    {.inputs = "i64[]{2};i64[]{0};i64[]{8000};f32[]{0};f32[]{1}", .expect = "error dft_length 0", .why = "length"},
    {.inputs = "i64[]{2};i64[]{8};i64[]{0};f32[]{0};f32[]{1}", .expect = "error sample_rate 0", .why = "rate"},
    {.inputs = "i64[]{2};i64[]{8};i64[]{1};f32[2];f32[]{1}", .expect = "error must be a scalar", .why = "no scalar"},
};
PINNACE_CASES(mel_weight_matrix, kCases)
}  // namespace pinnace::testing
