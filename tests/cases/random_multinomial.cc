// Cases of random_multinomial: what is drawn by given seeds (worked out in Python), what cannot be drawn.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "f32[1,4]{0,0,0,0};i32{37,42}", .attributes = "samples=10",
     .expect = "i32[1,10]{3,2,3,1,1,1,3,1,2,1}", .why = "equal weights: quarters of [0, 1)"},
    {.inputs = "f32[2,2]{0,1.0986123,2.1972246,0};i32{-1,1}", .attributes = "samples=8",
     .expect = "i32[2,8]{1,1,1,0,1,1,1,0,0,1,0,0,0,0,0,0}", .why = "1 to 3 and 9 to 1; rows go on with the sequence"},
    {.inputs = "f32[1,4]{-inf,nan,-1e30,inf};i32{0,0}", .attributes = "samples=3", .expect = "i32[1,3]{2,2,2}",
     .why = "logits that are not finite are not drawn; 0 is a seed like others"},
    {.inputs = "f32[1,3]{-1e38,3e38,0};i32{5,6}", .attributes = "samples=4", .expect = "i32[1,4]{1,1,1,1}",
     .why = "weights below all others"},
    {.inputs = "f32[3,50];i32{5,6}", .attributes = "samples=20", .expect = "type i32[3,20]", .why = "random"},
    {.inputs = "f32[2,3];i32{5,6}", .attributes = "samples=0", .expect = "i32[2,0]{}", .why = "no samples"},
    {.inputs = "f32[0,3];i32{5,6}", .attributes = "samples=2", .expect = "i32[0,2]{}", .why = "no rows"},
    {.inputs = "f32[1,2]{nan,-inf};i32{5,6}", .attributes = "samples=1", .expect = "error no finite logit",
     .why = "nothing to draw"},
    {.inputs = "f32[1,0];i32{5,6}", .attributes = "samples=1", .expect = "error no finite logit", .why = "no classes"},
    {.inputs = "f32[1,2];i32{5,6}", .attributes = "samples=-1", .expect = "error samples -1", .why = "samples"},
    {.inputs = "f32[2];i32{5,6}", .attributes = "samples=1", .expect = "error must be [B,C]", .why = "logits"},
    {.inputs = "f32[1,2];i32{5,6,7}", .attributes = "samples=1", .expect = "error must be [2]", .why = "seeds"},
};
PINNACE_CASES(random_multinomial, kCases)
}  // namespace pinnace::testing
