// Cases of eye_like: diagonals and types.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,3]", .expect = "f32[2,3]{1,0,0,0,1,0}", .why = "the diagonal"},
    {.inputs = "f32[3,2]", .attributes = "k=-1", .expect = "f32[3,2]{0,0,1,0,0,1}", .why = "below"},
    {.inputs = "i32[2,3]", .attributes = "k=2", .expect = "i32[2,3]{0,0,1,0,0,0}", .why = "above"},
    {.inputs = "f32[2,2]", .attributes = "dtype=\"i64\"", .expect = "i64[2,2]{1,0,0,1}", .why = "another type"},
    {.inputs = "f32[2,2]", .attributes = "dtype=\"bool\"", .expect = "bool[2,2]{1,0,0,1}", .why = "bool"},
    {.inputs = "f16[1,2]", .expect = "f16[1,2]{1,0}", .why = "half"},
    {.inputs = "f32[2,2]", .attributes = "k=9", .expect = "f32[2,2]{0,0,0,0}", .why = "outside"},
    {.inputs = "f32[0,2]", .expect = "f32[0,2]{}", .why = "empty"},
    {.inputs = "f32[2]", .expect = "error must be a matrix", .why = "rank"},
    {.inputs = "f32[2,2]", .attributes = "dtype=\"x\"", .expect = "error has no type", .why = "type"},
    {.inputs = "i8[2,2]{scale 0.5, zero 3}{1,2,3,4}", .expect = "error takes plain tensors only", .why = "scales would be lost"},
};
PINNACE_CASES(eye_like, kCases)
}  // namespace pinnace::testing
