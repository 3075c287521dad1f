// Which of its optional inputs an LSTM has. LSTM, its sequences and QUANTIZED_LSTM have the same rules, and their
// inputs in the same groups at different places.
#pragma once

#include "nnapi/mapping.h"

namespace pinnace::nnapi {

/// Gates in the order of the inputs: input, forget, cell, output.
enum Gate : uint8_t { kInputGate, kForgetGate, kCellGate, kOutputGate };

/// Where the first input of each group stands.
struct LstmPlaces {
  size_t w, r;        ///< 4 each: of x, of the output before
  size_t p;           ///< 3: peepholes of all gates but the cell's
  size_t b;           ///< 4
  size_t projection;  ///< 2: weights and bias
  size_t h, c;        ///< states
  size_t norm;        ///< 4
};

struct LstmForm {
  bool coupled = false;  ///< the input gate is 1 minus the forget gate, and has no weights
  bool peephole = false;
  bool normalised = false;
  bool projected = false;
  int gates() const { return coupled ? 3 : 4; }
  Gate first() const { return coupled ? kForgetGate : kInputGate; }
};

/// kInvalidArgument where inputs are left out that others need, or not left out.
Result<LstmForm> lstm_form(const Call& call, const LstmPlaces& at);

}  // namespace pinnace::nnapi
