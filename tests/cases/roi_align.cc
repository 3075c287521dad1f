// Cases of roi_align: modes, sampling, boxes outside.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,1,2,2]{1,2,3,4};f32[1,4]{0,0,2,2};i64{0}", .expect = "f32[1,1,1,1]{2.5}", .why = "the whole"},
    {.inputs = "f32[1,1,2,2]{1,2,3,4};f32[1,4]{0,0,2,2};i64{0}",
     .attributes = "output_height=2, output_width=2, sampling_ratio=1", .expect = "f32[1,1,2,2]{1,2,3,4}",
     .why = "one sample per element"},
    {.inputs = "f32[1,1,2,2]{1,2,3,4};f32[1,4]{0,0,1,1};i64{0}",
     .attributes = "coordinate_transformation_mode=\"output_half_pixel\"", .expect = "f32[1,1,1,1]{2.5}",
     .why = "corners as they are"},
    {.inputs = "f32[1,1,2,2]{1,2,3,4};f32[1,4]{50,50,60,60};i64{0}", .attributes = "sampling_ratio=2",
     .expect = "f32[1,1,1,1]{0}", .why = "outside"},
    {.inputs = "f32[1,1,2,2]{1,2,3,4};f32[1,4]{2,2,1,1};i64{0}", .expect = "f32[1,1,1,1]{0}",
     .why = "upside down: no samples"},
    {.inputs = "f32[1,1,4,4];f32[1,4]{0,0,4,4};i64{0}",
     .attributes = "mode=\"max\", sampling_ratio=2, output_height=2, output_width=2", .expect = "type f32[1,1,2,2]",
     .why = "max"},
    {.inputs = "f32[2,3,8,9];f32[4,4] in 0..8;i64{0,1,1,0}",
     .attributes = "spatial_scale=0.5, output_height=3, output_width=2", .expect = "type f32[4,3,3,2]",
     .tolerance = {.rel = 1e-5f}, .why = "batch and channels"},
    {.inputs = "f16[1,2,5,5];f16[2,4] in 0..5;i64{0,0}", .attributes = "output_height=2, output_width=2",
     .why = "half"},
    {.inputs = "f32[1,1,4,4];f32[0,4];i64[0]{}", .expect = "f32[0,1,1,1]{}", .why = "no boxes"},
    {.inputs = "f32[1,1,4,4];f32[1,4]{0,0,1,1};i64{1}", .expect = "error batch index 1", .why = "image"},
    {.inputs = "f32[1,1,4,4];f32[1,4]{0,0,nan,1};i64{0}", .expect = "error not finite", .why = "NaN"},
    {.inputs = "f32[1,1,4,4];f32[1,4]{0,0,1e9,1};i64{0}", .expect = "error are the most", .why = "a huge box"},
    {.inputs = "f32[1,1,4,4];f32[1,3];i64{0}", .expect = "error must be [R,4]", .why = "rois"},
    {.inputs = "f32[1,1,4,4];f32[2,4];i64{0}", .expect = "error differ in length", .why = "lengths"},
    {.inputs = "f32[1,1,4,4];f32[1,4];i64{0}", .attributes = "output_height=0", .expect = "error not positive",
     .why = "size"},
};
PINNACE_CASES(roi_align, kCases)
}  // namespace pinnace::testing
