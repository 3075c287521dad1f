// The 8-bit loops over images of image_i8.h.
#include "backends/cpu/quantize/image_i8.h"
#include "backends/cpu/simd/i8.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

using Wide = Quads<PINNACE_LANES>;

/// How numbers become bytes, four registers of LANES at a time.
template <class V>
struct Stored {
  typename V::F scale, least, most;
  typename V::I zero, flip;
  Stored(float s, const StoreI8& store, uint8_t bits)
      : scale(V::all(s)),
        least(V::all(static_cast<float>(store.low - store.zero))),
        most(V::all(static_cast<float>(store.high - store.zero))),
        zero(V::all_shorts(store.zero)),
        flip(V::all_bytes(bits)) {}

  /// round_half_even(x / scale), clamped; NaN is 0.
  template <bool NUMBERS = false>
  inline typename V::I divided(typename V::F x) const {
    const auto quotient = NUMBERS ? x / scale : V::not_nan(x / scale);
    return V::to_ints(V::smaller(V::larger(quotient, least), most));
  }
  /// f(v) gives register v of 4, of consecutive elements. NUMBERS: no quotient is NaN.
  template <bool NUMBERS = false, class Get>
  inline void put(uint8_t* to, Get f) const {
    const auto q = [&](int v) { return divided<NUMBERS>(f(v)); };
    // Per 128-bit lane four of each: as rows of LANES bytes they are in order.
    V::store_rows(V::flip(V::to_bytes(q(0), q(1), q(2), q(3), zero), flip), to, V::kLanes, 4);
  }
};

/// PLAIN: operands are unsigned, and nothing overflows.
template <BinaryI8 OP, bool PLAIN>
void binary_of(const BinaryRowsI8& b) {
  constexpr int kBytes = 4 * Wide::kLanes;
  const auto flip = Wide::all(static_cast<int32_t>(b.flip));
  const Stored<Wide> stored(b.y_real.scale, b.store, b.flip);
  const auto a_zero = Wide::all(static_cast<float>(b.a_real.zero)), a_scale = Wide::all(b.a_real.scale);
  const auto b_zero = Wide::all(static_cast<float>(b.b_real.zero)), b_scale = Wide::all(b.b_real.scale);
  const auto block = [&](const uint8_t* from_a, const uint8_t* from_b, uint8_t* to) {
    stored.template put<PLAIN>(to, [&](int v) {
      auto p_bytes = Wide::widen(from_a + v * Wide::kLanes), q_bytes = Wide::widen(from_b + v * Wide::kLanes);
      if (!PLAIN) p_bytes = Wide::flip(p_bytes, flip), q_bytes = Wide::flip(q_bytes, flip);
      const auto p = (Wide::to_floats(p_bytes) - a_zero) * a_scale, q = (Wide::to_floats(q_bytes) - b_zero) * b_scale;
      return OP == BinaryI8::kAdd ? p + q : OP == BinaryI8::kSub ? p - q : p * q;
    });
  };
  for (int64_t p = 0; p < b.pixels; ++p) {
    const uint8_t *from_a = b.a + p * b.a_step, *from_b = b.b + p * b.b_step;
    uint8_t* to = b.y + p * b.y_step;
    alignas(64) uint8_t same_a[kBytes], same_b[kBytes], part[kBytes];
    if (!b.a_channel) __builtin_memset(same_a, *from_a, kBytes);
    if (!b.b_channel) __builtin_memset(same_b, *from_b, kBytes);
    int64_t c = 0;
    for (; c + kBytes <= b.channels; c += kBytes) {
      block(b.a_channel ? from_a + c : same_a, b.b_channel ? from_b + c : same_b, to + c);
    }
    if (const auto left = static_cast<size_t>(b.channels - c); left > 0) {
      if (b.a_channel) __builtin_memcpy(same_a, from_a + c, left);
      if (b.b_channel) __builtin_memcpy(same_b, from_b + c, left);
      if (b.a_channel) __builtin_memset(same_a + left, 0, kBytes - left);
      if (b.b_channel) __builtin_memset(same_b + left, 0, kBytes - left);
      block(same_a, same_b, part);
      __builtin_memcpy(to + c, part, left);
    }
  }
}

void binary(const BinaryRowsI8& given) {
  BinaryRowsI8 b = given;
  const auto flat = [&](ptrdiff_t step, int32_t channel) { return channel ? step == b.channels : step == 0; };
  if (b.y_step == b.channels && flat(b.a_step, b.a_channel) && flat(b.b_step, b.b_channel)) {
    b.channels *= b.pixels;
    b.pixels = b.channels > 0;
  }
  const float a_most = 255 * b.a_real.scale, b_most = 255 * b.b_real.scale;
  const bool plain = b.flip == 0 && a_most < 1e18f && b_most < 1e18f && b.y_real.scale > 0;
  switch (b.op) {
    case BinaryI8::kAdd:
      return plain ? binary_of<BinaryI8::kAdd, true>(b) : binary_of<BinaryI8::kAdd, false>(b);
    case BinaryI8::kSub:
      return plain ? binary_of<BinaryI8::kSub, true>(b) : binary_of<BinaryI8::kSub, false>(b);
    case BinaryI8::kMul:
      return plain ? binary_of<BinaryI8::kMul, true>(b) : binary_of<BinaryI8::kMul, false>(b);
  }
}

