// Cases of expand: broadcasting both ways.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[3,1]{1,2,3};i64{2,1,2}", .expect = "f32[2,3,2]{1,1,2,2,3,3,1,1,2,2,3,3}",
     .why = "new and stretched dimensions"},
    {.inputs = "f32[3,1]{1,2,3};i64{1}", .expect = "f32[3,1]{1,2,3}", .why = "1 keeps the size"},
    {.inputs = "f32[]{4};i64{2,2}", .expect = "f32[2,2]{4,4,4,4}", .why = "scalar"},
    {.inputs = "i8[1,2];i64{3,1}", .expect = "type i8[3,2]", .why = "both sides stretch"},
    {.inputs = "bool[1]{1};i64{3}", .expect = "bool{1,1,1}", .why = "bool"},
    {.inputs = "f16[2];i64[0]{}", .expect = "type f16[2]", .why = "empty shape"},
    {.inputs = "f32[1];i64{0}", .expect = "f32[0]{}", .why = "to nothing"},
    {.inputs = "u8[1]{scale 0.5, zero 3}{7};i64{2}", .expect = "u8[2]{scale 0.5, zero 3}{7,7}", .why = "quantised"},
    {.inputs = "f32[2];i64{3}", .expect = "error do not broadcast", .why = "sizes"},
    {.inputs = "f32[2];i64{-1}", .expect = "error negative", .why = "-1 is not a size"},
    {.inputs = "f32[1];i64{4611686018427387904,2}", .expect = "error larger than memory", .why = "overflow"},
};
PINNACE_CASES(expand, kCases)
}  // namespace pinnace::testing
