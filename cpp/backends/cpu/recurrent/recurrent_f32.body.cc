// Steps of recurrent operators (recurrent_f32.h). A step
// multiplies one vector with a matrix that just fits the second cache: the matrix is read once, front to back, and
// everything else is done on what that leaves in registers and the first cache.
#include "backends/cpu/recurrent/recurrent_f32.h"
#include "backends/cpu/simd/f32.h"
#include "backends/cpu/unary/activation_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

#define PINNACE_UNROLL _Pragma("GCC unroll 64")

using V = Wide;
using T = V::T;
constexpr int kLanes = V::kLanes;
constexpr int kRegisters = PINNACE_REGISTERS;
constexpr int kMostUnits = 4 * kLanes;  ///< of a block
constexpr int kMostSums = 8 * kLanes;

/// Element k of a vector in every lane; with pairs elements 2k and 2k + 1, rounded, 0 behind the last.
template <class Weight>
inline T spread(const float* vector, int64_t k, int64_t K) {
#if PINNACE_BF16_PAIRS
  double two = 0;
  __builtin_memcpy(&two, vector + 2 * k, sizeof(float) * (2 * k + 1 < K ? 2 : 1));
  const T pairs = (T)_mm512_set1_pd(two);
  return (T)_mm512_cvtne2ps_pbh(pairs, pairs);
#else
  (void)K;
  return V::all(vector[k]);
#endif
}

/// sums[row][N registers] += matrix [K][N] . row's vector. Few sums are made of two chains each, added at the end: four
/// multiply-adds must be under way, or their latency decides. The hardware fetches the matrix ahead; doing it here too
/// costs a fifth where it comes from the third cache (Zen 4). in_order: one chain each, whatever ROWS is; for weights
/// of float32 alone.
template <int N, int ROWS, class Weight>
inline void multiply(const Weight* matrix, int64_t K, const RecurrentRowF32* rows, bool in_order, T (&sum)[ROWS][N]) {
  constexpr int kChains = N * ROWS < 4 ? 2 : 1;
  T chain[kChains][ROWS][N];
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    PINNACE_UNROLL for (int j = 0; j < N; ++j) {
      chain[0][r][j] = sum[r][j];
      if (kChains > 1) chain[kChains - 1][r][j] = T{};
    }
  }
  const auto step = [&](int64_t k, int c) __attribute__((always_inline)) {
    T m[N];
    PINNACE_UNROLL for (int j = 0; j < N; ++j) m[j] = V::load(matrix + j * kLanes);
    PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
      const T value = spread<Weight>(rows[r].vector, k, K);
      PINNACE_UNROLL for (int j = 0; j < N; ++j) chain[c][r][j] = product_sum<V, Weight>(value, m[j], chain[c][r][j]);
    }
    matrix += N * kLanes;
  };
#if PINNACE_BF16_PAIRS
  const int64_t steps = (K + 1) / 2;
#else
  const int64_t steps = K;
#endif
  constexpr bool kEither = kChains > 1 && sizeof(Weight) == sizeof(float);
  const bool joins = kChains > 1 && !(kEither && in_order);
  int64_t k = 0;
  if (!kEither || joins) {
    for (; k + 2 <= steps; k += 2) {
      step(k, 0);
      step(k + 1, kChains - 1);
    }
    if (k < steps) step(k, 0);
  } else {
    for (; k < steps; ++k) step(k, 0);
  }
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    PINNACE_UNROLL for (int j = 0; j < N; ++j) {
      sum[r][j] = joins ? V::add(chain[0][r][j], chain[kChains - 1][r][j]) : chain[0][r][j];
    }
  }
}

/// A gate: its argument clipped, then its activation. The defaults are known when DEFAULT is compiled.
struct Gates {
  const RecurrentBlockF32& b;
  template <bool DEFAULT>
  T sigmoid(const UnaryF32& map, T x) const {
    return DEFAULT ? PINNACE_ISA::sigmoid<V>(x) : activate<V>(map, clipped(x));
  }
  template <bool DEFAULT>
  T tangent(const UnaryF32& map, T x) const {
    return DEFAULT ? PINNACE_ISA::tangent<V>(x) : activate<V>(map, clipped(x));
  }
  T clipped(T x) const { return b.clip > 0 ? V::at_most(V::at_least(x, V::all(-b.clip)), V::all(b.clip)) : x; }
};

