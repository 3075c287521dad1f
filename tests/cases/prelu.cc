// Cases of prelu: slopes of every shape, special values, integers, quantised types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[5]{-2,-0,2,nan,-inf};f32[1]{0.5}", .expect = "f32[5]{-1,-0,2,nan,-inf}", .why = "one slope"},
    {.inputs = "f32[2,3]{-1,-1,-1,1,1,1};f32[3]{1,2,3}", .expect = "f32[2,3]{-1,-2,-3,1,1,1}",
     .why = "slope per last index"},
    {.inputs = "f32[1,2,2]{-1,-2,-3,-4};f32[2,1]{2,10}", .expect = "f32[1,2,2]{-2,-4,-30,-40}",
     .why = "slope per channel"},
    {.inputs = "f32[2,3,37];f32[3,1]", .tolerance = {.rel = 1e-6f}, .why = "rows"},
    {.inputs = "f32[];f32[]", .why = "scalar"},
    {.inputs = "f16[3,5];f16[5]", .tolerance = {.rel = 1e-3f}, .why = "half"},
    {.inputs = "bf16[7];bf16[1]", .tolerance = {.rel = 8e-3f}, .why = "bfloat16"},
    {.inputs = "f64[4];f64[]", .tolerance = {.rel = 1e-14f}, .why = "double"},
    {.inputs = "i32{-3,3};i32{2}", .expect = "i32{-6,3}", .why = "integers"},
    {.inputs = "f32[0,3];f32[3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[3]{scale 0.5, zero 0}{-4,4,-100};i8[1]{scale 0.25, zero 0}{2}",
     .expect = "i8[3]{scale 0.5, zero 1}{-1,5,-49}", .output_quantization = "scale 0.5, zero 1", .why = "quantised"},
    {.inputs = "f32[3];f32[2,3]", .expect = "error does not broadcast to x", .why = "slope larger than x"},
    {.inputs = "f32[1];f32[3]", .expect = "error does not broadcast to x", .why = "slope wider than x"},
    {.inputs = "f32[2];f32[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "f32[2];f16[2]", .expect = "error must be float32", .why = "types differ"},
};
PINNACE_CASES(prelu, kCases)
}  // namespace pinnace::testing
