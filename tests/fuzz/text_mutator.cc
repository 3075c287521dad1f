// Tokens are words (with numbers and %names), quoted strings, runs of white space and single characters. A group is a
// token, with all up to the matching bracket if it opens one, and with its arguments if a bracket follows a word.
#include "fuzz/text_mutator.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <random>
#include <vector>

#include "fuzz/fuzzing.h"

namespace pinnace::fuzz {
namespace {

using Random = std::minstd_rand;

constexpr std::string_view kNumbers[] = {"0",
                                         "1",
                                         "-1",
                                         "2",
                                         "3",
                                         "4",
                                         "7",
                                         "8",
                                         "64",
                                         "127",
                                         "128",
                                         "255",
                                         "256",
                                         "1000",
                                         "1024",
                                         "4096",
                                         "65536",
                                         "2147483647",
                                         "-2147483648",
                                         "0.",
                                         "0.5",
                                         "1.0",
                                         "1e30",
                                         "-1e-30",
                                         "4294967295",
                                         "4294967296",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "18446744073709551615",
                                         "1e400"};

bool word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '%' || c == '-' || c == '@';
}

std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"' || text[at] == '\'') {
      while (end < text.size() && text[end] != text[at] && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (word_char(text[at])) {
      while (end < text.size() && word_char(text[end])) ++end;
    } else if (std::isspace(static_cast<unsigned char>(text[at]))) {
      while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end]))) ++end;
    }
    tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

bool opens(std::string_view t) {
  return t == "(" || t == "[" || t == "{";
}
bool closes(std::string_view t) {
  return t == ")" || t == "]" || t == "}";
}

struct Group {
  size_t begin = 0, end = 0;  // tokens
};

class Text {
 public:
  explicit Text(std::string_view text) : tokens_(tokens_of(text)) {}

  bool empty() const { return tokens_.empty(); }
  std::string slice(size_t begin, size_t end) const {
    std::string made;
    for (size_t i = begin; i < end; ++i) made += tokens_[i];
    return made;
  }
  std::string slice(Group g) const { return slice(g.begin, g.end); }
  std::string before(Group g) const { return slice(0, g.begin); }
  std::string after(Group g) const { return slice(g.end, tokens_.size()); }
  std::string_view token(size_t i) const { return tokens_[i]; }

  /// A random group that is neither white space nor a closing bracket or separator.
  Group group(Random& random) const {
    for (int tries = 0; tries < 8; ++tries) {
      const size_t i = random() % tokens_.size();
      const char c = tokens_[i][0];
      if (c == ',' || c == ':' || closes(tokens_[i]) || std::isspace(static_cast<unsigned char>(c))) continue;
      return {i, end_of(i)};
    }
    return {0, 1};
  }
  /// A random token for which `wanted` holds, else the first.
  template <class F>
  size_t find(Random& random, const F& wanted) const {
    const size_t start = random() % tokens_.size();
    for (size_t k = 0; k < tokens_.size(); ++k) {
      const size_t i = (start + k) % tokens_.size();
      if (wanted(tokens_[i])) return i;
    }
    return 0;
  }
  /// True if the group is an element of a list.
  bool listed(Group g) const {
    return (g.begin > 0 && tokens_[g.begin - 1] == ",") || (g.end < tokens_.size() && tokens_[g.end] == ",");
  }

 private:
  size_t end_of(size_t i) const {
    size_t at = i;
    if (word_char(tokens_[i][0]) && i + 1 < tokens_.size() && opens(tokens_[i + 1])) at = i + 1;
    if (!opens(tokens_[at])) return i + 1;
    for (int depth = 0; at < tokens_.size(); ++at) {
      depth += opens(tokens_[at]) ? 1 : closes(tokens_[at]) ? -1 : 0;
      if (depth == 0) return at + 1;
    }
    return i + 1;
  }

  std::vector<std::string_view> tokens_;
};

bool number(std::string_view t) {
  return std::isdigit(static_cast<unsigned char>(t[0])) ||
         (t.size() > 1 && t[0] == '-' && std::isdigit(static_cast<unsigned char>(t[1])));
}
bool same_kind(std::string_view a, std::string_view b) {
  return a[0] == b[0] || (number(a) && number(b)) ||
         (std::isalpha(static_cast<unsigned char>(a[0])) && std::isalpha(static_cast<unsigned char>(b[0])));
}

