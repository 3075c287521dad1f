// The epilogue of products, as activation.glsl has it, of one number: ACT is a function constant, the code of a row of
// unary.inc. In place of the include the build puts the cases of use EPILOGUE, with the formulas of GLSL.
#define T float
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define SELECT(c, a, b) ((c) ? (a) : (b))
#define IS_NAN(a) isnan(a)
float clip(float x, float low, float high)
{
    float r = x < low ? low : x;
    return r > high ? high : r;
}
float activate(float x, float p, float q)
{
    switch (ACT)
    {
#include "ops/unary.inc"
    }
    return x;
}
#undef T
