// The inner loops of ARM64, float32, halves and 8-bit, on shapes of real networks, so that their instructions can be
// counted: `count_kernels NAME TIMES` runs one TIMES times, `count_kernels` lists them. The difference of two TIMES is
// what one run takes; scripts/arm64.sh compares it with tests/data/arm64_counts.json.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backends/cpu/conv/depthwise_f32.h"
#include "backends/cpu/conv/depthwise_i8.h"
#include "backends/cpu/conv/winograd_f32.h"
#include "backends/cpu/matmul/gemm_f32_tiles.h"
#include "backends/cpu/matmul/gemm_i8_tiles.h"

namespace pinnace::cpu {
namespace {

constexpr UnaryF32 kRelu6{UnaryKind::kClip, 0, 6};

/// Floats, or halves, of 0.5.
template <class T>
std::vector<T> numbers(int64_t count) {
  return std::vector<T>(static_cast<size_t>(count), sizeof(T) == 2 ? T(0x3800) : T(0.5f));
}
std::vector<float> floats(int64_t count) {
  return numbers<float>(count);
}

/// A 1x1 convolution of M pixels, or taps > 1: rows of `taps` blocks.
template <class T = float>
void gemm(int64_t M, int64_t K, int64_t N, const UnaryF32& map, bool adds, int64_t taps, int64_t times,
          const GemmTiles<T>& tiles = gemm_f32_tiles_generic) {
  const std::vector<T> a = numbers<T>(M * K * taps + 64), b = numbers<T>((N + 16) * (K * taps + 1)),
                       residual = numbers<T>(M * N);
  std::vector<T> c = numbers<T>(M * N);
  std::vector<ptrdiff_t> blocks;
  for (int64_t t = 0; t < taps; ++t) blocks.push_back(t * K);
  for (int64_t i = 0; i < times; ++i) {
    for (int64_t n = 0; n < N; n += tiles.nr) {
      GemmRows<T> g{};
      g.a = a.data();
      g.a_row = K * taps;
      g.blocks = blocks.data();
      g.block_count = taps;
      g.k = K;
      g.b = b.data();
      g.c = c.data() + n;
      g.c_row = N;
      g.residual = adds ? residual.data() + n : nullptr;
      g.residual_row = N;
      g.M = M;
      g.columns = static_cast<int32_t>(N - n < tiles.nr ? N - n : tiles.nr);
      g.map = map;
      tiles.rows(g, (g.columns + tiles.step - 1) / tiles.step * tiles.step);
    }
  }
}

/// All rows of a depthwise convolution of size x size outputs.
template <class T = float>
void depthwise(int32_t kernel, int32_t stride, int64_t size, int64_t channels, int64_t times,
               const DepthwiseLoops<T>& loops = depthwise_loops_f32_generic) {
  const int64_t width = (size - 1) * stride + kernel;
  const std::vector<T> x = numbers<T>(width * width * channels), weights = numbers<T>((1 + kernel * kernel) * channels);
  std::vector<T> y = numbers<T>(size * size * channels);
  const int32_t rows = loops.two_rows(kernel, kernel, stride) ? 2 : 1;
  for (int64_t i = 0; i < times; ++i) {
    for (int64_t row = 0; row < size; row += rows) {
      DepthwiseRows<T> d{};
      d.x = x.data() + row * stride * width * channels;
      d.pitch = d.y_pitch = channels;
      d.tap_row = width * channels;
      d.weights = weights.data();
      d.y = y.data() + row * size * channels;
      d.y_row = size * channels;
      d.channels = channels;
      d.out_w = size;
      d.kernel_h = d.kernel_w = kernel;
      d.stride_x = stride;
      d.dilation_x = 1;
      d.rows = row + rows <= size ? rows : 1;
      d.map = kRelu6;
      loops.rows(d);
    }
  }
}

/// A map over numbers that lie next to each other.
void map(UnaryKind kind, int64_t count, int64_t times) {
  const std::vector<float> x = floats(count);
  std::vector<float> y = x;
  for (int64_t i = 0; i < times; ++i) activation_loops_f32_generic.map({kind, 0, 6}, x.data(), y.data(), count);
}

void winograd_input(int64_t channels, int64_t times) {
  constexpr int64_t kIn = 6;  // rows and columns of F(4x4, 3x3)
  const std::vector<float> x = floats(kIn * kIn * channels);
  std::vector<float> v = floats(kIn * kIn * channels);
  for (int64_t i = 0; i < times; ++i) {
    winograd_f32_generic.four.input({x.data(), channels, kIn * channels, v.data(), channels, channels});
  }
}

/// A 1x1 convolution of M pixels with 8-bit operands, rounded to bytes.
void gemm_i8(const GemmTilesI8& tiles, int64_t M, int64_t K, int64_t N, int64_t times) {
  const int64_t quads = (K + 3) / 4;
  const std::vector<uint8_t> a(static_cast<size_t>(M * 4 * quads), 3);
  const std::vector<std::byte> b(static_cast<size_t>(panel_bytes(padded_columns(tiles, N), quads)));
  std::vector<uint8_t> c(static_cast<size_t>(M * padded_columns(tiles, N)));
  const ptrdiff_t blocks[] = {0};
  for (int64_t i = 0; i < times; ++i) {
    for (int64_t n = 0; n < N; n += tiles.nr) {
      GemmRowsI8 g{};
      g.a = a.data();
      g.a_row = 4 * quads;
      g.blocks = blocks;
      g.block_count = 1;
      g.quads = quads;
      g.b = b.data() + panel_bytes(n, quads);
      g.c = c.data() + n;
      g.c_row = padded_columns(tiles, N);
      g.M = M;
      g.columns = static_cast<int32_t>(panel_width(tiles, n, N));
      g.store = {3, 0, 255};
      tiles.rows(g, g.columns);
    }
  }
}

/// All rows of a 3x3 depthwise convolution of size x size outputs, stride 1.
void depthwise_i8(const DepthwiseI8Kernels& loops, int64_t size, int64_t channels, int64_t times) {
  const int64_t width = size + 2;
  const std::vector<uint8_t> x(static_cast<size_t>(width * width * channels), 3);
  const std::vector<std::byte> weights(static_cast<size_t>(channels * (8 + 4 * 3)));
  std::vector<uint8_t> y(static_cast<size_t>(size * size * channels));
  for (int64_t i = 0; i < times; ++i) {
    for (int64_t row = 0; row < size; ++row) {
      DepthwiseRowsI8 d{};
      d.x = x.data() + row * width * channels;
      d.pitch = d.y_pitch = channels;
      d.tap_row = width * channels;
      d.tap_rows = d.kernel_w = 3;
      d.weights = weights.data();
      d.y = y.data() + row * size * channels;
      d.y_row = size * channels;
      d.channels = channels;
      d.out_w = size;
      d.stride_x = d.dilation_x = d.row_quads = d.weight_sets = d.rows = 1;
      d.store = {3, 0, 255};
      loops.rows(d);
    }
  }
}

struct Kernel {
  const char* name;
  void (*run)(int64_t times);
};

const GemmTiles<uint16_t>& kGemmF16 = gemm_f16_tiles_neon_dotprod;
const DepthwiseLoops<uint16_t>& kDepthwiseF16 = depthwise_loops_f16_neon_dotprod;

constexpr Kernel kKernels[] = {
    {"gemm_84x96x96", [](int64_t times) { gemm(84, 96, 96, {}, false, 1, times); }},
    {"gemm_84x16x96_clip", [](int64_t times) { gemm(84, 16, 96, kRelu6, false, 1, times); }},
    {"gemm_49x160x96_clip", [](int64_t times) { gemm(49, 160, 96, kRelu6, false, 1, times); }},
    {"gemm_84x144x24_add", [](int64_t times) { gemm(84, 144, 24, {}, true, 1, times); }},
    {"gemm_84x64x20_silu", [](int64_t times) { gemm(84, 64, 20, {UnaryKind::kSilu, 0, 0}, false, 1, times); }},
    {"gemm_1x1280x1000", [](int64_t times) { gemm(1, 1280, 1000, {}, false, 1, times); }},
    {"conv_stem_112x27x32_clip", [](int64_t times) { gemm(112, 9, 32, kRelu6, false, 3, times); }},
    {"depthwise_3x3_14x14x64", [](int64_t times) { depthwise(3, 1, 14, 64, times); }},
    {"depthwise_3x3_s2_14x14x64", [](int64_t times) { depthwise(3, 2, 14, 64, times); }},
    {"depthwise_3x3_7x7x64", [](int64_t times) { depthwise(3, 1, 7, 64, times); }},
    {"depthwise_5x5_14x14x64", [](int64_t times) { depthwise(5, 1, 14, 64, times); }},
    {"depthwise_5x5_s2_14x14x64", [](int64_t times) { depthwise(5, 2, 14, 64, times); }},
    {"winograd_input_64", [](int64_t times) { winograd_input(64, times); }},
    {"map_silu_4096", [](int64_t times) { map(UnaryKind::kSilu, 4096, times); }},
    {"map_gelu_4096", [](int64_t times) { map(UnaryKind::kGelu, 4096, times); }},
    {"map_hard_swish_4096", [](int64_t times) { map(UnaryKind::kHardSwish, 4096, times); }},
    {"gemm_f16_84x96x96", [](int64_t times) { gemm(84, 96, 96, {}, false, 1, times, kGemmF16); }},
    {"gemm_f16_84x16x96_clip", [](int64_t times) { gemm(84, 16, 96, kRelu6, false, 1, times, kGemmF16); }},
    {"gemm_f16_49x160x96_clip", [](int64_t times) { gemm(49, 160, 96, kRelu6, false, 1, times, kGemmF16); }},
    {"gemm_f16_84x144x24_add", [](int64_t times) { gemm(84, 144, 24, {}, true, 1, times, kGemmF16); }},
    {"conv_f16_stem_112x27x32_clip", [](int64_t times) { gemm(112, 9, 32, kRelu6, false, 3, times, kGemmF16); }},
    {"depthwise_f16_3x3_14x14x64", [](int64_t times) { depthwise(3, 1, 14, 64, times, kDepthwiseF16); }},
    {"depthwise_f16_3x3_s2_14x14x64", [](int64_t times) { depthwise(3, 2, 14, 64, times, kDepthwiseF16); }},
    {"depthwise_f16_3x3_7x7x64", [](int64_t times) { depthwise(3, 1, 7, 64, times, kDepthwiseF16); }},
    {"depthwise_f16_5x5_14x14x64", [](int64_t times) { depthwise(5, 1, 14, 64, times, kDepthwiseF16); }},
    {"depthwise_f16_5x5_s2_14x14x64", [](int64_t times) { depthwise(5, 2, 14, 64, times, kDepthwiseF16); }},
#define PINNACE_I8(level)                                                                                       \
  {"gemm_i8_84x96x96_" #level, [](int64_t times) { gemm_i8(gemm_i8_tiles_##level, 84, 96, 96, times); }},       \
      {"gemm_i8_84x16x96_" #level, [](int64_t times) { gemm_i8(gemm_i8_tiles_##level, 84, 16, 96, times); }},   \
      {"gemm_i8_49x160x96_" #level, [](int64_t times) { gemm_i8(gemm_i8_tiles_##level, 49, 160, 96, times); }}, \
      {"gemm_i8_84x12x32_" #level, [](int64_t times) { gemm_i8(gemm_i8_tiles_##level, 84, 12, 32, times); }}, { \
    "depthwise_i8_3x3_14x14x64_" #level,                                                                        \
        [](int64_t times) { depthwise_i8(depthwise_i8_kernels_##level, 14, 64, times); }                        \
  }
    PINNACE_I8(generic),
    PINNACE_I8(neon_dotprod),
    PINNACE_I8(neon_i8mm),
#undef PINNACE_I8
};

}  // namespace
}  // namespace pinnace::cpu

int main(int argc, char** argv) {
  if (argc < 2) {
    for (const auto& kernel : pinnace::cpu::kKernels) std::puts(kernel.name);
    return 0;
  }
  for (const auto& kernel : pinnace::cpu::kKernels) {
    if (std::strcmp(kernel.name, argv[1]) != 0) continue;
    kernel.run(argc > 2 ? std::atoll(argv[2]) : 1);
    return 0;
  }
  std::fprintf(stderr, "count_kernels: no kernel is called %s\n", argv[1]);
  return 2;
}
