// y[batch, M, N] = act(alpha * A B + beta * c) by the matrix units of Apple's GPUs: what gemm.comp does with PACKED,
// same bindings and push constants. A workgroup makes 32 rows by 64 columns, each of its four simdgroups 16 by 32 of
// them as 2 x 4 matrices of 8 x 8, 16 of K at a time. Operands go through threadgroup memory, in 32 bits and with zeros
// beyond the edges, so that matrices are loaded and stored there alone, whole; results leave by the same way.
// A simdgroup has 32 lanes: KernelCode::simdgroup_matrices asks the device for it. cmake/shaders.py puts in front what
// S, S4 and the FN_ are.
#include "params.inc"
struct Params
{
    GEMM_PARAMS
};

GEMM_CONSTANTS

enum { LOCAL = 128, ROWS = 32, COLUMNS = 64, DEPTH = 16 };

#include "activation.metal"

kernel void gemm_matrices(device const S* a [[buffer(0)]], device const S4* b [[buffer(1)]],
                          device const S* c [[buffer(2)]], device S* y [[buffer(3)]],
                          constant Params& p [[buffer(30)]], uint3 group [[threadgroup_position_in_grid]],
                          uint t [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]])
{
    threadgroup float left[512];    // [ROWS][DEPTH]
    threadgroup float right[1024];  // [DEPTH][COLUMNS], in the end of each simdgroup [8][32]
    int batch = int(group.z) + p.first_batch;
    int m0 = int(group.y) * ROWS, n0 = int(group.x) * COLUMNS;
    int row = int(simdgroup) / 2 * 16, column = int(simdgroup) % 2 * 32;  // of this simdgroup
    bool inside = m0 + row < p.M && n0 + column < p.N;
    int at = batch / p.inner * p.a_outer + batch % p.inner * p.a_inner;
    int blocks = (p.N + 3) / 4;
    simdgroup_float8x8 sum[2][4];
    for (int i = 0; i < 2; i++)
    {
        for (int j = 0; j < 4; j++) sum[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    for (int k0 = 0; k0 < p.K; k0 += DEPTH)
    {
        for (int i = int(t); i < ROWS * DEPTH; i += LOCAL)
        {
            int m = m0 + i / DEPTH, k = k0 + i % DEPTH;
            left[i] = m < p.M && k < p.K ? float(a[at + m * p.a_row + k * p.a_col]) : 0.0f;
        }
        for (int i = int(t); i < DEPTH * COLUMNS / 4; i += LOCAL)  // neighbours read neighbours
        {
            int k = i % DEPTH, own = i / DEPTH, block = n0 / 4 + own;
            float4 four = float4(0.0f);
            if (block < blocks && k0 + k < p.K) four = float4(b[block * p.K + k0 + k]);
            for (int l = 0; l < 4; l++) right[k * COLUMNS + own * 4 + l] = four[l];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // filled
        for (int k = 0; inside && k < DEPTH; k += 8)
        {
            simdgroup_float8x8 rows[2], columns[4];
            for (int i = 0; i < 2; i++) simdgroup_load(rows[i], left + (row + i * 8) * DEPTH + k, DEPTH);
            for (int j = 0; j < 4; j++) simdgroup_load(columns[j], right + k * COLUMNS + column + j * 8, COLUMNS);
            for (int i = 0; i < 2; i++)
            {
                for (int j = 0; j < 4; j++) simdgroup_multiply_accumulate(sum[i][j], rows[i], columns[j], sum[i][j]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // read
    }
    int own_tile = int(simdgroup) * 256, n = n0 + column + int(lane);
    for (int i = 0; inside && i < 2; i++)
    {
        for (int j = 0; j < 4; j++) simdgroup_store(sum[i][j], right + own_tile + j * 8, 32);
        simdgroup_barrier(mem_flags::mem_threadgroup);  // stored
        for (int r = 0; r < 8; r++)
        {
            int m = m0 + row + i * 8 + r;
            if (m >= p.M || n >= p.N) continue;
            float v = p.alpha * right[own_tile + r * 32 + int(lane)];
            if (BIAS == 1) v += p.beta * float(c[m * p.c_row + n * p.c_col]);
            y[(batch * p.M + m) * p.N + n] = S(activate(v, p.p, p.q));
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);  // taken
    }
}
