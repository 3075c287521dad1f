// Depthwise 3 x 3 convolution of an image of blocks of four channels, [C/4][H][W][4], padding 1, any stride, clamped to
// [0, 6]. No barrier: its invocations run one after the other.
#include <metal_stdlib>
using namespace metal;

struct Params
{
    int blocks;
    int in_h;
    int in_w;
    int out_h;
    int out_w;
    int stride;
};

struct Blocks
{
    float4 data[1];
};

kernel void depthwise(const device Blocks& x [[buffer(0)]], const device Blocks& w [[buffer(1)]], const device Blocks& bias [[buffer(2)]], device Blocks& y [[buffer(3)]], constant Params& p [[buffer(30)]], uint3 at [[thread_position_in_grid]])
{
    do
    {
        int column = int(at.x);
        int row = int(at.y);
        int block = int(at.z);
        if (column >= p.out_w || row >= p.out_h || block >= p.blocks)
        {
            break;
        }
        float4 sum = bias.data[block];
        for (int i = 0; i < 3; i++)
        {
            for (int j = 0; j < 3; j++)
            {
                int r = row * p.stride - 1 + i;
                int q = column * p.stride - 1 + j;
                if (r >= 0 && r < p.in_h && q >= 0 && q < p.in_w)
                {
                    sum = fma(x.data[(block * p.in_h + r) * p.in_w + q], w.data[block * 9 + i * 3 + j], sum);
                }
            }
        }
        y.data[(block * p.out_h + row) * p.out_w + column] = fast::clamp(sum, float4(0.0), float4(6.0));
        break;
    } while (false);
}
