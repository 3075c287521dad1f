// What formulas over T are written with, T being float (where SCALAR is defined) or vec4; SELECT picks lane by lane:
// c ? a : b. NaN stays NaN in what is written with comparisons.
#ifdef SCALAR
#define T float
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define SELECT(c, a, b) ((c) ? (a) : (b))
#define IS_NAN(a) isnan(a)
#else
#define T vec4
#define LT(a, b) lessThan(a, b)
#define LE(a, b) lessThanEqual(a, b)
#define GT(a, b) greaterThan(a, b)
#define GE(a, b) greaterThanEqual(a, b)
#define SELECT(c, a, b) mix(b, a, c)
#define IS_NAN(a) isnan(a)
#endif

T clip(T x, T low, T high) {
  T r = SELECT(LT(x, low), low, x);
  return SELECT(GT(r, high), high, r);
}
