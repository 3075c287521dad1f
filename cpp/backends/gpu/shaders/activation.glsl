// The epilogue of products: the activation that a node carries, a row of unary.inc of use EPILOGUE. ACT is a spec
// constant, its code.
#include "numbers.glsl"

vec4 activate(int act, vec4 x, float p, float q) {
  switch (act) {
#define UNARY_POWER(name, glsl)
#define UNARY_ALONE(name, glsl)
#define UNARY_FUSED(name, glsl)
#define UNARY_EPILOGUE(name, glsl) case FN_##name: return glsl;
#define UNARY(kind, name, use, parameters, reference, simd, glsl) UNARY_##use(name, glsl)
#include "ops/unary.inc"
  }
  return x;
}
