// Programs in files that are open already, and inside of other files, such as an application's package.
#pragma once

#include <cstdint>

#include <pinnace/program.h>

#pragma GCC visibility push(default)
namespace pinnace {

/// As Program::open, from a descriptor of a regular file that is open for reading: `bytes` bytes from `offset` on; -1:
/// to its end. The descriptor is duplicated, its position is not used: it may be closed at once.
///
/// A program that begins at a multiple of 64 bytes is mapped; any other is copied, as by Program::from_bytes.
/// kInvalidArgument: the part is not inside the file. Other errors as Program::open, which call the file "descriptor
/// 7".
Result<Program> open_descriptor(int descriptor, int64_t offset = 0, int64_t bytes = -1, Verify verify = Verify::kOnUse);

}  // namespace pinnace
#pragma GCC visibility pop
