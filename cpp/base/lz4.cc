// The decoder of LZ4's blocks.
#include "base/lz4.h"

#include <algorithm>

namespace pinnace {
namespace {

/// What a nibble of 15 adds: bytes up to and including the first that is not 255. False at the end of the block.
bool read_length(std::span<const unsigned char> block, size_t& at, size_t& length) {
  if (length != 15) return true;
  unsigned char more = 255;
  while (more == 255) {
    if (at == block.size()) return false;
    more = block[at++];
    length += more;
  }
  return true;
}

}  // namespace

bool lz4_decode(std::span<const unsigned char> block, std::span<unsigned char> to) {
  size_t at = 0, made = 0;
  while (at < block.size()) {
    const unsigned char token = block[at++];
    size_t literals = token >> 4, length = token & 15u;
    if (!read_length(block, at, literals) || literals > block.size() - at || literals > to.size() - made) return false;
    std::copy_n(block.begin() + static_cast<ptrdiff_t>(at), literals, to.begin() + static_cast<ptrdiff_t>(made));
    at += literals;
    made += literals;
    if (at == block.size()) return length == 0 && made == to.size();  // the last sequence has no match
    if (block.size() - at < 2) return false;
    const size_t distance = block[at] | static_cast<size_t>(block[at + 1]) << 8;
    at += 2;
    if (!read_length(block, at, length)) return false;
    length += 4;
    if (distance == 0 || distance > made || length > to.size() - made) return false;
    for (size_t i = 0; i < length; ++i, ++made) to[made] = to[made - distance];  // may overlap: a run
  }
  return false;
}

}  // namespace pinnace
