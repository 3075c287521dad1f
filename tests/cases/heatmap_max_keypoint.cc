// Cases of heatmap_max_keypoint: peaks between elements, at the edge, flat ones.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,3,3]{0,1,0,1,2,1,0,1,0};f32[1,4]{0,0,3,6}", .outputs = 2,
     .expect = "f32[1,1]{2};f32[1,1,2]{1.5,3}", .why = "in the middle of an element"},
    {.inputs = "f32[1,1,3,3]{-1,1,-1,1,2,1,0,1,0};f32[1,4]{0,0,3,3}", .outputs = 2,
     .expect = "f32[1,1]{2};f32[1,1,2]{1.5,1.5}", .why = "corners alone move nothing"},
    {.inputs = "f32[1,1,3,3]{-4,-1,-2,0,3,2,-4,-1,-2};f32[1,4]{0,0,3,3}", .outputs = 2,
     .expect = "f32[1,1]{3.125};f32[1,1,2]{1.75,1.5}",
     .why = "3 + x - 2 x^2 across (0, 3, 2): at x = 1/4, 1/8 higher"},
    {.inputs = "f32[1,1,3,3]{-4,0,-4,-1,3,-1,-2,2,-2};f32[1,4]{1,1,4,7}", .outputs = 2,
     .expect = "f32[1,1]{3.125};f32[1,1,2]{2.5,4.5}", .why = "the same downwards; the box has an origin and its own height"},
    {.inputs = "f32[1,1,2,2]{1,0,0,0};f32[1,4]{0,0,2,2}", .outputs = 2,
     .expect = "f32[1,1]{1};f32[1,1,2]{0.5,0.5}", .why = "in a corner neighbours are mirrored"},
    {.inputs = "f32[1,1,2,2]{5,5,5,5};f32[1,4]{0,0,2,2}", .outputs = 2,
     .expect = "f32[1,1]{5};f32[1,1,2]{0.5,0.5}", .why = "flat: the first element"},
    {.inputs = "f32[1,1,2,2]{nan,1,0,0};f32[1,4]{0,0,2,2}", .outputs = 2,
     .expect = "f32[1,1]{nan};f32[1,1,2]{nan,nan}", .why = "NaN are no maximum, but neighbours"},
    {.inputs = "f32[2,2,2,2]{9,0,0,0,0,9,0,0,0,0,9,0,0,0,0,9};f32[2,4]{0,0,2,2,0,0,20,20}", .outputs = 2,
     .expect = "f32[2,2]{9,9,9,9};f32[2,2,2]{0.5,0.5,1.5,0.5,5,15,15,15}", .why = "boxes and keypoints"},
    {.inputs = "f32[3,2,8,8];f32[3,4]", .outputs = 2, .expect = "type f32[3,2];f32[3,2,2]", .why = "random"},
    {.inputs = "f32[1,1,3,3]{0,1,0,1,2,1,0,1,0};f32[1,4]{0,0,3,6}", .attributes = "tolerance=1e9", .outputs = 2,
     .expect = "f32[1,1]{2};f32[1,1,2]{1.5,3}", .why = "everything is flat"},
    {.inputs = "f32[0,3,4,4];f32[0,4]", .outputs = 2, .expect = "f32[0,3]{};f32[0,3,2]{}", .why = "no boxes"},
    {.inputs = "f32[1,1,1,1];f32[1,4]", .outputs = 2, .expect = "error no neighbours", .why = "one element"},
    {.inputs = "f32[1,1,2,3];f32[1,4]", .outputs = 2, .expect = "error must be [R,K,S,S]", .why = "not square"},
    {.inputs = "f32[1,1,2,2];f32[2,4]", .outputs = 2, .expect = "error must be [R,K,S,S]", .why = "boxes"},
};
PINNACE_CASES(heatmap_max_keypoint, kCases)
}  // namespace pinnace::testing
