// Cases of hamming_window: periodic and symmetric, sizes, types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "i64[]{4}", .expect = "f32[4]{0.0869565217,0.5434782609,1,0.5434782609}", .tolerance = {.abs = 1e-7f}, .why = "periodic"},
    {.inputs = "i32[]{3}", .attributes = "periodic=0", .expect = "f32[3]{0.0869565217,1,0.0869565217}", .tolerance = {.abs = 1e-7f},
     .why = "symmetric"},
    {.inputs = "i64[]{1}", .attributes = "periodic=0", .expect = "f32[1]{1}", .why = "symmetric of size 1"},
    {.inputs = "i64[]{1}", .expect = "f32[1]{0.0869565217}", .why = "periodic of size 1"},
    {.inputs = "i64[]{0}", .attributes = "periodic=0", .expect = "f32[0]{}", .why = "empty"},
    {.inputs = "i64[]{9}", .attributes = "output_datatype=\"f16\"", .expect = "type f16[9]", .why = "half"},
    {.inputs = "i64[]{9}", .attributes = "output_datatype=\"bf16\"", .expect = "type bf16[9]", .why = "bfloat16"},
    {.inputs = "i64[]{3}", .attributes = "output_datatype=\"f64\", periodic=0", .expect = "type f64[3]",
     .why = "double"},
    {.inputs = "i64[]{4}", .attributes = "output_datatype=\"i8\"", .expect = "i8[4]{0,0,1,0}",
     .why = "fractions are cut off"},
    {.inputs = "i64[]{-1}", .expect = "error size -1 is negative", .why = "negative"},
    {.inputs = "i64[2]{1,2}", .expect = "error", .why = "no scalar"},
    {.inputs = "i64[]{4}", .attributes = "output_datatype=\"bool\"", .expect = "error no type of numbers",
     .why = "bool"},
};
PINNACE_CASES(hamming_window, kCases)
}  // namespace pinnace::testing
