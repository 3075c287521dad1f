// Cases of zeta: values, poles, what is not defined, broadcasting, element types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF64{.abs = 0, .rel = 1e-14f};
constexpr Case kCases[] = {
    {.inputs = "f64[5]{2,1.5,2,10,3};f64[5]{1,0.5,10,3,-0.5}",
     .expect = "f64[5]{1.644934066848227,4.776537947554834,0.1051663356816858,1.801262781808534e-05,0.41439832211716}",
     .tolerance = kF64, .why = "values"},
    {.inputs = "f32[5]{1,2,2,3,0.5};f32[5]{2,0,-3,-0,1}", .expect = "f32[5]{inf,inf,inf,inf,nan}", .why = "poles"},
    {.inputs = "f32[5]{2.5,nan,2,inf,inf};f32[5]{-0.5,2,nan,2,1}", .expect = "f32[5]{nan,nan,nan,0,1}",
     .why = "not defined; infinite x"},
    {.inputs = "f64[2]{2,2};f64[2]{inf,-10000000.5}", .expect = "f64[2]{0,nan}", .why = "far away"},
    {.inputs = "f32[2,1] in 1.5..4;f32[3] in 0.5..3", .expect = "type f32[2,3]", .why = "broadcast"},
    {.inputs = "f16[3] in 1.5..4;f16[3] in 0.5..3", .expect = "type f16[3]", .why = "half"},
    {.inputs = "f32[0,3];f32[]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "f32[2];f64[2]", .expect = "error", .why = "two types"},
    {.inputs = "i32[1]{1};i32[1]{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(zeta, kCases)
}  // namespace pinnace::testing
