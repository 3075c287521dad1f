// The loops of f32_kernels.h.
#include "backends/cpu/unary/f32_kernels.h"
#include "backends/cpu/simd/f32.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

constexpr int kLanes = PINNACE_LANES;
constexpr int kRows = PINNACE_TILE_ROWS;
constexpr int kColumns = 2 * kLanes;

using V = Wide::T;
inline V load(const float* p) {
  return Wide::load(p);
}
inline void store(float* p, V v) {
  Wide::store(p, v);
}
inline V splat(float x) {
  return Wide::all(x);
}
inline V apply(const MapF32& m, V x) {
  return Wide::map(m, x);
}
/// The same where it would be inlined many times: 40 KB of the library.
__attribute__((noinline)) V apply_apart(const MapF32& m, V x) {
  return Wide::map(m, x);
}

void map_f32(const MapF32& m, const float* x, float* y, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, apply(m, load(x + i)));
  if (i < count) {
    V rest{};
    __builtin_memcpy(&rest, x + i, sizeof(float) * static_cast<size_t>(count - i));
    rest = apply(m, rest);
    __builtin_memcpy(y + i, &rest, sizeof(float) * static_cast<size_t>(count - i));
  }
}

// ROWS x 2 registers of sums. K's loop is the whole cost: two loads of b, ROWS broadcasts of a, 2 * ROWS multiply-adds.
template <int ROWS>
inline void tile(const GemmF32& g, const float* a, const float* b, int64_t m, int64_t n) {
  V sum0[ROWS], sum1[ROWS];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) sum0[r] = sum1[r] = V{};
  for (int64_t k = 0; k < g.K; ++k) {
    const V b0 = load(b), b1 = load(b + kLanes);
    b += kColumns;
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
      const V value = splat(a[r * g.a_row]);
      sum0[r] += value * b0;
      sum1[r] += value * b1;
    }
    a += g.a_k;
  }
  const int64_t columns = g.N - n < kColumns ? g.N - n : kColumns;
  V c0{}, c1{};
  if (g.column_bias) {
    if (columns == kColumns) {
      c0 = load(g.column_bias + n);
      c1 = load(g.column_bias + n + kLanes);
    } else {
      float part[kColumns] = {};
      __builtin_memcpy(part, g.column_bias + n, sizeof(float) * static_cast<size_t>(columns));
      c0 = load(part);
      c1 = load(part + kLanes);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) {
    const float bias = g.row_bias ? g.row_bias[m + r] : 0.0f;
    V y0 = sum0[r] + bias + c0, y1 = sum1[r] + bias + c1;
    if (g.map.kind != MapKind::kNone) {
      y0 = apply_apart(g.map, y0);
      y1 = apply_apart(g.map, y1);
    }
    float* c = g.c + (m + r) * g.c_row + n;
    if (columns == kColumns) {
      store(c, y0);
      store(c + kLanes, y1);
    } else {
      float part[kColumns];
      store(part, y0);
      store(part + kLanes, y1);
      __builtin_memcpy(c, part, sizeof(float) * static_cast<size_t>(columns));
    }
  }
}

template <int ROWS>
void tile_of(int64_t rows, const GemmF32& g, const float* a, const float* b, int64_t m, int64_t n) {
  if (rows == ROWS) {
    tile<ROWS>(g, a, b, m, n);
  } else if constexpr (ROWS > 1) {
    tile_of<ROWS - 1>(rows, g, a, b, m, n);
  }
}

void gemm_f32(const GemmF32& g) {
  for (int64_t m = 0; m < g.M; m += kRows) {
    const float* a = g.a + m / kRows * g.a_panel;
    const int64_t rows = g.M - m < kRows ? g.M - m : kRows;
    for (int64_t n = 0; n < g.N; n += kColumns) tile_of<kRows>(rows, g, a, g.b + n * g.K, m, n);
  }
}

// Two registers of outputs at a time: every tap is one load and one multiply-add for each.
void depthwise_f32(const DepthwiseF32& d) {
  for (int64_t oy = 0; oy < d.out_h; ++oy) {
    const float* top = d.x + oy * d.stride_y * d.row;
    for (int64_t ox = 0; ox < d.out_w; ox += kColumns) {
      V s0 = splat(d.bias), s1 = s0;
      const float* w = d.w;
      for (int64_t ky = 0; ky < d.kernel_h; ++ky) {
        const float* line = top + ky * d.dilation_y * d.row + ox;
        for (int64_t kx = 0; kx < d.kernel_w; ++kx) {
          const int64_t at = kx * d.dilation_x;
          const float* x = line + at % d.stride_x * d.phase + at / d.stride_x;
          const V value = splat(*w++);
          s0 += value * load(x);
          s1 += value * load(x + kLanes);
        }
      }
      s0 = apply_apart(d.map, s0);
      s1 = apply_apart(d.map, s1);
      float* y = d.y + oy * d.out_w + ox;
      const int64_t columns = d.out_w - ox;
      if (columns >= kColumns) {
        store(y, s0);
        store(y + kLanes, s1);
      } else {
        float part[kColumns];
        store(part, s0);
        store(part + kLanes, s1);
        __builtin_memcpy(y, part, sizeof(float) * static_cast<size_t>(columns));
      }
    }
  }
}

