// What Session::finish needs to end a stream: a program records it in its metadata (docs/streaming.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/program_data.h"

namespace pinnace {

struct StreamEnd {
  int64_t tail = 0;                ///< elements of nothing that bring out what is left
  int open = -1;                   ///< the state that is 0 in the last run; -1: there is none
  std::vector<int64_t> rest;       ///< elements that are left of each output of the program
  std::vector<size_t> axes;        ///< along which
  std::vector<Tensor> inputs;      ///< of the last run
  std::vector<std::byte> nothing;  ///< what streams among them read
};

/// kInvalidArgument: the program takes the whole, or an input that is no stream is not among `inputs`. kCorruptFile:
/// its metadata say so in another form than they are written in.
Result<StreamEnd> stream_end(const ProgramData& program, std::span<const Tensor> inputs);

}  // namespace pinnace
