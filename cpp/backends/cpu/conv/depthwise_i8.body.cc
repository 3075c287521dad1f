// 8-bit depthwise convolutions (depthwise_i8.h).
#include "backends/cpu/conv/depthwise_i8.h"
#include "backends/cpu/simd/i8.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// Columns [first, first + count) of a chunk, as [column][row quad][4 registers].
template <class V>
void unpack_columns(const DepthwiseRowsI8& d, const uint8_t* x, int64_t count, uint8_t* to) {
  constexpr int kBytes = 4 * V::kLanes;
  for (int32_t g = 0; g < d.row_quads; ++g) {
    const uint8_t* rows[4];
    for (int32_t r = 0; r < 4; ++r) {
      const int32_t own = 4 * (g % d.own_quads) + r, row = own < d.tap_rows ? own : d.tap_rows - 1;  // others weigh 0
      rows[r] = x + row * d.tap_row;
    }
    uint8_t* at = to + 4 * g * kBytes;
    for (int64_t i = 0; i < count; ++i, at += 4 * kBytes * d.row_quads) {
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
  const ptrdiff_t tap = static_cast<ptrdiff_t>(d.dilation_x) * d.row_quads * 4 * kBytes;
  const ptrdiff_t weight_set = static_cast<ptrdiff_t>(d.row_quads) * d.kernel_w * 4 * kBytes;
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
    for (int32_t g = 0; g < d.row_quads; ++g) {
      ptrdiff_t x = (4 * g + v) * kBytes;
      for (int32_t k = 0; k < d.kernel_w; ++k, x += tap, w += 4 * kBytes) {
        typename V::Weights weight[ROWS];
        PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) weight[r] = V::weights(V::load(w + r * weight_set));
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
  const ptrdiff_t column = static_cast<ptrdiff_t>(d.row_quads) * 4 * kBytes;
  for (int64_t first = 0; first < d.out_w; first += kDepthwiseBlock) {
    const int64_t count = d.out_w - first < kDepthwiseBlock ? d.out_w - first : kDepthwiseBlock;
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
  if (d.tap_rows == 3 && d.weight_sets == 1 && d.row_quads == 1 && d.kernel_w == 3 && d.dilation_x == 1 &&
      d.stride_x <= 2) {
    if (d.stride_x == 1) return depthwise_chunk_3x3<Quads<LANES>, 1>(d, channel, weights);
    return depthwise_chunk_3x3<Quads<LANES>, 2>(d, channel, weights);
  }
  if (d.rows == 2) return depthwise_chunk_rows<Quads<LANES>, 2>(d, channel, weights);
  depthwise_chunk_rows<Quads<LANES>, 1>(d, channel, weights);
}

void depthwise_rows(const DepthwiseRowsI8& d) {
  const int64_t each = 8 + 4 * static_cast<int64_t>(d.weight_sets) * d.row_quads * d.kernel_w;
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

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_ISA

const DepthwiseI8Kernels PINNACE_FOR_ISA(depthwise_i8_kernels) = {4 * PINNACE_LANES, PINNACE_ISA::kActivationOffset,
                                                                  PINNACE_ISA::depthwise_rows};

}  // namespace pinnace::cpu
