// Arithmetic in 64-bit floats by 32-bit integers, to the bit: where the reference's sums round, these round alike. A
// number is (low word, high word) of IEEE's format; finite, and zero or normal, as is every result: the lowering sees
// to that. Zeros are +0. Rounded to nearest, ties to even.
const uvec2 kZeroDouble = uvec2(0u);

bool less64(uvec2 a, uvec2 b) { return a.y < b.y || (a.y == b.y && a.x < b.x); }
uvec2 add64(uvec2 a, uvec2 b) {
  uint low = a.x + b.x;
  return uvec2(low, a.y + b.y + (low < a.x ? 1u : 0u));
}
uvec2 sub64(uvec2 a, uvec2 b) { return uvec2(a.x - b.x, a.y - b.y - (a.x < b.x ? 1u : 0u)); }
// n in [0, 63].
uvec2 left64(uvec2 v, int n) {
  if (n == 0) return v;
  if (n >= 32) return uvec2(0u, v.x << (n - 32));
  return uvec2(v.x << n, v.y << n | v.x >> (32 - n));
}
// n >= 0; the last bit of the result stands for all that fell off.
uvec2 right_sticky64(uvec2 v, int n) {
  if (n == 0) return v;
  if (n > 63) return uvec2((v.x | v.y) == 0u ? 0u : 1u, 0u);
  if (n == 32) return uvec2(v.y | (v.x == 0u ? 0u : 1u), 0u);
  if (n > 32) return uvec2(v.y >> (n - 32) | ((v.y << (64 - n) | v.x) == 0u ? 0u : 1u), 0u);
  return uvec2(v.x >> n | v.y << (32 - n) | (v.x << (32 - n) == 0u ? 0u : 1u), v.y >> n);
}
// a * b of words.
uvec2 product64(uint a, uint b) {
  uint al = a & 65535u, ah = a >> 16, bl = b & 65535u, bh = b >> 16;
  uint ll = al * bl, lh = al * bh, hl = ah * bl;
  uint middle = (ll >> 16) + (lh & 65535u) + (hl & 65535u);
  return uvec2(ll & 65535u | middle << 16, ah * bh + (lh >> 16) + (hl >> 16) + (middle >> 16));
}

int exponent_of(uvec2 v) { return int(v.y >> 20 & 2047u); }
uvec2 mantissa_of(uvec2 v) { return uvec2(v.x, v.y & 0xfffffu | 0x100000u); }
// sign, exponent and a mantissa with its first bit at 55: three bits are rounded off.
uvec2 rounded(uint sign, int exponent, uvec2 m) {
  uint last = m.x & 7u;
  m = uvec2(m.x >> 3 | m.y << 29, m.y >> 3);
  if (last > 4u || (last == 4u && (m.x & 1u) == 1u)) m = add64(m, uvec2(1u, 0u));
  // The mantissa's first bit, or what rounding carried, adds to the exponent.
  return uvec2(m.x, sign | (m.y + (uint(exponent - 1) << 20)));
}

uvec2 add_doubles(uvec2 a, uvec2 b) {
  if (less64(uvec2(a.x, a.y & 0x7fffffffu), uvec2(b.x, b.y & 0x7fffffffu))) {
    uvec2 other = a;
    a = b;
    b = other;
  }
  if (exponent_of(b) == 0) return a;
  int exponent = exponent_of(a);
  uvec2 m = left64(mantissa_of(a), 3), small = right_sticky64(left64(mantissa_of(b), 3), exponent - exponent_of(b));
  if ((a.y ^ b.y) >> 31 == 0u) {
    m = add64(m, small);
    if (m.y >= 0x1000000u) {
      m = right_sticky64(m, 1);
      exponent++;
    }
  } else {
    m = sub64(m, small);
    if ((m.x | m.y) == 0u) return kZeroDouble;
    int first = m.y != 0u ? 32 + findMSB(m.y) : findMSB(m.x);
    m = left64(m, 55 - first);
    exponent -= 55 - first;
  }
  return rounded(a.y & 0x80000000u, exponent, m);
}

uvec2 negative(uvec2 v) { return exponent_of(v) == 0 ? kZeroDouble : uvec2(v.x, v.y ^ 0x80000000u); }

