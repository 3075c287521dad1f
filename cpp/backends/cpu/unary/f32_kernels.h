// The float32 inner loops that are compiled once per instruction set: matrix tiles, depthwise planes, elementwise maps.
// Plain pointers and sizes only, so that no inline function of a header is compiled with flags that another processor
// cannot run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinnace::cpu {

/// Same numbers as ActivationKind; checked where the tables are used.
enum class MapKind : int32_t {
  kNone,
  kRelu,
  kClip,
  kLeakyRelu,
  kHardSwish,
  kHardSigmoid,
  kSigmoid,
  kSilu,
  kTanh,
  kGelu,
  kGeluTanh,
  kExp
};

/// A map and its parameters: kClip [a, b], kLeakyRelu a, kHardSigmoid a * x + b.
struct MapF32 {
  MapKind kind = MapKind::kNone;
  float a = 0, b = 0;
};

/// c[m, n] = map(sum over k of a(m, k) * b(k, n) + row_bias[m] + column_bias[n]).
/// a(m, k) = a[(m / mr) * a_panel + (m % mr) * a_row + k * a_k]. b is packed in panels of nr columns: b(k, n) =
/// b[(n / nr) * K * nr + k * nr + n % nr]; the last panel is filled up with zeros. c is row-major with row stride
/// c_row. Sums run over ascending k, whatever M and N are: splitting M or N changes no bit. bias pointers may be null.
struct GemmF32 {
  const float* a;
  ptrdiff_t a_panel, a_row, a_k;
  const float* b;
  int64_t M, N, K;
  float* c;
  ptrdiff_t c_row;
  const float* row_bias;
  const float* column_bias;
  MapF32 map;
};

/// One channel of a depthwise convolution. x holds the zero-padded input plane, its columns sorted by their remainder
/// modulo stride_x: column i of padded row r is x[(i % stride_x) * phase + r * row + i / stride_x]. Rows may be read up
/// to 16 floats beyond the last column used (allocate them). y is [out_h, out_w] dense.
struct DepthwiseF32 {
  const float* x;
  ptrdiff_t phase, row;
  const float* w;  ///< [kernel_h, kernel_w]
  float bias;
  float* y;
  int64_t out_h, out_w, kernel_h, kernel_w, stride_y, stride_x, dilation_y, dilation_x;
  MapF32 map;
};

/// kMin and kMax give NaN where either is NaN. kPrelu: a where a >= 0, else b * a.
enum class BinaryKind : int32_t { kAdd, kSub, kMul, kDiv, kMin, kMax, kPrelu };

/// Of some numbers: their mean, rounded, what that left off, and their variance (of the population).
struct MomentsF32 {
  float centre;
  double rest, variance;
};

/// One query and some keys. k(j) = k[j * k_row + e], e < size; v(j) = v[j * v_row + f], f < width.
struct QueryF32 {
  const float* q;
  const float* k;
  ptrdiff_t k_row;
  const float* v;
  ptrdiff_t v_row;
  int64_t keys, size, width;
  float scale;
  const float* bias;  ///< may be null
  float* scores;
  float* y;
};

/// The loops of one instruction set. Accuracy of the maps: exp 3e-7 relative; sigmoid, tanh, gelu 4e-7 absolute
/// (relative for |x| >= 0.5), silu and gelu times |x|.
struct F32Kernels {
  int mr, nr;  ///< rows and columns of a tile
  void (*gemm)(const GemmF32&);
  void (*depthwise)(const DepthwiseF32&);
  /// y[i] = map(x[i]); y may be x.
  void (*map)(const MapF32&, const float* x, float* y, int64_t count);
  /// y[i] = a[i * a_step] op b[i * b_step], steps 0 or 1; y may be a or b where that step is 1.
  void (*binary)(BinaryKind, const float* a, int a_step, const float* b, int b_step, float* y, int64_t count);
  /// y[i] = exp(x[i] - largest x) / their sum; y may be x.
  void (*softmax)(const float* x, float* y, int64_t count);
  /// y[i] = exp(x[i] - largest x), and their sum; all 0 where every x is -inf. y may be x.
  float (*exp_sum)(const float* x, float* y, int64_t count);
  /// Sums in double; no square of a number overflows. A NaN or an infinity makes the variance NaN.
  MomentsF32 (*moments)(const float* x, int64_t count);
  /// scores[j] = scale * sum of q * k(j), + bias[j] where there is one (-inf: whatever the key holds); the largest.
  float (*scores)(const QueryF32&);
  /// y += sum over j of scores[j] * v(j); what has a score of 0 is not read.
  void (*mix)(const QueryF32&);
  /// y = (x - mean) / sqrt(variance + epsilon) * scale + bias; bias may be null. Without `centred`, 0 stands for the
  /// mean.
  void (*normalize)(const float* x, float* y, int64_t count, float epsilon, bool centred, const float* scale,
                    const float* bias);
  /// y[i] = (x[i] - centre) * factor + bias; y may be x.
  void (*affine)(const float* x, float* y, int64_t count, float centre, float factor, float bias);
  /// y[k * width + j] = (q[k, j] - zero[j]) * scale[j] of signed integers of `bits`, 8 or 4. Number j of q holds column
  /// j of 4 or 8 rows, the first in its lowest bits; rows that fill up the last one are written too. width is that of a
  /// panel of matrix tiles: 4, 8, 12, 16, 24 or 32.
  void (*unpack_weights)(const int32_t* q, int bits, const float* zero, const float* scale, int64_t rows, int64_t width,
                         float* y);
};

/// Loops of an instruction set that has no others.
struct MapKernels {
  void (*map)(const MapF32&, const float* x, float* y, int64_t count);
};

extern const F32Kernels f32_kernels_generic;
#if defined(__x86_64__)
extern const F32Kernels f32_kernels_avx2, f32_kernels_avx512;
#endif
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
extern const MapKernels map_kernels_sve;
#endif

}  // namespace pinnace::cpu
