// The sums of matrix tiles of ARM64 as assembly: 1 to 4 rows by 16 columns of four-byte elements (floats, or quads of
// bytes of which an instruction makes dot products). One instruction loads or stores the four registers of a row of a
// tile, and one loads eight elements of a row of the left side: 256 multiply-adds in 282 instructions. Intrinsics do
// not get there, for GCC 12 spills registers that must stand together. Included by the tiles of one instruction set,
// which define
//   PINNACE_MULTIPLY(sum, b, a, lane)  sum += b times a lane of a
//   PINNACE_ELEMENT_SHIFT              logarithm of the bytes that offsets of blocks count in, as a string
//   PINNACE_FLIPS                      1: activations are signed before they are multiplied, by v17 = 0x80 in each byte
//
// Sums are in v0 to v15, four registers a row. Rows of the left side are in v16 to v23, two registers each; rows of the
// panel in v24 to v27 and v28 to v31, in turn.
#pragma once

#include <arm_neon.h>

#define PINNACE_ROW(s0, s1, s2, s3, a, lane, b0, b1, b2, b3) \
  PINNACE_MULTIPLY(s0, b0, a, lane)                          \
  PINNACE_MULTIPLY(s1, b1, a, lane)                          \
  PINNACE_MULTIPLY(s2, b2, a, lane)                          \
  PINNACE_MULTIPLY(s3, b3, a, lane)

// One step of k for 1 to 4 rows, by the first (LEFT) or second register of each, and by one or the other row of the
// panel.
#define PINNACE_STEP_1(a0, a1, a2, a3, lane, ...) PINNACE_ROW("v0", "v1", "v2", "v3", a0, lane, __VA_ARGS__)
#define PINNACE_STEP_2(a0, a1, a2, a3, lane, ...) \
  PINNACE_STEP_1(a0, a1, a2, a3, lane, __VA_ARGS__) PINNACE_ROW("v4", "v5", "v6", "v7", a1, lane, __VA_ARGS__)
#define PINNACE_STEP_3(a0, a1, a2, a3, lane, ...) \
  PINNACE_STEP_2(a0, a1, a2, a3, lane, __VA_ARGS__) PINNACE_ROW("v8", "v9", "v10", "v11", a2, lane, __VA_ARGS__)
#define PINNACE_STEP_4(a0, a1, a2, a3, lane, ...) \
  PINNACE_STEP_3(a0, a1, a2, a3, lane, __VA_ARGS__) PINNACE_ROW("v12", "v13", "v14", "v15", a3, lane, __VA_ARGS__)
#define PINNACE_LEFT(MR, lane, ...) PINNACE_STEP_##MR("v16", "v18", "v20", "v22", lane, __VA_ARGS__)
#define PINNACE_RIGHT(MR, lane, ...) PINNACE_STEP_##MR("v17", "v19", "v21", "v23", lane, __VA_ARGS__)
#define PINNACE_EVEN "v24", "v25", "v26", "v27"
#define PINNACE_ODD "v28", "v29", "v30", "v31"
#define PINNACE_LOAD_EVEN "ld1 {v24.4s - v27.4s}, [%[b]], 64\n"
#define PINNACE_LOAD_ODD "ld1 {v28.4s - v31.4s}, [%[b]], 64\n"

// LINE(number of a row, its first and second register for the left side, its four sums) for 1 to 4 rows.
#define PINNACE_ROWS_1(LINE) LINE("0", "16", "17", "v0", "v1", "v2", "v3")
#define PINNACE_ROWS_2(LINE) PINNACE_ROWS_1(LINE) LINE("1", "18", "19", "v4", "v5", "v6", "v7")
#define PINNACE_ROWS_3(LINE) PINNACE_ROWS_2(LINE) LINE("2", "20", "21", "v8", "v9", "v10", "v11")
#define PINNACE_ROWS_4(LINE) PINNACE_ROWS_3(LINE) LINE("3", "22", "23", "v12", "v13", "v14", "v15")
#define PINNACE_LOAD_8(i, left, right, ...) "ldp q" left ", q" right ", [%[p" i "]], 32\n"
#define PINNACE_LOAD_4(i, left, ...) "ldr q" left ", [%[p" i "]], 16\n"
#define PINNACE_LOAD_1(i, left, ...) "ldr s" left ", [%[p" i "]], 4\n"
#define PINNACE_FLIP(i, left, ...) "eor v" left ".16b, v" left ".16b, v17.16b\n"
#define PINNACE_START(i, left, right, s0, s1, s2, s3) "ld1 {" s0 ".4s - " s3 ".4s}, [%[b]]\n"
#define PINNACE_STORE_SUMS(i, left, right, s0, s1, s2, s3) "st1 {" s0 ".4s - " s3 ".4s}, [%[c]], %[c_step]\n"