/// Two lines exchanged, one repeated, or one left out.
std::string with_lines(std::string_view text, Random& random) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.emplace_back(text.substr(at, end - at));
    at = end;
  }
  if (lines.empty()) return "";
  const size_t a = random() % lines.size(), b = random() % lines.size();
  switch (random() % 3) {
    case 0:
      std::swap(lines[a], lines[b]);
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<ptrdiff_t>(b), std::string(lines[a]));
      break;
    default:
      lines.erase(lines.begin() + static_cast<ptrdiff_t>(a));
  }
  std::string made;
  for (const std::string& line : lines) made += line;
  return made;
}

std::string by_bytes(std::string_view text, size_t room) {
  std::string bytes(text);
  const size_t size = bytes.size();
  bytes.resize(std::max<size_t>(size + std::min<size_t>(room, 32), 1));
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
  return bytes;
}

std::string once(std::string_view source, std::string_view other, size_t max_size, Random& random) {
  const Text text(source);
  const size_t room = max_size > source.size() ? max_size - source.size() : 0;
  if (text.empty() || random() % 8 == 0) return by_bytes(source, room);
  const Group g = text.group(random);
  const Text donor(other.empty() ? source : other);
  switch (random() % 9) {
    case 0:
      return text.before(g) + donor.slice(donor.group(random)) + text.after(g);
    case 1:  // left out, with the comma that follows
      return text.before(g) + text.slice(text.listed(g) && text.after(g).starts_with(',') ? g.end + 1 : g.end,
                                         std::max(g.end, source.empty() ? 0 : tokens_of(source).size()));
    case 2:
      return text.before(g) + text.slice(g) + (text.listed(g) ? "," : " ") + donor.slice(donor.group(random)) +
             text.after(g);
    case 3:
    case 4: {
      const size_t i = text.find(random, number);
      return text.slice(0, i) + std::string(kNumbers[random() % std::size(kNumbers)]) + text.after({i, i + 1});
    }
    case 5: {
      const std::string_view old = text.token(g.begin);
      const size_t i = donor.find(random, [&](std::string_view t) { return same_kind(t, old) && t != old; });
      return text.before(g) + std::string(donor.token(i)) + text.slice(g.begin + 1, g.end) + text.after(g);
    }
    case 6:
      return with_lines(source, random);
    case 7:
      return text.before(g) + by_bytes(text.slice(g), room) + text.after(g);
    default: {  // what stands around a group inside the group, again and again: nesting
      const Group outer = g, at = text.group(random);
      if (at.begin <= outer.begin || at.end > outer.end) return with_lines(source, random);
      const std::string left = text.slice(outer.begin, at.begin), right = text.slice(at.end, outer.end);
      const size_t times = std::min<size_t>(1 + random() % 200, room / (left.size() + right.size() + 1));
      std::string made = text.slice(0, at.begin);
      for (size_t i = 0; i < times; ++i) made += left;
      made += text.slice(at);
      for (size_t i = 0; i < times; ++i) made += right;
      return made + text.after(at);
    }
  }
}

size_t put(const std::string& made, uint8_t* out, size_t max_size) {
  const size_t size = std::min(made.size(), max_size);
  std::memcpy(out, made.data(), size);
  return size;
}

std::string_view view(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

std::string mutated_text(std::string_view text, std::string_view other, size_t max_size, unsigned seed) {
  Random random(seed);
  std::string made(text);
  for (unsigned times = 1 + random() % 4; times > 0; --times) {
    std::string next = once(made, other, max_size, random);
    if (next.size() <= max_size) made = std::move(next);
  }
  return made;
}

size_t mutate_text(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return put(mutated_text(view(data, size), {}, max_size, seed), data, max_size);
}

size_t cross_texts(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out, size_t max_size,
                   unsigned seed) {
  return put(mutated_text(view(a, a_size), view(b, b_size), max_size, seed), out, max_size);
}

}  // namespace pinnace::fuzz
