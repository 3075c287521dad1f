// 8-bit tiles by matrix products of octets, as assembly: two rows of eight unsigned bytes by two columns of eight
// signed ones in one instruction (USMMLA), half as many as dot products by lanes take. For blocks with an even number
// of quads. Included by gemm_i8_tile_neon.h, which has the ends of tiles.
#pragma once

// Sums of rows 0 and 1 are in v0 to v7, of rows 2 and 3 in v8 to v15, each register two columns of both: first row,
// then second.
#define PINNACE_PAIRS(a, s0, s1, s2, s3, s4, s5, s6, s7)        \
  "usmmla " s0 ".4s, " a ".16b, v24.16b\n usmmla " s1 ".4s, " a \
  ".16b, v25.16b\n"                                             \
  "usmmla " s2 ".4s, " a ".16b, v26.16b\n usmmla " s3 ".4s, " a \
  ".16b, v27.16b\n"                                             \
  "usmmla " s4 ".4s, " a ".16b, v28.16b\n usmmla " s5 ".4s, " a \
  ".16b, v29.16b\n"                                             \
  "usmmla " s6 ".4s, " a ".16b, v30.16b\n usmmla " s7 ".4s, " a ".16b, v31.16b\n"
#define PINNACE_OCTET_1(a0, a1) \
  PINNACE_LOAD_EVEN PINNACE_LOAD_ODD PINNACE_PAIRS(a0, "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7")
#define PINNACE_OCTET_3(a0, a1) \
  PINNACE_OCTET_1(a0, a1) PINNACE_PAIRS(a1, "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15")
#define PINNACE_OCTET_2 PINNACE_OCTET_1
#define PINNACE_OCTET_4 PINNACE_OCTET_3
// Sixteen or eight bytes of every row; of an odd number the last row is loaded twice.
#define PINNACE_TWO_ROWS(size, bytes) \
  "ldr " size "16, [%[p0]], " bytes   \
  "\n"                                \
  "ldr " size "17, [%[p1]], " bytes "\n"
#define PINNACE_FOUR_ROWS(size, bytes) \
  PINNACE_TWO_ROWS(size, bytes)        \
  "ldr " size "18, [%[p2]], " bytes    \
  "\n"                                 \
  "ldr " size "19, [%[p3]], " bytes "\n"
#define PINNACE_PAIR_ROWS_1 PINNACE_TWO_ROWS
#define PINNACE_PAIR_ROWS_2 PINNACE_TWO_ROWS
#define PINNACE_PAIR_ROWS_3 PINNACE_FOUR_ROWS
#define PINNACE_PAIR_ROWS_4 PINNACE_FOUR_ROWS

#define PINNACE_FIRST_PAIR                                  \
  "trn1 v16.2d, v0.2d, v1.2d\n trn1 v17.2d, v2.2d, v3.2d\n" \
  "trn1 v18.2d, v4.2d, v5.2d\n trn1 v19.2d, v6.2d, v7.2d\n" \
  "trn2 v20.2d, v0.2d, v1.2d\n trn2 v21.2d, v2.2d, v3.2d\n" \
  "trn2 v22.2d, v4.2d, v5.2d\n trn2 v23.2d, v6.2d, v7.2d\n"
#define PINNACE_SECOND_PAIR                                     \
  "trn1 v16.2d, v8.2d, v9.2d\n trn1 v17.2d, v10.2d, v11.2d\n"   \
  "trn1 v18.2d, v12.2d, v13.2d\n trn1 v19.2d, v14.2d, v15.2d\n" \
  "trn2 v20.2d, v8.2d, v9.2d\n trn2 v21.2d, v10.2d, v11.2d\n"   \
  "trn2 v22.2d, v12.2d, v13.2d\n trn2 v23.2d, v14.2d, v15.2d\n"
