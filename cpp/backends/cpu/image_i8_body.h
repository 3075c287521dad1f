// Body of image_i8_<level>.cc, compiled once per instruction set; see gemm_i8_tiles_body.h.

#include "backends/cpu/image_i8.h"
#include "backends/cpu/simd_i8.h"

namespace pinnace {
namespace PINNACE_LEVEL {
namespace {

using Wide = Quads<PINNACE_LANES>;

// ------------------------------------------------------------------------------------------------------ depthwise

/// Columns [first, first + count) of a chunk, as [column][group][4 registers].
template <class V>
void unpack_columns(const DepthwiseRowsI8& d, const uint8_t* x, int64_t count, uint8_t* to) {
  constexpr int kBytes = 4 * V::kLanes;
  for (int32_t g = 0; g < d.groups; ++g) {
    const uint8_t* rows[4];
    for (int32_t r = 0; r < 4; ++r) {
      const int32_t row = 4 * g + r < d.tap_rows ? 4 * g + r : d.tap_rows - 1;  // weights of others are zero
      rows[r] = x + row * d.tap_row;
    }
    uint8_t* at = to + 4 * g * kBytes;
    for (int64_t i = 0; i < count; ++i, at += 4 * kBytes * d.groups) {
      const ptrdiff_t pixel = i * d.pitch;
      const auto r0 = V::ready(V::load(rows[0] + pixel)), r1 = V::ready(V::load(rows[1] + pixel));
      const auto r2 = V::ready(V::load(rows[2] + pixel)), r3 = V::ready(V::load(rows[3] + pixel));
      const auto a = V::low_bytes(r0, r1), b = V::high_bytes(r0, r1);
      const auto c = V::low_bytes(r2, r3), e = V::high_bytes(r2, r3);
      V::store(at, V::low_shorts(a, c));
      V::store(at + kBytes, V::high_shorts(a, c));
      V::store(at + 2 * kBytes, V::low_shorts(b, e));
      V::store(at + 3 * kBytes, V::high_shorts(b, e));
    }
  }
}

/// ROWS x COLUMNS outputs of a chunk; column i begins at at[i] of the unpacked ones.
template <class V, int ROWS, int COLUMNS>
inline void depthwise_outputs(const DepthwiseRowsI8& d, const std::byte* weights, const uint8_t* const* at,
                              const ptrdiff_t* to, uint8_t* y) {
  using I = typename V::I;
  constexpr int kBytes = 4 * V::kLanes;
  const ptrdiff_t tap = static_cast<ptrdiff_t>(d.dilation_x) * d.groups * 4 * kBytes;
  const ptrdiff_t set = static_cast<ptrdiff_t>(d.groups) * d.kernel_w * 4 * kBytes;
  const auto* quads = reinterpret_cast<const uint8_t*>(weights) + 8 * kBytes;
  I rounded[ROWS][COLUMNS][4];
  const auto most = V::all(static_cast<float>(d.store.high - d.store.zero));
  PINNACE_UNROLL for (int v = 0; v < 4; ++v) {
    const I bias = V::load(weights + v * kBytes);
    I sum[ROWS][COLUMNS];
    PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
      PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) sum[r][i] = bias;
    }
    const uint8_t* w = quads + v * kBytes;
    for (int32_t g = 0; g < d.groups; ++g) {
      ptrdiff_t x = (4 * g + v) * kBytes;
      for (int32_t k = 0; k < d.kernel_w; ++k, x += tap, w += 4 * kBytes) {
        typename V::Weights weight[ROWS];
        PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) weight[r] = V::weights(V::load(w + r * set));
        PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) {
          const auto acts = V::acts(V::load(at[i] + x));
          PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) sum[r][i] = V::dot(sum[r][i], acts, weight[r]);
        }
      }
    }
    const auto m = V::load_floats(reinterpret_cast<const float*>(weights) + (4 + v) * V::kLanes);
    PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
      PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) rounded[r][i][v] =
          V::to_ints(V::smaller(V::to_floats(sum[r][i]) * m, most));
    }
  }
  const I zero = V::all_shorts(d.store.zero), low = V::all_bytes(d.store.low);
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) {
      const I* q = rounded[r][i];
      V::store(y + r * d.y_row + to[i], V::at_least_bytes(V::to_bytes(q[0], q[1], q[2], q[3], zero), low));
    }
  }
}

