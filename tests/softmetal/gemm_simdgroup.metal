// C[M,N] = A[M,K] B[K,N] by simdgroup matrices: A in halves from the buffer, B in floats through threadgroup memory, 8 x 8
// tiles of C spread over the simdgroups of the threadgroup, however many there are. M, N and K are multiples of 8.
#include <metal_stdlib>
using namespace metal;

struct Params
{
    int M;
    int N;
    int K;
};

kernel void gemm_simdgroup(device const half* a [[buffer(0)]], device const float* b [[buffer(1)]], device float* c [[buffer(2)]], constant Params& p [[buffer(30)]], uint2 group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]], uint simdgroups [[simdgroups_per_threadgroup]])
{
    threadgroup float panel[8 * 8];
    int column0 = int(group.x) * 8;
    for (int round = 0; round < p.M / 8; round += int(simdgroups))
    {
        int row0 = (round + int(simdgroup)) * 8;
        bool inside = row0 < p.M;
        simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        for (int k0 = 0; k0 < p.K; k0 += 8)
        {
            for (int i = int(t); i < 64; i += int(size))
            {
                panel[i] = b[(k0 + i / 8) * p.N + column0 + i % 8];
            }
            threadgroup_barrier(mem_flags::mem_threadgroup); // filled
            if (inside)
            {
                simdgroup_half8x8 left;
                simdgroup_float8x8 right;
                simdgroup_load(left, a + row0 * p.K + k0, ulong(p.K));
                simdgroup_load(right, panel, 8);
                simdgroup_multiply_accumulate(sum, left, right, sum);
            }
            threadgroup_barrier(mem_flags::mem_threadgroup); // read
        }
        if (inside)
        {
            simdgroup_store(sum, c + row0 * p.N + column0, ulong(p.N));
        }
    }
}
