// The functions of activation_registers.h on SVE registers of any length, by the same formulas to the same accuracy.
// Included only by files that are compiled for SVE.
#pragma once

#include <arm_sve.h>

#include "backends/cpu/unary/activation_f32.h"

namespace pinnace::cpu {
namespace sve {
namespace {

using Floats = svfloat32_t;

inline Floats all(float x) {
  return svdup_n_f32(x);
}
/// NaN in x is kept.
inline Floats clamped(svbool_t p, Floats x, float low, float high) {
  return svmin_n_f32_x(p, svmax_n_f32_x(p, x, low), high);
}
/// c + x * (... of the coefficients before it).
template <class... Rest>
inline Floats polynomial(svbool_t p, Floats x, Floats so_far, float next, Rest... rest) {
  so_far = svmad_f32_x(p, so_far, x, all(next));
  if constexpr (sizeof...(rest) > 0) {
    return polynomial(p, x, so_far, rest...);
  } else {
    return so_far;
  }
}

/// 2^n * p(r), |r| <= ln(2) / 2; 0 and infinity beyond the range of normal floats.
inline Floats exponential(svbool_t p, Floats x) {
  const Floats within = clamped(p, x, -87.336544f, 88.72284f);
  const Floats n = svrintn_f32_x(p, svmul_n_f32_x(p, within, 1.44269504f));
  const Floats r = svmls_n_f32_x(p, svmls_n_f32_x(p, within, n, 0.693359375f), n, -2.12194440e-4f);
  Floats y = polynomial(p, r, all(1.0f / 720), 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f);
  y = svscale_f32_x(p, y, svcvt_s32_f32_x(p, n));
  y = svsel_f32(svcmplt_n_f32(p, x, -87.336544f), all(0), y);
  return svsel_f32(svcmpgt_n_f32(p, x, 88.72284f), all(__builtin_inff()), y);
}
/// 1 / (1 + exp(x))
inline Floats falling(svbool_t p, Floats x) {
  return svdivr_n_f32_x(p, svadd_n_f32_x(p, exponential(p, x), 1), 1);
}
inline Floats sigmoid(svbool_t p, Floats x) {
  return falling(p, svneg_f32_x(p, x));
}
/// 1 - 2 / (1 + exp(2x)), near 0 its series.
inline Floats tangent(svbool_t p, Floats x) {
  const Floats far = svmls_n_f32_x(p, all(1), falling(p, svadd_f32_x(p, x, x)), 2);
  const Floats s = svmul_f32_x(p, x, x);
  const Floats series = polynomial(p, s, all(62.0f / 2835), -17.0f / 315, 2.0f / 15, -1.0f / 3);
  const Floats near = svmla_f32_x(p, x, svmul_f32_x(p, x, s), series);
  return svsel_f32(svaclt_n_f32(p, x, 0.25f), near, far);
}
/// Abramowitz and Stegun 7.1.26.
inline Floats error_function(svbool_t p, Floats x) {
  const Floats a = svabs_f32_x(p, x);
  const Floats t = svdivr_n_f32_x(p, svmad_n_f32_x(p, a, all(0.3275911f), 1), 1);
  const Floats q =
      svmul_f32_x(p, t, polynomial(p, t, all(1.061405429f), -1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f));
  const Floats y = svmls_f32_x(p, all(1), q, exponential(p, svmul_f32_x(p, svneg_f32_x(p, a), a)));
  const svuint32_t sign = svand_n_u32_x(p, svreinterpret_u32_f32(x), 0x80000000u);
  const Floats odd = svreinterpret_f32_u32(svorr_u32_x(p, svreinterpret_u32_f32(y), sign));
  return svsel_f32(svcmpuo_f32(p, x, x), x, odd);
}

/// By the formula for NEON, through memory: for functions that have none here. SVE's registers hold up to 64 floats.
__attribute__((noinline)) Floats by_neon(const UnaryF32& m, Floats x) {
  float lanes[64];
  svst1_f32(svptrue_b32(), lanes, x);
  activation_loops_f32_generic.map(m, lanes, lanes, static_cast<int64_t>(svcntw()));
  return svld1_f32(svptrue_b32(), lanes);
}

/// f(x) in the lanes of p; the others are of no value. Out of line: the formulas are long.
__attribute__((noinline)) Floats mapped(const UnaryF32& m, svbool_t p, Floats x) {
  switch (m.kind) {
    case UnaryKind::kNone:
      return x;
    case UnaryKind::kRelu:
      return svsel_f32(svcmple_n_f32(p, x, 0), all(0), x);
    case UnaryKind::kClip:
      return clamped(p, x, m.p, m.q);
    case UnaryKind::kLeakyRelu:
      return svsel_f32(svcmplt_n_f32(p, x, 0), svmul_n_f32_x(p, x, m.p), x);
    case UnaryKind::kHardSwish:
      return svmul_f32_x(p, x, clamped(p, svmad_n_f32_x(p, x, all(1.0f / 6), 0.5f), 0, 1));
    case UnaryKind::kHardSigmoid:
      return clamped(p, svmad_n_f32_x(p, x, all(m.p), m.q), 0, 1);
    case UnaryKind::kSigmoid:
      return sigmoid(p, x);
    case UnaryKind::kSilu:
      return svmul_f32_x(p, x, sigmoid(p, x));
    case UnaryKind::kTanh:
      return tangent(p, x);
    case UnaryKind::kGelu: {
      const Floats half = svmul_n_f32_x(p, x, 0.5f);
      return svmla_f32_x(p, half, half, error_function(p, svmul_n_f32_x(p, x, 0.70710678f)));
    }
    case UnaryKind::kGeluTanh: {
      const Floats half = svmul_n_f32_x(p, x, 0.5f), cube = svmul_f32_x(p, x, svmul_f32_x(p, x, x));
      const Floats inner = svmul_n_f32_x(p, svmla_n_f32_x(p, x, cube, 0.044715f), 0.79788456f);
      return svmla_f32_x(p, half, half, tangent(p, inner));
    }
    case UnaryKind::kExp:
      return exponential(p, x);
    default:
      return by_neon(m, x);
  }
}

}  // namespace
}  // namespace sve
}  // namespace pinnace::cpu
