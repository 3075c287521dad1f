// How pinnace replaces a file: by its path, or in a folder that is held open (base/files/private_folder.h).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

#include "base/files/open_file.h"
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
/// The same for bytes in pieces that follow each other.
Status write_file_atomically(const std::string& path, std::span<const std::span<const std::byte>> pieces,
                             void (*before_rename)() = nullptr);

/// What write_file_atomically does in an open folder: `name` has no slash, and a link of that name is replaced. The new
/// file has `mode` less the umask; `path` is for sentences. A folder that may be written and not read is not flushed.
///
/// kFile, kCancelled: the temporary file is gone and the old one whole, but if the folder could not be flushed.
Status replace_in(const Descriptor& folder, const std::string& name, std::span<const std::span<const std::byte>> pieces,
                  mode_t mode, const std::string& path, void (*before_rename)() = nullptr);

}  // namespace pinnace
