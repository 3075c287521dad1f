// Writing JSON: objects, lists, texts, numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pinnace::report {

/// One value, written from its first character to its last; nothing is read.
///
/// What is not UTF-8 in a text becomes U+FFFD; numbers that are not finite become null. Each object of a list is on a
/// line of its own.
class Json {
 public:
  Json& object();  ///< begins one
  Json& list();    ///< begins one
  Json& end();     ///< of the innermost
  Json& key(std::string_view name);
  Json& value(std::string_view text);
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(double number);
  Json& value(int64_t number);
  Json& value(bool yes);
  Json& null();
  template <class T>
  Json& pair(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  std::string take() && { return std::move(text_) + "\n"; }

 private:
  Json& add(std::string_view token);
  void quote(std::string_view text);
  std::string text_;
  std::vector<char> open_;  ///< '}' and ']' that are to come
  bool first_ = true;       ///< nothing is in the innermost yet
  bool named_ = false;      ///< a key waits for its value
};

}  // namespace pinnace::report
