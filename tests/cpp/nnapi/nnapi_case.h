// Cases of NNAPI's operations as lines of text, tests/cases/nnapi/*.inc:
//
//   CASE(operation, level, "types of T", "inputs", "outputs", "what else is accepted")
//
// The level, 1 to 8, is the lowest that takes the line as it stands. T is each of the listed types in turn, "f16@3"
// from feature level 3 on; values are for the first of them (raw ones if it is quantised), and for f16. An operand is
//
//   type[dimensions]*scale+zero{values}   q8c[2,2]/0:0.5,2{1,2,3,4} has scales 0.5 and 2 along dimension 0
//   {1:4} counts, {=7} repeats, {?} is not compared; ~ before the type: the operand is left out
//   f32 f16 i32 b8 q8 q8s q8y q8c q16 q16s tensors; int uint float half bool scalars
//   fs: a float scalar, half where T is f16; B: a bias, i32 where T is quantised
//
// What else addOperation takes, of the first type: "1:q8c@3": input 1 may be q8c from feature level 3; "o0:..." output
// 0;
// "+:int@3": one more input of that type; "-@1": without the last input, from feature level 1; "o+:T", "o-" outputs.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/half.h"

namespace nnapi_client {

struct CaseType {
  const char* word;
  int32_t code;
  size_t bytes;
};
inline constexpr CaseType kCaseTypes[] = {
    {"float", 0, 4}, {"int", 1, 4},  {"uint", 2, 4}, {"f32", 3, 4},    {"i32", 4, 4},     {"q8", 5, 1},
    {"bool", 6, 1},  {"q16s", 7, 2}, {"f16", 8, 2},  {"b8", 9, 1},     {"half", 10, 2},   {"q8c", 11, 1},
    {"q16", 12, 2},  {"q8y", 13, 1}, {"q8s", 14, 1}, {"model", 15, 0}, {"oem", 10000, 1}, {"oem_bytes", 10001, 1},
};
inline const CaseType& case_type(const std::string& word) {
  for (const CaseType& t : kCaseTypes) {
    if (word == t.word) return t;
  }
  ADD_FAILURE() << "a case has type '" << word << "'";
  return kCaseTypes[0];
}
inline bool quantised(const std::string& word) {
  return word[0] == 'q';
}

struct CaseOperand {
  const CaseType* type = nullptr;
  bool is_T = false, omitted = false, compared = true;
  std::vector<uint32_t> dims;
  float scale = 0;
  int32_t zero = 0;
  uint32_t channel_dim = 0;
  std::vector<float> channel_scales;
  std::vector<double> values;

  bool tensor() const { return !dims.empty(); }
  bool floating() const { return type->code == 0 || type->code == 3 || type->code == 8 || type->code == 10; }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all(values.size() * type->bytes);
    for (size_t i = 0; i < values.size(); ++i) {
      std::byte* at = all.data() + i * type->bytes;
      const auto put = [&](auto value) { std::memcpy(at, &value, type->bytes); };
      if (floating() && type->bytes == 4) {
        put(static_cast<float>(values[i]));
      } else if (floating()) {
        put(pinnace::float_to_half(static_cast<float>(values[i])));
      } else {
        put(static_cast<int64_t>(values[i]));  // little-endian: its first bytes
      }
    }
    return all;
  }
  double value(const std::byte* data, size_t i) const {
    const std::byte* at = data + i * type->bytes;
    const auto get = [&](auto value) {
      std::memcpy(&value, at, sizeof value);
      return static_cast<double>(value);
    };
    if (floating())
      return type->bytes == 4 ? get(0.0f) : pinnace::half_to_float(static_cast<uint16_t>(get(uint16_t(0))));
    if (type->bytes == 4) return get(int32_t(0));
    if (type->bytes == 2) return type->code == 7 ? get(int16_t(0)) : get(uint16_t(0));
    return type->code == 11 || type->code == 13 || type->code == 14 ? get(int8_t(0)) : get(uint8_t(0));
  }
};

/// Reads a line of operands for one type T.
class CaseReader {
 public:
  CaseReader(std::string text, std::string T) : text_(std::move(text)), T_(std::move(T)) {}
  std::vector<CaseOperand> read() {
    std::vector<CaseOperand> all;
    while (at_ < text_.size()) {
      all.push_back(operand());
      take(' ');
    }
    return all;
  }

 private:
  bool take(char c) {
    const bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there;
    return there;
  }
  double number() {
    char* end = nullptr;
    const double value = std::strtod(text_.c_str() + at_, &end);
    at_ = static_cast<size_t>(end - text_.c_str());
    return value;
  }
  std::string type_word() {
    const size_t end = text_.find_first_of("[{*/ ", at_);
    std::string word = text_.substr(at_, end - at_);
    at_ += word.size();
    const bool is_half = T_ == "f16";
    if (word == "fs") return is_half ? "half" : "float";
    if (word == "B") return quantised(T_) ? "i32" : T_;
    return word;
  }
  CaseOperand operand() {
    CaseOperand o;
    o.omitted = take('~');
    const std::string word = type_word();
    o.is_T = word == "T";
    o.type = &case_type(o.is_T ? T_ : word);
    if (take('[')) {
      do o.dims.push_back(static_cast<uint32_t>(number()));
      while (take(','));
      take(']');
    }
    if (take('/')) {
      o.channel_dim = static_cast<uint32_t>(number());
      take(':');
      do o.channel_scales.push_back(static_cast<float>(number()));
      while (take(','));
    }
    if (take('*')) {
      o.scale = static_cast<float>(number());
      if (take('+')) o.zero = static_cast<int32_t>(number());
    } else if (o.is_T && quantised(T_)) {
      o.scale = T_ == "q16" ? 0.125f : 0.5f;
    }
    if (take('{')) values(o);
    return o;
  }
  void values(CaseOperand& o) {
    size_t count = 1;
    for (uint32_t d : o.dims) count *= d;
    if (take('?')) o.compared = false;
    const bool repeats = take('=');
    while (o.compared && !take('}')) {
      o.values.push_back(number());
      if (take(':')) {
        for (const double last = number(); o.values.back() < last;) o.values.push_back(o.values.back() + 1);
      }
      take(',');
    }
    if (!o.compared) take('}');
    if (repeats) o.values.resize(count, o.values.back());
    if (!o.compared) o.values.resize(count);
    EXPECT_EQ(o.values.size(), count) << text_;
  }

  const std::string text_, T_;
  size_t at_ = 0;
};

/// "f16@3" at `text[at]`: the word and the level, which is `otherwise` where none is written.
struct WordAndLevel {
  std::string word;
  int level;
};
inline WordAndLevel word_and_level(const std::string& text, int otherwise) {
  const size_t at = text.find('@');
  return {text.substr(0, at), at == std::string::npos ? otherwise : std::atoi(text.c_str() + at + 1)};
}
inline std::vector<std::string> case_words(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

struct Case {
  const char* name;
  int level;
  const char *types, *inputs, *outputs, *also;

  std::vector<WordAndLevel> type_list() const {
    std::vector<WordAndLevel> list;
    for (const std::string& word : case_words(types)) list.push_back(word_and_level(word, level));
    return list;
  }
};

inline const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = {
#define CASE(name, level, types, inputs, outputs, also) {#name, level, types, inputs, outputs, also},
#include "cases/nnapi/detection.inc"
#include "cases/nnapi/elementwise.inc"
#include "cases/nnapi/moves.inc"
#include "cases/nnapi/products.inc"
#include "cases/nnapi/recurrent.inc"
#undef CASE
  };
  return cases;
}

}  // namespace nnapi_client
