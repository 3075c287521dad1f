// The bytes of all states of a session, which say whose they are: what Session::save_state gives.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/program_data.h"
#include "runtime/session_states.h"

namespace pinnace {

/// States after fetch(), of a session of `program`. std::bad_alloc where there is no memory.
std::vector<std::byte> saved_states(const ProgramData& program, const SessionStates& states);

/// The states' bytes in `saved`, one after the other as Graph::states has them. kCorruptFile: these are no such bytes,
/// or damaged ones. kInvalidArgument: they are of another program.
Result<std::span<const std::byte>> checked_states(const ProgramData& program, const SessionStates& states,
                                                  std::span<const std::byte> saved);

}  // namespace pinnace
