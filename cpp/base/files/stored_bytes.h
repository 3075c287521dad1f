// StoredBytes: a piece of a model file that is told from a damaged one when it is first used, and whose pages can be
// given back to the system. Most of a file is weights, and not every session reads all of them: hashing what nobody
// reads would cost more than the rest of opening a file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace pinnace {

/// The file that pieces belong to; shared by all of them.
struct StoredFile {
  std::string name;  ///< for messages: "net.pnc"
  std::span<const std::byte> bytes;
  int descriptor = -1;  ///< of the MappedFile that the bytes are: pages that were dropped come back from it; -1: none
};

class StoredBytes {
 public:
  /// `bytes` lie in the file. `what` and `rule` are for the message, "a constant" and "F-50", and outlive this.
  StoredBytes(std::shared_ptr<const StoredFile> file, std::span<const std::byte> bytes, uint64_t hash,
              std::string_view what, std::string_view rule);
  /// Bytes that were checked already, or that nobody wants checked.
  StoredBytes(std::shared_ptr<const StoredFile> file, std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Where to map them from: the file, open as long as the program is held, or -1, and their offset in it.
  int descriptor() const { return file_->descriptor; }
  uint64_t offset() const { return static_cast<uint64_t>(bytes_.data() - file_->bytes.data()); }
  /// kCorruptFile with offset and rule if the hash is not the recorded one. Hashed by the first call; several threads
  /// may call at once, and then may all hash.
  Status check() const;
  /// The pages that hold nothing but these bytes leave the process; whoever reads them next gets them from the file.
  /// Nothing happens to bytes that do not lie in a mapped file.
  void drop_pages() const;

 private:
  enum class State : uint8_t { kUnknown, kGood, kDamaged };
  std::shared_ptr<const StoredFile> file_;
  std::span<const std::byte> bytes_;
  uint64_t hash_ = 0;
  std::string_view what_, rule_;
  mutable std::atomic<State> state_;
};

}  // namespace pinnace
