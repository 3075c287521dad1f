// A 64-bit fingerprint of bytes: FarmHash's Fingerprint64 ("farmhashna"), which is the same on every machine and for
// ever. Models that project by hashes were made with it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pinnace {

class Fingerprint {
 public:
  static uint64_t of(const std::byte* s, size_t n) {
    if (n <= 16) return n < 4 ? up_to_3(s, n) : n < 8 ? up_to_7(s, n) : up_to_16(s, n);
    return n <= 32 ? up_to_32(s, n) : n <= 64 ? up_to_64(s, n) : longer(s, n);
  }

 private:
  static constexpr uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

  /// Little-endian, wherever it runs.
  template <class T>
  static uint64_t load(const std::byte* s) {
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= std::to_integer<uint64_t>(s[i]) << (8 * i);
    return value;
  }
  static uint64_t f(const std::byte* s) { return load<uint64_t>(s); }
  static uint64_t turn(uint64_t x, int bits) { return std::rotr(x, bits); }
  static uint64_t fold(uint64_t x) { return x ^ (x >> 47); }
  static uint64_t mix(uint64_t u, uint64_t v, uint64_t m) { return fold((fold((u ^ v) * m) ^ v) * m) * m; }

  static uint64_t up_to_3(const std::byte* s, size_t n) {
    if (n == 0) return k2;
    const uint64_t y = load<uint8_t>(s) + (load<uint8_t>(s + n / 2) << 8), z = n + (load<uint8_t>(s + n - 1) << 2);
    return fold((y * k2) ^ (z * k0)) * k2;
  }
  static uint64_t up_to_7(const std::byte* s, size_t n) {
    return mix(n + (load<uint32_t>(s) << 3), load<uint32_t>(s + n - 4), k2 + 2 * n);
  }
  static uint64_t up_to_16(const std::byte* s, size_t n) {
    const uint64_t m = k2 + 2 * n, a = f(s) + k2, b = f(s + n - 8);
    return mix(turn(b, 37) * m + a, (turn(a, 25) + b) * m, m);
  }
  static uint64_t up_to_32(const std::byte* s, size_t n) {
    const uint64_t m = k2 + 2 * n, a = f(s) * k1, b = f(s + 8), c = f(s + n - 8) * m, d = f(s + n - 16) * k2;
    return mix(turn(a + b, 43) + turn(c, 30) + d, a + turn(b + k2, 18) + c, m);
  }
  static uint64_t up_to_64(const std::byte* s, size_t n) {
    const uint64_t m = k2 + 2 * n, a = f(s) * k2, b = f(s + 8), c = f(s + n - 8) * m, d = f(s + n - 16) * k2;
    const uint64_t y = turn(a + b, 43) + turn(c, 30) + d, z = mix(y, a + turn(b + k2, 18) + c, m);
    const uint64_t e = f(s + 16) * m, g = f(s + 24), h = (y + f(s + n - 32)) * m;
    return mix(turn(e + g, 43) + turn(h, 30) + (z + f(s + n - 24)) * m, e + turn(g + a, 18) + h, m);
  }

  struct Pair {
    uint64_t first = 0, second = 0;
  };
  /// 32 bytes and two seeds to 128 bits.
  static Pair weak(const std::byte* s, uint64_t a, uint64_t b) {
    a += f(s);
    b = turn(b + a + f(s + 24), 21);
    const uint64_t start = a;
    a += f(s + 8) + f(s + 16);
    return {a + f(s + 24), b + turn(a, 44) + start};
  }

  /// What goes from block to block of 64 bytes.
  struct State {
    uint64_t x, y, z;
    Pair v = {}, w = {};

    /// `m` multiplies; the last block, which may overlap the one before, weighs two of the parts 9 times.
    void block(const std::byte* s, uint64_t m, uint64_t weight) {
      x = turn(x + y + v.first + f(s + 8), 37) * m;
      y = turn(y + v.second + f(s + 48), 42) * m;
      x ^= w.second * weight;
      y += v.first * weight + f(s + 40);
      z = turn(z + w.first, 33) * m;
      v = weak(s, v.second * m, x + w.first);
      w = weak(s + 32, z + w.second, y + f(s + 16));
      const uint64_t swapped = x;
      x = z;
      z = swapped;
    }
  };
  static uint64_t longer(const std::byte* s, size_t n) {
    constexpr uint64_t kSeed = 81;
    State t{kSeed * k2 + f(s), kSeed * k1 + 113, 0};
    t.z = fold(t.y * k2 + 113) * k2;
    const size_t whole = (n - 1) / 64 * 64, rest = (n - 1) % 64;
    for (size_t at = 0; at < whole; at += 64) t.block(s + at, k1, 1);
    const uint64_t m = k1 + ((t.z & 0xff) << 1);
    t.w.first += rest;
    t.v.first += t.w.first;
    t.w.first += t.v.first;
    t.block(s + n - 64, m, 9);
    return mix(mix(t.v.first, t.w.first, m) + fold(t.y) * k0 + t.z, mix(t.v.second, t.w.second, m) + t.x, m);
  }
};

}  // namespace pinnace
