// How the library holds SPIR-V: the first bytes of all words, then the second ones and so on, as one block of LZ4. Most
// words are small numbers, so three of the four planes are nearly empty: a fifth of the size.
#include "backends/gpu/kernel_code.h"

#include <cassert>
#include <vector>

#include "base/lz4.h"

namespace pinnace::gpu {

void unpack_words(std::span<const unsigned char> packed, std::span<uint32_t> words) {
  std::vector<unsigned char> planes(words.size_bytes());
  const bool unpacked = lz4_decode(packed, planes);
  assert(unpacked);  // the build made both
  (void)unpacked;
  const unsigned char* plane = planes.data();
  for (uint32_t shift = 0; shift < 32; shift += 8, plane += words.size()) {
    for (size_t i = 0; i < words.size(); ++i) words[i] |= static_cast<uint32_t>(plane[i]) << shift;
  }
}

}  // namespace pinnace::gpu
