// XXH3, compiled into this object only: the header is the whole library.
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pinnace {

uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
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
