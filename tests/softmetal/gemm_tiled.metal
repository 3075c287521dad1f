// C[M,N] = act(A[M,K] B[K,N] + bias[N]), row-major: 32 x 32 of C per threadgroup, 2 x 2 per invocation, K in steps of 16
// through threadgroup memory, two barriers a step. Written as spirv-cross writes storage buffers.
#include <metal_stdlib>
using namespace metal;

struct Params
{
    int M;
    int N;
    int K;
};

struct Floats
{
    float data[1];
};

constant int kActTmp [[function_constant(0)]];
constant int kAct = is_function_constant_defined(kActTmp) ? kActTmp : 0;
constant bool kRelu = (kAct == 1);

kernel void gemm_tiled(const device Floats& a [[buffer(0)]], const device Floats& b [[buffer(1)]], const device Floats& bias [[buffer(2)]], device Floats& c [[buffer(3)]], constant Params& p [[buffer(30)]], uint3 local [[thread_position_in_threadgroup]], uint3 group [[threadgroup_position_in_grid]])
{
    threadgroup float left[512];
    threadgroup float right[512];
    int tx = int(local.x);
    int ty = int(local.y);
    int index = ty * 16 + tx;
    int row0 = int(group.y) * 32;
    int column0 = int(group.x) * 32;
    float2 acc0 = float2(0.0);
    float2 acc1 = float2(0.0);
    for (int k0 = 0; k0 < p.K; k0 += 16)
    {
        for (int i = index; i < 512; i += 256)
        {
            int k = k0 + i % 16;
            int row = row0 + i / 16;
            left[(i % 16) * 32 + i / 16] = (k < p.K && row < p.M) ? a.data[row * p.K + k] : 0.0;
            int kb = k0 + i / 32;
            int column = column0 + i % 32;
            right[i] = (kb < p.K && column < p.N) ? b.data[kb * p.N + column] : 0.0;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup); // filled
        for (int k = 0; k < 16; k++)
        {
            float2 x = float2(left[k * 32 + ty * 2], left[k * 32 + ty * 2 + 1]);
            float2 y = float2(right[k * 32 + tx * 2], right[k * 32 + tx * 2 + 1]);
            acc0 += x.x * y;
            acc1 += x.y * y;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup); // read
    }
    for (int i = 0; i < 2; i++)
    {
        for (int j = 0; j < 2; j++)
        {
            int row = row0 + ty * 2 + i;
            int column = column0 + tx * 2 + j;
            if (row < p.M && column < p.N)
            {
                float v = (i == 0 ? acc0[j] : acc1[j]) + bias.data[column];
                c.data[row * p.N + column] = kRelu ? fast::max(v, 0.0) : v;
            }
        }
    }
}
