// Cases of gemm: transposes, factors, broadcasts of c, quantised arithmetic, refusals.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF32{.rel = 2e-6f};  // sums of up to 512 products in f32 against double
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{1,2,3,4};f32[2,2]{5,6,7,8}", .expect = "f32[2,2]{19,22,43,50}", .why = "plain"},
    {.inputs = "f32[2,2]{1,2,3,4};f32[2,2]{5,6,7,8}", .attributes = "trans_a=1", .expect = "f32[2,2]{26,30,38,44}", .why = "a transposed"},
    {.inputs = "f32[2,2]{1,2,3,4};f32[2,2]{5,6,7,8}", .attributes = "trans_b=1", .expect = "f32[2,2]{17,23,39,53}", .why = "b transposed"},
    {.inputs = "f32[1,1]{3};f32[1,1]{4};f32{1}", .attributes = "alpha=0.5, beta=2.", .expect = "f32[1,1]{8}", .why = "factors"},
    {.inputs = "f32[3,5];f32[5,4];f32[4]", .tolerance = kF32, .why = "c per column"},
    {.inputs = "f32[3,5];f32[5,4];f32[3,1]", .tolerance = kF32, .why = "c per row"},
    {.inputs = "f32[3,5];f32[5,4];f32[]", .tolerance = kF32, .why = "scalar c"},
    {.inputs = "f32[3,5];f32[4,5];f32[3,4]", .attributes = "trans_b=1, alpha=0.25, beta=0.35", .tolerance = kF32, .why = "full c"},
    {.inputs = "f32[7,33];f32[7,9]", .attributes = "trans_a=1", .tolerance = kF32, .why = "odd sizes"},
    {.inputs = "f32[1,512];f32[100,512];f32[100]", .attributes = "trans_b=1, activation=\"relu\"", .tolerance = kF32, .why = "classifier, more rows of b than one block"},
    {.inputs = "f32[70,16];f32[16,8]", .attributes = "activation=\"gelu_tanh\"", .tolerance = kF32, .why = "several row blocks"},
    {.inputs = "f32[5,71];f32[71,38];f32[5,38]", .attributes = "alpha=0.5, beta=2., activation=\"relu\"", .tolerance = kF32, .why = "few results of long sums, odd sizes"},
    {.inputs = "f32[67,3];f32[67,45]", .attributes = "trans_a=1", .tolerance = kF32, .why = "the same of a transposed operand"},
    {.inputs = "f32[255,65];f32[65,258];f32[258]", .tolerance = kF32, .why = "many results"},
    {.inputs = "f16[4,8];f16[8,4];f16[4]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[4,8];bf16[8,4]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[4,8];f64[8,4]", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "f32[2,0];f32[0,3];f32{1,2,3}", .expect = "f32[2,3]{1,2,3,1,2,3}", .why = "no products: c"},
    {.inputs = "f32[0,4];f32[4,3]", .expect = "f32[0,3]{}", .why = "no rows"},
    {.inputs = "u8[1,2]{scale 0.5, zero 100}{101,98};i8[2,2]{scale 0.5, zero 0}{3,-4,2,5};i32{2,-5}",
     .expect = "u8[1,2]{scale 0.125, zero 50}{52,12}", .output_quantization = "scale 0.125, zero 50", .why = "sums 1, -19; m is 2"},
    {.inputs = "i8[3,64]{scale 0.02, zero 5};i8[10,64]{scale 0.03, zero 0};i32[10]", .attributes = "trans_b=1, activation=\"relu\"",
     .output_quantization = "scale 0.04, zero -128", .why = "bits of a typical layer"},
    {.inputs = "f32[2,3];f32[2,3]", .expect = "error has rows of 3", .why = "sizes"},
    {.inputs = "f32[2,3,4];f32[4,3]", .expect = "error takes matrices", .why = "rank"},
    {.inputs = "f32[2,3];f32[3,4];f32[2]", .expect = "error does not broadcast", .why = "c"},
    {.inputs = "i8[1,1]{scale 1, zero 0};i8[1,1]{scale 1, zero 0}", .attributes = "alpha=2.", .expect = "error need alpha and beta 1",
     .output_quantization = "scale 1, zero 0", .why = "quantised factors"},
    {.inputs = "u8[1,40000]{scale 1, zero 0};u8[40000,1]{scale 1, zero 0}", .expect = "error could leave int32",
     .output_quantization = "scale 1, zero 0", .why = "40,000 products of 255 * 255"},
    {.inputs = "i8[1,1]{scale 0.5, zero 0}{1};i8[1,1]{scale 0.5, zero 0}{1};i32[1]{scale 0.25, zero 0}{1}", .expect = "error takes plain", .output_quantization = "scale 1, zero 0", .why = "a scale here has no meaning"},
    {.inputs = "f32[1,1]{nan};f32[1,1]{1}", .attributes = "alpha=0.0", .expect = "f32[1,1]{nan}", .why = "alpha 0 does not hide NaN"},
    {.inputs = "i8[3,37]{scale 0.05, zero -7};i8[35,37]{scale 0.01, zero 0};i32[35]", .attributes = "trans_b=1", .output_quantization = "scale 0.06, zero 5", .why = "kernels of 8-bit weights"},
    {.inputs = "u8[3,37]{scale 0.05, zero 121};i8[35,37]{scale 0.01, zero 0};i32[35]", .attributes = "trans_b=1", .output_quantization = "scale 0.06, zero 133", .why = "kernels of 8-bit weights"},
    {.inputs = "i8[3,37]{scale 0.05, zero -7};u8[3,37]{scales [0.01,0.02,0.03], zeros [1,128,250], axis 0};i32[3]", .attributes = "trans_b=1", .output_quantization = "scale 0.06, zero 5", .why = "zero points of each column"},
};
PINNACE_CASES(gemm, kCases)
}  // namespace pinnace::testing
