// 1 x 1 convolution of NC4HW4 buffers with stride 1 by the matrix units of Apple's GPUs: what conv_pointwise.comp does,
// same bindings, push constants and groups. A workgroup makes 64 pixels in 32 channels, each of its four simdgroups 16
// pixels as 2 x 4 matrices of 8 x 8, 16 channels of the input at a time, by way of threadgroup memory as in
// gemm_matrices.metal. Lanes of an image beyond its channels are finite, and their weights are zeros.
#include "params.inc"
struct Params
{
    CONV_POINTWISE_PARAMS
};

CONV_POINTWISE_CONSTANTS

enum { LOCAL = 128, PIXELS = 64, CHANNELS = 32, DEPTH = 16 };

#include "activation.metal"

kernel void conv_matrices(device const S4* x [[buffer(0)]], device const S4* w [[buffer(1)]],
                          device const S4* bias [[buffer(2)]], device const S4* r [[buffer(3)]],
                          device S4* y [[buffer(4)]], constant Params& p [[buffer(30)]],
                          uint3 group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                          uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]])
{
    threadgroup float left[1024];  // [PIXELS][DEPTH], in the end of each simdgroup [8 pixels][CHANNELS]
    threadgroup float right[512];  // [DEPTH][CHANNELS]
    int image = int(group.z), pixel0 = int(group.x) * PIXELS, block0 = int(group.y) * CHANNELS / 4;
    int row = int(simdgroup) * 16;
    bool inside = pixel0 + row < p.pixels;
    int K = p.C4 * 4;
    simdgroup_float8x8 sum[2][4];
    for (int i = 0; i < 2; i++)
    {
        for (int j = 0; j < 4; j++) sum[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    for (int k0 = 0; k0 < K; k0 += DEPTH)
    {
        for (int i = int(t); i < PIXELS * DEPTH / 4; i += LOCAL)  // neighbours read neighbours
        {
            int own = i % PIXELS, c = i / PIXELS;
            float4 four = float4(0.0f);
            if (pixel0 + own < p.pixels && k0 / 4 + c < p.C4)
            {
                four = float4(x[(image * p.C4 + k0 / 4 + c) * p.pixels + pixel0 + own]);
            }
            for (int l = 0; l < 4; l++) left[own * DEPTH + c * 4 + l] = four[l];
        }
        for (int i = int(t); i < DEPTH * CHANNELS / 4; i += LOCAL)
        {
            int k = i % DEPTH, own = i / DEPTH;
            float4 four = float4(0.0f);
            if (block0 + own < p.M4 && k0 + k < K)
            {
                four = float4(w[image * p.weights_step + (block0 + own) * K + k0 + k]);
            }
            for (int l = 0; l < 4; l++) right[k * CHANNELS + own * 4 + l] = four[l];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // filled
        for (int k = 0; inside && k < DEPTH; k += 8)
        {
            simdgroup_float8x8 rows[2], columns[4];
            for (int i = 0; i < 2; i++) simdgroup_load(rows[i], left + (row + i * 8) * DEPTH + k, DEPTH);
            for (int j = 0; j < 4; j++) simdgroup_load(columns[j], right + k * CHANNELS + j * 8, CHANNELS);
            for (int i = 0; i < 2; i++)
            {
                for (int j = 0; j < 4; j++) simdgroup_multiply_accumulate(sum[i][j], rows[i], columns[j], sum[i][j]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // read
    }
    int own_tile = int(simdgroup) * 256;
    for (int i = 0; inside && i < 2; i++)
    {
        for (int j = 0; j < 4; j++) simdgroup_store(sum[i][j], left + own_tile + j * 8, CHANNELS);
        simdgroup_barrier(mem_flags::mem_threadgroup);  // stored
        int pixel = pixel0 + row + i * 8 + int(lane) % 8;
        for (int own = int(lane) / 8; own < CHANNELS / 4; own += 4)
        {
            int block = block0 + own;
            if (pixel >= p.pixels || block >= p.M4) continue;
            int to = (image * p.M4 + block) * p.pixels + pixel, from = own_tile + int(lane) % 8 * CHANNELS + own * 4;
            float4 v = float4(bias[block]);
            for (int l = 0; l < 4; l++) v[l] += left[from + l];
            if (RESIDUAL == 1) v += float4(r[to]);
            S4 made;
            for (int l = 0; l < 4; l++) made[l] = S(activate(v[l], p.a, p.b));
            y[to] = made;
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);  // taken
    }
}
