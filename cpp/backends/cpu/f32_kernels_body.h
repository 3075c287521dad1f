// Body of f32_kernels_<level>.cc, compiled once per instruction set: PINNACE_LEVEL names the set, PINNACE_LANES is the
// number of floats in a register, PINNACE_ROWS the rows of a tile. GCC's vector types; no inline function of another
// header.

#include "backends/cpu/f32_kernels.h"

namespace pinnace {
namespace PINNACE_LEVEL {
namespace {

constexpr int kLanes = PINNACE_LANES;
constexpr int kRows = PINNACE_ROWS;
constexpr int kColumns = 2 * kLanes;

using V = float __attribute__((vector_size(4 * PINNACE_LANES)));
using I = int32_t __attribute__((vector_size(4 * PINNACE_LANES)));

inline V load(const float* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}
inline V splat(float x) {
  return V{} + x;
}
inline V select(I mask, V yes, V no) {
  return (V)(((I)yes & mask) | ((I)no & ~mask));
}
// NaN in x is kept: comparisons with NaN are false.
inline V at_least(V x, V low) {
  return select(x < low, low, x);
}
inline V at_most(V x, V high) {
  return select(x > high, high, x);
}
inline V absolute(V x) {
  return (V)((I)x & 0x7fffffff);
}

// exp by 2^n * p(r), |r| <= ln(2) / 2, p of degree 6 (Taylor): relative error below 3e-7. Beyond the range of normal
// floats: 0 and infinity. NaN stays NaN.
inline V exponential(V x) {
  const V clamped = at_least(at_most(x, splat(88.72284f)), splat(-87.336544f));
  const V shifted = clamped * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the sum's low bits are the rounded quotient
  const V n = shifted - 12582912.0f;
  const V r = clamped - n * 0.693359375f - n * -2.12194440e-4f;
  V p = splat(1.0f / 720);
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const I bits = ((I)shifted - 0x4b400000) << 23;
  V y = (V)((I)p + bits);
  y = select(x < -87.336544f, splat(0.0f), y);
  y = select(x > 88.72284f, splat(__builtin_inff()), y);
  return select(x == x, y, x);
}

inline V sigmoid(V x) {
  return 1.0f / (1.0f + exponential(-x));
}
// 1 - 2 / (1 + exp(2x)) loses digits near 0, where the series is exact enough: |x| < 0.25, error of the next term 2e-9.
inline V tangent(V x) {
  const V far = 1.0f - 2.0f / (1.0f + exponential(2.0f * x));
  const V s = x * x;
  const V near = x + x * s * (-1.0f / 3 + s * (2.0f / 15 + s * (-17.0f / 315 + s * (62.0f / 2835))));
  return select(absolute(x) < 0.25f, near, far);
}
// erf by Abramowitz and Stegun 7.1.26: absolute error 1.5e-7.
inline V error_function(V x) {
  const V a = absolute(x);
  const V t = 1.0f / (1.0f + 0.3275911f * a);
  const V p = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const V y = 1.0f - p * exponential(-a * a);
  return select(x == x, (V)((I)y | ((I)x & (int32_t)0x80000000)), x);
}

inline V apply(const MapF32& m, V x) {
  switch (m.kind) {
    case MapKind::kNone:
      return x;
    case MapKind::kRelu:
      return select(x <= 0.0f, V{}, x);
    case MapKind::kClip:
      return at_most(at_least(x, splat(m.a)), splat(m.b));
    case MapKind::kLeakyRelu:
      return select(x < 0.0f, x * m.a, x);
    case MapKind::kHardSwish:
      return x * at_most(at_least(x * (1.0f / 6) + 0.5f, V{}), splat(1.0f));
    case MapKind::kHardSigmoid:
      return at_most(at_least(x * m.a + m.b, V{}), splat(1.0f));
    case MapKind::kSigmoid:
      return sigmoid(x);
    case MapKind::kSilu:
      return x * sigmoid(x);
    case MapKind::kTanh:
      return tangent(x);
    case MapKind::kGelu:
      return 0.5f * x * (1.0f + error_function(x * 0.70710678f));
    case MapKind::kGeluTanh:
      return 0.5f * x * (1.0f + tangent(0.79788456f * (x + 0.044715f * x * x * x)));
    case MapKind::kExp:
      return exponential(x);
  }
  return x;
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
    const V y0 = apply(g.map, sum0[r] + bias + c0), y1 = apply(g.map, sum1[r] + bias + c1);
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
      s0 = apply(d.map, s0);
      s1 = apply(d.map, s1);
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
  }
}

void softmax_f32(const float* x, float* y, int64_t count) {
  float largest = x[0];
  bool nan = largest != largest;
  for (int64_t i = 1; i < count; ++i) {
    nan |= x[i] != x[i];
    largest = x[i] > largest ? x[i] : largest;
  }
  // All -inf, or an inf or NaN among them: exp(inf - inf) is NaN throughout, as IEEE arithmetic gives it.
  if (nan) largest = __builtin_nanf("");
  double sum = 0;
  for (int64_t i = 0; i < count; i += kLanes) {
    V v = splat(-__builtin_inff());
    const size_t n = static_cast<size_t>(count - i < kLanes ? count - i : kLanes);
    __builtin_memcpy(&v, x + i, n * sizeof(float));
    v = exponential(v - largest);
    __builtin_memcpy(y + i, &v, n * sizeof(float));
    for (size_t j = 0; j < n; ++j) sum += v[j];
  }
  const float scale = static_cast<float>(1.0 / sum);
  for (int64_t i = 0; i < count; ++i) y[i] *= scale;
}

void normalize_f32(const float* x, float* y, int64_t count, float epsilon, const float* scale, const float* bias) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const auto factor =
      static_cast<float>(1.0 / __builtin_sqrt(squares / static_cast<double>(count) + static_cast<double>(epsilon)));
  const auto centre = static_cast<float>(mean);
  if (bias) {
    for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - centre) * factor * scale[i] + bias[i];
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - centre) * factor * scale[i];
  }
}

}  // namespace
}  // namespace PINNACE_LEVEL

#define PINNACE_NAME_(level) f32_kernels_##level
#define PINNACE_NAME(level) PINNACE_NAME_(level)
const F32Kernels PINNACE_NAME(PINNACE_LEVEL) = {
    PINNACE_LEVEL::kRows,   PINNACE_LEVEL::kColumns,   PINNACE_LEVEL::gemm_f32,    PINNACE_LEVEL::depthwise_f32,
    PINNACE_LEVEL::map_f32, PINNACE_LEVEL::binary_f32, PINNACE_LEVEL::softmax_f32, PINNACE_LEVEL::normalize_f32,
};

}  // namespace pinnace
