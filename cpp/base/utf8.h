// is_utf8: whether bytes are well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
#pragma once

#include <string_view>

namespace pinnace {

bool is_utf8(std::string_view text);

}  // namespace pinnace
