// Cases of reshape: -1, 0, allowzero, and shapes that do not fit.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,3,4];i64{4,-1}", .expect = "type f32[4,6]", .why = "inferred"},
    {.inputs = "f32[2,3,4];i64{0,12}", .expect = "type f32[2,12]", .why = "0 copies"},
    {.inputs = "f32[0,3];i64{3,0}", .attributes = "allowzero=1", .expect = "type f32[3,0]", .why = "a real zero"},
    {.inputs = "f32[6];i64{-1,-1}", .expect = "error more than one -1", .why = "ambiguous"},
    {.inputs = "f32[6];i64{4}", .expect = "error does not have the elements", .why = "too few"},
    {.inputs = "f32[1];i64[0]{}", .expect = "type f32[]", .why = "to a scalar"},
    {.inputs = "f4e2m1[2,3]{1,2,3,4,6,0.5};i64{3,2}", .expect = "f4e2m1[3,2]{1,2,3,4,6,0.5}", .why = "packed"},
};
PINNACE_CASES(reshape, kCases)
}  // namespace pinnace::testing
