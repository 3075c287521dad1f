// Depthwise convolutions over NHWC-packed tensors of halves, for ARMv8.2 with arithmetic on halves: 8 channels in a
// register. They work as those of float32 do (depthwise_f32_neon.h); a tile may be wider, since pixels take one
// register instead of two.
#include "backends/cpu/conv/depthwise_f32.h"
#include "backends/cpu/simd/f16_neon.h"
#include "backends/cpu/unary/activation_f16_neon.h"

namespace pinnace::cpu {
namespace neon_dotprod {
namespace {

#define PINNACE_UNROLL _Pragma("GCC unroll 64")

using Depthwise = DepthwiseRows<uint16_t>;

/// A number that is known when a lambda is compiled.
template <int N>
struct Number {
  static constexpr int value = N;
};

/// 8 halves from `at`, which then goes on by `step` bytes.
__attribute__((always_inline)) inline Halves load_pixel(const char*& at, ptrdiff_t step) {
  Halves value;
  asm("ld1 {%0.8h}, [%1], %2" : "=w"(value), "+r"(at) : "r"(step), "m"(*reinterpret_cast<const uint16_t(*)[8]>(at)));
  return value;
}
/// The inverse.
__attribute__((always_inline)) inline void store_pixel(char*& at, ptrdiff_t step, Halves value) {
  asm("st1 {%2.8h}, [%0], %3" : "+r"(at), "=m"(*reinterpret_cast<uint16_t(*)[8]>(at)) : "w"(value), "r"(step));
}
/// sum += a * b where sum lies: of vfmaq_f16 GCC 12 makes copies.
__attribute__((always_inline)) inline void multiply_add(Halves& sum, Halves a, Halves b) {
  asm("fmla %0.8h, %1.8h, %2.8h" : "+w"(sum) : "w"(a), "w"(b));
}

/// A pixel through a function that is no clamp. Not inlined, it takes no registers from tiles without one: up to 4 % of
/// their instructions.
[[gnu::noinline]] void map_pixel(const UnaryF32& m, uint16_t* y) {
  map(m, y, y, kLanes);
}

/// ROWS x COLUMNS outputs of 8 channels, the first one's first tap at x. Each input pixel is loaded once, and goes into
/// every output that it is part of. Two rows have their kernel's height known: it is KW.
template <int KW, int STRIDE, int COLUMNS, int ROWS>
__attribute__((always_inline)) inline void depthwise_tile(const Depthwise& d, const UnaryF32& m, const uint16_t* x,
                                                          const uint16_t* w, uint16_t* y, Halves low, Halves high) {
  Halves sums[ROWS][COLUMNS];
  const Halves bias = load(w);
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) sums[r][i] = bias;
  }
  w += kLanes;
  const ptrdiff_t step = d.pitch * static_cast<ptrdiff_t>(sizeof *x),
                  y_step = d.y_pitch * static_cast<ptrdiff_t>(sizeof *y);
  const auto row_of_x = [&](auto first, auto rows, int ky0) __attribute__((always_inline)) {
    constexpr int kFirst = decltype(first)::value, kRows = decltype(rows)::value;  // output rows it is part of
    Halves weight[kRows][KW];
    PINNACE_UNROLL for (int r = 0; r < kRows; ++r) {
      PINNACE_UNROLL for (int k = 0; k < KW; ++k) {
        weight[r][k] = load(w + ((ky0 - (kFirst + r) * STRIDE) * KW + k) * kLanes);
      }
    }
    const char* pixel = reinterpret_cast<const char*>(x);
    PINNACE_UNROLL for (int i = 0; i < (COLUMNS - 1) * STRIDE + KW; ++i) {
      const Halves value = load_pixel(pixel, step);
      PINNACE_UNROLL for (int r = 0; r < kRows; ++r) {
        PINNACE_UNROLL for (int k = 0; k < KW; ++k) {
          const int at = i - k;
          if (at >= 0 && at % STRIDE == 0 && at / STRIDE < COLUMNS) {
            multiply_add(sums[kFirst + r][at / STRIDE], value, weight[r][k]);
          }
        }
      }
      asm volatile("");  // nothing is moved past it: loads brought forward would take the sums' registers
    }
    x += d.tap_row;
  };
  if constexpr (ROWS == 1) {
    for (int ky = 0; ky < d.kernel_h; ++ky) row_of_x(Number<0>{}, Number<1>{}, ky);
  } else {
    PINNACE_UNROLL for (int ky = 0; ky < STRIDE; ++ky) row_of_x(Number<0>{}, Number<1>{}, ky);
    PINNACE_UNROLL for (int ky = STRIDE; ky < KW; ++ky) row_of_x(Number<0>{}, Number<2>{}, ky);
    PINNACE_UNROLL for (int ky = KW; ky < KW + STRIDE; ++ky) row_of_x(Number<1>{}, Number<1>{}, ky);
  }
  const bool clamp = m.kind == UnaryKind::kRelu || m.kind == UnaryKind::kClip;
  if (clamp) {
    PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
      PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) sums[r][i] = vminq_f16(vmaxq_f16(sums[r][i], low), high);
    }
  }
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    uint16_t* pixel = y + r * d.y_row;
    char* at = reinterpret_cast<char*>(pixel);
    PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) store_pixel(at, y_step, sums[r][i]);
    if (clamp || m.kind == UnaryKind::kNone) [[likely]]
      continue;
    PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) map_pixel(m, pixel + i * d.y_pitch);
  }
}

