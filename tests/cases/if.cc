// Cases of if: the taken branch, branches that differ in size, refusals.
#include "cases/case.h"

namespace pinnace::testing {
constexpr const char* kReluOrTwice =
    "then_branch=graph \"t\" { input %x : f32[?] %y = relu(%x) output \"y\" %y }, "
    "else_branch=graph \"e\" { input %x : f32[?] %y = add(%x, %x) output \"y\" %y }";
// then: sizes that broadcast; else: %b of one element, whose squeeze refuses others.
constexpr const char* kAddOrStack =
    "then_branch=graph \"t\" { input %a : f32[?] input %b : f32[?] %y = add(%a, %b) output \"y\" %y }, "
    "else_branch=graph \"e\" { input %a : f32[?] input %b : f32[?] const %axis : i64[1] = {0} %c = squeeze(%b, %axis) "
    "%d = unsqueeze(%c, %axis) %y = concat(%a, %d, %d) {axis=0} output \"y\" %y }";
constexpr Case kCases[] = {
    {.inputs = "bool[]{1};f32{-1,2}", .attributes = kReluOrTwice, .expect = "f32[2]{0,2}", .why = "then"},
    {.inputs = "bool[1]{0};f32{-1,2}", .attributes = kReluOrTwice, .expect = "f32[2]{-2,4}", .why = "else; cond of rank 1"},
    {.inputs = "bool[]{1}", .attributes = "then_branch=graph \"t\" { const %a : i64[2] = {1,2} output \"y\" %a }, else_branch=graph \"e\" { const %a : i64[1] = {3} output \"y\" %a }",
     .expect = "i64[2]{1,2}", .why = "nothing captured, sizes differ"},
    {.inputs = "bool[]{0}", .attributes = "then_branch=graph \"t\" { const %a : i64[1,2] = {1,2} output \"y\" %a }, else_branch=graph \"e\" { const %a : i64[1] = {3} output \"y\" %a }",
     .expect = "i64[1]{3}", .why = "ranks differ, cond is known"},
    {.inputs = "bool[]{1};f32{-1,2};f32{1,2}", .attributes = kAddOrStack, .expect = "f32[2]{0,4}", .why = "the other branch does not fit these sizes"},
    {.inputs = "bool[]{0};f32{-1,2};f32{1}", .attributes = kAddOrStack, .expect = "f32[4]{-1,2,1,1}", .why = "nor then"},
    {.inputs = "bool[]{1};f32{-1,2};f32{1,2,3}", .attributes = kAddOrStack, .expect = "error add", .why = "the taken branch does not fit"},
    {.inputs = "bool[2]{0,1};f32{-1,2}", .attributes = kReluOrTwice, .expect = "error must have one element", .why = "two conditions"},
    {.inputs = "bool[]{1};f32{1};f32{2}", .attributes = kReluOrTwice, .expect = "error takes 1 inputs, is given 2", .why = "captured values"},
    {.inputs = "bool[]{1};i32{1}", .attributes = kReluOrTwice, .expect = "error is given int32", .why = "type of a captured value"},
    {.inputs = "bool[]{1};f32{1}", .attributes = kReluOrTwice, .outputs = 2, .expect = "error has 1 outputs, the node 2", .why = "number of outputs"},
};
PINNACE_CASES(if, kCases)
}  // namespace pinnace::testing
