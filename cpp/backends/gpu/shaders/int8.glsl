// Quantised bytes. NC4HW4 holds four channels of a pixel in 32 bits, all as unsigned numbers: an i8 stands there plus
// 128, with a zero point to match. Rows hold an int32 per element, signed types as they are.
ivec4 unpack_bytes(uint v) { return ivec4(int(v & 255u), int(v >> 8 & 255u), int(v >> 16 & 255u), int(v >> 24)); }
uint pack_bytes(ivec4 v) {
  uvec4 u = uvec4(v);
  return u.x | u.y << 8 | u.z << 16 | u.w << 24;
}

// clamp(round_half_even(float32(sum + bias) * m) + zero), sum and bias modulo 2^32; where low is above high, high wins.
// One conversion and one product, both rounded to nearest, and integers from there on: the reference's bits.
ivec4 requantize(ivec4 sum, ivec4 bias, vec4 m, int zero, int low, int high) {
  ivec4 total = ivec4(uvec4(sum) + uvec4(bias));
  vec4 real = clamp(vec4(total) * m, vec4(-65536.0), vec4(65536.0));
  return min(max(ivec4(roundEven(real)) + zero, ivec4(low)), ivec4(high));
}
