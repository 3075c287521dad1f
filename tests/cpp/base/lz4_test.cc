// LZ4's blocks by hand, and every way in which one can be damaged.
#include "base/lz4.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace pinnace::testing {
namespace {

using namespace std::string_view_literals;

std::vector<unsigned char> bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

/// What `block` holds if it fills `size` bytes, else "damaged".
std::string decoded(std::string_view block, size_t size) {
  std::vector<unsigned char> to(size);
  return lz4_decode(bytes(block), to) ? std::string(to.begin(), to.end()) : "damaged";
}

TEST(Lz4, Literals) {
  EXPECT_EQ(decoded("\x00"sv, 0), "");
  EXPECT_EQ(decoded("\x30xyz"sv, 3), "xyz");
  EXPECT_EQ(decoded("\xf0\x01"
                    "0123456789abcdef"sv,
                    16),
            "0123456789abcdef");
  const std::string long_one(15 + 255 + 7, 'q');
  EXPECT_EQ(decoded("\xf0\xff\x07" + long_one, long_one.size()), long_one);
}

TEST(Lz4, Matches) {
  EXPECT_EQ(decoded("\x32xyz\x03\x00\x20"
                    "ab"sv,
                    11),
            "xyzxyzxyzab");                                                                // overlaps itself
  EXPECT_EQ(decoded("\x1fx\x01\x00\x05\x10y"sv, 1 + 24 + 1), std::string(25, 'x') + "y");  // a long run
}

TEST(Lz4, DamagedBlocks) {
  const std::string_view good =
      "\x32xyz\x03\x00\x20"
      "ab"sv;
  for (size_t size = 0; size < good.size(); ++size) EXPECT_EQ(decoded(good.substr(0, size), 11), "damaged") << size;
  EXPECT_EQ(decoded(good, 10), "damaged");  // too small
  EXPECT_EQ(decoded(good, 12), "damaged");  // too large
  EXPECT_EQ(decoded("\x32xyz\x04\x00\x20"
                    "ab"sv,
                    11),
            "damaged");  // before the start
  EXPECT_EQ(decoded("\x32xyz\x00\x00\x20"
                    "ab"sv,
                    11),
            "damaged");                                      // no distance
  EXPECT_EQ(decoded("\xf0\xff\xff"sv, 1 << 20), "damaged");  // a length without an end
  EXPECT_EQ(decoded("\x21"
                    "ab"sv,
                    2),
            "damaged");  // a match that is not there
}

TEST(Lz4, NoBytesReachBeyondTheirBuffers) {
  std::vector<unsigned char> to(64);
  uint32_t state = 1;
  int good = 0;
  for (int i = 0; i < 200000; ++i) {
    std::vector<unsigned char> block(state >> 8 & 31);
    for (unsigned char& b : block) b = static_cast<unsigned char>((state = state * 1664525 + 1013904223) >> 24);
    good += lz4_decode(block, to);
    state = state * 1664525 + 1013904223;
  }
  EXPECT_LT(good, 200000);
}

}  // namespace
}  // namespace pinnace::testing
