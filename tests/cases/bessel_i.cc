// Cases of bessel_i: both orders, scaled, both series, special values, element types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Tolerance kF64{.abs = 0, .rel = 1e-14f};
constexpr Tolerance kF32{.rel = 1e-6f};
constexpr Case kCases[] = {
    {.inputs = "f64[5]{0,-1,0.5,20,31}",
     .expect = "f64[5]{1,1.266065877752008,1.063483370741324,43558282.55955353,2089962966491.904}", .tolerance = kF64,
     .why = "order 0"},
    {.inputs = "f64[5]{0,-1,0.5,30,100}", .attributes = "order=1",
     .expect = "f64[5]{0,-0.5651591039924851,0.2578943053908964,768532038938.9569,1.068369390338163e+42}",
     .tolerance = kF64, .why = "order 1 is odd"},
    {.inputs = "f64[4]{-1,20,100,700}", .attributes = "scaled=1",
     .expect = "f64[4]{0.4657596075936404,0.08978031188482601,0.03994437929909668,0.01508129565153135}",
     .tolerance = kF64, .why = "scaled"},
    {.inputs = "f32[3]{-1,31,700}", .attributes = "order=1, scaled=1", .expect = "f32[3]{-0.20791042,0.070776393,0.015070519}",
     .tolerance = kF32, .why = "order 1, scaled"},
    {.inputs = "f32[4]{inf,-inf,nan,100}", .expect = "f32[4]{inf,inf,nan,inf}", .why = "infinities, overflow"},
    {.inputs = "f32[4]{inf,-inf,-0,nan}", .attributes = "order=1", .expect = "f32[4]{inf,-inf,-0,nan}", .why = "signs"},
    {.inputs = "f32[2]{inf,-inf}", .attributes = "scaled=1", .expect = "f32[2]{0,0}", .why = "scaled infinities"},
    {.inputs = "f16[3,5] in 0.1..0.9", .expect = "type f16[3,5]", .why = "half"},
    {.inputs = "f32[0,3]", .expect = "f32[0,3]{}", .why = "empty"},
    {.inputs = "f32[2]", .attributes = "order=2", .expect = "error order is 2", .why = "order"},
    {.inputs = "i32{1}", .expect = "error takes", .why = "element type"},
};
PINNACE_CASES(bessel_i, kCases)
}  // namespace pinnace::testing
