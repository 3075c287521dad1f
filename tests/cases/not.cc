// Cases of not: values, shapes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "bool{1,0}", .expect = "bool{0,1}", .why = "both values"},
    {.inputs = "bool[2,3]", .why = "matrix"},
    {.inputs = "bool[]{1}", .expect = "bool[]{0}", .why = "scalar"},
    {.inputs = "bool[0,3]", .expect = "bool[0,3]{}", .why = "empty"},
    {.inputs = "i32{1}", .expect = "error takes bool", .why = "element type"},
};
PINNACE_CASES(not, kCases)
}  // namespace pinnace::testing
