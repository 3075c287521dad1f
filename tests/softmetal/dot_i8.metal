// 8-bit linear layer, to the bit: q = clamp(rint(float(sum of products) * scale) + zero), sums in int, four at a time.
#include <metal_stdlib>
using namespace metal;

struct Params
{
    int rows;
    int columns;
    int quads;
    int zero;
    float scale;
};

struct Bytes4
{
    char4 data[1];
};

struct Bytes
{
    char data[1];
};

kernel void dot_i8(const device Bytes4& x [[buffer(0)]], const device Bytes4& w [[buffer(1)]], device Bytes& y [[buffer(2)]], constant Params& p [[buffer(30)]], uint2 at [[thread_position_in_grid]])
{
    if (int(at.x) >= p.columns || int(at.y) >= p.rows)
    {
        return;
    }
    int sum = 0;
    for (int k = 0; k < p.quads; k++)
    {
        int4 product = int4(x.data[int(at.y) * p.quads + k]) * int4(w.data[int(at.x) * p.quads + k]);
        sum += (product.x + product.y) + (product.z + product.w);
    }
    y.data[int(at.y) * p.columns + int(at.x)] = char(clamp(int(rint(float(sum) * p.scale)) + p.zero, -128, 127));
}
