// Cases of bit_cast: widths, signs, what is refused.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[3]{1,-0,2}", .attributes = "to=\"i32\"", .expect = "i32[3]{1065353216,-2147483648,1073741824}",
     .why = "f32 to i32"},
    {.inputs = "i32[2]{1065353216,2139095040}", .attributes = "to=\"f32\"", .expect = "f32[2]{1,inf}",
     .why = "i32 to f32"},
    {.inputs = "f64[1]{1}", .attributes = "to=\"i64\"", .expect = "i64[1]{4607182418800017408}", .why = "64 bits"},
    {.inputs = "f16[2]{1,-2}", .attributes = "to=\"u16\"", .expect = "u16[2]{15360,49152}", .why = "16 bits"},
    {.inputs = "f16[1]{1}", .attributes = "to=\"bf16\"", .expect = "bf16[1]{0.0078125}", .why = "two kinds of half"},
    {.inputs = "i8[3]{-1,0,127}", .attributes = "to=\"u8\"", .expect = "u8[3]{255,0,127}", .why = "8 bits"},
    {.inputs = "bool[2]{0,1}", .attributes = "to=\"u8\"", .expect = "u8[2]{0,1}", .why = "from bool"},
    {.inputs = "i4[3]{-1,7,-8}", .attributes = "to=\"u4\"", .expect = "u4[3]{15,7,8}", .why = "packed"},
    {.inputs = "u8[2]{56,126}", .attributes = "to=\"f8e4m3fn\"", .expect = "f8e4m3fn[2]{1,448}", .why = "8-bit float"},
    {.inputs = "f4e2m1[3]{0.5,-6,1}", .attributes = "to=\"u4\"", .expect = "u4[3]{1,15,2}", .why = "4-bit float"},
    {.inputs = "u32[]{0}", .attributes = "to=\"f32\"", .expect = "f32[]{0}", .why = "scalar"},
    {.inputs = "f32[0,2]", .attributes = "to=\"i32\"", .expect = "i32[0,2]{}", .why = "empty"},
    {.inputs = "f32[2]", .attributes = "to=\"i64\"", .expect = "error has 64 bits", .why = "another width"},
    {.inputs = "u8[2]{0,1}", .attributes = "to=\"bool\"", .expect = "error may be no bool", .why = "to bool"},
    {.inputs = "f32[2]", .attributes = "to=\"float\"", .expect = "error no element type", .why = "no type"},
    {.inputs = "i8[2]{scale 1, zero 0}", .attributes = "to=\"u8\"", .expect = "error quantised", .why = "quantised"},
};
PINNACE_CASES(bit_cast, kCases)
}  // namespace pinnace::testing
