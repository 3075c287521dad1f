#version 450
// Updates joined with what is at their places: y has the data before, and takes the updates [outer, each, inner] of
// each column (outer, inner) from the first to the last. `owners` invocations go through a column, and each takes the
// places that are its own, so that no two write the same element and every run adds in the same order.
//   places  SLICES 0: one per update, where in y it goes; those of a column differ by multiples of `unit`
//           SLICES 1: one per `each`, which run of `inner` elements of y it goes to
//   y       32 bits, so that sums are rounded to 16 bits once
// JOIN 0: the update stays; 1 sum, 2 product, 3 maximum, 4 minimum. -DINT32: integers and bools, of which those of 64
// bits that 32 do not hold are reported.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#ifdef INT32
#define ERROR_RECORD 3
#include "error_record.glsl"
#include "exact.glsl"
#define N int
#else
#define N float
#endif
layout(local_size_x = 64) in;
#ifdef INT32
SCATTER_INT32_CONSTANTS
#else
SCATTER_CONSTANTS
#endif
layout(set = 0, binding = 0) readonly buffer P { int places[]; };
layout(set = 0, binding = 1) readonly buffer U { S updates[]; };
layout(set = 0, binding = 2) buffer Y { N y[]; };
// Of each column the updates [first, last).
layout(push_constant) uniform Params { SCATTER_PARAMS } p;

#ifdef INT32
N joined(N a, N b) {
  switch (JOIN) {
    case 1: return held(HELD, sum(a, b));
    case 2: return held(HELD, product(a, b));
    case 3: return max(a, b);
    case 4: return min(a, b);
  }
  return b;
}
#else
N joined(N a, N b) {
  switch (JOIN) {
    case 1: return a + b;
    case 2: return a * b;
    case 3: return isnan(a) || a >= b ? a : b;
    case 4: return isnan(a) || a <= b ? a : b;
  }
  return b;
}
#endif

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int column = i % p.columns, owner = i / p.columns;
  int c = column % p.inner, base = column / p.inner * p.each;
  for (int t = p.first; t < p.last; t++) {
    int from = (base + t) * p.inner + c;
    int place = places[SLICES == 1 ? t : from];
    if (place / p.unit % p.owners == owner) {
      int to = SLICES == 1 ? place * p.inner + c : place;
      y[to] = joined(y[to], N(updates[from]));
    }
  }
#ifdef INT32
  if (HELD == 5 && beyond) report(kBeyond32Bits, 0, 0);
#endif
}
