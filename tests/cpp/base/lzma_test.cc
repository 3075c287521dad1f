// LZMA's streams as Python's lzma module writes them, and ways in which one can be damaged.
#include "base/lzma.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace pinnace::testing {
namespace {

using namespace std::string_view_literals;

std::vector<unsigned char> bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

/// What `stream` holds if it fills `size` bytes, else "damaged".
std::string decoded(std::string_view stream, size_t size) {
  std::vector<unsigned char> to(size);
  return lzma_decode(bytes(stream), to) ? std::string(to.begin(), to.end()) : "damaged";
}

/// Words, bytes of all values, repetitions near and far, and runs: every kind of sequence that the format has.
std::string mixed() {
  constexpr std::array<std::string_view, 4> kWords = {"kernel ", "of ", "tile ", "row "};
  std::string text;
  uint32_t state = 1;
  for (int i = 0; i < 160; ++i) {
    state = state * 1664525 + 1013904223;
    const uint32_t kind = state >> 29;
    if (kind < 3) {
      text += kWords[state >> 27 & 3];
    } else if (kind < 5) {
      text += static_cast<char>(state >> 16 & 255);
    } else if (kind < 7 && !text.empty()) {
      const size_t distance = (state >> 8 & 2047) % text.size() + 1;
      for (uint32_t n = 2 + (state >> 19 & 31); n > 0; --n) text += text[text.size() - distance];
    } else {
      text.append(state >> 18 & 511, 'x');
    }
  }
  return text;
}

constexpr std::string_view kMixed =
    "\x00\x39\x1d\x25\xcc\x83\x31\xb7\xc2\x20\x77\x30\xb1\x26\xfc\x80\x34\xe4\xf5\xa1\x4e\x7a\xd9\x76\x93\x27\x45\x8a"
    "\x26\x61\xd3\x73\xc4\xd7\xe7\xea\xdf\x3b\xd7\xdf\x6c\x49\x31\x9e\x9e\xf4\xc3\x9e\x45\x54\x19\xc3\x5c\x9b\x13\x40"
    "\x65\x58\xbb\xeb\x03\xdb\x81\x8a\x27\x22\x8b\xe2\x44\xb3\x36\xf9\xa5\xaf\xe6\xc8\xe8\x60\x90\x5d\xfa\x8d\x2b\x37"
    "\x5c\x70\x2e\x25\xcf\x68\xae\x85\x24\xd7\xd3\x08\xde\x18\x46\xf6\xea\x34\xa2\xa5\xdd\x05\x96\xa7\x60\xda\x25\x55"
    "\xf7\xcc\x31\x30\xa5\x56\x48\x10\x3a\xed\x1e\x83\xca\x15\x89\xc5\x3d\x3b\xa9\x6f\x3a\x9e\x3a\x98\x1b\x8a\x35\x19"
    "\x4a\x7b\x81\xec\xab\x2c\x64\x3e\xeb\x73\x11\xbf\xc4\x5d\x7f\x9a\x85\x91\x9a\x1e\x94\xf0\x46\x08\x75\xfc\xcc\x85"
    "\x75\x7a\xad\xd5\x99\xa3\xc6\xbe\xbf\x26\x49\x6e\xe6\x55\x6b\x76\x17\xd3\xa7\xe6\x15\x77\x83\x84\x96\x29\x25\x03"
    "\x4a\x9f\x5a\xa4\x12\x80\x6e\x75\xb1\x73\x0d\x74\x2a\x57\x27\xc8\xbe\x92\x07\x41\x7a\x63\x45\xb9\x5a\xd0\xaa\xf3"
    "\x1c\x42\x38\x10\x17\xc3\x2e\x3f\x5f\x5b\xcc\x6a\xa1\xa8\xbc\x40\x96\x03\x06\x2b\x12\x4e\x24\xd1\x67\xd3\xf6\x8b"
    "\x42\xdc\x1d\x37\x5b\xaf\xa7\x44\xa5\xfe\x87\x54\xa1"sv;

TEST(Lzma, Literals) {
  EXPECT_EQ(decoded("\x00\x83\xff\xfb\xff\xff\xc0\x00\x00\x00"sv, 0), "");
  EXPECT_EQ(decoded("\x00\x3c\x20\x05\xc7\x6d\xee\x84\xff\xf3\x27\xc0\x00"sv, 3), "xyz");
}

TEST(Lzma, Matches) {
  EXPECT_EQ(decoded("\x00\x3c\x20\x05\xc9\xdd\x82\xb4\x5b\xe0\x75\xff\xff\xc1\x98\x00\x00"sv, 11),
            "xyzxyzxyzab");  // overlaps itself
  EXPECT_EQ(decoded(kMixed, mixed().size()), mixed());
}

TEST(Lzma, DamagedStreams) {
  const size_t size = mixed().size();
  // Behind the last byte are the mark of the end and what the arithmetic coding reads ahead.
  for (size_t n = 0; n + 16 < kMixed.size(); ++n) EXPECT_EQ(decoded(kMixed.substr(0, n), size), "damaged") << n;
  EXPECT_EQ(decoded(kMixed, size + 1), "damaged");                   // nothing but that mark is there
  EXPECT_EQ(decoded("\x01" + std::string(64, '\0'), 3), "damaged");  // every stream begins with 0
  // All ones: a match before the start.
  EXPECT_EQ(decoded(std::string(1, '\0') + std::string(64, '\xff'), 3), "damaged");
}

TEST(Lzma, NoBytesReachBeyondTheirBuffers) {
  std::vector<unsigned char> to(mixed().size());
  uint32_t state = 1;
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<unsigned char> stream = bytes(kMixed);
    for (int n = 0; n < 3; ++n) {
      state = state * 1664525 + 1013904223;
      stream[(state >> 16) % stream.size()] ^= static_cast<unsigned char>(state >> 8);
    }
    good += lzma_decode(stream, to);
  }
  EXPECT_LT(good, 20000);
}

}  // namespace
}  // namespace pinnace::testing
