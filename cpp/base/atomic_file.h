// write_file_atomically: how pinnace replaces a file, but for those of caches (base/private_folder.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"

namespace pinnace {

/// Writes `bytes` to `path`: into a new file of the same folder (mode 0666 less the umask), flushed to the disk, then
/// renamed over `path`, then the folder is flushed. A link at `path` stays, and its target is replaced.
///
/// kFile with path and the system's reason; the temporary file is gone then and the old one whole. A path that is a
/// folder, a device or a pipe is refused. A process that is killed in between leaves ".<name>.<pid>-<n>.tmp" and the
/// old file. before_rename is for tests: called when all bytes are on the disk and the old file is still in place.
Status write_file_atomically(const std::string& path, std::span<const std::byte> bytes,
                             void (*before_rename)() = nullptr);

/// Writes all of `bytes` to an open file and flushes it to the disk: 0, or the errno of what failed; ECANCELED if
/// the caller's work is to stop.
int write_and_flush(int fd, std::span<const std::byte> bytes);

}  // namespace pinnace
