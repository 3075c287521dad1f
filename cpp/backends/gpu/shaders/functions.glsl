// Functions of numbers, over T, which is float or vec4 (SELECT picks lane by lane: c ? a : b). NaN stays NaN in all
// that are written with comparisons; elsewhere it is what the device makes of it.
// Codes are those of backends/gpu/functions.inc and ops/unary.inc; the build generates them as FN_name.
#include "numbers.glsl"
#ifdef SCALAR
#define B bool
#else
#define B bvec4
#endif

// 1 / (1 + exp(-x)); exp overflows to infinity, which gives 0.
T sigmoid(T x) { return T(1.0) / (T(1.0) + exp(-x)); }

// Beyond 10 the result is 1 in float32; the device's own may overflow there.
T tanh_safe(T x) {
  T big = T(10.0);
  T inside = SELECT(GT(x, big), big, SELECT(LT(x, -big), -big, x));
  T t = exp(T(2.0) * inside);
  T far = (t - T(1.0)) / (t + T(1.0));
  // Near 0 the difference cancels: x - x^3/3 + 2x^5/15 - 17x^7/315.
  T s = inside * inside;
  T near = inside * (T(1.0) + s * (T(-0.333333333) + s * (T(0.133333333) + s * T(-0.0539682540))));
  return SELECT(LT(abs(inside), T(0.2)), near, far);
}

// Abramowitz and Stegun 7.1.26, absolute error 1.5e-7; near 0 the series.
T erf_safe(T x) {
  T a = abs(x);
  T t = T(1.0) / (T(1.0) + T(0.3275911) * a);
  T p = t * (T(0.254829592) + t * (T(-0.284496736) + t * (T(1.421413741) + t * (T(-1.453152027) + t * T(1.061405429)))));
  T far = T(1.0) - p * exp(-a * a);
  T s = a * a;
  T near = a * (T(1.128379167) + s * (T(-0.376126389) + s * (T(0.112837917) + s * T(-0.0268661706))));
  T r = SELECT(LT(a, T(0.3)), near, far);
  return SELECT(LT(x, T(0.0)), -r, r);
}

// log(1 + x) without losing a small x.
T log1p_safe(T x) {
  T u = T(1.0) + x;
  T d = u - T(1.0);
  return SELECT(LT(abs(x), T(1e-4)), x - x * x * T(0.5), log(u));
}
T expm1_safe(T x) {
  T near = x * (T(1.0) + x * (T(0.5) + x * (T(0.166666667) + x * (T(0.0416666667) + x * T(0.00833333333)))));
  return SELECT(LT(abs(x), T(0.2)), near, exp(x) - T(1.0));
}
T softplus(T x) {
  T a = abs(x);
  return SELECT(GT(x, T(0.0)), x, T(0.0)) + SELECT(IS_NAN(x), x, log1p_safe(exp(-a)));
}
T power(T x, T y) {
  T infinity = T(uintBitsToFloat(0x7f800000u)), nan = T(uintBitsToFloat(0x7fc00000u));
  T zero = T(0.0), one = T(1.0), size = abs(x);
  T r = exp2(y * log2(size));
  // What the device's logarithm makes of 0 and infinity is its own.
  r = SELECT(LE(size, zero), SELECT(LT(y, zero), infinity, zero), r);
  r = SELECT(GE(size, infinity), SELECT(LT(y, zero), zero, infinity), r);
  r = SELECT(LE(abs(size - one), zero), one, r);  // also to an infinite power
  T odd = y - T(2.0) * floor(y * T(0.5));
  // Of infinity and 0 there are roots of -x too.
  T root = SELECT(GE(size, infinity), r, SELECT(LE(size, zero), r, nan));
  T negative = SELECT(GT(y, floor(y)), root, SELECT(GE(odd, one), -r, r));
  T sign = uintBitsToFloat((floatBitsToUint(x) & 0x80000000u) | 0x3f800000u);  // -0 is below 0 here
  r = SELECT(LT(sign, zero), negative, r);
  // Small powers exactly, as users mean them.
  r = SELECT(LE(abs(y - T(2.0)), zero), x * x, r);
  r = SELECT(LE(abs(y - T(3.0)), zero), x * x * x, r);
  r = SELECT(LE(abs(y - one), zero), x, r);
  r = SELECT(IS_NAN(x), x, SELECT(IS_NAN(y), y, r));
  return SELECT(LE(abs(y), zero), one, SELECT(LE(abs(x - one), zero), one, r));
}
T round_even(T x) { return roundEven(x); }

