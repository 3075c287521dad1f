// The loop of unpack_weights_f32.h.
#include "backends/cpu/matmul/unpack_weights_f32.h"
#include "backends/cpu/simd/isa.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

constexpr int kLanes = PINNACE_LANES;

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

void unpack(const int32_t* q, int bits, const float* zero, const float* scale, int64_t rows, int64_t width, float* y) {
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

void PINNACE_FOR_ISA(unpack_weights_f32)(const int32_t* q, int bits, const float* zero, const float* scale,
                                         int64_t rows, int64_t width, float* y) {
  PINNACE_ISA::unpack(q, bits, zero, scale, rows, width, y);
}

}  // namespace pinnace::cpu
