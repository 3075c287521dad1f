// C[M,N] = A[M,K] B[K,N] in halves, sums in float: 8 rows by 32 columns per threadgroup of 64, halves in a threadgroup array
// of two dimensions, vectors of four halves from memory. K and N are multiples of 4.
#include <metal_stdlib>
using namespace metal;

struct Params
{
    int M;
    int N;
    int K;
};

struct Halves4
{
    half4 data[1];
};

kernel void gemm_f16(const device Halves4& a [[buffer(0)]], const device Halves4& b [[buffer(1)]], device Halves4& c [[buffer(2)]], constant Params& p [[buffer(30)]], uint3 local [[thread_position_in_threadgroup]], uint3 group [[threadgroup_position_in_grid]])
{
    threadgroup half4 rows[8][8];
    int tx = int(local.x);
    int ty = int(local.y);
    int row = int(group.y) * 8 + ty;
    int column = int(group.x) * 8 + tx;
    float4 sum = float4(0.0);
    for (int k0 = 0; k0 < p.K / 4; k0 += 8)
    {
        rows[ty][tx] = (row < p.M && k0 + tx < p.K / 4) ? a.data[row * (p.K / 4) + k0 + tx] : half4(0.0h);
        threadgroup_barrier(mem_flags::mem_threadgroup); // filled
        if (column < p.N / 4)
        {
            for (int k = 0; k < 8 && k0 + k < p.K / 4; k++)
            {
                half4 left = rows[ty][k];
                for (int i = 0; i < 4; i++)
                {
                    sum += float4(b.data[((k0 + k) * 4 + i) * (p.N / 4) + column]) * float(left[i]);
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup); // read
    }
    if (row < p.M && column < p.N / 4)
    {
        c.data[row * (p.N / 4) + column] = half4(sum);
    }
}
