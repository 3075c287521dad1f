// Cases of loop: counts and conditions, carried and captured values, scans, sizes that change.
#include "cases/case.h"

namespace pinnace::testing {
// x += step, and every x.
constexpr const char* kCount =
    "carried=1, body=graph \"b\" { input %i : i64[] input %c : bool[] input %x : f32[?] input %step : f32[?] "
    "%y = add(%x, %step) output \"c\" %c output \"x\" %y output \"all\" %y }";
// One iteration, whatever comes in.
constexpr const char* kOnce =
    "carried=1, body=graph \"b\" { input %i : i64[] input %c : bool[] input %x : f32[?] const %stop : bool[] = {0} "
    "%y = add(%x, %x) output \"c\" %stop output \"x\" %y }";
// x twice as long; a product of [n, 1] and [1, 2] flattened.
constexpr const char* kGrow =
    "carried=1, body=graph \"b\" { input %i : i64[] input %c : bool[] input %x : f32[?] const %col : i64[2] = {-1,1} "
    "const %flat : i64[1] = {-1} const %two : f32[1,2] = {1,1} %a = reshape(%x, %col) %b = mat_mul(%a, %two) "
    "%y = reshape(%b, %flat) output \"c\" %c output \"x\" %y }";
constexpr const char* kGrowScan =
    "carried=1, body=graph \"b\" { input %i : i64[] input %c : bool[] input %x : f32[?] const %col : i64[2] = {-1,1} "
    "const %flat : i64[1] = {-1} const %two : f32[1,2] = {1,1} %a = reshape(%x, %col) %b = mat_mul(%a, %two) "
    "%y = reshape(%b, %flat) output \"c\" %c output \"x\" %y output \"all\" %y }";
constexpr Case kCases[] = {
    {.inputs = "i64[]{3};none;f32{1};f32{2}", .attributes = kCount, .outputs = 2, .expect = "f32[1]{7};f32[3,1]{3,5,7}", .why = "carried, captured, scanned"},
    {.inputs = "i64[]{0};bool[]{1};f32{1};f32{2}", .attributes = kCount, .outputs = 2, .expect = "f32[1]{1};f32[0,1]{}", .why = "no iteration"},
    {.inputs = "i64[]{-5};none;f32{1};f32{2}", .attributes = kCount, .outputs = 2, .expect = "f32[1]{1};f32[0,1]{}", .why = "a negative count"},
    {.inputs = "i64[1]{4};bool[1]{0};f32{1};f32{2}", .attributes = kCount, .outputs = 2, .expect = "f32[1]{1};f32[0,1]{}", .why = "cond is false at the start"},
    {.inputs = "none;bool[]{1};f32{1}", .attributes = kOnce, .expect = "f32[1]{2}", .why = "the body's cond ends it"},
    {.inputs = "i64[]{3};none;f32{1}", .attributes = kGrow, .expect = "f32[8]{1,1,1,1,1,1,1,1}", .why = "a carried size that changes"},
    {.inputs = "i64[]{3};none;f32{1}", .attributes = kGrowScan, .outputs = 2, .expect = "error of iteration 1", .why = "scans must agree"},
    {.inputs = "i64[2]{3,4};none;f32{1};f32{2}", .attributes = kCount, .outputs = 2, .expect = "error must have one element", .why = "two counts"},
    {.inputs = "i64[]{3};none;f32{1};f32{2}", .attributes = kCount, .expect = "error the node has 1 outputs", .why = "number of outputs"},
    {.inputs = "i64[]{3};none;i32{1};f32{2}", .attributes = kCount, .outputs = 2, .expect = "error is given int32", .why = "type of a carried value"},
    {.inputs = "i64[]{3};none", .attributes = kCount, .outputs = 2, .expect = "error carried is 1", .why = "fewer values than carried"},
};
PINNACE_CASES(loop, kCases)
}  // namespace pinnace::testing
