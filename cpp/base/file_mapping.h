// map_regular_file: what MappedFile and PrivateFolder share, who open files in ways of their own.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"

namespace pinnace {

/// Maps all of a file that is open for reading; an empty one gives no bytes. kFile, with `path` and the system's
/// reason: it is not a regular file, or cannot be mapped. The descriptor stays the caller's.
Result<std::span<const std::byte>> map_regular_file(int descriptor, const std::string& path);
void unmap_file(std::span<const std::byte> bytes);

}  // namespace pinnace
