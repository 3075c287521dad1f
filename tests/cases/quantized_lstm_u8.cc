// Cases of quantized_lstm_u8: gates one by one, worked out by hand in real numbers.
#include "cases/case.h"

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "u8[1,1]{128};u8[4,2]{0,0,0,0,0,0,0,0};i32[4]{0,0,0,0};i16[1,1]{2048};u8[1,1]{128}", .attributes = "factor=1.0", .outputs = 2,
     .expect = "u8[1,1]{158};i16[1,1]{1024}", .why = "gates of a half: c 1 becomes 0.5, and 128 + 128 * 0.5 tanh(0.5) is 157.6"},
    {.inputs = "u8[2,1]{192,128};u8[4,2]{3,3,3,3,67,3,3,3};i32[4]{0,0,0,0};i16[2,1]{0,0};u8[2,1]{128,192}", .attributes = "factor=1.0, w_zero=3", .outputs = 2,
     .expect = "u8[2,1]{151,128};i16[2,1]{780,0}", .why = "x meets the first column: 2048 * 0.5 tanh(1) is 779.9"},
    {.inputs = "u8[1,1]{128};u8[4,2]{0,0,0,0,0,64,0,0};i32[4]{0,0,0,0};i16[1,1]{0};u8[1,1]{192}", .attributes = "factor=1.0", .outputs = 2,
     .expect = "u8[1,1]{151};i16[1,1]{780}", .why = "h meets the second"},
    {.inputs = "u8[1,1]{128};u8[4,2]{0,0,0,0,0,0,0,0};i32[4]{4096,8192,-4096,-8192};i16[1,1]{4096};u8[1,1]{128}", .attributes = "factor=1.0", .outputs = 2,
     .expect = "u8[1,1]{141};i16[1,1]{2468}", .tolerance = {.abs = 1}, .why = "biases 1, 2, -1, -2: c is 2 * 0.8808 - 0.7311 * 0.7616, h is 0.1192 tanh(c)"},
    {.inputs = "u8[1,1]{128};u8[4,2]{0,0,0,0,0,0,0,0};i32[4]{2147483647,2147483647,2147483647,2147483647};i16[1,1]{32767};u8[1,1]{128}", .attributes = "factor=1000.0", .outputs = 2,
     .expect = "u8[1,1]{255};i16[1,1]{32767}", .why = "everything saturates"},
    {.inputs = "u8[3,20];u8[28,27];i32[28];i16[3,7];u8[3,7]", .attributes = "factor=0.03, w_zero=120", .outputs = 2, .why = "several rows"},
    {.inputs = "u8[3,20];u8[28,27];i32[28];i16[3,7];u8[3,7]", .attributes = "factor=0.0312957763671875, w_zero=120", .outputs = 2, .why = "a factor of float32, more inputs than units"},
    {.inputs = "u8[2,3];u8[32,11];i32[32];i16[2,8];u8[2,8]", .attributes = "factor=0.0078125, w_zero=131", .outputs = 2, .why = "fewer inputs than units"},
    {.inputs = "u8[0,2];u8[4,3];i32[4];i16[0,1];u8[0,1]", .attributes = "factor=1.0", .outputs = 2, .expect = "u8[0,1]{};i16[0,1]{}", .why = "no rows"},
    {.inputs = "u8[1,2];u8[0,2];i32[0];i16[1,0];u8[1,0]", .attributes = "factor=1.0", .expect = "u8[1,0]{}", .why = "no units"},
    {.inputs = "u8[1,1];u8[4,1];i32[4];i16[1,1];u8[1,1]", .attributes = "factor=1.0", .expect = "error w is", .why = "columns of w"},
    {.inputs = "u8[1,1];u8[4,2];i32[3];i16[1,1];u8[1,1]", .attributes = "factor=1.0", .expect = "error b is", .why = "biases"},
    {.inputs = "u8[1,1];u8[4,2];i32[4];i16[1,1];u8[2,1]", .attributes = "factor=1.0", .expect = "error h is", .why = "rows of h"},
    {.inputs = "u8[1,1];u8[4,2];i32[4];i16[1,1];u8[1,1]", .attributes = "factor=2e9", .expect = "error factor is", .why = "a factor too large"},
    {.inputs = "u8[1,1];u8[4,2];i32[4];i16[1,1];u8[1,1]", .attributes = "factor=1.0, w_zero=256", .expect = "error w_zero is 256", .why = "a zero point outside"},
    {.inputs = "u8[1,1]{scale 0.5, zero 3};u8[4,2];i32[4];i16[1,1];u8[1,1]", .attributes = "factor=1.0", .expect = "error takes plain tensors only", .why = "scales would be lost"},
};
PINNACE_CASES(quantized_lstm_u8, kCases)
}  // namespace pinnace::testing
