// Cases of random_philox: the authors' test vectors (Random123, kat_vectors), blocks in a row, shapes.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "i64{0,0};i64{4}", .expect = "i64[4]{1713891541,3781805453,3159862348,2600524760}",
     .why = "all zeros: 6627e8d5 e169c58d bc57ac4c 9b00dbd8"},
    {.inputs = "i64{-1,-1};i64{2,2}", .attributes = "key=-1", .expect = "i64[2,2]{1083123565,1103641358,2718681030,1834242557}",
     .why = "all ones: 408f276d 41c83b0e a20bc7c6 6d5451fd"},
    {.inputs = "i64{-8817193942522041720,247824715720788526};i64{4}", .attributes = "key=2999170649027065890",
     .expect = "i64[4]{3513581065,2499661035,1342301216,605187745}", .why = "digits of pi: d16cfe09 94fdcceb 5001e420 24126ea1"},
    {.inputs = "i64{0,0};i64{6}", .expect = "i64[6]{1713891541,3781805453,3159862348,2600524760,4175744164,1555169499}",
     .why = "the next block"},
    {.inputs = "i64{-1,0};i64{5}", .attributes = "key=5", .expect = "i64[5]{3443219710,1369147961,3845053192,833398812,1664195124}",
     .why = "the number of the block carries"},
    {.inputs = "i64{7,3};i64{}", .expect = "type i64[]", .why = "one word without dimensions"},
    {.inputs = "i64{7,3};i64{0,3}", .expect = "i64[0,3]{}", .why = "no words"},
    {.inputs = "i64{7,3};i64{33,1001}", .attributes = "key=1", .why = "many"},
    {.inputs = "i64{7};i64{2}", .expect = "error counter must be [2]", .why = "half a counter"},
    {.inputs = "i64{7,3};i64{2,-1}", .expect = "error size -1", .why = "a negative size"},
};
PINNACE_CASES(random_philox, kCases)
}  // namespace pinnace::testing
