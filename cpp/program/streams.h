// The metadata in which a program records that runs take inputs in chunks: "stream.<input>" is "axis 2, latency 15,
// multiple 1, tail 15", "streamed.<output>" is "axis 2, rate 1/8, more -1".
#pragma once

#include <vector>

#include "program/program_data.h"

namespace pinnace {

std::pair<std::string, std::string> metadata_of(const StreamedInput& input);
std::pair<std::string, std::string> metadata_of(const StreamedOutput& output);

/// The inverse, in the order of inputs and of outputs. kCorruptFile: an entry is of another form, has a number outside
/// its range, or is not of an input or output of this rank.
Result<std::vector<StreamedInput>> streamed_inputs(const ProgramData& program);
Result<std::vector<StreamedOutput>> streamed_outputs(const ProgramData& program);

}  // namespace pinnace
