// Cases of identity: element types, packed types, quantisation.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[3]{1,nan,-0}", .expect = "f32[3]{1,nan,-0}", .why = "bits stay"},
    {.inputs = "f16[2,3]", .why = "half"},
    {.inputs = "bf16[2]", .why = "bfloat16"},
    {.inputs = "f64[]", .why = "scalar"},
    {.inputs = "bool{1,0}", .expect = "bool{1,0}", .why = "bool"},
    {.inputs = "i64{-1}", .expect = "i64{-1}", .why = "64 bits"},
    {.inputs = "u16{7}", .expect = "u16{7}", .why = "16 bits"},
    {.inputs = "i4[3]{-8,7,1}", .expect = "i4[3]{-8,7,1}", .why = "packed"},
    {.inputs = "u4[5]{15,0,1,2,3}", .expect = "u4[5]{15,0,1,2,3}", .why = "packed, unsigned"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "i8[2]{scale 0.5, zero 3}{-1,2}", .expect = "i8[2]{scale 0.5, zero 3}{-1,2}",
     .why = "quantisation is kept"},
    {.inputs = "i8[2]{scale 0.5, zero 3}", .expect = "error another quantisation",
     .output_quantization = "scale 0.25, zero 3", .why = "it does not requantise"},
    {.inputs = "i2[5]{1,-1,0,-2,1}", .expect = "i2[5]{1,-1,0,-2,1}", .why = "two bits"},
};
PINNACE_CASES(identity, kCases)
}  // namespace pinnace::testing
