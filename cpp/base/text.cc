// Sentences from parts.
#include "base/text.h"

#include <pinnace/tensor.h>

namespace pinnace {
namespace {
template <class N>
void append_number(std::string& to, N number) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  to.append(digits, end.ptr);
}
}  // namespace

void append_parts(std::string& to, const PartKind* kinds, const Part* parts) {
  for (; *kinds != PartKind::kEnd; ++kinds, ++parts) {
    switch (*kinds) {
      case PartKind::kEnd:
        break;
      case PartKind::kLiteral:
        if (parts->at) to.append(static_cast<const char*>(parts->at));
        break;
      case PartKind::kString:
        to.append(*static_cast<const std::string*>(parts->at));
        break;
      case PartKind::kView:
        to.append(*static_cast<const std::string_view*>(parts->at));
        break;
      case PartKind::kLetter:
        to.push_back(static_cast<char>(parts->number));
        break;
      case PartKind::kBool:
        to.append(parts->number != 0 ? "true" : "false");
        break;
      case PartKind::kInt:
        append_number(to, parts->number);
        break;
      case PartKind::kUnsigned:
        append_number(to, parts->unsigned_number);
        break;
      case PartKind::kFloat:
        append_number(to, parts->real32);
        break;
      case PartKind::kDouble:
        append_number(to, parts->real64);
        break;
      case PartKind::kType:
        to.append(to_string(*static_cast<const TensorType*>(parts->at)));
        break;
    }
  }
}

std::string join_parts(const PartKind* kinds, const Part* parts) {
  std::string text;
  append_parts(text, kinds, parts);
  return text;
}

std::string hex(uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, 16);
  return str_cat("0x", std::string_view(digits, static_cast<size_t>(end.ptr - digits)));
}

}  // namespace pinnace