template <class Op>
void binary_loop(const float* a, int a_step, const float* b, int b_step, float* y, int64_t count, Op op) {
  if (a_step && b_step) {
    for (int64_t i = 0; i < count; ++i) y[i] = op(a[i], b[i]);
  } else if (a_step) {
    const float value = *b;
    for (int64_t i = 0; i < count; ++i) y[i] = op(a[i], value);
  } else {
    const float value = *a;
    for (int64_t i = 0; i < count; ++i) y[i] = op(value, b[b_step ? i : 0]);
  }
}

void binary_f32(BinaryKind kind, const float* a, int a_step, const float* b, int b_step, float* y, int64_t count) {
  switch (kind) {
    case BinaryKind::kAdd:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return p + q; });
    case BinaryKind::kSub:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return p - q; });
    case BinaryKind::kMul:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return p * q; });
    case BinaryKind::kDiv:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return p / q; });
    case BinaryKind::kMin:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return (p < q) | (p != p) ? p : q; });
    case BinaryKind::kMax:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return (p > q) | (p != p) ? p : q; });
    case BinaryKind::kPrelu:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return p >= 0 ? p : q * p; });
  }
}

/// The last register of a row may be part of one; `fill` stands for what is not there.
inline V load_part(const float* p, int64_t count, float fill) {
  V v = splat(fill);
  __builtin_memcpy(&v, p, sizeof(float) * static_cast<size_t>(count < kLanes ? count : kLanes));
  return v;
}
inline void store_part(float* p, V v, int64_t count) {
  __builtin_memcpy(p, &v, sizeof(float) * static_cast<size_t>(count < kLanes ? count : kLanes));
}

/// The largest, NaN left out.
float largest_of(const float* x, int64_t count) {
  V most = splat(-__builtin_inff());
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) most = larger(load(x + i), most);
  if (i < count) most = larger(load_part(x + i, count - i, -__builtin_inff()), most);
  float part[kLanes];
  store(part, most);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) part[j] = part[j] > part[j + width] ? part[j] : part[j + width];
  }
  return part[0];
}

/// The sum of a register's floats, in double.
inline double sum_of(V v) {
  double half[kLanes / 2];
  for (int j = 0; j < kLanes / 2; ++j) half[j] = static_cast<double>(v[j]) + static_cast<double>(v[j + kLanes / 2]);
  for (int width = kLanes / 4; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) half[j] += half[j + width];
  }
  return half[0];
}

/// The sum of f(register, its place) over a row; a last part of a register is filled up with `fill`. Up to 64 registers
/// are added in single precision, in SUMS that do not wait for each other, and those in double.
template <int SUMS, class F>
inline double row_sum(const float* x, int64_t count, float fill, F f) {
  double sum = 0;
  for (int64_t i = 0; i < count;) {
    const int64_t last = count - i < 64 * kLanes ? count : i + 64 * kLanes;
    V parts[SUMS] = {};
    for (; i + SUMS * kLanes <= last; i += SUMS * kLanes) {
#pragma GCC unroll 4
      for (int j = 0; j < SUMS; ++j) parts[j] += f(load(x + i + j * kLanes), i + j * kLanes, kLanes);
    }
    for (; SUMS > 1 && i + kLanes <= last; i += kLanes) parts[0] += f(load(x + i), i, kLanes);
    if (i < last) parts[0] += f(load_part(x + i, last - i, fill), i, last - i);
    i = last;
    for (int j = 1; j < SUMS; ++j) parts[0] += parts[j];
    sum += sum_of(parts[0]);
  }
  return sum;
}

float exp_sum_f32(const float* x, float* y, int64_t count) {
  float largest = largest_of(x, count);
  if (largest == -__builtin_inff()) largest = 0;
  return static_cast<float>(row_sum<1>(x, count, -__builtin_inff(), [&](V v, int64_t i, int64_t some) {
    v = Wide::exponential(v - largest);
    store_part(y + i, v, some);
    return v;
  }));
}

