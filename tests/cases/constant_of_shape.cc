// Cases of constant_of_shape: types, sizes, ranges.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "i64{2,3}", .expect = "f32[2,3]{0,0,0,0,0,0}", .why = "defaults"},
    {.inputs = "i64{2}", .attributes = "value=1.5", .expect = "f32[2]{1.5,1.5}", .why = "a float"},
    {.inputs = "i64{2}", .attributes = "value=1.5, dtype=\"f16\"", .expect = "f16[2]{1.5,1.5}", .why = "half"},
    {.inputs = "i64{3}", .attributes = "dtype=\"i64\", int_value=-7", .expect = "i64{-7,-7,-7}", .why = "an integer"},
    {.inputs = "i64{1}", .attributes = "dtype=\"i8\", int_value=-128", .expect = "i8{-128}", .why = "the lowest i8"},
    {.inputs = "i64{2}", .attributes = "dtype=\"bool\", int_value=1", .expect = "bool{1,1}", .why = "bool"},
    {.inputs = "i64[0]{}", .attributes = "value=2.", .expect = "f32[]{2}", .why = "a scalar"},
    {.inputs = "i64{0,4}", .expect = "f32[0,4]{}", .why = "empty"},
    {.inputs = "i64{2}", .attributes = "dtype=\"i8\", int_value=128", .expect = "error not in the range of int8",
     .why = "too large"},
    {.inputs = "i64{-1}", .expect = "error is negative", .why = "size"},
    {.inputs = "i64{4611686018427387904,4}", .expect = "error larger than memory", .why = "overflow"},
    {.inputs = "i64{1}", .attributes = "dtype=\"f8\"", .expect = "error has no type", .why = "type"},
};
PINNACE_CASES(constant_of_shape, kCases)
}  // namespace pinnace::testing
