// Counts bytes in 64 bins: atomics in threadgroup memory, then in the buffer.
#include <metal_stdlib>
using namespace metal;

struct Params
{
    uint count;
};

struct Bytes
{
    uchar data[1];
};

struct Counts
{
    uint data[1];
};

kernel void histogram(const device Bytes& x [[buffer(0)]], device Counts& y [[buffer(1)]], constant Params& p [[buffer(30)]], uint3 at [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]])
{
    threadgroup uint counts[64];
    counts[t] = 0u;
    threadgroup_barrier(mem_flags::mem_threadgroup); // zeroed
    if (at.x < p.count)
    {
        uint before = atomic_fetch_add_explicit((threadgroup atomic_uint*)&counts[uint(x.data[at.x]) / 4u], 1u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup); // counted
    uint total = atomic_fetch_add_explicit((device atomic_uint*)&y.data[t], counts[t], memory_order_relaxed);
}
