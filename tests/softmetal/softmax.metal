// y = softmax(x * scale) of rows, one threadgroup a row: simd reductions, and partial results of simdgroups in threadgroup
// memory. Any simd width.
#include <metal_stdlib>
using namespace metal;

struct Params
{
    int columns;
    float scale;
};

kernel void softmax(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant Params& p [[buffer(30)]], uint group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]], uint simdgroups [[simdgroups_per_threadgroup]])
{
    threadgroup float partial[16];
    device const float* row = x + int(group) * p.columns;
    float largest = -3e38;
    for (int i = int(t); i < p.columns; i += int(size))
    {
        largest = max(largest, row[i] * p.scale);
    }
    largest = simd_max(largest);
    if (simd_is_first())
    {
        partial[simdgroup] = largest;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup); // maxima there
    largest = partial[0];
    for (uint i = 1u; i < simdgroups; i++)
    {
        largest = max(largest, partial[i]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup); // maxima read
    float sum = 0.0;
    for (int i = int(t); i < p.columns; i += int(size)) // exponents
    {
        sum += exp(row[i] * p.scale - largest);
    }
    sum = simd_sum(sum);
    if (simd_is_first())
    {
        partial[simdgroup] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup); // sums there
    sum = 0.0;
    for (uint i = 0u; i < simdgroups; i++)
    {
        sum += partial[i];
    }
    for (int i = int(t); i < p.columns; i += int(size))
    {
        y[int(group) * p.columns + i] = exp(row[i] * p.scale - largest) / sum;
    }
}
