// Reads and writes the metadata of streams; see streams.h.
#include "program/streams.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "base/status.h"

namespace pinnace {
namespace {

using Numbers = std::array<int64_t, 4>;

constexpr std::string_view kInput = "stream.", kOutput = "streamed.";

/// Whether `text` is `form` with a whole number of less than 31 bits at each '#'.
bool read_numbers(const char* text, const char* form, Numbers& numbers) {
  size_t count = 0;
  for (; *form; ++form) {
    if (*form != '#') {
      if (*text++ != *form) return false;
      continue;
    }
    const char* const digits = text + (*text == '-');
    if (*digits < '0' || *digits > '9') return false;
    char* end = nullptr;
    const int64_t number = std::strtoll(text, &end, 10);
    if (number <= -(int64_t{1} << 31) || number >= int64_t{1} << 31) return false;
    numbers[count++] = number;
    text = end;
  }
  return *text == 0;
}

/// Calls add(name, numbers) for each of `specs` that has an entry under `prefix`. The first number is an axis of it,
/// and those before `below_zero` are not negative.
template <class Add>
Status read_entries(const ProgramData& program, std::span<const TensorSpec> specs, std::string_view prefix,
                    const char* form, size_t below_zero, Add add) {
  size_t found = 0, entries = 0;
  for (const auto& [key, text] : program.metadata) entries += key.starts_with(prefix);
  for (const TensorSpec& spec : specs) {
    if (found == entries) break;
    const std::string key = str_cat(prefix, spec.name);
    const auto at = std::ranges::lower_bound(program.metadata, key, {}, &Metadata::value_type::first);
    if (at == program.metadata.end() || at->first != key) continue;
    Numbers n{};
    bool right = read_numbers(at->second.c_str(), form, n) && n[0] < spec.type.rank();
    for (size_t i = 0; i < below_zero; ++i) right = right && n[i] >= 0;
    if (!right || !add(spec.name, n)) {
      return Status(Code::kCorruptFile, str_cat("metadata '", key, "' is '", at->second,
                                                "', which is not of the form that build() writes"));
    }
    ++found;
  }
  if (found == entries) return {};
  return Status(Code::kCorruptFile, str_cat("metadata under '", prefix, "' name what is no input or output"));
}

}  // namespace

std::pair<std::string, std::string> metadata_of(const StreamedInput& s) {
  return {str_cat(kInput, s.name),
          str_cat("axis ", s.axis, ", latency ", s.latency, ", multiple ", s.multiple, ", tail ", s.tail)};
}

std::pair<std::string, std::string> metadata_of(const StreamedOutput& s) {
  return {str_cat(kOutput, s.name), str_cat("axis ", s.axis, ", rate ", s.up, "/", s.down, ", more ", s.more)};
}

Result<std::vector<StreamedInput>> streamed_inputs(const ProgramData& program) {
  std::vector<StreamedInput> all;
  const auto add = [&](const std::string& name, const Numbers& n) {
    all.push_back({name, static_cast<int>(n[0]), n[1], n[2], n[3]});
    return n[2] > 0;
  };
  PINNACE_TRY(read_entries(program, program.inputs, kInput, "axis #, latency #, multiple #, tail #", 4, add));
  return all;
}

Result<std::vector<StreamedOutput>> streamed_outputs(const ProgramData& program) {
  std::vector<StreamedOutput> all;
  const auto add = [&](const std::string& name, const Numbers& n) {
    all.push_back({name, static_cast<int>(n[0]), n[1], n[2], n[3]});
    return n[1] > 0 && n[2] > 0;
  };
  PINNACE_TRY(read_entries(program, program.outputs, kOutput, "axis #, rate #/#, more #", 3, add));
  return all;
}

}  // namespace pinnace
