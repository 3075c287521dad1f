// Transposes a matrix of 16-bit integers by tiles of 16 x 16, a row of padding against bank conflicts.
#include <metal_stdlib>
using namespace metal;

struct Params
{
    int rows;
    int columns;
};

struct Shorts
{
    short data[1];
};

kernel void transpose(const device Shorts& x [[buffer(0)]], device Shorts& y [[buffer(1)]], constant Params& p [[buffer(30)]], uint3 local [[thread_position_in_threadgroup]], uint3 group [[threadgroup_position_in_grid]])
{
    threadgroup short tile[16][17];
    int row = int(group.y) * 16 + int(local.y);
    int column = int(group.x) * 16 + int(local.x);
    if (row < p.rows && column < p.columns)
    {
        tile[local.y][local.x] = x.data[row * p.columns + column];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup); // filled
    row = int(group.x) * 16 + int(local.y);
    column = int(group.y) * 16 + int(local.x);
    if (row < p.columns && column < p.rows)
    {
        y.data[row * p.rows + column] = tile[local.x][local.y];
    }
}
