// The user's cache of packed weights: a plain .pnc file starts as fast as a packed one from the second time on.
#pragma once

#include <chrono>

#include <pinnace/session.h>

#pragma GCC visibility push(default)
namespace pinnace {

/// For Options::packed_store. What a session packs for the CPU from a mapped file, 1 MiB and more, is written to the
/// folder $XDG_CACHE_HOME/pinnace, or ~/.cache/pinnace, on a thread of its own; sessions that come later, in this
/// process and in others, map it instead of packing again. The variable PINNACE_CACHE names another folder; if it is
/// empty nothing is kept. The packed weights there take at most PINNACE_CACHE_MB (2048; 0: none are kept): those that
/// were not used for longest go first.
///
/// An entry counts for one file as it is now (path, inode, size, times, hash), one build of the library, and options
/// that give the same kernels. Damaged and foreign ones are ignored and replaced. docs/threat_model.md says what is
/// trusted. Options with operators or back ends of the application, or with require_payload, have no use of it, and
/// neither have programs that hold packed weights for this processor.
///
/// The end of the process waits up to five seconds for what is being written, and then leaves it.
const PackedStore& user_pack_cache();

/// Waits until everything that sessions of this process packed has been written, or could not be. False: that took
/// longer than `time`.
bool wait_for_pack_cache(std::chrono::milliseconds time);

}  // namespace pinnace
#pragma GCC visibility pop