template <class V, int ROWS>
void depthwise_chunk_rows(const DepthwiseRowsI8& d, int64_t channel, const std::byte* weights) {
  constexpr int kColumns = ROWS == 2 ? 2 : 4;
  constexpr int kBytes = 4 * V::kLanes;
  alignas(64) uint8_t columns[kDepthwiseColumns * 4 * kBytes];
  const ptrdiff_t column = static_cast<ptrdiff_t>(d.groups) * 4 * kBytes;
  for (int64_t first = 0; first < d.out_w; first += kDepthwiseStrip) {
    const int64_t count = d.out_w - first < kDepthwiseStrip ? d.out_w - first : kDepthwiseStrip;
    const int64_t read = (count - 1) * d.stride_x + static_cast<int64_t>(d.kernel_w - 1) * d.dilation_x + 1;
    unpack_columns<V>(d, d.x + channel + first * d.stride_x * d.pitch, read, columns);
    for (int64_t x = 0; x < count; x += kColumns) {
      const uint8_t* at[kColumns];
      ptrdiff_t to[kColumns];
      for (int i = 0; i < kColumns; ++i) {
        const int64_t own = x + i < count ? x + i : count - 1;  // the last one is done again
        at[i] = columns + own * d.stride_x * column;
        to[i] = (first + own) * d.y_pitch;
      }
      depthwise_outputs<V, ROWS, kColumns>(d, weights, at, to, d.y + channel);
    }
  }
}

/// Quads of a column of three rows in all channels of a chunk; the last row is there twice, and has no second weight.
template <class V>
inline void three_rows(const uint8_t* x, ptrdiff_t row, typename V::Acts (&quads)[4]) {
  const auto r0 = V::ready(V::load(x)), r1 = V::ready(V::load(x + row)), r2 = V::ready(V::load(x + 2 * row));
  const auto a = V::low_bytes(r0, r1), b = V::high_bytes(r0, r1), c = V::low_bytes(r2, r2), e = V::high_bytes(r2, r2);
  quads[0] = V::acts(V::low_shorts(a, c));
  quads[1] = V::acts(V::high_shorts(a, c));
  quads[2] = V::acts(V::low_shorts(b, e));
  quads[3] = V::acts(V::high_shorts(b, e));
}

