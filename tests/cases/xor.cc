// Cases of xor: truth table, broadcasting.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "bool{0,0,1,1};bool{0,1,0,1}", .expect = "bool{0,1,1,0}", .why = "truth table"},
    {.inputs = "bool[2,3];bool[3]", .why = "row broadcast"},
    {.inputs = "bool[2,1,4];bool[3,1]", .why = "both broadcast"},
    {.inputs = "bool[5];bool[]", .why = "scalar"},
    {.inputs = "bool[0];bool[1]", .expect = "bool[0]{}", .why = "empty"},
    {.inputs = "bool[2];bool[3]", .expect = "error do not broadcast", .why = "shapes"},
    {.inputs = "i32{1};i32{1}", .expect = "error takes bool", .why = "element type"},
};
PINNACE_CASES(xor, kCases)
}  // namespace pinnace::testing
