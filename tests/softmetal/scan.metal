// Inclusive sum over a threadgroup: prefix sums and shuffles inside simdgroups, their totals through [[threadgroup(0)]]
// memory that the host sizes.
#include <metal_stdlib>
using namespace metal;

kernel void scan(device const int* x [[buffer(0)]], device int* y [[buffer(1)]], device uint* votes [[buffer(2)]], threadgroup int* totals [[threadgroup(0)]], uint t [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]], uint width [[threads_per_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]])
{
    int value = x[t];
    int sum = simd_prefix_inclusive_sum(value);
    int checked = simd_prefix_exclusive_sum(value) + value;
    if (lane == width - 1u)
    {
        totals[simdgroup] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup); // totals there
    int before = 0;
    for (uint i = 0u; i < simdgroup; i++)
    {
        before += totals[i];
    }
    int neighbour = simd_shuffle_xor(value, 1u);
    int next = simd_shuffle_down(value, 1u);
    int first = simd_broadcast_first(value);
    y[t] = before + sum;
    votes[t] = (sum == checked ? 1u : 0u) + (simd_all(neighbour == x[t ^ 1u]) ? 2u : 0u) + ((lane + 1u == width || next == x[t + 1u]) ? 4u : 0u) + (first == x[t - lane] ? 8u : 0u) + (popcount(uint(ulong(simd_ballot(lane < 3u)))) == 3u ? 16u : 0u);
}
