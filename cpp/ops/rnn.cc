// rnn: one layer of the simple recurrent network, h' = f(W x + R h + Wb + Rb) per element of time.
//   x              [T, B, I], or [B, T, I] with layout 1     floats
//   w, r           [D, H, I], [D, H, H]                      as x; D is 2 for bidirectional, else 1
//   b              [D, 2H] = Wb then Rb, optional            as x
//   sequence_lens  [B], optional                             i32, in [0, T]
//   initial_h      [D, B, H], or [B, D, H] with layout 1, optional  as x; 0 if left out
//   activations strings f per direction, default tanh; activation_alpha, activation_beta, clip, direction, hidden_size,
//   layout: see recurrent.h y              [T, D, B, H], or [B, T, D, H]; 0 beyond a sequence's length y_h as
//   initial_h: state after the last element; of a sequence of length 0 the initial state
// State is kept in double, outputs rounded once. NaN and infinities go through products and sums as IEEE 754 has them;
// a NaN in the state stays there. Source: ONNX RNN, opset 22.
#include "ops/recurrent.h"

namespace pinnace {
namespace {
constexpr std::string_view kDefaults[] = {"tanh"};

Status rnn_types(const NodeView& node, std::span<TensorType> out) {
  PINNACE_TRY(gate_activations(node, kDefaults).status());
  return check_recurrent(node, 1, out).status();
}

Status rnn_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return run_recurrent(node, 1, kDefaults, in, out, [](const RecurrentStep& s) {
    affine(s.w, s.x, s.wb, s.rb, s.H, s.I, s.gates);
    affine(s.r, s.h, s.gates, nullptr, s.H, s.H, s.scratch);
    for (int64_t k = 0; k < s.H; ++k) s.h[k] = s.activations[0](s.scratch[k]);
  });
}
}  // namespace

PINNACE_OP(rnn){
    .name = "rnn",
    .inputs = {{"x", kFloats, 'T'},
               {"w", kFloats, 'T'},
               {"r", kFloats, 'T'},
               {"b", kFloats, 'T', Arity::kOptional},
               {"sequence_lens", kI32, 0, Arity::kOptional},
               {"initial_h", kFloats, 'T', Arity::kOptional}},
    .attrs = {kRnnAlphaAttr, kRnnBetaAttr, kRnnActivationsAttr, kRnnClipAttr, kRnnDirectionAttr, kRnnHiddenAttr,
              kRnnLayoutAttr},
    .max_outputs = 2,
    .types = rnn_types,
    .reference = rnn_reference,
    .traits = Trait::kRecurrent,
    .work = Work::kSquared,
    .multiply_adds = recurrent_multiply_adds,
};
}  // namespace pinnace