uvec2 multiply_doubles(uvec2 a, uvec2 b) {
  if (exponent_of(a) == 0 || exponent_of(b) == 0) return kZeroDouble;
  uvec2 ma = left64(mantissa_of(a), 11), mb = left64(mantissa_of(b), 11);
  uvec2 ll = product64(ma.x, mb.x), lh = product64(ma.x, mb.y), hl = product64(ma.y, mb.x);
  uvec2 low = add64(uvec2(ll.y, 0u), uvec2(lh.x, 0u));
  low = add64(low, uvec2(hl.x, 0u));
  uvec2 m = add64(product64(ma.y, mb.y), add64(uvec2(lh.y, 0u), uvec2(hl.y, 0u)));
  m = add64(m, uvec2(low.y, 0u));
  uint rest = low.x | ll.x;  // 128 bits are m, low.x, ll.x, the first at 127 or 126
  int exponent = exponent_of(a) + exponent_of(b) - 1022;
  int shift = 8;
  if (m.y < 0x80000000u) {
    shift = 7;
    exponent--;
  }
  m = right_sticky64(m, shift);
  if (rest != 0u) m.x |= 1u;
  return rounded((a.y ^ b.y) & 0x80000000u, exponent, m);
}

// b is not zero.
uvec2 divide_doubles(uvec2 a, uvec2 b) {
  if (exponent_of(a) == 0) return kZeroDouble;
  uvec2 rest = mantissa_of(a), by = mantissa_of(b), m = uvec2(0u);
  int exponent = exponent_of(a) - exponent_of(b) + 1023;
  if (less64(rest, by)) {
    rest = left64(rest, 1);
    exponent--;
  }
  for (int i = 0; i < 56; i++) {
    m = left64(m, 1);
    if (!less64(rest, by)) {
      rest = sub64(rest, by);
      m.x |= 1u;
    }
    rest = left64(rest, 1);
  }
  if ((rest.x | rest.y) != 0u) m.x |= 1u;
  return rounded((a.y ^ b.y) & 0x80000000u, exponent, m);
}

// v is not negative.
uvec2 root_of_double(uvec2 v) {
  if (exponent_of(v) == 0) return kZeroDouble;
  int exponent = exponent_of(v) - 1023;
  // 54 bits of digits by twos, then zeros; half the exponent, rounded down, is the root's.
  uvec2 digits = left64(mantissa_of(v), 10 + (exponent & 1)), rest = uvec2(0u), m = uvec2(0u);
  for (int i = 0; i < 56; i++) {
    rest = left64(rest, 2);
    rest.x |= digits.y >> 30;
    digits = left64(digits, 2);
    uvec2 next = left64(m, 2);
    next.x |= 1u;
    m = left64(m, 1);
    if (!less64(rest, next)) {
      rest = sub64(rest, next);
      m.x |= 1u;
    }
  }
  if ((rest.x | rest.y) != 0u) m.x |= 1u;
  return rounded(0u, (exponent >> 1) + 1023, m);
}

// Of a 32-bit float that is finite, by its bits.
uvec2 widened(uint bits) {
  uint sign = bits & 0x80000000u, exponent = bits >> 23 & 255u, m = bits & 0x7fffffu;
  if (exponent == 0u) {
    if (m == 0u) return kZeroDouble;
    int shift = 23 - findMSB(m);
    m = m << shift & 0x7fffffu;
    exponent = uint(1 - shift);  // below 0 it wraps, and the sum is right again
  }
  return uvec2(m << 29, sign | (exponent + 896u) << 20 | m >> 3);
}
uvec2 whole_double(uint v) {
  if (v == 0u) return kZeroDouble;
  int first = findMSB(v);
  uvec2 m = left64(uvec2(v, 0u), 52 - first);
  return uvec2(m.x, uint(1023 + first) << 20 | m.y & 0xfffffu);
}
// The bits of the nearest 32-bit float.
uint narrowed(uvec2 v) {
  int exponent = exponent_of(v) - 896;
  if (exponent_of(v) == 0) return 0u;
  uint sign = v.y & 0x80000000u;
  if (exponent > 254) return sign | 0x7f800000u;
  // The mantissa's first bit at 23, or lower where the number is subnormal; two bits more and a sticky one below.
  uvec2 m = right_sticky64(mantissa_of(v), 27 + max(0, 1 - exponent));
  uint last = m.x & 3u;
  uint bits = (m.x >> 2) + (exponent > 0 ? uint(exponent - 1) << 23 : 0u);
  if (last > 2u || (last == 2u && (bits & 1u) == 1u)) bits++;
  return sign | bits;
}

// A place among all numbers in order.
uvec2 order_of(uvec2 v) { return v.y >> 31 == 1u ? ~v : uvec2(v.x, v.y | 0x80000000u); }
