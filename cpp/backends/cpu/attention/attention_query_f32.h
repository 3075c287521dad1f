// Attention of one query in float32, compiled once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/loops.h"

namespace pinnace::cpu {

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

struct QueryLoops {
  /// scores[j] = scale * sum of q * k(j), + bias[j] where there is one (-inf: whatever the key holds); the largest.
  float (*scores)(const QueryF32&);
  /// y += sum over j of scores[j] * v(j); what has a score of 0 is not read.
  void (*mix)(const QueryF32&);
};

PINNACE_LOOPS(QueryLoops, query_loops_f32)

}  // namespace pinnace::cpu
