// str_cat: joins text and numbers into one string, for error sentences. GCC 12 has no <format>, and the device library
// takes no dependency for it. Floats are printed with the fewest digits that read back to the same value.
//
// A call passes on where its parts lie and one letter each for what they are; one function makes the sentence. So a
// sentence costs a few instructions where it is needed, and nothing there has to be cleaned up should memory end.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace pinnace {

#pragma GCC visibility push(default)
struct TensorType;
#pragma GCC visibility pop

/// What a part is, besides the numbers below.
enum class PartKind : char {
  kEnd = 0,
  kLiteral = 'c',  ///< const char*, null for nothing
  kString = 's',   ///< std::string
  kView = 'v',     ///< std::string_view
  kLetter = 'l',   ///< one char
  kBool = 'b',     ///< "true" or "false"
  kInt = 'i',
  kUnsigned = 'u',
  kFloat = 'f',
  kDouble = 'd',
  kType = 't',  ///< TensorType, as to_string has it
};

/// One part: a number, or where the rest lies.
union Part {
  const void* at;
  int64_t number;
  uint64_t unsigned_number;
  float real32;
  double real64;
};

/// A type as PartOf sees it: arrays of char are pointers.
template <class P>
using PartType = std::conditional_t<std::is_array_v<P>, const char*, P>;

/// The kind and the Part of a value that outlives it. What converts to a string_view is converted.
template <class P>
struct PartOf {
  static constexpr PartKind kKind = PartKind::kView;
  std::string_view text;
  PartOf(const P& p) : text(p) {}  // NOLINT: made from a list of values
  Part part() const { return {.at = &text}; }
};
template <>
struct PartOf<const char*> {
  static constexpr PartKind kKind = PartKind::kLiteral;
  const char* text;
  Part part() const { return {.at = text}; }
};
template <>
struct PartOf<char*> : PartOf<const char*> {};
template <>
struct PartOf<std::string> {
  static constexpr PartKind kKind = PartKind::kString;
  const std::string& text;
  Part part() const { return {.at = &text}; }
};
template <>
struct PartOf<std::string_view> {
  static constexpr PartKind kKind = PartKind::kView;
  const std::string_view& text;
  Part part() const { return {.at = &text}; }
};
template <>
struct PartOf<TensorType> {
  static constexpr PartKind kKind = PartKind::kType;
  const TensorType& type;
  Part part() const { return {.at = &type}; }
};
template <class N>
  requires(std::integral<N> || std::floating_point<N>)
struct PartOf<N> {
  static constexpr PartKind kKind = std::same_as<N, bool>       ? PartKind::kBool
                                    : std::same_as<N, char>     ? PartKind::kLetter
                                    : std::same_as<N, float>    ? PartKind::kFloat
                                    : std::floating_point<N>    ? PartKind::kDouble
                                    : std::unsigned_integral<N> ? PartKind::kUnsigned
                                                                : PartKind::kInt;
  N number;
  Part part() const {
    if constexpr (kKind == PartKind::kFloat) {
      return {.real32 = number};
    } else if constexpr (kKind == PartKind::kDouble) {
      return {.real64 = static_cast<double>(number)};
    } else if constexpr (kKind == PartKind::kUnsigned) {
      return {.unsigned_number = number};
    } else {
      return {.number = number};
    }
  }
};

/// Kinds, closed by kEnd. GCC would export what is made of a variable's template.
template <PartKind... kKinds>
[[gnu::visibility("hidden")]] inline constexpr PartKind kPartKinds[] = {kKinds..., PartKind::kEnd};

/// f(kinds, parts), with what the parts are and where they lie.
template <class F, class... Parts>
[[gnu::always_inline]] inline auto with_parts(const F& f, const Parts&... parts) {
  const auto call = [&f](const auto&... held) __attribute__((always_inline)) {
    const Part list[] = {held.part()..., Part{}};
    return f(kPartKinds<std::remove_cvref_t<decltype(held)>::kKind...>, list);
  };
  return call(PartOf<PartType<Parts>>{parts}...);
}

/// Appends the parts one after another.
void append_parts(std::string& to, const PartKind* kinds, const Part* parts);
/// The parts as one string.
std::string join_parts(const PartKind* kinds, const Part* parts);

template <class... Parts>
[[gnu::always_inline]] inline std::string str_cat(const Parts&... parts) {
  return with_parts(join_parts, parts...);
}

/// Appends one part.
template <class P>
[[gnu::always_inline]] inline void append_text(std::string& to, const P& part) {
  with_parts([&to](const PartKind* kinds, const Part* parts) { append_parts(to, kinds, parts); }, part);
}

/// "0x1f40"
std::string hex(uint64_t number);

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
