// Opening files by paths that a file brings: they stay in one folder, whatever links and changes of names lie on the
// way.
#pragma once

#include <string>

#include "base/files/open_file.h"

namespace pinnace {

/// A folder, held open, so that paths below it are looked up from what it is and not from its name.
class Folder {
 public:
  /// kFile: it cannot be opened, or is no directory. Links in `path` are followed: it is the caller's.
  static Result<Folder> open(const std::string& path);
  /// The folder that a file lies in: what stands before the last slash of `path`.
  static Result<Folder> of_file(const std::string& path);

  enum class Lookup : uint8_t {
    kBySystem,  ///< openat2 of Linux 5.6, where there is one, else by hand
    kByHand,    ///< one component after another, links read and followed here
  };
  /// Opens a regular file below the folder for reading, as open_regular does. `location` is relative. Links on the way
  /// are followed as long as they are relative and stay in the folder; ".." may not leave it either.
  ///
  /// kCorruptFile: the location is absolute, empty, or leaves the folder, or what lies there is no regular file. kFile
  /// with the system's reason: it cannot be opened.
  Result<RegularFile> open_beneath(const std::string& location, Lookup lookup = Lookup::kBySystem) const;

 private:
  explicit Folder(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

}  // namespace pinnace
