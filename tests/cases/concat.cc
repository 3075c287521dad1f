// Cases of concat: axes, types, empty parts, quantised parameters.
#include "cases/case.h"

namespace pinnace::testing {
#define FIVE_PARTS "f32[1,2,2,2];f32[1,1,2,2];f32[1,2,2,2];f32[1,1,2,2];f32[1,3,2,2];"
#define TEN_PARTS FIVE_PARTS FIVE_PARTS
constexpr Case kCases[] = {
    {.inputs = "f32[2,9,4,3];f32[2,16,4,3];f32[2,3,4,3]", .attributes = "axis=1", .why = "channels of images"},
    {.inputs = "f32[2,1]{1,2};f32[2,2]{3,4,5,6}", .attributes = "axis=1", .expect = "f32[2,3]{1,3,4,2,5,6}",
     .why = "columns"},
    {.inputs = "f32[1,2]{1,2};f32[2,2]{3,4,5,6}", .attributes = "axis=0", .expect = "f32[3,2]{1,2,3,4,5,6}",
     .why = "rows"},
    {.inputs = "f16[1,2];f16[1,2];f16[1,2]", .attributes = "axis=-2", .expect = "type f16[3,2]",
     .why = "three, negative axis"},
    {.inputs = "f32[3]{1,2,3}", .attributes = "axis=0", .expect = "f32[3]{1,2,3}", .why = "one"},
    {.inputs = "bf16[2,0,3];bf16[2,2,3]", .attributes = "axis=1", .expect = "type bf16[2,2,3]", .why = "an empty part"},
    {.inputs = "f64[2,3,4];f64[2,3,1]", .attributes = "axis=2", .expect = "type f64[2,3,5]", .why = "last axis"},
    {.inputs = "bool{1,0};bool{1}", .attributes = "axis=0", .expect = "bool{1,0,1}", .why = "bool"},
    {.inputs = "i64{1};i64{2};i64{3,4}", .attributes = "axis=0", .expect = "i64{1,2,3,4}", .why = "shape arithmetic"},
    {.inputs = "i8[2]{scale 0.5, zero 3}{1,2};i8[1]{scale 0.5, zero 3}{3}", .attributes = "axis=0",
     .expect = "i8[3]{scale 0.5, zero 3}{1,2,3}", .why = "equal parameters"},
    {.inputs = "i8[2]{scale 0.5, zero 0}{2,4};i8[2]{scale 0.25, zero 1}{5,127}", .attributes = "axis=0",
     .expect = "i8[4]{scale 0.5, zero 0}{2,4,2,63}", .output_quantization = "scale 0.5, zero 0",
     .why = "requantised, half to even"},
    {.inputs = "i8[2]{scale 0.5, zero 0}{2,4};i8[2]{scale 0.25, zero 1}{5,127}", .attributes = "axis=0",
     .expect = "error not declared", .why = "different parameters, none declared"},
    {.inputs = "f32[2,2];f32[3,3]", .attributes = "axis=0", .expect = "error beside axis 0", .why = "sizes"},
    {.inputs = "f32[2];f32[2,2]", .attributes = "axis=0", .expect = "error rank differs", .why = "ranks"},
    {.inputs = "f32[2];f16[2]", .attributes = "axis=0", .expect = "error must be float32", .why = "types"},
    {.inputs = "f32[];f32[]", .attributes = "axis=0", .expect = "error outside rank 0", .why = "scalars"},
    {.inputs = "f8e5m2[1]{1};f8e5m2[2]{2,nan}", .attributes = "axis=0", .expect = "f8e5m2[3]{1,2,nan}", .why = "8-bit float"},
    {.inputs = "i8[2,5,3,4]{scale 0.05, zero -7};i8[2,18,3,4]{scale 0.06, zero 5}", .attributes = "axis=1", .output_quantization = "scale 0.06, zero 5", .why = "images, one of them quantised again"},
    {.inputs = "u8[2,5,3,4]{scale 0.05, zero 121};u8[2,18,3,4]{scale 0.06, zero 133}", .attributes = "axis=1", .output_quantization = "scale 0.06, zero 133", .why = "images, one of them quantised again"},
    {.inputs = TEN_PARTS TEN_PARTS TEN_PARTS "f32[1,3,2,2]", .attributes = "axis=1", .why = "about as many inputs as a word has bits"},
    {.inputs = TEN_PARTS TEN_PARTS TEN_PARTS TEN_PARTS "f32[1,3,2,2]", .attributes = "axis=1", .why = "more inputs than a word has bits"},
};
PINNACE_CASES(concat, kCases)
}  // namespace pinnace::testing
