// Cases of scatter_elements: axes, reductions, indices outside.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[3,3]{0,0,0,0,0,0,0,0,0};i64[2,3]{1,0,2,0,2,1};f32[2,3]{1,1.1,1.2,2,2.1,2.2}",
     .expect = "f32[3,3]{2,1.1,0,1,0,2.2,0,2.1,1.2}", .why = "first axis"},
    {.inputs = "f32[1,5]{1,2,3,4,5};i64[1,2]{1,3};f32[1,2]{1.1,2.1}", .attributes = "axis=1",
     .expect = "f32[1,5]{1,1.1,3,2.1,5}", .why = "last axis"},
    {.inputs = "f32[1,5]{1,2,3,4,5};i64[1,2]{1,-4};f32[1,2]{1.5,2}", .attributes = "axis=1, reduction=\"add\"",
     .expect = "f32[1,5]{1,5.5,3,4,5}", .why = "add, twice the same place"},
    {.inputs = "f32[2]{2,3};i32{0,0};f32[2]{4,5}", .attributes = "reduction=\"mul\"", .expect = "f32[2]{40,3}",
     .why = "mul"},
    {.inputs = "f32[2]{2,3};i64{0,1};f32[2]{4,nan}", .attributes = "reduction=\"max\"", .expect = "f32[2]{4,nan}",
     .why = "max"},
    {.inputs = "f32[2]{2,nan};i64{0,1};f32[2]{-4,1}", .attributes = "reduction=\"min\"", .expect = "f32[2]{-4,nan}",
     .why = "min"},
    {.inputs = "i8[2]{127,1};i64{0};i8{1}", .attributes = "reduction=\"add\"", .expect = "i8[2]{-128,1}",
     .why = "integers wrap"},
    {.inputs = "i32[2]{5,1};i64{0,0};i32{7,8}", .expect = "i32[2]{8,1}", .why = "the last one wins"},
    {.inputs = "u8[2]{5,200};i64{1};u8{100}", .attributes = "reduction=\"max\"", .expect = "u8[2]{5,200}",
     .why = "unsigned"},
    {.inputs = "bool[2]{0,0};i64{1};bool{1}", .expect = "bool{0,1}", .why = "bool"},
    {.inputs = "f16[3];i64[0]{};f16[0]", .expect = "type f16[3]", .why = "nothing"},
    {.inputs = "i8[2]{scale 0.5, zero 3}{1,2};i64{0};i8[1]{scale 0.5, zero 3}{7}",
     .expect = "i8[2]{scale 0.5, zero 3}{7,2}", .why = "quantised"},
    {.inputs = "i8[2]{scale 0.5, zero 3};i64{0};i8[1]{scale 0.25, zero 3}", .expect = "error quantised differently",
     .why = "parameters"},
    {.inputs = "i8[2]{scale 0.5, zero 3};i64{0};i8[1]{scale 0.5, zero 3}", .attributes = "reduction=\"add\"",
     .expect = "error takes no quantised", .why = "quantised add"},
    {.inputs = "f32[2];i64{2};f32[1]", .expect = "error index 2 is outside", .why = "too large"},
    {.inputs = "f32[2,2];i64{0};f32[1]", .expect = "error must have the rank", .why = "rank"},
    {.inputs = "f32[2];i64{0};f32[2]", .expect = "error must have the shape", .why = "updates"},
    {.inputs = "f32[2];i64{0};f32[1]", .attributes = "reduction=\"sum\"", .expect = "error must be none",
     .why = "reduction"},
    {.inputs = "bool[2];i64{0};bool[1]", .attributes = "reduction=\"max\"", .expect = "error takes no bool",
     .why = "bool max"},
    {.inputs = "f32[2]{1,nan};i64[2]{0,1};f32[2]{nan,5}", .attributes = "reduction=\"max\"", .expect = "f32[2]{nan,nan}", .why = "NaN joined by max"},
};
PINNACE_CASES(scatter_elements, kCases)
}  // namespace pinnace::testing
