// How the library holds SPIR-V: LZ4 of streams of small numbers, which cmake/shaders.py describes and writes. A seventh
// of the size; bytes of words by planes, without knowing what the words are, take a quarter.
#include "backends/gpu/kernel_code.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include "base/lz4.h"

namespace pinnace::gpu {
namespace {

constexpr size_t kPositions = 4;  // operands that are told apart; the last stands for all that follow
enum Mode : unsigned char { kAsIs, kFromResult, kResult };

/// LEB128.
uint32_t number(const unsigned char*& at) {
  uint32_t value = 0, shift = 0;
  for (; *at >= 128; shift += 7) value |= (*at++ & 127u) << shift;
  return value | static_cast<uint32_t>(*at++) << shift;
}

}  // namespace

void unpack_words(std::span<const unsigned char> packed, size_t stream_bytes, std::span<uint32_t> words) {
  std::vector<unsigned char> streams(stream_bytes);
  const bool unpacked = lz4_decode(packed, streams);
  assert(unpacked);  // the build made both
  (void)unpacked;
  const unsigned char* at = streams.data();
  const size_t modes_bytes = number(at) * kPositions;
  const unsigned char* modes = at;
  at += modes_bytes;
  std::array<size_t, kPositions> sizes;  // of all streams but the last
  for (size_t& size : sizes) size = number(at);
  const unsigned char* heads = at;
  std::array<const unsigned char*, kPositions> operands;
  for (size_t k = 0; k < kPositions; ++k) {
    at += sizes[k];
    operands[k] = at;
  }

  uint32_t result = 0;
  for (size_t i = 0; i < words.size();) {
    const uint32_t head = number(heads), opcode = head % 512, count = head / 512;
    if (head == 0) {
      for (const size_t end = i + 5; i < end; ++i) words[i] = number(heads);
      result = 0;
      continue;
    }
    words[i++] = count << 16 | opcode;
    for (size_t k = 0; k + 1 < count; ++k, ++i) {
      const size_t position = std::min(k, kPositions - 1);
      const unsigned char mode = modes[opcode * kPositions + position];
      words[i] = number(operands[position]);
      if (mode != kAsIs) words[i] = result - (words[i] >> 1 ^ (0 - (words[i] & 1)));
      if (mode == kResult) result = words[i];
    }
  }
}

}  // namespace pinnace::gpu
