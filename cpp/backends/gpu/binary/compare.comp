#version 450
// y = f(a, b), integers and bools of floats, operands that broadcast by strides of 0; up to six dimensions.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define ERROR_RECORD 3
#include "prelude.glsl"
#include "error_record.glsl"
layout(local_size_x = 64) in;
COMPARE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer A { S a[]; };
layout(set = 0, binding = 1) readonly buffer C { S b[]; };
layout(set = 0, binding = 2) writeonly buffer Y { int y[]; };
layout(push_constant) uniform Params { PAIR_PARAMS } p;

// By their bits, whatever the device makes of comparisons with NaN.
bool is_nan(float v) { return (floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u; }
// p: 1 counts -infinity, 2 counts infinity, 3 both.
bool is_inf(float v) {
  uint bits = floatBitsToUint(v);
  return (bits == 0xff800000u && (p.p & 1) != 0) || (bits == 0x7f800000u && (p.p & 2) != 0);
}
// Truncated; outside of 32 bits the smallest integer, of which narrower types take the low bits.
int whole(float v) {
  bool fits = !is_nan(v) && v >= -2147483648.0 && v < 2147483648.0;
  if (!fits && HELD == 5) report(kBeyond32Bits, 0, 0);
  return fits ? int(v) : int(0x80000000u);
}

int apply(float a, float b) {
  bool numbers = !is_nan(a) && !is_nan(b);
  switch (F) {
    case FN_equal: return numbers && a == b ? 1 : 0;
    case FN_less: return numbers && a < b ? 1 : 0;
    case FN_less_or_equal: return numbers && a <= b ? 1 : 0;
    case FN_truth: return is_nan(a) || a != 0.0 ? 1 : 0;
    case FN_is_nan: return is_nan(a) ? 1 : 0;
    case FN_is_inf: return is_inf(a) ? 1 : 0;
  }
  return held(HELD, whole(a));
}

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int k = i, at = 0, bt = 0;
  int c = k % p.n4; k /= p.n4; at += c * p.a5; bt += c * p.b5;
  c = k % p.n3; k /= p.n3; at += c * p.a4; bt += c * p.b4;
  c = k % p.n2; k /= p.n2; at += c * p.a3; bt += c * p.b3;
  c = k % p.n1; k /= p.n1; at += c * p.a2; bt += c * p.b2;
  c = k % p.n0; k /= p.n0; at += c * p.a1; bt += c * p.b1;
  at += k * p.a0; bt += k * p.b0;
  y[i] = apply(float(a[at]), float(b[bt]));
}