#define PINNACE_PAIR_BYTES_0 PINNACE_STORE_BYTES("v0", "v1", "v16", "v17", "v18", "v19")
#define PINNACE_PAIR_BYTES_1 PINNACE_STORE_BYTES("v2", "v3", "v20", "v21", "v22", "v23")
#define PINNACE_PAIR_SUMS_0 PINNACE_STORE_SUMS("", "", "", "v16", "v17", "v18", "v19")
#define PINNACE_PAIR_SUMS_1 PINNACE_STORE_SUMS("", "", "", "v20", "v21", "v22", "v23")
#define PINNACE_STORE_PAIRS_1(KIND) PINNACE_FIRST_PAIR KIND##_0
#define PINNACE_STORE_PAIRS_2(KIND) PINNACE_STORE_PAIRS_1(KIND) KIND##_1
#define PINNACE_STORE_PAIRS_3(KIND) PINNACE_STORE_PAIRS_2(KIND) PINNACE_SECOND_PAIR KIND##_0
#define PINNACE_STORE_PAIRS_4(KIND) PINNACE_STORE_PAIRS_3(KIND) KIND##_1

#define PINNACE_PAIR_TILES(MR) \
  "1: mov %[b], %[panel]\n"                                                                                \
  "mov %[block], %[blocks]\n"                                                                              \
  "mov %[left], %[block_count]\n"                                                                          \
  "ld1r {v0.2d}, [%[b]], 8\n ld1r {v1.2d}, [%[b]], 8\n ld1r {v2.2d}, [%[b]], 8\n ld1r {v3.2d}, [%[b]], 8\n" \
  "ld1r {v4.2d}, [%[b]], 8\n ld1r {v5.2d}, [%[b]], 8\n ld1r {v6.2d}, [%[b]], 8\n ld1r {v7.2d}, [%[b]], 8\n" \
  "mov v8.16b, v0.16b\n mov v9.16b, v1.16b\n mov v10.16b, v2.16b\n mov v11.16b, v3.16b\n"                  \
  "mov v12.16b, v4.16b\n mov v13.16b, v5.16b\n mov v14.16b, v6.16b\n mov v15.16b, v7.16b\n"                \
  "add %[b], %[b], 64\n"                                                                                   \
  "2: ldr %[p0], [%[block]], 8\n"                                                                          \
  "lsr %[n], %[k], 2\n"                                                                                    \
  "add %[p0], %[a], %[p0]\n"                                                                               \
  "add %[p1], %[p0], %[row1]\n"                                                                            \
  "add %[p2], %[p1], %[row]\n"                                                                             \
  "add %[p3], %[p2], %[row3]\n"                                                                            \
  "cbz %[n], 4f\n"                                                                                         \
  "3:\n" PINNACE_PAIR_ROWS_##MR("q", "16")                                                                 \
  "trn1 v20.2d, v16.2d, v17.2d\n trn1 v21.2d, v18.2d, v19.2d\n"                                            \
  "trn2 v22.2d, v16.2d, v17.2d\n trn2 v23.2d, v18.2d, v19.2d\n"                                            \
  PINNACE_OCTET_##MR("v20", "v21") PINNACE_OCTET_##MR("v22", "v23")                                        \
  "subs %[n], %[n], 1\n"                                                                                   \
  "b.ne 3b\n"                                                                                              \
  "4: tbz %[k], 1, 5f\n" PINNACE_PAIR_ROWS_##MR("d", "8")                                                  \
  "trn1 v20.2d, v16.2d, v17.2d\n trn1 v21.2d, v18.2d, v19.2d\n" PINNACE_OCTET_##MR("v20", "v21")           \
  "5: subs %[left], %[left], 1\n"                                                                          \
  "b.ne 2b\n"                                                                                              \
  "cbz %[multipliers], 9f\n" PINNACE_LOAD_STORE PINNACE_STORE_PAIRS_##MR(PINNACE_PAIR_BYTES)               \
  "b 10f\n"                                                                                                \
  "9:\n" PINNACE_STORE_PAIRS_##MR(PINNACE_PAIR_SUMS)                                                       \
  "10:\n" PINNACE_NEXT_TILE
