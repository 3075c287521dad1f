// How the library holds SPIR-V: LZMA of streams of small numbers, which cmake/shaders.py describes and writes. A
// sixteenth of the size; LZMA alone makes it a seventh.
#include "backends/gpu/kernel_code.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "base/lzma.h"

namespace pinnace::gpu {
namespace {

constexpr size_t kPositions = 6;  // operands that are told apart; the last stands for all that follow
enum Mode : unsigned char { kAsIs, kFromResult, kResult };

/// The operands of an opcode at a position.
struct Stream {
  uint32_t bytes, mode;
  const unsigned char* at;
};

/// LEB128.
uint32_t number(const unsigned char*& at) {
  uint32_t value = 0, shift = 0;
  for (; *at >= 128; shift += 7) value |= (*at++ & 127u) << shift;
  return value | static_cast<uint32_t>(*at++) << shift;
}

}  // namespace

void unpack_words(std::span<const unsigned char> packed, size_t stream_bytes, std::span<uint32_t> words) {
  std::vector<unsigned char> bytes(stream_bytes);
  const bool unpacked = lzma_decode(packed, bytes);
  assert(unpacked);  // the build made both
  (void)unpacked;
  const unsigned char* at = bytes.data();
  const size_t opcodes = number(at);
  std::vector<Stream> streams(kPositions * opcodes);
  for (Stream& stream : streams) {
    const uint32_t both = number(at);
    stream.bytes = both >> 2;
    stream.mode = both & 3;
  }
  std::vector<uint32_t> heads(number(at));
  for (uint32_t& head : heads) head = number(at);
  for (Stream& stream : streams) {
    stream.at = at;
    at += stream.bytes;
  }

  uint32_t result = 0;
  for (size_t i = 0; i < words.size();) {
    const uint32_t head = heads[number(at)], opcode = head % 512;
    size_t operands = 5;  // of 0, which begins a module
    if (head == 0) {
      result = 0;
    } else {
      words[i++] = head / 512 << 16 | opcode;
      operands = head / 512 - 1;
    }
    for (size_t k = 0; k < operands; ++k, ++i) {
      Stream& stream = streams[std::min(k, kPositions - 1) * opcodes + opcode];
      words[i] = number(stream.at);
      if (stream.mode != kAsIs) words[i] = result - (words[i] >> 1 ^ (0 - (words[i] & 1)));
      if (stream.mode == kResult) result = words[i];
    }
  }
}

}  // namespace pinnace::gpu
