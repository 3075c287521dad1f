// PrivateFolder: a folder in which nobody but this process's user can have put anything. Caches lie in such folders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/open_file.h"
#include "base/status.h"

namespace pinnace {

/// A file's bytes, mapped read-only. It stays open, and keeps its bytes also when another file takes its name.
class PrivateFile {
 public:
  std::span<const std::byte> bytes() const { return bytes_->bytes(); }
  /// Open for reading as long as this lives.
  int descriptor() const { return descriptor_.get(); }

 private:
  friend class PrivateFolder;
  PrivateFile(Descriptor descriptor, std::shared_ptr<const MappedBytes> bytes)
      : descriptor_(std::move(descriptor)), bytes_(std::move(bytes)) {}
  const Descriptor descriptor_;
  const std::shared_ptr<const MappedBytes> bytes_;
};

/// The rule of statuses that say why a folder or file is not trusted; others say that it could not be read or written.
inline constexpr const char* kUntrusted = "untrusted";

class PrivateFolder {
 public:
  /// Opens the folder, or makes it (mode 0700) where its parent is there. It must be a folder, not a link to one,
  /// belong to the effective user, and be writable by nobody else; kFile says which of that it is not. The folder is
  /// held open: what takes its name later is not it.
  static Result<PrivateFolder> open(const std::string& path);

  /// Maps a file of the folder. It must be a regular file, not a link to one, that belongs to the effective user and is
  /// writable by nobody else. `name` has no slash.
  Result<std::shared_ptr<const PrivateFile>> read(const std::string& name) const;
  /// Writes a file (mode 0600) as write_file_atomically does, but replaces a link of that name instead of following it.
  Status write(const std::string& name, std::span<const std::byte> bytes) const;
  /// The same for bytes in pieces that follow each other.
  Status write(const std::string& name, std::span<const std::span<const std::byte>> pieces) const;

  /// A regular file of the folder.
  struct Entry {
    std::string name;
    int64_t bytes = 0;
    timespec modified = {};
  };
  /// All of them, in no order; links and what else is there are left out. kFile.
  Result<std::vector<Entry>> list() const;
  /// What is gone already, or cannot be removed, stays as it is.
  void remove(const std::string& name) const;

 private:
  PrivateFolder(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  std::string path_;
  Descriptor descriptor_;
};

}  // namespace pinnace
