// UTF-8: whether bytes are well-formed, and text that a terminal or a log may be given.
#pragma once

#include <string>
#include <string_view>

namespace pinnace {

/// No overlong forms, no surrogates, at most U+10FFFF.
bool is_utf8(std::string_view text);

/// The text with all that a terminal would act on instead of showing it as escapes: control characters ("\x1b", "\n"),
/// marks that are invisible or change the direction of writing ("\u202e"), and bytes that are no UTF-8 ("\xff").
/// Printable text, backslashes included, stays as it is. For names that a file brought.
std::string printable(std::string_view text);

/// The same for a whole message: line breaks before an indented line stay, as in a list of problems.
std::string printable_message(std::string_view text);
/// True if printable_message would change nothing.
bool is_printable_message(std::string_view text);

}  // namespace pinnace
