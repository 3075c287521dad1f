// Cases of lsh_projection: lengths of keys on all sides of the hash's own limits, forms of the result. The bits were
// worked out with the FarmHash library (its Fingerprint64, by way of pyfarmhash).
#include "cases/case.h"

namespace pinnace::testing {
#define HASH "f32[4,2]{0.123,0.456,-0.321,-0.654,1.234,5.678,-4.321,-8.765};"
constexpr Case kCases[] = {
    {.inputs = HASH "i32[3,2]{12345,54321,67890,9876,-12345678,-87654321}", .expect = "i32[4]{1,2,2,0}",
     .why = "keys of 12 bytes"},
    {.inputs = HASH "i32[3,2]{12345,54321,67890,9876,-12345678,-87654321}", .attributes = "apart=1",
     .expect = "i32[4]{1,6,10,12}", .why = "rows apart"},
    {.inputs = HASH "i32[3,2]{12345,54321,67890,9876,-12345678,-87654321};f32[3]{0.12,0.34,0.56}",
     .attributes = "dense=1", .expect = "i32[8]{1,1,1,0,1,1,1,0}", .why = "weights; bits by themselves"},
    {.inputs = HASH "u8[2,3]{1,2,3,4,5,6}", .attributes = "dense=1", .expect = "i32[8]{0,0,0,0,1,0,1,1}",
     .why = "keys of 7 bytes"},
    {.inputs = HASH "f32[2]{1.5,-2};f32[2]{1,-3}", .attributes = "dense=1", .expect = "i32[8]{0,0,1,0,1,1,0,1}",
     .why = "keys of 8 bytes; a negative weight"},
    {.inputs = HASH "u8[1,21]{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}", .attributes = "dense=1",
     .expect = "i32[8]{0,1,0,1,1,0,0,1}", .why = "keys of 25 bytes"},
    {.inputs = HASH "i64[1,5]{0,1,2,3,4}", .attributes = "dense=1", .expect = "i32[8]{1,0,1,1,0,0,0,0}", .why = "keys of 44 bytes"},
    {.inputs = HASH "i64[1,10]{0,1,2,3,4,5,6,7,8,9}", .attributes = "dense=1", .expect = "i32[8]{1,0,1,0,1,0,0,1}",
     .why = "keys of 84 bytes"},
    {.inputs = HASH "i64[1,2,10]{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19}", .attributes = "dense=1",
     .expect = "i32[8]{1,1,1,1,1,0,1,1}", .why = "keys of 164 bytes; ranks do not matter"},
    {.inputs = HASH "f32[1,0]{}", .attributes = "dense=1", .expect = "i32[8]{0,0,1,1,1,1,0,1}", .why = "seeds alone"},
    {.inputs = HASH "f32[0,3]{}", .attributes = "dense=1", .expect = "i32[8]{0,0,0,0,0,0,0,0}", .why = "no rows"},
    {.inputs = HASH "f32[2]{1,2};f32[2]{nan,1}", .expect = "i32[4]{0,0,0,0}", .why = "NaN weight"},
    {.inputs = "f32[0,2]{};f32[2]{1,2}", .expect = "i32[0]{}", .why = "no seeds"},
    {.inputs = "f32[3,0]{};f32[2]{1,2}", .attributes = "apart=1", .expect = "i32[3]{0,1,2}", .why = "no bits"},
    {.inputs = "f32[3,32];f16[20,3];f32[20]", .attributes = "apart=1", .expect = "type i32[3]", .why = "random"},
    {.inputs = "f32[1,33];f32[2]", .expect = "error 33 bits", .why = "bits"},
    {.inputs = "f32[4];f32[2]", .expect = "error must be [N,b]", .why = "hash"},
    {.inputs = "f32[1,2];f32[]{1}", .expect = "error has no rows", .why = "scalar"},
    {.inputs = "f32[1,2];f32[2];f32[3]", .expect = "error not one per row", .why = "weights"},
};
#undef HASH
PINNACE_CASES(lsh_projection, kCases)
}  // namespace pinnace::testing
