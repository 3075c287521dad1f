// The float32 loops of recurrent operators, compiled once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/unary/activation_f32.h"

namespace pinnace::cpu {

/// What is made of the sums of one block of hidden units.
enum class RecurrentKind : int32_t {
  kProject,    ///< nothing: they are stored where `before` points
  kRnn,        ///< h' = f(sum)
  kLstm,       ///< sums i, o, f, c; see ops/lstm.cc
  kGru,        ///< sums z, r, h, the last of R h alone (linear_before_reset)
  kGruReset,   ///< sums z, r; z is stored over `before`, r . h in `after`
  kGruUpdate,  ///< sum h of R (r . h)
};

/// One sequence, in terms of one block of `units` hidden units.
struct RecurrentRowF32 {
  const float* vector;  ///< [K] what the matrix is multiplied with
  float* before;        ///< [gates][units] the input's part of the sums, with biases
  const float* h;       ///< [units] the state before
  float* after;         ///< [units] the state after; never `h`
  float* c;             ///< [units] lstm: the cell
  float* y;             ///< [valid] also gets the state after; null: nobody wants it
};

/// `units` hidden units, which are 1, 2 or (kRnn) 4 registers, and every sequence.
struct RecurrentBlockF32 {
  RecurrentKind kind;
  int32_t gates, units, valid;  ///< gates that the matrix has; units that are not padding
  const float* matrix;          ///< [K][gates][units] floats or fp16 values, or [K / 2][gates][units] pairs
  int64_t K;
  const float* extra;  ///< kProject: biases [gates][units]; kGru: R's bias of h [units]; kLstm: P [3][units]
  const RecurrentRowF32* rows;
  int32_t row_count;
  UnaryF32 f, g, h;
  float clip;         ///< 0: none
  bool input_forget;  ///< lstm: f = 1 - i
  bool in_order;      ///< sums run over ascending k, whatever row_count is
};

struct RecurrentF32Kernels {
  int32_t lanes;
  /// The matrix holds floats, fp16 values, bfloat16: on avx512_bf16 pairs of them, and nothing else.
  void (*block)(const RecurrentBlockF32&);
  void (*block_f16)(const RecurrentBlockF32&);
  void (*block_bf16)(const RecurrentBlockF32&);
};

extern const RecurrentF32Kernels recurrent_f32_kernels_generic;
#if defined(__x86_64__)
extern const RecurrentF32Kernels recurrent_f32_kernels_avx2, recurrent_f32_kernels_avx512,
    recurrent_f32_kernels_avx512_bf16;
#endif

}  // namespace pinnace::cpu
