// gru: one layer of gated recurrent units. Per element of time, with gates in the order z, r, h and "." elementwise:
//   z = f(Wz x + Rz h + Wbz + Rbz)    r = f(Wr x + Rr h + Wbr + Rbr)
//   n = g(Wh x + Rh (r . h) + Rbh + Wbh), or with linear_before_reset g(Wh x + r . (Rh h + Rbh) + Wbh)
//   h' = (1 - z) . n + z . h
//   x              [T, B, I], or [B, T, I] with layout 1     floats
//   w, r           [D, 3H, I], [D, 3H, H]                    as x; D is 2 for bidirectional, else 1
//   b              [D, 6H] = Wb then Rb, optional            as x
//   sequence_lens  [B], optional                             i32, in [0, T]
//   initial_h      [D, B, H], or [B, D, H] with layout 1, optional  as x; 0 if left out
//   activations strings f, g per direction, default sigmoid, tanh; activation_alpha, activation_beta, clip, direction,
//   hidden_size, layout: see recurrent.h; linear_before_reset int, default 0
//   y              [T, D, B, H], or [B, T, D, H]; 0 beyond a sequence's length
//   y_h            as initial_h: state after the last element; of a sequence of length 0 the initial state
// State is kept in double, outputs rounded once. NaN and infinities go through products and sums as IEEE 754 has them;
// a NaN in the state stays there. Source: ONNX GRU, opset 22.
#include "ops/recurrent.h"

namespace pinnace {
namespace {
constexpr std::string_view kDefaults[] = {"sigmoid", "tanh"};

Status gru_types(const NodeView& node, std::span<TensorType> out) {
  PINNACE_TRY(gate_activations(node, kDefaults).status());
  return check_recurrent(node, 3, out).status();
}

Status gru_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const bool linear_first = node.attr_int("linear_before_reset") != 0;
  return run_recurrent(node, 3, kDefaults, in, out, [&](const RecurrentStep& s) {
    const int64_t H = s.H;
    double *reset = s.scratch, *hidden = s.scratch + H;
    affine(s.w, s.x, s.wb, nullptr, 3 * H, s.I, s.gates);
    for (int64_t k = 0; k < H; ++k) {
      double z = s.gates[k] + s.rb[k], r = s.gates[H + k] + s.rb[H + k];
      for (int64_t i = 0; i < H; ++i) {
        z += s.r[k * H + i] * s.h[i];
        r += s.r[(H + k) * H + i] * s.h[i];
      }
      s.gates[k] = s.activations[0](z);
      reset[k] = s.activations[0](r);
      s.gates[H + k] = reset[k] * s.h[k];
    }
    affine(s.r + 2 * H * H, linear_first ? s.h : s.gates + H, s.rb + 2 * H, nullptr, H, H, hidden);
    for (int64_t k = 0; k < H; ++k) {
      const double n = s.activations[1](s.gates[2 * H + k] + (linear_first ? reset[k] : 1) * hidden[k]);
      s.h[k] = (1 - s.gates[k]) * n + s.gates[k] * s.h[k];
    }
  });
}
}  // namespace

PINNACE_OP(gru){
    .name = "gru",
    .inputs = {{"x", kFloats, 'T'},
               {"w", kFloats, 'T'},
               {"r", kFloats, 'T'},
               {"b", kFloats, 'T', Arity::kOptional},
               {"sequence_lens", kI32, 0, Arity::kOptional},
               {"initial_h", kFloats, 'T', Arity::kOptional}},
    .attrs = {kRnnAlphaAttr, kRnnBetaAttr, kRnnActivationsAttr, kRnnClipAttr, kRnnDirectionAttr, kRnnHiddenAttr,
              kRnnLayoutAttr, int_attr("linear_before_reset", 0)},
    .max_outputs = 2,
    .types = gru_types,
    .reference = gru_reference,
    .traits = Trait::kRecurrent,
    .work = Work::kSquared,
    .multiply_adds = recurrent_multiply_adds,
};
}  // namespace pinnace