void softmax_f32(const float* x, float* y, int64_t count) {
  // All -inf, or an inf or NaN among them: exp(inf - inf) is NaN throughout, as IEEE arithmetic gives it.
  const bool none = largest_of(x, count) == -__builtin_inff();
  const float sum = exp_sum_f32(x, y, count), scale = none ? __builtin_nanf("") : 1.0f / sum;
  for (int64_t i = 0; i < count; ++i) y[i] *= scale;
}

// ------------------------------------------------------------------------------------------------------ one query

using Four = VectorOf<4>::T;
/// The sums of a register's lanes by their number modulo 4.
inline Four quarters(VectorOf<4>::T v) {
  return v;
}
#if PINNACE_LANES >= 8
inline Four quarters(VectorOf<8>::T v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
}
#endif
#if PINNACE_LANES == 16
inline Four quarters(VectorOf<16>::T v) {
  return quarters(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                  __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
}
#endif

/// Four keys at a time, whose sums across registers share their last steps.
float scores_f32(const QueryF32& a) {
  for (int64_t j = 0; j < a.keys; j += 4) {
    const float* k[4];
    for (int64_t r = 0; r < 4; ++r) k[r] = a.k + (j + r < a.keys ? j + r : a.keys - 1) * a.k_row;
    V sum[4] = {};
    int64_t e = 0;
    for (; e + kLanes <= a.size; e += kLanes) {
      const V q = load(a.q + e);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) sum[r] += q * load(k[r] + e);
    }
    if (e < a.size) {
      const V q = load_part(a.q + e, a.size - e, 0);
      for (int r = 0; r < 4; ++r) sum[r] += q * load_part(k[r] + e, a.size - e, 0);
    }
    const Four s0 = quarters(sum[0]), s1 = quarters(sum[1]), s2 = quarters(sum[2]), s3 = quarters(sum[3]);
    const Four low = __builtin_shufflevector(s0, s1, 0, 4, 1, 5) + __builtin_shufflevector(s0, s1, 2, 6, 3, 7);
    const Four high = __builtin_shufflevector(s2, s3, 0, 4, 1, 5) + __builtin_shufflevector(s2, s3, 2, 6, 3, 7);
    Four all = __builtin_shufflevector(low, high, 0, 1, 4, 5) + __builtin_shufflevector(low, high, 2, 3, 6, 7);
    all *= a.scale;
    const int64_t some = a.keys - j < 4 ? a.keys - j : 4;
    __builtin_memcpy(a.scores + j, &all, sizeof(float) * static_cast<size_t>(some));
  }
  for (int64_t j = 0; a.bias && j < a.keys; ++j) {
    const float b = a.bias[j];
    a.scores[j] = b == -__builtin_inff() ? b : a.scores[j] + b;
  }
  return largest_of(a.scores, a.keys);
}

/// REGISTERS of the mixed values, from column f on, if there are as many; the last may be part of one. The next column.
template <int REGISTERS>
int64_t mix_of(const QueryF32& a, int64_t f) {
  if (f + (REGISTERS - 1) * kLanes >= a.width) return f;
  const int64_t last = a.width - f - (REGISTERS - 1) * kLanes;
  float* y = a.y + f;
  V sum[REGISTERS];
  for (int r = 0; r < REGISTERS - 1; ++r) sum[r] = load(y + r * kLanes);
  sum[REGISTERS - 1] = load_part(y + (REGISTERS - 1) * kLanes, last, 0);
  for (int64_t j = 0; j < a.keys; ++j) {
    const float p = a.scores[j];
    if (p == 0) continue;
    const float* v = a.v + j * a.v_row + f;
    const V share = splat(p);
#pragma GCC unroll 8
    for (int r = 0; r < REGISTERS - 1; ++r) sum[r] += share * load(v + r * kLanes);
    v += (REGISTERS - 1) * kLanes;
    sum[REGISTERS - 1] += share * (last >= kLanes ? load(v) : load_part(v, last, 0));
  }
  for (int r = 0; r < REGISTERS - 1; ++r) store(y + r * kLanes, sum[r]);
  store_part(y + (REGISTERS - 1) * kLanes, sum[REGISTERS - 1], last);
  return f + REGISTERS * kLanes;
}

void mix_f32(const QueryF32& a) {
  for (int64_t f = 0; f < a.width;) {
    for (int64_t next = mix_of<8>(a, f); next != f; next = mix_of<8>(a, f)) f = next;
    f = mix_of<4>(a, f);
    f = mix_of<2>(a, f);
    f = mix_of<1>(a, f);
  }
}

/// The sum of (x - centre)^2. Squares that single precision cannot hold are taken again in double.
double squares_about(const float* x, int64_t count, float centre) {
  const double sum = row_sum<4>(x, count, centre, [&](V v, int64_t, int64_t) { return (v - centre) * (v - centre); });
  if (sum < __builtin_inf()) return sum;
  double exact = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double v = static_cast<double>(x[i]) - static_cast<double>(centre);
    exact += v * v;
  }
  return exact;
}

