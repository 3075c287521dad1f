// What lstm, gru and rnn share on their way to NNAPI: their sizes, weights of one gate, states, and the order of what
// they make.
#pragma once

#include "backends/nnapi/lowering.h"
#include "ops/recurrent.h"

namespace pinnace::nnapi_client {

/// What one direction made.
struct Direction {
  OperandId y = kNoOperand;  ///< [T, B, H], or [B, T, H] if not time_major
  bool time_major = true;
  OperandId h = kNoOperand, c = kNoOperand;  ///< [B, H]; kNoOperand where nobody can read it
};

class RecurrentLowering {
 public:
  /// kConstant: weights are no constants; kAttribute: sequences of different lengths, clipped gates.
  static Result<RecurrentLowering> open(NodeLowering& n, int gates, std::span<const std::string_view> defaults);

  uint32_t T, B, I, H, D;
  bool reverse, batch_first;
  std::vector<GateActivation> activations;

  /// x as it stands, [T, B, I] or [B, T, I].
  OperandId x = kNoOperand;
  nnapi::OperandCode type() const { return n_->operand(x).type; }

  /// Rows of one gate of w (input 1) or r (input 2), [H, I] or [H, H], times `factor`.
  OperandId matrix(int input, uint32_t d, int gate, double factor = 1);
  enum class Bias : uint8_t { kBoth, kOfW, kOfR };
  /// Of one gate, [H]; zeros where the node has none.
  OperandId bias(uint32_t d, int gate, Bias which = Bias::kBoth, double factor = 1);
  /// One of the three peepholes, [H].
  OperandId peephole(uint32_t d, int which, double factor = 1);
  /// What stands for an operand that is left out.
  OperandId omitted();
  /// initial_h (input 5) or initial_c (6) of one direction, [B, H]; zeros where it is left out.
  Result<OperandId> initial(int input, uint32_t d);

  /// x as [T * B, I], time first.
  Result<OperandId> rows();
  /// Rows of one element of time of [T * B, C]: STRIDED_SLICE, feature level 2.
  Result<OperandId> step(OperandId rows, uint32_t t);
  /// Whether steps can be written out one by one; else the verdict.
  Status check_steps();
  /// The times in the order in which direction d goes.
  std::vector<uint32_t> times(uint32_t d) const;
  /// States after each element of time, [B, H], in the order of time, as [T, B, H].
  Result<OperandId> sequence(const std::vector<OperandId>& states);
  /// Element t of y [B, H].
  Result<OperandId> element(const Direction& d, uint32_t t);
  /// y, [T, B, H] or [B, T, H] as x, with its time turned round: GATHER, feature level 3.
  Result<OperandId> turned(OperandId y);

  /// The node's outputs.
  Status finish(const std::vector<Direction>& directions);

 private:
  explicit RecurrentLowering(NodeLowering& n) : n_(&n) {}
  OperandId constant(int input, std::vector<uint32_t> dims, int64_t first, int64_t second, double factor,
                     std::string_view role);
  NodeLowering* n_;
  int gates_ = 1;
};

/// NNAPI's code of an activation inside a recurrent operation, or -1.
int recurrent_code(const GateActivation& a);

}  // namespace pinnace::nnapi_client
