// Operand types, operations and signatures: the lists as tables, and the matching of operands against signatures.
#include "nnapi/operations.h"

#include <algorithm>
#include <optional>

namespace pinnace::nnapi {
namespace {

using enum OperandCode;

constexpr OperandCodeInfo kCodes[] = {
    {kFloat32, "FLOAT32", "float", 4, 1, false, false, 0, 0},
    {kInt32, "INT32", "int", 4, 1, false, false, 0, 0},
    {kUint32, "UINT32", "uint", 4, 1, false, false, 0, 0},
    {kTensorFloat32, "TENSOR_FLOAT32", "f32", 4, 1, true, false, 0, 0},
    {kTensorInt32, "TENSOR_INT32", "i32", 4, 1, true, false, 0, 0},
    {kTensorQuant8Asymm, "TENSOR_QUANT8_ASYMM", "q8", 1, 1, true, true, 0, 255},
    {kBool, "BOOL", "bool", 1, 3, false, false, 0, 0},
    {kTensorQuant16Symm, "TENSOR_QUANT16_SYMM", "q16s", 2, 3, true, true, 0, 0},
    {kTensorFloat16, "TENSOR_FLOAT16", "f16", 2, 3, true, false, 0, 0},
    {kTensorBool8, "TENSOR_BOOL8", "b8", 1, 3, true, false, 0, 0},
    {kFloat16, "FLOAT16", "half", 2, 3, false, false, 0, 0},
    {kTensorQuant8SymmPerChannel, "TENSOR_QUANT8_SYMM_PER_CHANNEL", "q8c", 1, 3, true, false, 0, 0},
    {kTensorQuant16Asymm, "TENSOR_QUANT16_ASYMM", "q16", 2, 3, true, true, 0, 65535},
    {kTensorQuant8Symm, "TENSOR_QUANT8_SYMM", "q8y", 1, 3, true, true, 0, 0},
    {kTensorQuant8AsymmSigned, "TENSOR_QUANT8_ASYMM_SIGNED", "q8s", 1, 4, true, true, -128, 127},
    {kModel, "MODEL", "model", 0, 4, false, false, 0, 0},
    {kOemScalar, "OEM_SCALAR", "", 1, 1, false, false, 0, 0},
    {kTensorOemByte, "TENSOR_OEM_BYTE", "", 1, 1, true, false, 0, 0},
};

constexpr OperationInfo kOperations[] = {
#define OPERATION(name, code, level, least_rank, greatest_rank) {#name, code, level, least_rank, greatest_rank},
#include "nnapi/operations.inc"
#undef OPERATION
};
static_assert(std::size(kOperations) == kOperationCount);

struct Signature {
  Op op;
  std::string_view types;
  std::string_view inputs;
  std::string_view outputs;
};
constexpr Signature kSignatures[] = {
#define SIGNATURE(op, types, inputs, outputs) {Op::op, types, inputs, outputs},
#include "nnapi/signatures.inc"
#undef SIGNATURE
};

/// Takes the text before the next `separator` off `text`.
std::string_view cut(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}
std::string_view next_word(std::string_view& text) {
  for (;;) {
    const std::string_view word = cut(text, ' ');
    if (!word.empty() || text.empty()) return word;
  }
}

/// "f16@3": the name, and the level after it, 0 if there is none. The list has levels of one digit.
std::string_view name_and_feature_level(std::string_view word, int& level) {
  const size_t at = word.find('@');
  level = at == std::string_view::npos ? 0 : word[at + 1] - '0';
  return word.substr(0, at);
}

/// One signature's match: which type T is, and the level that the operands need so far.
struct Match {
  std::optional<OperandCode> T;
  int feature_level = 0;
};

bool fits(std::string_view name, OperandCode type, const Match& m) {
  if (name == "T") return type == m.T;
  if (name == "fs") return type == (m.T == kTensorFloat16 ? kFloat16 : kFloat32);
  if (name == "any") return info(type).tensor && type != kTensorOemByte;
  if (name == "value") return type != kModel && type != kTensorOemByte && type != kOemScalar;
  return name == info(type).short_name;
}

/// One word without its count: "T/q8c@3".
bool fits_alternatives(std::string_view word, OperandCode type, Match& m) {
  while (!word.empty()) {
    int level = 0;
    if (fits(name_and_feature_level(cut(word, '/'), level), type, m)) {
      m.feature_level = std::max({m.feature_level, level, static_cast<int>(info(type).since)});
      return true;
    }
  }
  return false;
}

/// How many operands a word takes at least, and whether it may take more ("T+", "T*").
struct Count {
  std::string_view word;
  size_t least = 1;
  bool open = false;
};
Count count_of(std::string_view word) {
  Count c{word};
  if (word.ends_with('+')) return {word.substr(0, word.size() - 1), 1, true};
  if (word.ends_with('*')) return {word.substr(0, word.size() - 1), 0, true};
  if (const size_t star = word.find('*'); star != std::string_view::npos) {
    c.word = word.substr(0, star);
    c.least = 0;
    for (char digit : word.substr(star + 1)) c.least = c.least * 10 + static_cast<size_t>(digit - '0');
  }
  return c;
}

/// One list without "|". What is in brackets is taken as far as there are operands left for it.
bool fits_list(std::string_view list, std::span<const OperandCode> operands, Match& m) {
  size_t least = 0;  // that the words outside brackets take
  bool optional = false;
  for (std::string_view rest = list; !rest.empty();) {
    const std::string_view word = next_word(rest);
    optional |= word == "[";
    if (!optional && word != "]") least += count_of(word).least;
  }
  if (operands.size() < least) return false;
  size_t at = 0, spare = operands.size() - least;  // `spare` goes to the open word
  while (!list.empty()) {
    const std::string_view word = next_word(list);
    if (word == "[") {
      if (at == operands.size()) return true;
      continue;
    }
    if (word == "]" || word.empty()) continue;
    Count c = count_of(word);
    if (c.open) c.least += std::exchange(spare, 0);
    for (size_t i = 0; i < c.least; ++i, ++at) {
      if (at >= operands.size() || !fits_alternatives(c.word, operands[at], m)) return false;
    }
  }
  return at == operands.size();
}

bool fits_any_list(std::string_view lists, std::span<const OperandCode> operands, Match& m) {
  while (!lists.empty()) {
    Match attempt = m;
    if (fits_list(cut(lists, '|'), operands, attempt)) {
      m = attempt;
      return true;
    }
  }
  return false;
}

}  // namespace

const OperandCodeInfo* operand_code_info(int32_t code) {
  const auto* found = std::find_if(std::begin(kCodes), std::end(kCodes),
                                   [&](const auto& c) { return static_cast<int32_t>(c.code) == code; });
  return found == std::end(kCodes) ? nullptr : found;
}

std::span<const OperationInfo> all_operations() {
  return kOperations;
}

const OperationInfo* operation_info(int32_t code) {
  return code >= 0 && code < kOperationCount ? &kOperations[code] : nullptr;
}

int signature_feature_level(int32_t code, std::span<const OperandCode> inputs, std::span<const OperandCode> outputs) {
  const OperationInfo* operation = operation_info(code);
  int lowest = 0;
  for (const Signature& s : kSignatures) {
    if (!operation || static_cast<int32_t>(s.op) != code) continue;
    for (std::string_view types = s.types; !types.empty();) {
      int level = 0;
      const std::string_view name = name_and_feature_level(next_word(types), level);
      for (const OperandCodeInfo& c : kCodes) {
        if (name != c.short_name) continue;
        Match m{c.code, std::max(operation->feature_level, level)};
        if (!fits_any_list(s.inputs, inputs, m) || !fits_any_list(s.outputs, outputs, m)) continue;
        if (lowest == 0 || m.feature_level < lowest) lowest = m.feature_level;
      }
    }
  }
  return lowest;
}

std::span<const char* const> result_names() {
  static const char* const names[] = {"NO_ERROR",
                                      "OUT_OF_MEMORY",
                                      "INCOMPLETE",
                                      "UNEXPECTED_NULL",
                                      "BAD_DATA",
                                      "OP_FAILED",
                                      "BAD_STATE",
                                      "UNMAPPABLE",
                                      "OUTPUT_INSUFFICIENT_SIZE",
                                      "UNAVAILABLE_DEVICE",
                                      "MISSED_DEADLINE_TRANSIENT",
                                      "MISSED_DEADLINE_PERSISTENT",
                                      "RESOURCE_EXHAUSTED_TRANSIENT",
                                      "RESOURCE_EXHAUSTED_PERSISTENT",
                                      "DEAD_OBJECT"};
  return names;
}

}  // namespace pinnace::nnapi
