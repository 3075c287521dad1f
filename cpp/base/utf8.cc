// The table of well-formed byte sequences of the Unicode standard (table 3-7), as ranges of the second byte.
#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace pinnace {
namespace {

/// Bytes of the character at the start of `text`, which is not empty; 0 if it is not well-formed.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t k = 2; k < length; ++k) {
    if (byte(k) < 0x80 || byte(k) > 0xbf) return 0;
  }
  return length;
}

/// The code point of a well-formed character.
uint32_t code_point(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1) return byte(0);
  uint32_t point = byte(0) & (0x7fu >> character.size());
  for (size_t i = 1; i < character.size(); ++i) point = point << 6 | (byte(i) & 0x3f);
  return point;
}

struct Range {
  uint32_t first, last;
};
/// Controls, separators of lines, and characters of category Cf: invisible, or marks of direction.
constexpr auto kHidden = std::to_array<Range>({{0x00, 0x1f},
                                               {0x7f, 0x9f},
                                               {0xad, 0xad},
                                               {0x600, 0x605},
                                               {0x61c, 0x61c},
                                               {0x6dd, 0x6dd},
                                               {0x70f, 0x70f},
                                               {0x180e, 0x180e},
                                               {0x200b, 0x200f},
                                               {0x2028, 0x202e},
                                               {0x2060, 0x206f},
                                               {0xfeff, 0xfeff},
                                               {0xfff9, 0xfffb},
                                               {0x1bca0, 0x1bca3},
                                               {0x1d173, 0x1d17a},
                                               {0xe0000, 0xe0fff}});

bool is_hidden(uint32_t point) {
  return std::any_of(kHidden.begin(), kHidden.end(), [=](Range r) { return r.first <= point && point <= r.last; });
}

void append_hex(std::string& to, char kind, uint32_t number, int digits) {
  to += {'\\', kind};
  for (int i = digits; i-- > 0;) to += "0123456789abcdef"[number >> 4 * i & 0xf];
}

void append_escaped(std::string& to, uint32_t point) {
  if (point == '\n') {
    to += "\\n";
  } else if (point == '\t') {
    to += "\\t";
  } else if (point == '\r') {
    to += "\\r";
  } else if (point < 0x100) {
    append_hex(to, 'x', point, 2);
  } else if (point < 0x10000) {
    append_hex(to, 'u', point, 4);
  } else {
    append_hex(to, 'U', point, 8);
  }
}

/// Appends `text` to `to`, if that is given; true if nothing needed an escape.
bool escape(std::string_view text, bool message, std::string* to) {
  bool plain = true;
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const size_t length = character_length(rest);
    const uint32_t point = length ? code_point(rest.substr(0, length)) : static_cast<unsigned char>(rest[0]);
    const bool indents = message && point == '\n' && rest.substr(1).starts_with("  ");
    const bool shown = length > 0 && (indents || !is_hidden(point));
    plain &= shown;
    if (to && shown) to->append(rest.substr(0, length));
    if (to && !shown) append_escaped(*to, point);
    i += std::max<size_t>(length, 1);
  }
  return plain;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = character_length(text.substr(i));
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string shown;
  escape(text, false, &shown);
  return shown;
}

std::string printable_message(std::string_view text) {
  std::string shown;
  escape(text, true, &shown);
  return shown;
}

bool is_printable_message(std::string_view text) {
  return escape(text, true, nullptr);
}

}  // namespace pinnace
