// 8-bit tiles without dot products, as assembly: bytes are widened to 16 bits, and columns of weights multiplied by one
// lane of a row (SMLAL), four products an instruction. Weights stand column by column, element after element. Included
// by gemm_i8_tile_neon.h, which has the ends of tiles.
//
// Lanes of 16 bits can be taken from v0 to v15 alone: rows are in v0 to v3 and sums in v16 to v31, four registers a
// row; weights in v8 to v15, and widened, by turns, in v4 and v5 or v6 and v7.
#pragma once

#define PINNACE_HALF_ROW(s0, s1, s2, s3, a, lane, b0, b1) \
  "smlal " s0 ".4s, " b0 ".4h, " a ".h[" lane             \
  "]\n"                                                   \
  "smlal2 " s1 ".4s, " b0 ".8h, " a ".h[" lane            \
  "]\n"                                                   \
  "smlal " s2 ".4s, " b1 ".4h, " a ".h[" lane             \
  "]\n"                                                   \
  "smlal2 " s3 ".4s, " b1 ".8h, " a ".h[" lane "]\n"
#define PINNACE_HALF_STEP_1(lane, ...) PINNACE_HALF_ROW("v16", "v17", "v18", "v19", "v0", lane, __VA_ARGS__)
#define PINNACE_HALF_STEP_2(lane, ...) \
  PINNACE_HALF_STEP_1(lane, __VA_ARGS__) PINNACE_HALF_ROW("v20", "v21", "v22", "v23", "v1", lane, __VA_ARGS__)
#define PINNACE_HALF_STEP_3(lane, ...) \
  PINNACE_HALF_STEP_2(lane, __VA_ARGS__) PINNACE_HALF_ROW("v24", "v25", "v26", "v27", "v2", lane, __VA_ARGS__)
#define PINNACE_HALF_STEP_4(lane, ...) \
  PINNACE_HALF_STEP_3(lane, __VA_ARGS__) PINNACE_HALF_ROW("v28", "v29", "v30", "v31", "v3", lane, __VA_ARGS__)
// Two steps of k by two registers of weights.
#define PINNACE_HALF_STEPS(MR, w0, lane0, w1, lane1)                                           \
  "sxtl v4.8h, " w0 ".8b\n sxtl2 v5.8h, " w0 ".16b\n sxtl v6.8h, " w1 ".8b\n sxtl2 v7.8h, " w1 \
  ".16b\n" PINNACE_HALF_STEP_##MR(lane0, "v4", "v5") PINNACE_HALF_STEP_##MR(lane1, "v6", "v7")

// LINE(number of a row, its register) for 1 to 4 rows.
#define PINNACE_HALF_ROWS_1(LINE, size, bytes) LINE("0", size, bytes)
#define PINNACE_HALF_ROWS_2(LINE, size, bytes) PINNACE_HALF_ROWS_1(LINE, size, bytes) LINE("1", size, bytes)
#define PINNACE_HALF_ROWS_3(LINE, size, bytes) PINNACE_HALF_ROWS_2(LINE, size, bytes) LINE("2", size, bytes)
#define PINNACE_HALF_ROWS_4(LINE, size, bytes) PINNACE_HALF_ROWS_3(LINE, size, bytes) LINE("3", size, bytes)
#define PINNACE_HALF_LOAD(i, size, bytes) "ldr " size i ", [%[p" i "]], " bytes "\n uxtl v" i ".8h, v" i ".8b\n"

#define PINNACE_HALF_START_1 "ld1 {v16.4s - v19.4s}, [%[b]]\n"
#define PINNACE_HALF_START_2 PINNACE_HALF_START_1 "ld1 {v20.4s - v23.4s}, [%[b]]\n"
#define PINNACE_HALF_START_3 PINNACE_HALF_START_2 "ld1 {v24.4s - v27.4s}, [%[b]]\n"
#define PINNACE_HALF_START_4 PINNACE_HALF_START_3 "ld1 {v28.4s - v31.4s}, [%[b]]\n"

#define PINNACE_HALF_BYTES_1 PINNACE_STORE_BYTES("v0", "v1", "v16", "v17", "v18", "v19")
#define PINNACE_HALF_BYTES_2 PINNACE_HALF_BYTES_1 PINNACE_STORE_BYTES("v2", "v3", "v20", "v21", "v22", "v23")
#define PINNACE_HALF_BYTES_3 PINNACE_HALF_BYTES_2 PINNACE_STORE_BYTES("v0", "v1", "v24", "v25", "v26", "v27")
#define PINNACE_HALF_BYTES_4 PINNACE_HALF_BYTES_3 PINNACE_STORE_BYTES("v2", "v3", "v28", "v29", "v30", "v31")
#define PINNACE_HALF_SUMS_1 "st1 {v16.4s - v19.4s}, [%[c]], %[c_step]\n"
#define PINNACE_HALF_SUMS_2 PINNACE_HALF_SUMS_1 "st1 {v20.4s - v23.4s}, [%[c]], %[c_step]\n"
#define PINNACE_HALF_SUMS_3 PINNACE_HALF_SUMS_2 "st1 {v24.4s - v27.4s}, [%[c]], %[c_step]\n"
#define PINNACE_HALF_SUMS_4 PINNACE_HALF_SUMS_3 "st1 {v28.4s - v31.4s}, [%[c]], %[c_step]\n"

#define PINNACE_TILES(MR) \
  "1: mov %[b], %[panel]\n"                                                                  \
  "mov %[block], %[blocks]\n"                                                                \
  "mov %[left], %[block_count]\n" PINNACE_HALF_START_##MR                                    \
  "add %[b], %[b], 128\n"                                                                    \
  "2: ldr %[p0], [%[block]], 8\n"                                                            \
  "lsr %[n], %[k], 1\n"                                                                      \
  "add %[p0], %[a], %[p0]\n"                                                                 \
  "add %[p1], %[p0], %[row]\n"                                                               \
  "add %[p2], %[p1], %[row]\n"                                                               \
  "add %[p3], %[p2], %[row]\n"                                                               \
  "cbz %[n], 4f\n"                                                                           \
  "3: ld1 {v8.16b - v11.16b}, [%[b]], 64\n" PINNACE_HALF_ROWS_##MR(PINNACE_HALF_LOAD, "d", "8") \
  "ld1 {v12.16b - v15.16b}, [%[b]], 64\n"                                                    \
  PINNACE_HALF_STEPS(MR, "v8", "0", "v9", "1") PINNACE_HALF_STEPS(MR, "v10", "2", "v11", "3")  \
  PINNACE_HALF_STEPS(MR, "v12", "4", "v13", "5") PINNACE_HALF_STEPS(MR, "v14", "6", "v15", "7") \
  "subs %[n], %[n], 1\n"                                                                     \
  "b.ne 3b\n"                                                                                \
  "4: tbz %[k], 0, 5f\n"                                                                     \
  "ld1 {v8.16b - v11.16b}, [%[b]], 64\n" PINNACE_HALF_ROWS_##MR(PINNACE_HALF_LOAD, "s", "4") \
  PINNACE_HALF_STEPS(MR, "v8", "0", "v9", "1") PINNACE_HALF_STEPS(MR, "v10", "2", "v11", "3")  \
  "5: subs %[left], %[left], 1\n"                                                            \
  "b.ne 2b\n"                                                                                \
  "cbz %[multipliers], 9f\n" PINNACE_LOAD_STORE PINNACE_HALF_BYTES_##MR                      \
  "b 10f\n"                                                                                  \
  "9:\n" PINNACE_HALF_SUMS_##MR                                                              \
  "10:\n" PINNACE_NEXT_TILE
