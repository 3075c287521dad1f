// Tokens as they come; the caller nests them right.
#include "report/json.h"

#include <charconv>
#include <cmath>

namespace pinnace::report {
namespace {

/// Bytes of the UTF-8 sequence at the front; 0: there is none. Overlong forms, surrogates and what is beyond U+10FFFF
/// are none.
size_t sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto more = [&](size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return more(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    return more(1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf) && more(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    return more(1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf) && more(2) && more(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

Json& Json::add(std::string_view token) {
  if (!named_ && !open_.empty()) {
    if (!first_) text_ += ',';
    if (open_.back() == '}' || token == "{") {
      text_ += '\n';
      text_.append(open_.size(), ' ');
    } else if (!first_) {
      text_ += ' ';
    }
  }
  text_ += token;
  first_ = named_ = false;
  return *this;
}

Json& Json::object() {
  add("{");
  open_.push_back('}');
  first_ = true;
  return *this;
}

Json& Json::list() {
  add("[");
  open_.push_back(']');
  first_ = true;
  return *this;
}

Json& Json::end() {
  text_ += open_.back();
  open_.pop_back();
  first_ = false;
  return *this;
}

void Json::quote(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  text_ += '"';
  while (!text.empty()) {
    const size_t bytes = sequence(text);
    const auto c = static_cast<unsigned char>(text[0]);
    if (bytes == 0) {
      text_ += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += text[0];
    } else if (c < 0x20 || c == 0x7f) {
      text_ += "\\u00";
      text_ += kHex[c >> 4];
      text_ += kHex[c & 15];
    } else {
      text_ += text.substr(0, bytes);
    }
    text.remove_prefix(bytes ? bytes : 1);
  }
  text_ += '"';
}

Json& Json::key(std::string_view name) {
  add("");
  quote(name);
  text_ += ": ";
  named_ = true;
  return *this;
}

Json& Json::value(std::string_view text) {
  add("");
  quote(text);
  return *this;
}

Json& Json::value(double number) {
  if (!std::isfinite(number)) return null();
  char text[40];
  const auto [end, code] = std::to_chars(text, text + sizeof text, number, std::chars_format::general, 9);
  return add({text, static_cast<size_t>(end - text)});
}

Json& Json::value(int64_t number) {
  return add(std::to_string(number));
}

Json& Json::value(bool yes) {
  return add(yes ? "true" : "false");
}

Json& Json::null() {
  return add("null");
}

}  // namespace pinnace::report