void maximum(const uint8_t* x, ptrdiff_t row, int64_t rows, ptrdiff_t column, int64_t columns, uint8_t* y,
             int64_t channels) {
  constexpr int kBytes = 4 * Wide::kLanes;
  for (int64_t c = 0; c < channels; c += kBytes) {
    Wide::I most = Wide::all(0);
    for (int64_t i = 0; i < rows; ++i) {
      const uint8_t* from = x + i * row + c;
      for (int64_t j = 0; j < columns; ++j) most = Wide::at_least_bytes(most, Wide::load(from + j * column));
    }
    if (c + kBytes <= channels) {
      Wide::store(y + c, most);
    } else {
      __builtin_memcpy(y + c, &most, static_cast<size_t>(channels - c));
    }
  }
}

void sum(const uint8_t* x, ptrdiff_t step, int64_t pixels, int64_t channels, int32_t* sums) {
  int64_t c = 0;
  constexpr int kChannels = 4 * Wide::kLanes;
  for (; c + kChannels <= channels; c += kChannels) {
    Wide::I own[4];
    PINNACE_UNROLL for (int v = 0; v < 4; ++v) own[v] = Wide::load(sums + c + v * Wide::kLanes);
    for (int64_t p = 0; p < pixels; ++p) {
      const uint8_t* from = x + p * step + c;
      PINNACE_UNROLL for (int v = 0; v < 4; ++v) own[v] = Wide::add(own[v], Wide::widen(from + v * Wide::kLanes));
    }
    PINNACE_UNROLL for (int v = 0; v < 4; ++v) Wide::store(sums + c + v * Wide::kLanes, own[v]);
  }
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t i = c; i < channels; ++i) sums[i] += x[p * step + i];
  }
}

/// put(i, to): blocks of a register's bytes, the last one cut short.
template <class Put>
inline void put_all(uint8_t* y, int64_t n, Put put) {
  constexpr int kBytes = 4 * Wide::kLanes;
  int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) put(i, kBytes, y + i);
  if (i < n) {
    alignas(64) uint8_t part[kBytes];
    put(i, n - i, part);
    __builtin_memcpy(y + i, part, static_cast<size_t>(n - i));
  }
}

void means(const int32_t* sums, int32_t less, float x_scale, float count, RealI8 y_real, uint8_t flip, uint8_t* y,
           int64_t n) {
  const Stored<Wide> stored(y_real.scale, {y_real.zero, 0, 255}, flip);
  put_all(y, n, [&](int64_t i, int64_t left, uint8_t* to) {
    alignas(64) int32_t part[4 * Wide::kLanes] = {};
    const int32_t* from = sums + i;
    if (left < 4 * Wide::kLanes) {
      __builtin_memcpy(part, from, sizeof(int32_t) * static_cast<size_t>(left));
      from = part;
    }
    stored.put(to, [&](int v) {
      const auto centered = Wide::add(Wide::load(from + v * Wide::kLanes), Wide::all(-less));
      return Wide::to_floats(centered) * Wide::all(x_scale) / Wide::all(count);
    });
  });
}

void quantize(const float* x, RealI8 real, uint8_t flip, uint8_t* y, int64_t n) {
  const Stored<Wide> stored(real.scale, {real.zero, 0, 255}, flip);
  put_all(y, n, [&](int64_t i, int64_t left, uint8_t* to) {
    alignas(64) float part[4 * Wide::kLanes] = {};
    const float* from = x + i;
    if (left < 4 * Wide::kLanes) {
      __builtin_memcpy(part, from, sizeof(float) * static_cast<size_t>(left));
      from = part;
    }
    stored.put(to, [&](int v) { return Wide::load_floats(from + v * Wide::kLanes); });
  });
}

void quantize_quads(const float* x, ptrdiff_t plane, int32_t planes, RealI8 real, uint8_t* y, ptrdiff_t pitch,
                    int64_t n) {
  using I = Wide::I;
  const Stored<Wide> stored(real.scale, {real.zero, 0, 255}, 0);
  const I zero = Wide::all(real.zero);
  for (int64_t i = 0; i < n; i += Wide::kLanes) {
    const int64_t left = n - i < Wide::kLanes ? n - i : Wide::kLanes;
    const auto channel = [&](int32_t c) {
      if (c >= planes) return Wide::all(0);
      alignas(64) float part[Wide::kLanes] = {};
      const float* from = x + c * plane + i;
      if (left < Wide::kLanes) {
        __builtin_memcpy(part, from, sizeof(float) * static_cast<size_t>(left));
        from = part;
      }
      return Wide::add(stored.divided(Wide::load_floats(from)), zero);
    };
    const I low = Wide::add(channel(0), Wide::template shift<8>(channel(1)));
    const I quads =
        Wide::add(low, Wide::add(Wide::template shift<16>(channel(2)), Wide::template shift<24>(channel(3))));
    if (pitch == 4 && left == Wide::kLanes) {
      Wide::store(y + i * 4, quads);
      continue;
    }
    alignas(64) uint8_t bytes[4 * Wide::kLanes];
    Wide::store(bytes, quads);
    for (int64_t k = 0; k < left; ++k) __builtin_memcpy(y + (i + k) * pitch, bytes + 4 * k, 4);
  }
}

void dequantize(const uint8_t* x, RealI8 real, uint8_t flip, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>((x[i] ^ flip) - real.zero) * real.scale;
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_ISA

const ImageI8Kernels PINNACE_FOR_ISA(image_i8_kernels) = {
    PINNACE_ISA::binary,   PINNACE_ISA::maximum,        PINNACE_ISA::sum,       PINNACE_ISA::means,
    PINNACE_ISA::quantize, PINNACE_ISA::quantize_quads, PINNACE_ISA::dequantize};

}  // namespace pinnace::cpu
