// lstm: one layer of long short-term memory. Per element of time, with gates in the order i, o, f, c and "."
// elementwise:
//   i = f(Wi x + Ri h + Pi . c + Wbi + Rbi)     f = f(Wf x + Rf h + Pf . c + Wbf + Rbf), or 1 - i with input_forget
//   c' = f . c + i . g(Wc x + Rc h + Wbc + Rbc)  o = f(Wo x + Ro h + Po . c' + Wbo + Rbo)
//   h' = o . h(c'), or projection (o . h(c'))
//   x              [T, B, I], or [B, T, I] with layout 1     floats
//   w, r           [D, 4H, I], [D, 4H, P]                    as x; D is 2 for bidirectional, else 1; P is H without
//                                                            projection
//   b              [D, 8H] = Wb then Rb, optional            as x
//   sequence_lens  [B], optional                             i32, in [0, T]
//   initial_h      [D, B, P], or [B, D, P] with layout 1, optional  as x; 0 if left out
//   initial_c      [D, B, H], or [B, D, H] with layout 1, optional  as x; 0 if left out
//   p              [D, 3H] in the order i, o, f, optional    as x
//   projection     [D, P, H], optional                       as x
//   activations strings f, g, h per direction, default sigmoid, tanh, tanh; activation_alpha, activation_beta, clip,
//   direction, hidden_size, layout: see recurrent.h; input_forget int, default 0
//   y              [T, D, B, P], or [B, T, D, P]; 0 beyond a sequence's length
//   y_h, y_c       as initial_h and initial_c: state after the last element; of a sequence of length 0 the initial
//   state
// State is kept in double, outputs rounded once. clip bounds the arguments of the gates' activations, not c'. NaN and
// infinities go through products and sums as IEEE 754 has them; a NaN in the state stays there. Source: ONNX LSTM,
// opset 22; projection: PyTorch's proj_size (Sak, Senior and Beaufays, 2014).
#include "ops/recurrent.h"

namespace pinnace {
namespace {
constexpr std::string_view kDefaults[] = {"sigmoid", "tanh", "tanh"};

Status lstm_types(const NodeView& node, std::span<TensorType> out) {
  PINNACE_TRY(gate_activations(node, kDefaults).status());
  return check_recurrent(node, 4, out).status();
}

Status lstm_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const bool coupled = node.attr_int("input_forget") != 0;
  return run_recurrent(node, 4, kDefaults, in, out, [&](const RecurrentStep& s) {
    const int64_t H = s.H;
    affine(s.w, s.x, s.wb, s.rb, 4 * H, s.I, s.gates);
    for (int64_t row = 0; row < 4 * H; ++row) {
      for (int64_t k = 0; k < s.P; ++k) s.gates[row] += s.r[row * s.P + k] * s.h[k];
    }
    double* made = s.projection ? s.scratch : s.h;
    // Without peepholes there is nothing to add: 0 times an infinite cell would be NaN.
    const auto hole = [&](int64_t row, int64_t k) { return s.p ? s.p[row] * s.c[k] : 0.0; };
    for (int64_t k = 0; k < H; ++k) {
      const double i = s.activations[0](s.gates[k] + hole(k, k));
      const double f = coupled ? 1 - i : s.activations[0](s.gates[2 * H + k] + hole(2 * H + k, k));
      s.c[k] = f * s.c[k] + i * s.activations[1](s.gates[3 * H + k]);
      const double o = s.activations[0](s.gates[H + k] + hole(H + k, k));
      made[k] = o * s.activations[2].unclipped(s.c[k]);
    }
    if (!s.projection) return;
    for (int64_t row = 0; row < s.P; ++row) {
      s.h[row] = 0;
      for (int64_t k = 0; k < H; ++k) s.h[row] += s.projection[row * H + k] * made[k];
    }
  });
}
}  // namespace

PINNACE_OP(lstm){
    .name = "lstm",
    .inputs = {{"x", kFloats, 'T'},
               {"w", kFloats, 'T'},
               {"r", kFloats, 'T'},
               {"b", kFloats, 'T', Arity::kOptional},
               {"sequence_lens", kI32, 0, Arity::kOptional},
               {"initial_h", kFloats, 'T', Arity::kOptional},
               {"initial_c", kFloats, 'T', Arity::kOptional},
               {"p", kFloats, 'T', Arity::kOptional},
               {"projection", kFloats, 'T', Arity::kOptional}},
    .attrs = {kRnnAlphaAttr, kRnnBetaAttr, kRnnActivationsAttr, kRnnClipAttr, kRnnDirectionAttr, kRnnHiddenAttr,
              int_attr("input_forget", 0), kRnnLayoutAttr},
    .max_outputs = 3,
    .types = lstm_types,
    .reference = lstm_reference,
    .traits = Trait::kRecurrent,
    .work = Work::kSquared,
    .multiply_adds = recurrent_multiply_adds,
};
}  // namespace pinnace
