// The decoder of LZMA's streams. Names of the specification are in brackets.
#include "base/lzma.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace pinnace {
namespace {

/// How probable it is that a bit is 0, of 2048; each bit that is read moves it.
using Chance = uint16_t;
constexpr Chance kEven = 1024;

/// The bits of the stream, by arithmetic coding. Behind the stream's end it reads zeros and notes it.
class Bits {
 public:
  explicit Bits(std::span<const unsigned char> stream) : stream_(stream) {
    begun_ = byte() == 0;
    for (int i = 0; i < 4; ++i) code_ = code_ << 8 | byte();
  }

  /// What was read is in the stream.
  bool good() const { return begun_ && at_ <= stream_.size(); }

  uint32_t bit(Chance& chance) {
    const uint32_t bound = (range_ >> 11) * chance;
    const bool one = code_ >= bound;
    if (one) {
      code_ -= bound;
      range_ -= bound;
      chance = static_cast<Chance>(chance - (chance >> 5));
    } else {
      range_ = bound;
      chance = static_cast<Chance>(chance + ((2048 - chance) >> 5));
    }
    refill();
    return one;
  }

  /// `count` bits that are as often 0 as 1.
  uint32_t even_bits(uint32_t count) {
    uint32_t value = 0;
    for (; count > 0; --count) {
      range_ >>= 1;
      const bool one = code_ >= range_;
      if (one) code_ -= range_;
      value = value << 1 | static_cast<uint32_t>(one);
      refill();
    }
    return value;
  }

  /// A number of `count` bits, each with a chance for the bits above it.
  uint32_t number(Chance* chances, uint32_t count) {
    uint32_t node = 1;
    for (uint32_t i = 0; i < count; ++i) node = node << 1 | bit(chances[node]);
    return node - (1u << count);
  }

  /// The same from the lowest bit on.
  uint32_t reversed(Chance* chances, uint32_t count) {
    uint32_t node = 1, value = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t one = bit(chances[node]);
      node = node << 1 | one;
      value |= one << i;
    }
    return value;
  }

 private:
  uint32_t byte() {
    const uint32_t value = at_ < stream_.size() ? stream_[at_] : 0u;
    ++at_;
    return value;
  }
  void refill() {
    if (range_ >> 24 != 0) return;
    range_ <<= 8;
    code_ = code_ << 8 | byte();
  }

  std::span<const unsigned char> stream_;
  size_t at_ = 0;
  uint32_t range_ = 0xffffffffu, code_ = 0;
  bool begun_ = false;
};

constexpr uint32_t kShortest = 2;      // bytes of a match
constexpr uint32_t kStates = 12;       // what the last sequences were
constexpr uint32_t kAfterLiteral = 7;  // states below it
constexpr uint32_t kDistances = 4;     // that are remembered

/// [LenDecoder] with one state of the position.
struct Lengths {
  Chance longer, longest;
  std::array<Chance, 8> low, middle;
  std::array<Chance, 256> high;
};

/// All that adapts.
struct Chances {
  std::array<std::array<Chance, 0x300>, 2> literals;
  std::array<Chance, kStates> match, again, again_older, again_long, again_third, again_fourth;
  std::array<std::array<Chance, 64>, 4> slots;  // [PosSlotDecoder]
  std::array<Chance, 128> middle_distances;     // [PosDecoders]
  std::array<Chance, 16> low_bits;              // [AlignDecoder]
  Lengths lengths, lengths_again;
};

uint32_t length_of(Bits& bits, Lengths& chances) {
  if (bits.bit(chances.longer) == 0) return bits.number(chances.low.data(), 3);
  if (bits.bit(chances.longest) == 0) return 8 + bits.number(chances.middle.data(), 3);
  return 16 + bits.number(chances.high.data(), 8);
}

/// A distance less 1, of a match whose length is `length` + 2.
uint32_t distance_of(Bits& bits, Chances& chances, uint32_t length) {
  const uint32_t slot = bits.number(chances.slots[std::min(length, 3u)].data(), 6);
  if (slot < 4) return slot;
  const uint32_t below = (slot >> 1) - 1;
  const uint32_t distance = (2 | (slot & 1)) << below;
  if (slot < 14) return distance + bits.reversed(chances.middle_distances.data() + distance - slot, below);
  return distance + (bits.even_bits(below - 4) << 4) + bits.reversed(chances.low_bits.data(), 4);
}

}  // namespace

bool lzma_decode(std::span<const unsigned char> stream, std::span<unsigned char> to) {
  Chances chances;
  static_assert(sizeof(Chances) % sizeof(Chance) == 0);
  std::fill_n(reinterpret_cast<Chance*>(&chances), sizeof(Chances) / sizeof(Chance), kEven);
  Bits bits(stream);
  std::array<uint32_t, kDistances> distances{};  // less 1, the last first
  uint32_t state = 0;
  size_t made = 0;
  while (made < to.size() && bits.good()) {
    if (bits.bit(chances.match[state]) == 0) {
      Chance* const own = chances.literals[made > 0 ? to[made - 1] >> 7 : 0].data();
      uint32_t node = 1;
      if (state >= kAfterLiteral) {
        // Behind a match, the byte that would have continued it is what this one probably is not.
        uint32_t other = to[made - 1 - distances[0]];
        while (node < 0x100) {
          const uint32_t expected = other >> 7 & 1;
          other <<= 1;
          const uint32_t one = bits.bit(own[(1 + expected) * 0x100 + node]);
          node = node << 1 | one;
          if (one != expected) break;
        }
      }
      while (node < 0x100) node = node << 1 | bits.bit(own[node]);
      to[made++] = static_cast<unsigned char>(node);
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    const bool literal_before = state < kAfterLiteral;
    uint32_t length = 0, older = 0;
    if (bits.bit(chances.again[state]) == 0) {
      length = length_of(bits, chances.lengths);
      std::copy_backward(distances.begin(), distances.end() - 1, distances.end());
      distances[0] = distance_of(bits, chances, length);
      length += kShortest;
      state = literal_before ? 7 : 10;
    } else {
      if (bits.bit(chances.again_older[state]) != 0) {
        older = 1;
        if (bits.bit(chances.again_third[state]) != 0) older = 2 + bits.bit(chances.again_fourth[state]);
      } else if (bits.bit(chances.again_long[state]) == 0) {
        length = 1;
      }
      std::rotate(distances.begin(), distances.begin() + older, distances.begin() + older + 1);
      if (length == 1) {
        state = literal_before ? 9 : 11;
      } else {
        length = kShortest + length_of(bits, chances.lengths_again);
        state = literal_before ? 8 : 11;
      }
    }
    if (distances[0] >= made || length > to.size() - made) return false;
    for (; length > 0; --length, ++made) to[made] = to[made - 1 - distances[0]];  // may overlap: a run
  }
  return made == to.size() && bits.good();
}

}  // namespace pinnace