// The panel is loaded a step ahead of the multiply-adds, for processors that execute in order.
#define PINNACE_STEPS_OF_4(MR, SIDE)                                                                            \
  PINNACE_LOAD_ODD PINNACE_##SIDE(MR, "0", PINNACE_EVEN) PINNACE_LOAD_EVEN PINNACE_##SIDE(MR, "1", PINNACE_ODD) \
      PINNACE_LOAD_ODD PINNACE_##SIDE(MR, "2", PINNACE_EVEN) PINNACE_##SIDE(MR, "3", PINNACE_ODD)
#if PINNACE_FLIPS
#define PINNACE_LOAD_ROWS(MR, LOAD) PINNACE_ROWS_##MR(LOAD) PINNACE_ROWS_##MR(PINNACE_FLIP)
#define PINNACE_FOUR(MR) PINNACE_LOAD_EVEN PINNACE_LOAD_ROWS(MR, PINNACE_LOAD_4) PINNACE_STEPS_OF_4(MR, LEFT)
#define PINNACE_EIGHT(MR) PINNACE_FOUR(MR) PINNACE_FOUR(MR)
#else
#define PINNACE_LOAD_ROWS(MR, LOAD) PINNACE_ROWS_##MR(LOAD)
#define PINNACE_FOUR(MR) PINNACE_LOAD_EVEN PINNACE_LOAD_ROWS(MR, PINNACE_LOAD_4) PINNACE_STEPS_OF_4(MR, LEFT)
#define PINNACE_EIGHT(MR)                                                              \
  PINNACE_LOAD_EVEN PINNACE_LOAD_ROWS(MR, PINNACE_LOAD_8) PINNACE_STEPS_OF_4(MR, LEFT) \
      PINNACE_LOAD_EVEN PINNACE_STEPS_OF_4(MR, RIGHT)
#endif
#define PINNACE_ONE(MR) PINNACE_LOAD_EVEN PINNACE_LOAD_ROWS(MR, PINNACE_LOAD_1) PINNACE_LEFT(MR, "0", PINNACE_EVEN)

// The rows of a block, block after block, from [block]; [b] goes through the panel. Labels 2 to 8.
#define PINNACE_BLOCKS(MR) \
  "2: ldr %[p0], [%[block]], 8\n"                                \
  "lsr %[n], %[k], 4\n"                                          \
  "add %[p0], %[a], %[p0], lsl " PINNACE_ELEMENT_SHIFT "\n"      \
  "add %[p1], %[p0], %[row]\n"                                   \
  "add %[p2], %[p1], %[row]\n"                                   \
  "add %[p3], %[p2], %[row]\n"                                   \
  "cbz %[n], 4f\n"                                               \
  "3:\n" PINNACE_EIGHT(MR) PINNACE_EIGHT(MR)                     \
  "subs %[n], %[n], 1\n"                                         \
  "b.ne 3b\n"                                                    \
  "4: tbz %[k], 3, 5f\n" PINNACE_EIGHT(MR)                       \
  "5: ands %[n], %[k], 7\n"                                      \
  "b.eq 8f\n"                                                    \
  "tbz %[k], 2, 6f\n" PINNACE_FOUR(MR)                           \
  "6: ands %[n], %[k], 3\n"                                      \
  "b.eq 8f\n"                                                    \
  "7:\n" PINNACE_ONE(MR)                                         \
  "subs %[n], %[n], 1\n"                                         \
  "b.ne 7b\n"                                                    \
  "8: subs %[left], %[left], 1\n"                                \
  "b.ne 2b\n"

// Everything that a tile changes.
#define PINNACE_CLOBBERED                                                                                             \
  "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",      \
      "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", \
      "v31"
