// The epilogue of products, as activation.glsl has it, of one number: ACT is a function constant, a code of activation
// kinds.
float activate(float x, float p, float q)
{
    switch (ACT)
    {
        case FN_relu: return x < 0.0f ? 0.0f : x;
        case FN_clip: x = x < p ? p : x; return x > q ? q : x;
        case FN_leaky_relu: return x < 0.0f ? x * p : x;
        case FN_hard_swish: return x * clamp(x * (1.0f / 6.0f) + 0.5f, 0.0f, 1.0f);
        case FN_hard_sigmoid: return clamp(x * p + q, 0.0f, 1.0f);
        case FN_sigmoid: return 1.0f / (1.0f + exp(-x));
        case FN_silu: return x / (1.0f + exp(-x));
    }
    return x;
}
