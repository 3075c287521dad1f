// XXH3, compiled into this object only: the header is the whole library.
#include "base/hash.h"

#include <algorithm>

#include "base/cancel.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pinnace {

uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Result<uint64_t> hash_unless_stopped(std::span<const std::byte> bytes, std::string_view where) {
  constexpr size_t kPiece = 8 << 20;  // a tenth of a second of a disk that reads 80 MB a second
  if (bytes.size() <= kPiece) return hash64(bytes);
  Hasher hasher;
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    PINNACE_TRY(check_stopped(where));
    hasher.add(bytes.subspan(at, std::min(kPiece, bytes.size() - at)));
  }
  return hasher.digest();
}

struct Hasher::State {
  XXH3_state_t xxh;  // 64-byte aligned, which the aligned operator new honours
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->xxh);
}
Hasher::~Hasher() = default;
void Hasher::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}
uint64_t Hasher::digest() const {
  return XXH3_64bits_digest(&state_->xxh);
}

}  // namespace pinnace
