// Tokens of the text form of graphs (docs/text_form.md). The lexer walks the text once, keeps nothing but its place,
// and never fails by itself: what is no token is one of kind kBad that says why.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pinnace {

enum class TokenKind : uint8_t {
  kEnd,
  kName,    ///< letters, digits, '_' and '.', not starting with a digit or '.'
  kValue,   ///< %name or %"quoted"
  kNumber,  ///< -12, 0.5, 1e-3, -inf, -nan
  kString,  ///< "quoted"
  kMark,    ///< one of { } ( ) [ ] : , = @ ? <= ..
  kBad,     ///< text() is the reason
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view raw;  ///< as written; borrowed from the text
  std::string text;      ///< kName, kValue, kString: the name or contents without quotes and escapes; kBad: the reason
  size_t offset = 0;     ///< of raw in the text

  bool is(TokenKind wanted, std::string_view written) const { return kind == wanted && raw == written; }
  bool mark(std::string_view written) const { return is(TokenKind::kMark, written); }
  bool name(std::string_view written) const { return is(TokenKind::kName, written); }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  /// The next token; kEnd for ever once the text is used up.
  Token next();
  /// Bytes that no token was made of yet.
  size_t remaining() const { return text_.size() - at_; }
  /// "line 3, column 14"; both count from 1, columns in bytes.
  std::string place(size_t offset) const;

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void skip_blanks();
  void skip_name();
  bool skip_number();
  /// Reads from the opening quote; false leaves the reason in `out`.
  bool quoted(std::string& out);

  std::string_view text_;
  size_t at_ = 0;
};

/// True if a name can be written without quotes: [A-Za-z_][A-Za-z0-9_.]* without "..".
bool is_bare_name(std::string_view name);
/// Appends `text` in quotes; quotes, backslashes and control characters are escaped.
void append_quoted(std::string& to, std::string_view text);

}  // namespace pinnace
