// The lexer of the text form, and its inverse for strings. Characters are compared as ASCII: the locale plays no part.
#include "graph/lexer.h"

#include <algorithm>

#include "base/text.h"

namespace pinnace {
namespace {
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_inner(char c) {
  return is_letter(c) || is_digit(c) || c == '.';
}
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
}  // namespace

bool is_bare_name(std::string_view name) {
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), is_inner) &&
         name.find("..") == name.npos;
}

void append_quoted(std::string& to, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  to += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (to += '\\') += c;
    } else if (c == '\n') {
      to += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      ((to += "\\x") += kHex[byte >> 4]) += kHex[byte & 15];
    } else {
      to += c;
    }
  }
  to += '"';
}

std::string Lexer::place(size_t offset) const {
  const std::string_view before = text_.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  return str_cat("line ", line, ", column ", start == before.npos ? offset + 1 : offset - start);
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

void Lexer::skip_name() {
  // "a..b" cannot be a name: two dots are the mark of a range.
  while (is_inner(peek()) && !(peek() == '.' && peek(1) == '.')) ++at_;
}

bool Lexer::skip_number() {
  if (peek() == '-') ++at_;
  if (is_letter(peek())) {  // -inf, -nan
    const size_t start = at_;
    skip_name();
    const std::string_view word = text_.substr(start, at_ - start);
    return word == "inf" || word == "nan";
  }
  if (!is_digit(peek())) return false;
  while (is_digit(peek())) ++at_;
  if (peek() == '.' && peek(1) != '.') {  // "1..8" is a range
    ++at_;
    while (is_digit(peek())) ++at_;
  }
  const size_t sign = peek(1) == '+' || peek(1) == '-';
  if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
    at_ += 1 + sign;
    while (is_digit(peek())) ++at_;
  }
  return !is_letter(peek());
}

bool Lexer::quoted(std::string& out) {
  ++at_;
  while (at_ < text_.size() && text_[at_] != '\n') {
    const char c = text_[at_++];
    if (c == '"') return true;
    if (c != '\\') {
      out += c;
      continue;
    }
    const char escape = peek();
    ++at_;
    if (escape == '"' || escape == '\\') {
      out += escape;
    } else if (escape == 'n') {
      out += '\n';
    } else if (escape == 'x' && hex_value(peek()) >= 0 && hex_value(peek(1)) >= 0) {
      out += static_cast<char>(hex_value(peek()) * 16 + hex_value(peek(1)));
      at_ += 2;
    } else {
      at_ = std::min(at_, text_.size());
      out = "a backslash must be followed by one of \" \\ n xNN";
      return false;
    }
  }
  out = "the string has no closing quote on its line";
  return false;
}

Token Lexer::next() {
  skip_blanks();
  Token token;
  token.offset = at_;
  const char c = peek();
  const auto done = [&](TokenKind kind) {
    token.kind = kind;
    token.raw = text_.substr(token.offset, at_ - token.offset);
    return std::move(token);
  };
  if (at_ >= text_.size()) return done(TokenKind::kEnd);
  if (is_letter(c)) {
    skip_name();
    token.text = text_.substr(token.offset, at_ - token.offset);
    return done(TokenKind::kName);
  }
  if (c == '-' || is_digit(c)) {
    if (skip_number()) return done(TokenKind::kNumber);
    token.text = "not a number";
    return done(TokenKind::kBad);
  }
  if (c == '"') return done(quoted(token.text) ? TokenKind::kString : TokenKind::kBad);
  if (c == '%') {
    ++at_;
    if (peek() == '"') return done(quoted(token.text) ? TokenKind::kValue : TokenKind::kBad);
    if (is_letter(peek())) {
      skip_name();
      token.text = text_.substr(token.offset + 1, at_ - token.offset - 1);
      return done(TokenKind::kValue);
    }
    token.text = "% must be followed by a name or a string";
    return done(TokenKind::kBad);
  }
  const bool two = (c == '<' && peek(1) == '=') || (c == '.' && peek(1) == '.');
  if (two || std::string_view("{}()[]:,=@?").find(c) != std::string_view::npos) {
    at_ += two ? 2 : 1;
    return done(TokenKind::kMark);
  }
  ++at_;
  token.text = "no token starts with this character";
  return done(TokenKind::kBad);
}

}  // namespace pinnace
