// Cases of space_to_depth: the inverse of depth_to_space.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,2,4]{0,2,1,3,4,6,5,7}", .attributes = "blocksize=2", .expect = "f32[1,4,1,2]{0,1,2,3,4,5,6,7}",
     .why = "one channel"},
    {.inputs = "f32[1,2,2,2]{0,2,4,6,1,3,5,7}", .attributes = "blocksize=2", .expect = "f32[1,8,1,1]{0,1,2,3,4,5,6,7}",
     .why = "two channels"},
    {.inputs = "f32[1,2,2,2]{0,1,2,3,4,5,6,7}", .attributes = "blocksize=2, mode=\"CRD\"",
     .expect = "f32[1,8,1,1]{0,1,2,3,4,5,6,7}", .why = "mode CRD"},
    {.inputs = "f32[1,1,2,2]", .attributes = "blocksize=2, mode=\"RCD\"", .expect = "error must be DCR or CRD",
     .why = "mode"},
    {.inputs = "f16[2,3,6,4]", .attributes = "blocksize=2", .expect = "type f16[2,12,3,2]", .why = "half"},
    {.inputs = "u8[1,1,2,2]{scale 0.5, zero 1}", .attributes = "blocksize=2",
     .expect = "type u8[1,4,1,1]{scale 0.5, zero 1}", .why = "quantised"},
    {.inputs = "f32[1,1,0,2]", .attributes = "blocksize=2", .expect = "f32[1,4,0,1]{}", .why = "empty"},
    {.inputs = "f32[1,1,3,2]", .attributes = "blocksize=2", .expect = "error do not divide", .why = "height"},
    {.inputs = "f32[1,1,3,2]", .attributes = "blocksize=-2", .expect = "error not a positive", .why = "blocksize"},
};
PINNACE_CASES(space_to_depth, kCases)
}  // namespace pinnace::testing
