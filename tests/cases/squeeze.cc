// Cases of squeeze: axes given and not.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,3,1]", .expect = "type f32[3]", .why = "all"},
    {.inputs = "f32[1,3,1];i64{0}", .expect = "type f32[3,1]", .why = "one"},
    {.inputs = "f32[1,3,1];i64{-1,0}", .expect = "type f32[3]", .why = "negative"},
    {.inputs = "f32[1]{5};i64[0]{}", .expect = "f32[1]{5}", .why = "none"},
    {.inputs = "bool[1]{1}", .expect = "bool[]{1}", .why = "scalar"},
    {.inputs = "f16[0,1]", .expect = "f16[0]{}", .why = "empty"},
    {.inputs = "i8[1,2]{scale 0.5, zero 3}", .expect = "type i8[2]{scale 0.5, zero 3}", .why = "quantised"},
    {.inputs = "f32[2,1];i64{0}", .expect = "error does not have size 1", .why = "size"},
    {.inputs = "f32[2,3];i64{0,1}", .expect = "error does not have size 1", .why = "sizes of all"},
    {.inputs = "f32[1];i64{1}", .expect = "error outside rank", .why = "axis"},
    {.inputs = "f32[1,1];i64{0,-2}", .expect = "error named twice", .why = "twice"},
    {.inputs = "i4[1,3]{1,2,3}", .expect = "i4[3]{1,2,3}", .why = "packed"},
};
PINNACE_CASES(squeeze, kCases)
}  // namespace pinnace::testing
