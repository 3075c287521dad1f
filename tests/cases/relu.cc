// Cases of relu: special values, wrap-free integers, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,11,4,9]", .why = "an image"},
    {.inputs = "f32[5]{-1,0,2,nan,inf}", .expect = "f32[5]{0,0,2,nan,inf}", .why = "NaN passes through"},
    {.inputs = "f32[1]{-0}", .expect = "f32[1]{0}", .why = "-0 becomes 0"},
    {.inputs = "f16[3,4]", .why = "half"},
    {.inputs = "bf16[7]", .why = "bfloat16"},
    {.inputs = "i32{-5,7}", .expect = "i32{0,7}", .why = "integers"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[4]{scale 0.5, zero 3}{-128,3,4,127}", .expect = "i8[4]{scale 0.25, zero -1}{-1,-1,1,127}",
     .output_quantization = "scale 0.25, zero -1", .why = "quantised, another scale, clamped at 127"},
    {.inputs = "bool{1}", .expect = "error takes", .why = "bool is not a number"},
    {.inputs = "i8[1,5,3,4]{scale 0.05, zero -7}", .output_quantization = "scale 0.06, zero 5", .why = "kernels of images"},
    {.inputs = "u8[1,5,3,4]{scale 0.05, zero 121}", .output_quantization = "scale 0.06, zero 133", .why = "kernels of images"},
};
PINNACE_CASES(relu, kCases)
}  // namespace pinnace::testing
