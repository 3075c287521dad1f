// Cases of gather_nd: tuples, slices, batches.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[2,2]{0,1,2,3};i64[2,2]{0,0,1,1}", .expect = "f32[2]{0,3}", .why = "elements"},
    {.inputs = "f32[2,2]{0,1,2,3};i64[2,1]{1,0}", .expect = "f32[2,2]{2,3,0,1}", .why = "slices"},
    {.inputs = "f32[2,2,2]{0,1,2,3,4,5,6,7};i64[2,1,2]{0,1,1,0}", .expect = "f32[2,1,2]{2,3,4,5}",
     .why = "indices of rank 3"},
    {.inputs = "f32[2,2,2]{0,1,2,3,4,5,6,7};i64[2,1]{1,0}", .attributes = "batch_dims=1",
     .expect = "f32[2,2]{2,3,4,5}", .why = "batch"},
    {.inputs = "i8[2,3];i64[1,2]{-1,-3}", .expect = "type i8[1]", .why = "negative"},
    {.inputs = "bool[2]{0,1};i64{1}", .expect = "bool[]{1}", .why = "one tuple"},
    {.inputs = "f32[2,2];i64[0,2]{}", .expect = "f32[0]{}", .why = "no tuples"},
    {.inputs = "f32[2,2];i64[1,2]{0,2}", .expect = "error index 2 is outside", .why = "too large"},
    {.inputs = "f32[2];i64[1,2]{0,0}", .expect = "error name 2 dimensions", .why = "too many"},
    {.inputs = "f32[2,2];i64[3,1]{0,0,0}", .attributes = "batch_dims=1", .expect = "error differ",
     .why = "batch sizes"},
};
PINNACE_CASES(gather_nd, kCases)
}  // namespace pinnace::testing
