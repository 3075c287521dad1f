// Tile registers (AMX) as bodies use them: eight registers of up to 16 rows of 64 bytes, which a configuration gives
// their sizes. AmxTiles are the processor's, ModelTiles the same in memory, to the bit, for processors without and for
// what a machine that loses tiles leaves to do. Intel's Architecture Instruction Set Extensions Reference, chapter on
// AMX, has what each instruction does.
//
// The compiler knows nothing of tile registers here, and neither keeps nor changes any: what is in them stays there
// from one call to the next.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/isa.h"
#include "backends/cpu/simd/tile_losses.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// The operand of LDTILECFG.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
  void set(int tile, int64_t rows_of_tile, int64_t bytes) {
    rows[tile] = static_cast<uint8_t>(rows_of_tile);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
};

#if PINNACE_TILES
/// Assembly of our own: GCC 12's intrinsics say too little about the memory that they read and write.
struct AmxTiles {
  static inline void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config) : "memory"); }
  static inline void release() { asm volatile("tilerelease" ::: "memory"); }
  template <int TILE>
  static inline void load(const void* from, ptrdiff_t row) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row), "i"(TILE) : "memory");
  }
  template <int TILE>
  static inline void store(void* to, ptrdiff_t row) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row), "i"(TILE) : "memory");
  }
  /// SUM += unsigned bytes of A . signed bytes of B, in int32 modulo 2^32.
  template <int SUM, int A, int B>
  static inline void dot_bytes() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(SUM), "i"(A), "i"(B));
  }
  /// SUM += bfloat16 of A . bfloat16 of B, in float32.
  template <int SUM, int A, int B>
  static inline void dot_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(SUM), "i"(A), "i"(B));
  }
};
#endif

/// One set for each thread, which no other thread and nothing that interrupts it touches.
struct ModelTiles {
  struct Tile {
    int32_t rows, bytes;
    uint8_t at[16][64];
  };
  static inline Tile* tiles() {
    static thread_local Tile all[8];
    return all;
  }
  static inline void configure(const TileConfig& config) {
    for (int i = 0; i < 8; ++i) tiles()[i] = {config.rows[i], config.row_bytes[i], {}};
  }
  static inline void release() {
    for (int i = 0; i < 8; ++i) tiles()[i] = {};
  }
  template <int TILE>
  static inline void load(const void* from, ptrdiff_t row) {
    Tile& tile = tiles()[TILE];
    for (int32_t i = 0; i < tile.rows; ++i) {
      __builtin_memcpy(tile.at[i], static_cast<const char*>(from) + i * row, static_cast<size_t>(tile.bytes));
    }
  }
  template <int TILE>
  static inline void store(void* to, ptrdiff_t row) {
    const Tile& tile = tiles()[TILE];
    for (int32_t i = 0; i < tile.rows; ++i) {
      __builtin_memcpy(static_cast<char*>(to) + i * row, tile.at[i], static_cast<size_t>(tile.bytes));
    }
  }
  template <int SUM, int A, int B>
  static inline void dot_bytes() {
    Tile &sum = tiles()[SUM], &a = tiles()[A], &b = tiles()[B];
    for (int32_t m = 0; m < sum.rows; ++m) {
      for (int32_t n = 0; n < sum.bytes; n += 4) {
        uint32_t total;
        __builtin_memcpy(&total, sum.at[m] + n, 4);
        for (int32_t k = 0; k < a.bytes; ++k) {
          const auto weight = static_cast<int8_t>(b.at[k / 4][n + k % 4]);
          total += static_cast<uint32_t>(a.at[m][k] * weight);
        }
        __builtin_memcpy(sum.at[m] + n, &total, 4);
      }
    }
  }
  /// Even and odd elements are summed apart, by fused multiply-adds, then added to each other and to SUM. Denormal
  /// numbers count as zeros, in operands and in results.
  template <int SUM, int A, int B>
  static inline void dot_bf16() {
    Tile &sum = tiles()[SUM], &a = tiles()[A], &b = tiles()[B];
    for (int32_t m = 0; m < sum.rows; ++m) {
      for (int32_t n = 0; n < sum.bytes; n += 4) {
        float parts[2] = {};
        for (int32_t k = 0; k < a.bytes; k += 4) {
          for (int32_t odd = 0; odd < 2; ++odd) {
            parts[odd] =
                normal(__builtin_fmaf(widened(a.at[m] + k + 2 * odd), widened(b.at[k / 4] + n + 2 * odd), parts[odd]));
          }
        }
        float total;
        __builtin_memcpy(&total, sum.at[m] + n, 4);
        total = normal(normal(total) + normal(parts[0] + parts[1]));
        __builtin_memcpy(sum.at[m] + n, &total, 4);
      }
    }
  }

 private:
  static inline float normal(float v) { return __builtin_fabsf(v) < 0x1p-126f ? __builtin_copysignf(0.0f, v) : v; }
  static inline float widened(const uint8_t* bf16) {
    uint16_t half;
    __builtin_memcpy(&half, bf16, 2);
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float v;
    __builtin_memcpy(&v, &bits, 4);
    return normal(v);
  }
};

/// The model on a machine that does not save tiles: where a test asks for it (lose_model_tiles), they become zero.
struct LosingTiles : ModelTiles {
  template <int SUM, int A, int B>
  static inline void dot_bytes() {
    ModelTiles::dot_bytes<SUM, A, B>();
    lose();
  }
  template <int SUM, int A, int B>
  static inline void dot_bf16() {
    ModelTiles::dot_bf16<SUM, A, B>();
    lose();
  }

 private:
  static inline void lose() {
    if (!model_loses_tiles()) return;
    for (int i = 0; i < 8; ++i) __builtin_memset(tiles()[i].at, 0, sizeof tiles()[i].at);
  }
};

#if PINNACE_TILES
using Tiles = AmxTiles;
#else
using Tiles = LosingTiles;
#endif

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