// Of magnitudes above tan(pi / 8) and above its inverse from the complement; below by Cephes' polynomial, relative
// error 2e-7.
T atan_safe(T x) {
  T a = abs(x);
  B high = GT(a, T(2.41421356)), middle = GT(a, T(0.414213562));
  T r = SELECT(high, T(-1.0) / a, SELECT(middle, (a - T(1.0)) / (a + T(1.0)), a));
  T s = r * r;
  T p = ((T(0.0805374449) * s - T(0.138776856)) * s + T(0.199777106)) * s - T(0.333329491);
  T made = SELECT(high, T(1.57079633), SELECT(middle, T(0.785398163), T(0.0))) + (r + r * s * p);
  return SELECT(LT(x, T(0.0)), -made, made);
}
// asin(a) for a in [0, 0.5], beyond asin(sqrt((1 - a) / 2)), which is what the complement needs; Cephes' polynomial.
T asin_part(T a) {
  B high = GT(a, T(0.5));
  T s = SELECT(high, T(0.5) * (T(1.0) - a), a * a);
  T r = SELECT(high, sqrt(max(s, T(0.0))), a);
  T p = (((T(0.0421631990) * s + T(0.0241813110)) * s + T(0.0454700260)) * s + T(0.0749530027)) * s + T(0.166667524);
  return r + r * s * p;
}
T nan_beyond_one(T a, T y) { return SELECT(GT(a, T(1.0)), T(uintBitsToFloat(0x7fc00000u)), y); }
T asin_safe(T x) {
  T a = abs(x), part = asin_part(a);
  T made = SELECT(GT(a, T(0.5)), T(1.57079633) - T(2.0) * part, part);
  return SELECT(IS_NAN(x), x, nan_beyond_one(a, SELECT(LT(x, T(0.0)), -made, made)));
}
T acos_safe(T x) {
  T a = abs(x), part = asin_part(a);
  B negative = LT(x, T(0.0));
  T far = SELECT(negative, T(3.14159265) - T(2.0) * part, T(2.0) * part);
  T near = T(1.57079633) + SELECT(negative, part, -part);
  return SELECT(IS_NAN(x), x, nan_beyond_one(a, SELECT(GT(a, T(0.5)), far, near)));
}
// exp(a / 2) twice: the result may be finite where exp(a) is not.
T sinh_safe(T x) {
  T a = abs(x), h = exp(a * T(0.5)), s = a * a;
  T near = a * (T(1.0) + s * (T(0.166666667) + s * (T(0.00833333333) + s * T(0.000198412698))));
  T made = SELECT(LT(a, T(0.5)), near, (T(0.5) * h) * h - T(0.5) / (h * h));
  return SELECT(LT(x, T(0.0)), -made, made);
}
T cosh_safe(T x) {
  T h = exp(abs(x) * T(0.5));
  return (T(0.5) * h) * h + T(0.5) / (h * h);
}
// Beyond 1e9 the 1 under the root is below a rounding, and the square soon overflows.
T asinh_safe(T x) {
  T a = abs(x), s = a * a;
  T made = SELECT(GT(a, T(1e9)), log(a) + T(0.693147181), log1p_safe(a + s / (T(1.0) + sqrt(s + T(1.0)))));
  return SELECT(LT(x, T(0.0)), -made, made);
}
T acosh_safe(T x) {
  T t = x - T(1.0);
  T near = log1p_safe(t + sqrt(max(T(2.0) * t + t * t, T(0.0))));
  T made = SELECT(GT(x, T(1e9)), log(x) + T(0.693147181), near);
  return SELECT(LT(x, T(1.0)), T(uintBitsToFloat(0x7fc00000u)), SELECT(IS_NAN(x), x, made));
}
T atanh_safe(T x) {
  T a = abs(x);
  T made = T(0.5) * log1p_safe(T(2.0) * a / (T(1.0) - a));
  return SELECT(IS_NAN(x), x, nan_beyond_one(a, SELECT(LT(x, T(0.0)), -made, made)));
}
// Rounded half to even to what 16 bits hold, for tensors that are held in 32.
#ifdef SCALAR
#define U uint
T to_f16(T x) { return unpackHalf2x16(packHalf2x16(vec2(x, 0.0))).x; }
#else
#define U uvec4
T to_f16(T x) { return T(unpackHalf2x16(packHalf2x16(x.xy)), unpackHalf2x16(packHalf2x16(x.zw))); }
#endif
T to_bf16(T x) {
  U bits = floatBitsToUint(x);
  U rounded = (bits + U(0x7fffu) + ((bits >> 16) & U(1u))) & U(0xffff0000u);
  return SELECT(IS_NAN(x), x, uintBitsToFloat(rounded));
}

