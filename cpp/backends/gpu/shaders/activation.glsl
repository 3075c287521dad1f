// The epilogue of products: the activation that a node carries. ACT is a spec constant, a code of activation kinds.
vec4 activate(int act, vec4 x, float p, float q) {
  vec4 zero = vec4(0.0), one = vec4(1.0);
  switch (act) {
    case FN_relu: return mix(x, zero, lessThan(x, zero));
    case FN_clip: { vec4 r = mix(x, vec4(p), lessThan(x, vec4(p))); return mix(r, vec4(q), greaterThan(r, vec4(q))); }
    case FN_leaky_relu: return mix(x, x * p, lessThan(x, zero));
    case FN_hard_swish: return x * clamp(x * (1.0 / 6.0) + 0.5, zero, one);
    case FN_hard_sigmoid: return clamp(x * p + q, zero, one);
    case FN_sigmoid: return one / (one + exp(-x));
    case FN_silu: return x / (one + exp(-x));
  }
  return x;
}