/// A row of 3 x 3 taps without unpacked columns in memory: sums of neighbouring outputs and all weights stay in
/// registers, and each column is added to all sums that it belongs to.
template <class V, int STRIDE>
void depthwise_chunk_3x3(const DepthwiseRowsI8& d, int64_t channel, const std::byte* weights) {
  using I = typename V::I;
  using F = typename V::F;
  constexpr int kBytes = 4 * V::kLanes;
  typename V::Weights w[3][4];
  PINNACE_UNROLL for (int k = 0; k < 3; ++k) {
    PINNACE_UNROLL for (int v = 0; v < 4; ++v) w[k][v] = V::weights(V::load(weights + (8 + 4 * k + v) * kBytes));
  }
  const F most = V::all(static_cast<float>(d.store.high - d.store.zero));
  const I zero = V::all_shorts(d.store.zero), low = V::all_bytes(d.store.low), high = V::all_bytes(d.store.high);
  const uint8_t* x = d.x + channel;
  uint8_t* y = d.y + channel;
  typename V::Acts quads[4];
  const auto read = [&]() __attribute__((always_inline)) {
    three_rows<V>(x, d.tap_row, quads);
    x += d.pitch;
  };
  const auto begin = [&](I(&sum)[4]) __attribute__((always_inline)) {
    PINNACE_UNROLL for (int v = 0; v < 4; ++v) sum[v] = V::dot(V::load(weights + v * kBytes), quads[v], w[0][v]);
  };
  const auto add = [&](I(&sum)[4], int k) __attribute__((always_inline)) {
    PINNACE_UNROLL for (int v = 0; v < 4; ++v) sum[v] = V::dot(sum[v], quads[v], w[k][v]);
  };
  const auto put = [&](const I(&sum)[4]) __attribute__((always_inline)) {
    I q[4];
    PINNACE_UNROLL for (int v = 0; v < 4; ++v) {
      const F m = V::load_floats(reinterpret_cast<const float*>(weights) + (4 + v) * V::kLanes);
      const F real = V::to_floats(sum[v]) * m;
      q[v] = V::to_ints(d.large ? V::smaller(real, most) : real);
    }
    V::store(y, V::at_most_bytes(V::at_least_bytes(V::to_bytes(q[0], q[1], q[2], q[3], zero), low), high));
    y += d.y_pitch;
  };
  I a[4], b[4], c[4];
  read();
  begin(a);
  if constexpr (STRIDE == 2) {
    const auto next = [&](I(&own)[4], I(&after)[4]) __attribute__((always_inline)) {
      read();
      add(own, 1);
      read();
      add(own, 2);
      begin(after);
      put(own);
    };
    int64_t i = 0;
    for (; i + 2 <= d.out_w; i += 2) next(a, b), next(b, a);
    if (i < d.out_w) next(a, b);
  } else {
    const auto next = [&](I(&own)[4], I(&after)[4], I(&last)[4]) __attribute__((always_inline)) {
      read();
      add(own, 2);
      add(after, 1);
      begin(last);
      put(own);
    };
    read();
    add(a, 1);
    begin(b);
    int64_t i = 0;
    for (; i + 3 <= d.out_w; i += 3) next(a, b, c), next(b, c, a), next(c, a, b);
    if (i < d.out_w) next(a, b, c);
    if (i + 1 < d.out_w) next(b, c, a);
  }
}

template <int LANES>
void depthwise_chunk_of(const DepthwiseRowsI8& d, int64_t channel, const std::byte* weights) {
  if (d.tap_rows == 3 && d.sets == 1 && d.kernel_w == 3 && d.dilation_x == 1 && d.stride_x <= 2) {
    if (d.stride_x == 1) return depthwise_chunk_3x3<Quads<LANES>, 1>(d, channel, weights);
    return depthwise_chunk_3x3<Quads<LANES>, 2>(d, channel, weights);
  }
  if (d.rows == 2) return depthwise_chunk_rows<Quads<LANES>, 2>(d, channel, weights);
  depthwise_chunk_rows<Quads<LANES>, 1>(d, channel, weights);
}

void depthwise_rows(const DepthwiseRowsI8& d) {
  const int64_t each = 8 + 4 * static_cast<int64_t>(d.sets) * d.groups * d.kernel_w;
  const std::byte* weights = d.weights;
  for (int64_t c = 0; c < d.channels;) {
    const int64_t chunk = depthwise_chunk(c, d.channels, 4 * PINNACE_LANES);
#if PINNACE_LANES >= 16
    if (chunk == 64) depthwise_chunk_of<16>(d, c, weights);
#endif
#if PINNACE_LANES >= 8
    if (chunk == 32) depthwise_chunk_of<8>(d, c, weights);
#endif
    if (chunk == 16) depthwise_chunk_of<4>(d, c, weights);
    weights += chunk * each;
    c += chunk;
  }
}

// ---------------------------------------------------------------------------------------------------- elementwise

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
}  // namespace PINNACE_LEVEL

#define PINNACE_NAME_(level) image_i8_kernels_##level
#define PINNACE_NAME(level) PINNACE_NAME_(level)
const ImageI8Kernels PINNACE_NAME(PINNACE_LEVEL) = {
    4 * PINNACE_LANES,        PINNACE_LEVEL::kActivationOffset, PINNACE_LEVEL::depthwise_rows,
    PINNACE_LEVEL::binary,    PINNACE_LEVEL::maximum,           PINNACE_LEVEL::sum,
    PINNACE_LEVEL::means,     PINNACE_LEVEL::quantize,          PINNACE_LEVEL::quantize_quads,
    PINNACE_LEVEL::dequantize};

}  // namespace pinnace
