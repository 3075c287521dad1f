// What lstm, gru and rnn share: their shapes, gate activations, and the walk over directions, sequences and time.
#pragma once

#include <functional>

#include "ops/lines.h"

namespace pinnace {

/// Whether an operator is one of the three.
constexpr bool is_recurrent(std::string_view op) {
  return op == "lstm" || op == "gru" || op == "rnn";
}
/// Their inputs that are matrices of weights: w, r, an lstm's projection.
inline constexpr size_t kRecurrentMatrices[] = {1, 2, 8};
/// For each value, whether recurrent cells read it as such a matrix, and nobody reads it otherwise.
std::vector<bool> find_recurrent_matrices(const Graph& graph);

/// Attributes of all three. direction "forward", "reverse", "bidirectional"; layout 0: x [T, B, I], 1: x [B, T, I].
/// activations: names as below, one list per direction; clip: bound on the arguments of gates' activations, 0 is none.
inline constexpr AttrDef kRnnAlphaAttr = floats_attr("activation_alpha"), kRnnBetaAttr = floats_attr("activation_beta");
inline constexpr AttrDef kRnnActivationsAttr = strings_attr("activations"), kRnnClipAttr = float_attr("clip", 0);
inline constexpr AttrDef kRnnDirectionAttr = string_attr("direction", "forward"),
                         kRnnHiddenAttr = int_attr("hidden_size", 0);
inline constexpr AttrDef kRnnLayoutAttr = int_attr("layout", 0);

/// One activation of a gate: relu, tanh, sigmoid, affine (alpha x + beta), leaky_relu (alpha), thresholded_relu
/// (alpha), scaled_tanh (alpha tanh(beta x)), hard_sigmoid (alpha, beta), elu (alpha), softsign, softplus.
struct GateActivation {
  enum class Kind : uint8_t {
    kRelu,
    kTanh,
    kSigmoid,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  };
  Kind kind = Kind::kTanh;
  double alpha = 0, beta = 0;
  double clip = 0;  ///< the argument is first clamped to [-clip, clip], if above 0
  double operator()(double x) const { return unclipped(clip > 0 ? (x < -clip ? -clip : x > clip ? clip : x) : x); }
  double unclipped(double x) const;
};
/// The activations of every direction, `defaults.size()` each. activation_alpha and activation_beta are consumed in
/// order by the activations that have the parameter; where they run out the parameter is ONNX's default.
Result<std::vector<GateActivation>> gate_activations(const NodeView& node, std::span<const std::string_view> defaults);

/// Sizes of a recurrent node.
struct Recurrent {
  int gates = 1, directions = 1;
  bool reverse = false;      ///< the first direction runs backwards
  bool batch_first = false;  ///< layout 1
  Dim T, B, I, H;
  Dim P;  ///< size of y and of the state h: H, or rows of a projection
  bool projected = false;
};

/// Shape rule: x, w [D, gates * H, I], r [D, gates * H, P], b [D, 2 * gates * H], sequence_lens [B] i32, initial_h, and
/// from input 6 on initial_c, p [D, 3 * H] and projection [D, P, H] where the operator has them. Fills y, y_h and, if
/// wanted, y_c.
Result<Recurrent> check_recurrent(const NodeView& node, int gates, std::span<TensorType> out);

/// One direction's parameters and one sequence's state while it runs, all in double; a missing b is zeros.
struct RecurrentStep {
  int64_t I, H, P;
  const double* x;                ///< [I]
  const double *w, *r, *wb, *rb;  ///< [gates * H, I], [gates * H, P], [gates * H] twice
  const double* p;                ///< [3 * H], or null
  const double* projection;       ///< [P, H], or null
  const GateActivation* activations;
  double *h, *c;            ///< [P] and [H], to be updated
  double *gates, *scratch;  ///< [gates * H] and [2 * H], free to use
};

/// Runs every direction and sequence; `step` advances one sequence by one element of time. y beyond a sequence's length
/// is 0; a sequence of length 0 ends with its initial state. kInvalidArgument: a length outside [0, T].
Status run_recurrent(const NodeView& node, int gates, std::span<const std::string_view> defaults,
                     std::span<const TensorView> in, std::span<const TensorView> out,
                     const std::function<void(const RecurrentStep&)>& step);

/// Of all three: each step of each sequence takes w, r and projection once.
double recurrent_multiply_adds(std::span<const TensorType* const> inputs, const TensorType& y);

/// to[row] = m[row] . v + b[row] + c[row]; c may be null. m [rows, columns].
void affine(const double* m, const double* v, const double* b, const double* c, int64_t rows, int64_t columns,
            double* to);

}  // namespace pinnace
