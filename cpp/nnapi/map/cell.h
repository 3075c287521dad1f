// What recurrent cells share: they are computed in float32, and rounded to float16 at the end; sequences have time
// first.
#pragma once

#include <initializer_list>

#include "nnapi/mapping.h"

namespace pinnace::nnapi {

/// kInvalidArgument unless input i, which has the value `id`, has these dimensions; -1: any.
Status expect_dims(const Call& call, size_t i, ValueId id, std::initializer_list<int64_t> dims);
/// Input i as float32; a constant where it is one, of whatever size.
Result<ValueId> float_input(Call& call, size_t i);
/// Output i is `id`, a float32, in the output's type.
Status finish_float(Call& call, size_t i, ValueId id);

/// f32 [count], where a client gives no biases.
Result<ValueId> zeros(Call& call, int64_t count);

/// Activation codes of cells: 0 none, 1 relu, 3 relu6, 4 tanh, 6 sigmoid.
Result<ValueId> cell_activation(Call& call, ValueId id, int64_t code);
/// The same as the name of an activation of `rnn` and `lstm`; relu6 is relu with clip 6.
Result<std::string> cell_activation_name(const Call& call, int64_t code);

/// A constant where all parts are, of whatever size: weights that a loop captures can then be packed ahead.
Result<ValueId> concat(Call& call, std::vector<ValueId> parts, int64_t axis);
/// A dimension of size 1 more, or less, at `axis`.
Result<ValueId> unsqueeze(Call& call, ValueId id, int64_t axis);
Result<ValueId> squeeze(Call& call, ValueId id, int64_t axis);
/// From last to first along dimension 0.
Result<ValueId> reversed(Call& call, ValueId id);
/// [T, B, ...] to [B, T, ...] and back, unless `nothing`.
Result<ValueId> swap_time(Call& call, ValueId id, bool nothing);

/// What a sequence gives: [T, B, O], and states after the last element, in float32.
struct Sequence {
  ValueId y = kNoValue, h = kNoValue, c = kNoValue;
};

/// How a bidirectional operation uses its auxiliary input.
enum class Aux : uint8_t {
  kNone,
  kCross,     ///< both cells read it beside the input, by weights of its own
  kParallel,  ///< the backward cell reads it instead of the input
};
/// `weights`: of `all` inputs that may hold its weights, so many have values. kInvalidArgument where they do not fit.
Result<Aux> aux_use(const Call& call, size_t input, size_t weights, size_t all);

/// Outputs of a bidirectional operation: sequences merged or not, then states, if the operation has outputs for them.
Status finish_bidirectional(Call& call, bool time_major, bool merged, const Sequence& forward,
                            const Sequence& backward);

}  // namespace pinnace::nnapi