#ifdef SCALAR
// What is left of a after whole multiples of b, exactly, whatever their exponents: by the mantissas, eight bits at a
// time. floored: with the sign of b, else of a.
float remainder(float a, float b, bool floored) {
  uint ua = floatBitsToUint(a), ub = floatBitsToUint(b), sign = ua & 0x80000000u, other = ub & 0x80000000u;
  ua &= 0x7fffffffu;
  ub &= 0x7fffffffu;
  if (ua >= 0x7f800000u || ub > 0x7f800000u || ub == 0u) return uintBitsToFloat(0x7fc00000u);
  int ea = max(int(ua >> 23), 1), eb = max(int(ub >> 23), 1);
  uint bits = ua;
  if (ea >= eb && ub != 0x7f800000u) {
    uint m = ub < 0x800000u ? ub : ub & 0x7fffffu | 0x800000u;
    uint r = (ua < 0x800000u ? ua : ua & 0x7fffffu | 0x800000u) % m;
    for (int left = ea - eb; left > 0; left -= 8) r = (r << min(left, 8)) % m;
    int shift = r == 0u ? 0 : 23 - findMSB(r);
    bits = eb - shift >= 1 && r != 0u ? uint(eb - shift) << 23 | r << shift & 0x7fffffu : r << min(eb - 1, 31);
  }
  if (!floored) return uintBitsToFloat(bits | sign);
  if (bits == 0u) return uintBitsToFloat(other);
  float made = uintBitsToFloat(bits | sign);
  return sign != other ? made + b : made;
}
#endif

// One function of one or two numbers; p and q are its parameters.
T apply(int code, T a, T b, float p, float q) {
  T x = a;  // as formulas in unary.inc have it
  switch (code) {
#define UNARY_POWER(name, glsl)
#define UNARY_ALONE(name, glsl) case FN_##name: return glsl;
#define UNARY_FUSED(name, glsl) UNARY_ALONE(name, glsl)
#define UNARY_EPILOGUE(name, glsl) UNARY_ALONE(name, glsl)
#define UNARY(kind, name, use, parameters, reference, simd, glsl) UNARY_##use(name, glsl)
#include "ops/unary.inc"
    case FN_add: return a + b;
    case FN_sub: return a - b;
    case FN_rsub: return b - a;
    case FN_mul: return a * b;
    case FN_div: return a / b;
    case FN_rdiv: return b / a;
    case FN_div_or_zero: return SELECT(LE(abs(b), T(0.0)), T(0.0), a / b);
    case FN_pow: return power(a, b);
    case FN_rpow: return power(b, a);
    case FN_max: return SELECT(IS_NAN(a), a, SELECT(IS_NAN(b), b, max(a, b)));
    case FN_min: return SELECT(IS_NAN(a), a, SELECT(IS_NAN(b), b, min(a, b)));
#ifdef SCALAR
    case FN_mod: return remainder(a, b, true);
    case FN_fmod: return remainder(a, b, false);
#endif
    case FN_prelu: return SELECT(LT(a, T(0.0)), a * b, a);
    case FN_rprelu: return SELECT(LT(b, T(0.0)), a * b, b);
    case FN_affine: return a * T(p) + T(q);
    case FN_to_f16: return to_f16(a);
    case FN_to_bf16: return to_bf16(a);
  }
  return a;
}
