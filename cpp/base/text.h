// str_cat: joins text and numbers into one string, for error sentences. GCC 12 has no <format>, and the device library
// takes no dependency for it. Floats are printed with the fewest digits that read back to the same value.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pinnace {

inline void append_text(std::string& to, std::string_view text) {
  to.append(text);
}
inline void append_text(std::string& to, char c) {
  to.push_back(c);
}
template <std::same_as<bool> B>  // a template, or pointers would convert to it
void append_text(std::string& to, B b) {
  to.append(b ? "true" : "false");
}
template <class N>
  requires((std::integral<N> || std::floating_point<N>) && !std::same_as<N, bool> && !std::same_as<N, char>)
void append_text(std::string& to, N number) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  to.append(digits, end.ptr);
}

template <class... Parts>
std::string str_cat(const Parts&... parts) {
  std::string text;
  (append_text(text, parts), ...);
  return text;
}

/// "0x1f40"
inline std::string hex(uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, 16);
  return str_cat("0x", std::string_view(digits, static_cast<size_t>(end.ptr - digits)));
}

/// "[1,2,3]"
template <class N>
std::string list_text(std::span<const N> numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i) text.push_back(',');
    append_text(text, numbers[i]);
  }
  text.push_back(']');
  return text;
}

}  // namespace pinnace