/// All outputs of one or two rows. A row is cut in tiles of MOST columns, and some of MOST - 1 so that they fill it.
template <int KW, int STRIDE, int ROWS>
void depthwise_of(const Depthwise& rows) {
  // Copies whose address nobody has stay in registers.
  const Depthwise d = rows;
  const UnaryF32 m = rows.map;
  constexpr int kMost = ROWS == 2 && KW == 5 ? 4 : 7;
  const int64_t panel = (1 + static_cast<int64_t>(d.kernel_h) * KW) * kLanes;
  const Halves low = vdupq_n_f16(static_cast<float16_t>(m.kind == UnaryKind::kClip ? m.p : 0.0f));
  const Halves high = vdupq_n_f16(static_cast<float16_t>(m.kind == UnaryKind::kClip ? m.q : __builtin_inff()));
  for (int64_t c = 0; c < d.channels; c += kLanes) {
    const uint16_t* w = d.weights + c / kLanes * panel;
    const uint16_t* x = d.x + c;
    uint16_t* y = d.y + c;
    const auto columns = [&](auto number) __attribute__((always_inline)) {
      constexpr int kColumns = decltype(number)::value;
      depthwise_tile<KW, STRIDE, kColumns, ROWS>(d, m, x, w, y, low, high);
      x += kColumns * STRIDE * d.pitch;
      y += kColumns * d.y_pitch;
    };
    for (int64_t left = d.out_w; left > 0;) {
      if (left % kMost == 0) {
        columns(Number<kMost>{});
        left -= kMost;
      } else if (left >= kMost - 1) {
        columns(Number<kMost - 1>{});
        left -= kMost - 1;
      } else {
        columns(Number<1>{});
        left -= 1;
      }
    }
  }
}

/// Any kernel, stride and dilation.
void depthwise_any(const Depthwise& d) {
  const int64_t panel = (1 + static_cast<int64_t>(d.kernel_h) * d.kernel_w) * kLanes;
  for (int64_t c = 0; c < d.channels; c += kLanes) {
    for (int64_t ox = 0; ox < d.out_w; ++ox) {
      const uint16_t* w = d.weights + c / kLanes * panel;
      const uint16_t* x = d.x + c + ox * d.stride_x * d.pitch;
      Halves sums = load(w);
      w += kLanes;
      for (int ky = 0; ky < d.kernel_h; ++ky) {
        for (int kx = 0; kx < d.kernel_w; ++kx, w += kLanes) {
          multiply_add(sums, load(x + ky * d.tap_row + kx * d.dilation_x * d.pitch), load(w));
        }
      }
      uint16_t* y = d.y + c + ox * d.y_pitch;
      store(y, sums);
      if (d.map.kind != UnaryKind::kNone) map(d.map, y, y, kLanes);
    }
  }
}

bool two_rows(int32_t kernel_h, int32_t kernel_w, int32_t stride) {
  return (kernel_w == 3 || kernel_w == 5) && kernel_h == kernel_w && (stride == 1 || stride == 2);
}

void depthwise_rows(const Depthwise& d) {
  if (d.dilation_x > 1 && d.stride_x == 1 && (d.kernel_w == 3 || d.kernel_w == 5 || d.kernel_w == 7)) {
    // Every dilation_x-th column by itself is a convolution without dilation.
    Depthwise phase = d;
    phase.dilation_x = 1;
    phase.pitch = d.pitch * d.dilation_x;
    phase.y_pitch = d.y_pitch * d.dilation_x;
    for (int64_t p = 0; p < d.dilation_x && p < d.out_w; ++p) {
      phase.x = d.x + p * d.pitch;
      phase.y = d.y + p * d.y_pitch;
      phase.out_w = (d.out_w - p + d.dilation_x - 1) / d.dilation_x;
      depthwise_rows(phase);
    }
    return;
  }
  if (d.rows == 2) {
    if (d.kernel_w == 3) return d.stride_x == 1 ? depthwise_of<3, 1, 2>(d) : depthwise_of<3, 2, 2>(d);
    return d.stride_x == 1 ? depthwise_of<5, 1, 2>(d) : depthwise_of<5, 2, 2>(d);
  }
  if (d.dilation_x == 1 && d.stride_x == 1) {
    if (d.kernel_w == 3) return depthwise_of<3, 1, 1>(d);
    if (d.kernel_w == 5) return depthwise_of<5, 1, 1>(d);
    if (d.kernel_w == 7) return depthwise_of<7, 1, 1>(d);
  }
  if (d.dilation_x == 1 && d.stride_x == 2) {
    if (d.kernel_w == 3) return depthwise_of<3, 2, 1>(d);
    if (d.kernel_w == 5) return depthwise_of<5, 2, 1>(d);
  }
  depthwise_any(d);
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace neon_dotprod

const DepthwiseLoops<uint16_t> depthwise_loops_f16_neon_dotprod = {neon_dotprod::kLanes, neon_dotprod::two_rows,
                                                                   neon_dotprod::depthwise_rows};

}  // namespace pinnace::cpu