MomentsF32 moments_f32(const float* x, int64_t count) {
  const double mean = row_sum<4>(x, count, 0, [](V v, int64_t, int64_t) { return v; }) / static_cast<double>(count);
  const auto centre = static_cast<float>(mean);
  // `centre` is the mean rounded: what that adds to every square is taken off again.
  const double rest = mean - static_cast<double>(centre);
  return {centre, rest, squares_about(x, count, centre) / static_cast<double>(count) - rest * rest};
}

void normalize_f32(const float* x, float* y, int64_t count, float epsilon, bool centred, const float* scale,
                   const float* bias) {
  const MomentsF32 m =
      centred ? moments_f32(x, count) : MomentsF32{0, 0, squares_about(x, count, 0) / static_cast<double>(count)};
  const float centre = m.centre;
  const auto factor = static_cast<float>(1.0 / __builtin_sqrt(m.variance + static_cast<double>(epsilon)));
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V v = (load(x + i) - centre) * factor * load(scale + i);
    store(y + i, bias ? v + load(bias + i) : v);
  }
  for (; i < count; ++i) y[i] = (x[i] - centre) * factor * scale[i] + (bias ? bias[i] : 0.0f);
}

void affine_f32(const float* x, float* y, int64_t count, float centre, float factor, float bias) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, (load(x + i) - centre) * factor + bias);
  for (; i < count; ++i) y[i] = (x[i] - centre) * factor + bias;
}

/// Vectors of N elements, of whatever registers there are. (GCC forgets the attribute in an alias that depends on N.)
template <int N>
struct VectorsOf {
  typedef int32_t Ints __attribute__((vector_size(4 * N)));
  typedef float Floats __attribute__((vector_size(4 * N)));
};

template <int WIDTH, int BITS>
void unpack_columns(const int32_t* q, const float* zero, const float* scale, int64_t rows, float* y) {
  constexpr int kTogether = 32 / BITS, kCount = WIDTH % kLanes == 0 ? kLanes : WIDTH % 8 == 0 ? 8 : 4;
  using Ints = typename VectorsOf<kCount>::Ints;
  using Floats = typename VectorsOf<kCount>::Floats;
  for (int64_t k = 0; k < rows; k += kTogether, q += WIDTH, y += kTogether * WIDTH) {
    for (int j = 0; j < WIDTH; j += kCount) {
      Ints all;
      Floats own_zero, own_scale;
      __builtin_memcpy(&all, q + j, sizeof all);
      __builtin_memcpy(&own_zero, zero + j, sizeof own_zero);
      __builtin_memcpy(&own_scale, scale + j, sizeof own_scale);
      for (int r = 0; r < kTogether; ++r) {
        const Ints one = (all << (32 - BITS - r * BITS)) >> (32 - BITS);
        const Floats real = (__builtin_convertvector(one, Floats) - own_zero) * own_scale;
        __builtin_memcpy(y + r * WIDTH + j, &real, sizeof real);
      }
    }
  }
}

void unpack_weights_f32(const int32_t* q, int bits, const float* zero, const float* scale, int64_t rows, int64_t width,
                        float* y) {
  const auto run = [&](auto eight, auto four) { (bits == 4 ? four : eight)(q, zero, scale, rows, y); };
  switch (width) {
    case 4:
      return run(unpack_columns<4, 8>, unpack_columns<4, 4>);
    case 8:
      return run(unpack_columns<8, 8>, unpack_columns<8, 4>);
    case 12:
      return run(unpack_columns<12, 8>, unpack_columns<12, 4>);
    case 16:
      return run(unpack_columns<16, 8>, unpack_columns<16, 4>);
    case 24:
      return run(unpack_columns<24, 8>, unpack_columns<24, 4>);
    default:
      return run(unpack_columns<32, 8>, unpack_columns<32, 4>);
  }
}

}  // namespace
}  // namespace PINNACE_ISA

const F32Kernels PINNACE_FOR_ISA(f32_kernels) = {
    PINNACE_ISA::kRows,       PINNACE_ISA::kColumns,           PINNACE_ISA::gemm_f32,    PINNACE_ISA::depthwise_f32,
    PINNACE_ISA::map_f32,     PINNACE_ISA::binary_f32,         PINNACE_ISA::softmax_f32, PINNACE_ISA::exp_sum_f32,
    PINNACE_ISA::moments_f32, PINNACE_ISA::scores_f32,         PINNACE_ISA::mix_f32,     PINNACE_ISA::normalize_f32,
    PINNACE_ISA::affine_f32,  PINNACE_ISA::unpack_weights_f32,
};

}  // namespace pinnace::cpu
