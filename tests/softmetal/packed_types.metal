// Packed vectors, boolean vectors, conversions, bit patterns and integer functions, one result of each kind per invocation.
#include <metal_stdlib>
using namespace metal;

struct Params
{
    packed_float3 shift;
    float limit;
};

kernel void packed_types(device packed_float3* points [[buffer(0)]], device const packed_half4* halves [[buffer(1)]], device float* out [[buffer(2)]], device uint* bits [[buffer(3)]], constant Params& p [[buffer(30)]], uint t [[thread_position_in_grid]], ushort2 local [[thread_position_in_threadgroup]])
{
    float3 point = float3(points[t]) + float3(p.shift);
    points[t] = packed_float3(point);
    half4 h = half4(halves[t]) * 2.0h + half4(0.5h);
    bool4 big = float4(h) > float4(p.limit);
    float4 chosen = select(float4(0.0), float4(1.0, 2.0, 4.0, 8.0), big);
    float swizzled = dot(chosen.wzyx, float4(1.0, 10.0, 100.0, 1000.0));
    out[t] = (all(big) ? 100000.0 : 0.0) + (any(big) ? 50000.0 : 0.0) + swizzled + length(point.xy) + float(local.x);
    uint u = as_type<uint>(float(h.x));
    bits[t] = popcount(u) + 100u * clz(u) + 10000u * uint(ctz(u | 1024u)) + extract_bits(u, 23u, 8u) * 1000000u;
}
