// hash64: the 64-bit hash of the file format and of constants. It is XXH3 with seed 0, whose values are fixed for ever
// by its specification; it finds accidents, and is no defence against forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"

namespace pinnace {

uint64_t hash64(std::span<const std::byte> bytes);
/// The same for bytes that a disk may have to bring first; kCancelled once stopped() (base/cancel.h), at `where`.
Result<uint64_t> hash_unless_stopped(std::span<const std::byte> bytes, std::string_view where);

/// The same over bytes that come in pieces: hash64 of a text is the digest after any way of cutting it.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  void add(std::span<const std::byte> bytes);
  uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pinnace
