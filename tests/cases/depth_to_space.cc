// Cases of depth_to_space: both orders, sizes that do not divide.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,4,1,2]{0,1,2,3,4,5,6,7}", .attributes = "blocksize=2", .expect = "f32[1,1,2,4]{0,2,1,3,4,6,5,7}",
     .why = "one channel: both orders agree"},
    {.inputs = "f32[1,8,1,1]{0,1,2,3,4,5,6,7}", .attributes = "blocksize=2", .expect = "f32[1,2,2,2]{0,2,4,6,1,3,5,7}",
     .why = "DCR"},
    {.inputs = "f32[1,8,1,1]{0,1,2,3,4,5,6,7}", .attributes = "blocksize=2, mode=\"CRD\"",
     .expect = "f32[1,2,2,2]{0,1,2,3,4,5,6,7}", .why = "CRD"},
    {.inputs = "f16[2,18,3,2]", .attributes = "blocksize=3, mode=\"CRD\"", .expect = "type f16[2,2,9,6]",
     .why = "half"},
    {.inputs = "i8[1,4,2,2]{scale 0.5, zero 1}", .attributes = "blocksize=2",
     .expect = "type i8[1,1,4,4]{scale 0.5, zero 1}", .why = "quantised"},
    {.inputs = "bool[1,4,1,1]{1,0,0,1}", .attributes = "blocksize=2", .expect = "bool[1,1,2,2]{1,0,0,1}",
     .why = "bool"},
    {.inputs = "f32[0,4,2,2]", .attributes = "blocksize=2", .expect = "f32[0,1,4,4]{}", .why = "empty"},
    {.inputs = "f32[1,4,2,2]", .attributes = "blocksize=1", .expect = "type f32[1,4,2,2]", .why = "nothing to do"},
    {.inputs = "f32[1,6,2,2]", .attributes = "blocksize=2", .expect = "error do not divide", .why = "channels"},
    {.inputs = "f32[4,2,2]", .attributes = "blocksize=2", .expect = "error must be [N,C,H,W]", .why = "rank"},
    {.inputs = "f32[1,4,2,2]", .attributes = "blocksize=2, mode=\"CDR\"", .expect = "error must be DCR or CRD",
     .why = "mode"},
    {.inputs = "f32[1,4,2,2]", .attributes = "blocksize=0", .expect = "error not a positive", .why = "blocksize"},
};
PINNACE_CASES(depth_to_space, kCases)
}  // namespace pinnace::testing
