#version 450
// y = f(a, b) of integers and bools, operands that broadcast by strides of 0; up to six dimensions. Results keep the
// low bits of their type; of 64 bits those that 32 do not hold are reported.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define INT32
#define ERROR_RECORD 3
#include "prelude.glsl"
#include "error_record.glsl"
#include "exact.glsl"
layout(local_size_x = 64) in;
ELEMENTWISE_INT32_CONSTANTS
layout(set = 0, binding = 0) readonly buffer A { int a[]; };
layout(set = 0, binding = 1) readonly buffer C { int b[]; };
layout(set = 0, binding = 2) writeonly buffer Y { int y[]; };
layout(push_constant) uniform Params { PAIR_PARAMS } p;
bool no_divisor = false;

int divided(int x, int by) {
  if (by == 0) {
    no_divisor = true;
    return 0;
  }
  if (by == -1) return difference(0, x);
  return x / by;
}
int remainder(int x, int by, bool floored) {
  if (by == 0) no_divisor = true;
  if (by == 0 || by == -1) return 0;
  int r = x - x / by * by;
  return floored && r != 0 && (r < 0) != (by < 0) ? r + by : r;
}
// What is shifted out is lost; a distance that is no place in the type leaves the fill.
int shifted(int x, int by, bool left) {
  int bits = HELD == 0 ? 32 : HELD == 5 ? 64 : HELD < 3 ? 8 : 16;
  int fill = x < 0 ? -1 : 0;
  if (by < 0 || by >= bits) return left ? 0 : fill;
  if (by >= 32) {
    beyond = left && x != 0;
    return left ? 0 : fill;
  }
  if (!left) return x >> by;
  int moved = int(uint(x) << by);
  beyond = moved >> by != x;
  return moved;
}

int apply(int a, int b) {
  switch (F) {
    case FN_add: return sum(a, b);
    case FN_sub: return difference(a, b);
    case FN_mul: return product(a, b);
    case FN_pow: return power(a, b);
    case FN_div: return divided(a, b);
    case FN_mod: return remainder(a, b, true);
    case FN_fmod: return remainder(a, b, false);
    case FN_max: return max(a, b);
    case FN_min: return min(a, b);
    case FN_neg: return difference(0, a);
    case FN_abs: return a < 0 ? difference(0, a) : a;
    case FN_sign: return a > 0 ? 1 : a < 0 ? -1 : 0;
    case FN_relu: return max(a, 0);
    case FN_equal: return a == b ? 1 : 0;
    case FN_less: return a < b ? 1 : 0;
    case FN_less_or_equal: return a <= b ? 1 : 0;
    case FN_and: return a & b;
    case FN_or: return a | b;
    case FN_xor: return a ^ b;
    case FN_not: return a == 0 ? 1 : 0;
    case FN_truth: return a != 0 ? 1 : 0;
    case FN_bit_not: return ~a;
    case FN_shift_left: return shifted(a, b, true);
    case FN_shift_right: return shifted(a, b, false);
    case FN_hot: return a == b || a + p.p == b ? 1 : 0;  // p: the depth, from whose end negative a count
  }
  return a;
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
  int v = apply(a[at], b[bt]);
  if (no_divisor) report(kDivisorZero, 0, 0);
  if (HELD == 5 && beyond) report(kBeyond32Bits, 0, 0);
  y[i] = held(HELD, v);
}