/// One sequence's sums [gates][units] into its state.
template <bool DEFAULT>
inline void finish(const RecurrentBlockF32& b, const RecurrentRowF32& row, const float* sums) {
  const Gates gates{b};
  const int units = b.units;
  const auto sum = [&](int gate, int i) { return V::load(sums + gate * units + i); };
  for (int i = 0; i < units; i += kLanes) {
    switch (b.kind) {
      case RecurrentKind::kProject:
        break;
      case RecurrentKind::kRnn:
        V::store(row.after + i, gates.tangent<DEFAULT>(b.f, sum(0, i)));
        break;
      case RecurrentKind::kLstm: {
        const T c = V::load(row.c + i);
        const auto hole = [&](int gate, T cell) {
          return b.extra ? V::multiply_add(V::load(b.extra + gate * units + i), cell, sum(gate, i)) : sum(gate, i);
        };
        const T in = gates.sigmoid<DEFAULT>(b.f, hole(0, c));
        const T forget = b.input_forget ? 1.0f - in : gates.sigmoid<DEFAULT>(b.f, hole(2, c));
        const T next = forget * c + in * gates.tangent<DEFAULT>(b.g, sum(3, i));
        const T out = gates.sigmoid<DEFAULT>(b.f, hole(1, next));
        V::store(row.c + i, next);
        V::store(row.after + i, out * (DEFAULT ? tangent<V>(next) : activate<V>(b.h, next)));
        break;
      }
      case RecurrentKind::kGru: {
        const T z = gates.sigmoid<DEFAULT>(b.f, sum(0, i)), r = gates.sigmoid<DEFAULT>(b.f, sum(1, i));
        const T n = gates.tangent<DEFAULT>(b.g, V::load(row.before + 2 * units + i) + r * sum(2, i));
        V::store(row.after + i, (1.0f - z) * n + z * V::load(row.h + i));
        break;
      }
      case RecurrentKind::kGruReset:
        V::store(row.before + i, gates.sigmoid<DEFAULT>(b.f, sum(0, i)));
        V::store(row.after + i, gates.sigmoid<DEFAULT>(b.f, sum(1, i)) * V::load(row.h + i));
        break;
      case RecurrentKind::kGruUpdate: {
        const T z = V::load(row.before + i), n = gates.tangent<DEFAULT>(b.g, sum(0, i));
        V::store(row.after + i, (1.0f - z) * n + z * V::load(row.h + i));
        break;
      }
    }
  }
  if (row.y) __builtin_memcpy(row.y, row.after, sizeof(float) * static_cast<size_t>(b.valid));
}

/// Out of line: the gates are long, and inlined after every product they would be most of the code.
__attribute__((noinline)) void finish_rows(const RecurrentBlockF32& b, const RecurrentRowF32* rows, int32_t count,
                                           const float* sums) {
  const int32_t step = b.gates * b.units;
  const bool by_default = b.clip == 0 && (b.kind == RecurrentKind::kRnn
                                              ? b.f.kind == UnaryKind::kTanh
                                              : b.f.kind == UnaryKind::kSigmoid && b.g.kind == UnaryKind::kTanh &&
                                                    (b.kind != RecurrentKind::kLstm || b.h.kind == UnaryKind::kTanh));
  for (int32_t r = 0; r < count; ++r) {
    by_default ? finish<true>(b, rows[r], sums + r * step) : finish<false>(b, rows[r], sums + r * step);
  }
}

template <class Weight, int N, int ROWS>
void rows_of(const RecurrentBlockF32& b, const RecurrentRowF32* rows) {
  T sum[ROWS][N];
  const int own = N * kLanes - b.units;  // kGru: the last gate begins at R's bias
  const int from_before = b.kind == RecurrentKind::kGru ? own : b.kind == RecurrentKind::kProject ? 0 : N * kLanes;
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    const float* before = rows[r].before + (b.kind == RecurrentKind::kGruUpdate ? 2 * b.units : 0);
    PINNACE_UNROLL for (int j = 0; j < N; ++j) {
      sum[r][j] = V::load(j * kLanes < from_before ? before + j * kLanes : b.extra + j * kLanes - from_before);
    }
  }
  multiply<N, ROWS>(reinterpret_cast<const Weight*>(b.matrix), b.K, rows, b.in_order, sum);
  if (b.kind == RecurrentKind::kProject) {
    PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
      PINNACE_UNROLL for (int j = 0; j < N; ++j) V::store(rows[r].before + j * kLanes, sum[r][j]);
    }
    return;
  }
  float sums[ROWS * kMostSums];
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    PINNACE_UNROLL for (int j = 0; j < N; ++j) V::store(sums + (r * N + j) * kLanes, sum[r][j]);
  }
  finish_rows(b, rows, ROWS, sums);
}

/// Four, two or one sequence at a time, as registers allow.
template <class Weight, int N>
void all_rows(const RecurrentBlockF32& b) {
  constexpr int kSums = kRegisters / 2;
  int32_t r = 0;
  if constexpr (4 * N <= kSums) {
    for (; r + 4 <= b.row_count; r += 4) rows_of<Weight, N, 4>(b, b.rows + r);
  }
  if constexpr (2 * N <= kSums) {
    for (; r + 2 <= b.row_count; r += 2) rows_of<Weight, N, 2>(b, b.rows + r);
  }
  for (; r < b.row_count; ++r) rows_of<Weight, N, 1>(b, b.rows + r);
}

template <class Weight>
void block(const RecurrentBlockF32& b) {
  switch (b.gates * b.units / kLanes) {
    case 1:
      return all_rows<Weight, 1>(b);
    case 2:
      return all_rows<Weight, 2>(b);
    case 3:
      return all_rows<Weight, 3>(b);
    case 4:
      return all_rows<Weight, 4>(b);
    case 6:
      return all_rows<Weight, 6>(b);
    default:
      return all_rows<Weight, 8>(b);
  }
}

static_assert(kMostUnits <= kMostSums);
#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_ISA

#if PINNACE_BF16_PAIRS
const RecurrentF32Kernels PINNACE_FOR_ISA(recurrent_f32_kernels) = {PINNACE_LANES, nullptr, nullptr,
                                                                    PINNACE_ISA::block<PINNACE_ISA::BF16Pair>};
#else
const RecurrentF32Kernels PINNACE_FOR_ISA(recurrent_f32_kernels) = {PINNACE_LANES, PINNACE_ISA::block<float>,
                                                                    PINNACE_ISA::block<PINNACE_ISA::F16Bits>,
                                                                    PINNACE_ISA::block<PINNACE_ISA::BF16Bits>};
#endif

}  // namespace pinnace::cpu
