// Cases of clip: limits given, left out and crossed, NaN, integers, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,11,4,9];f32[]{-0.5};f32[]{0.75}", .why = "an image"},
    {.inputs = "f32[5]{-2,0,3,nan,inf};f32 -1;f32 1", .expect = "f32[5]{-1,0,1,nan,1}",
     .why = "both limits; NaN stays"},
    {.inputs = "f32[3]{-2,0,3};f32 -1", .expect = "f32[3]{-1,0,3}", .why = "lower limit only"},
    {.inputs = "f32[3]{-2,0,3};none;f32 1", .expect = "f32[3]{-2,0,1}", .why = "upper limit only"},
    {.inputs = "f32[3]{-2,0,nan}", .expect = "f32[3]{-2,0,nan}", .why = "no limits"},
    {.inputs = "f32[2]{-2,3};f32 2;f32 -1", .expect = "f32[2]{-1,-1}", .why = "crossed limits give the upper one"},
    {.inputs = "f32[2]{-2,3};f32 nan;f32 1", .expect = "f32[2]{nan,nan}", .why = "a NaN limit gives NaN"},
    {.inputs = "f32[2]{-2,3};f32[1]{0};f32[1]{1}", .expect = "f32[2]{0,1}", .why = "limits as [1]"},
    {.inputs = "f32[2,3,37] x3;f32 0;f32 6", .why = "rows"},
    {.inputs = "f32[];f32 0;f32 6", .why = "scalar"},
    {.inputs = "f16[3,5];f16 -0.5;f16 0.5", .why = "half"},
    {.inputs = "bf16[7];bf16 0", .why = "bfloat16"},
    {.inputs = "f64[3];f64 0;f64 1", .why = "double"},
    {.inputs = "i32{-5,7,100};i32[]{0};i32[]{10}", .expect = "i32{0,7,10}", .why = "integers"},
    {.inputs = "u8{3,200};none;u8[]{100}", .expect = "u8{3,100}", .why = "unsigned"},
    {.inputs = "i64{-9223372036854775807};i64[]{-5}", .expect = "i64{-5}", .why = "64 bits"},
    {.inputs = "f32[0,3];f32 0", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[4]{scale 0.5, zero 3}{-128,3,4,127};f32 0;f32 6",
     .expect = "i8[4]{scale 0.25, zero -1}{-1,-1,1,23}", .output_quantization = "scale 0.25, zero -1",
     .why = "quantised, limits are real numbers"},
    {.inputs = "u8[3]{scale 0.5, zero 0}{0,100,200};none;f32 6", .expect = "u8[3]{scale 0.5, zero 0}{0,12,12}",
     .output_quantization = "scale 0.5, zero 0", .why = "quantised, upper limit only"},
    {.inputs = "f32[2];f32[2]", .expect = "error must be one element", .why = "limits are single"},
    {.inputs = "f32[2];f16[]", .expect = "error must be one element of float32", .why = "limit of another type"},
    {.inputs = "i8[2]{scale 1, zero 0};i8[]", .expect = "error must be one element of float32",
     .output_quantization = "scale 1, zero 0", .why = "quantised takes float32 limits"},
    {.inputs = "bool{1}", .expect = "error takes", .why = "element type"},
    {.inputs = "i8[1,5,3,4]{scale 0.05, zero -7};f32 -1;f32 3", .output_quantization = "scale 0.06, zero 5", .why = "kernels of images"},
    {.inputs = "u8[1,5,3,4]{scale 0.05, zero 121};f32 -1;f32 3", .output_quantization = "scale 0.06, zero 133", .why = "kernels of images"},
};
PINNACE_CASES(clip, kCases)
}  // namespace pinnace::testing
