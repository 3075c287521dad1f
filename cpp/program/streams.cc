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

struct Entry {
  const std::string* name;
  Numbers numbers;
};

/// The entries of `specs` under `prefix`, in their order. The first number is an axis; none is below `least`.
Result<std::vector<Entry>> read_entries(const ProgramData& program, std::span<const TensorSpec> specs,
                                        std::string_view prefix, const char* form, const Numbers& least) {
  std::vector<Entry> found;
  size_t entries = 0;
  for (const auto& [key, text] : program.metadata) entries += key.starts_with(prefix);
  for (const TensorSpec& spec : specs) {
    if (found.size() == entries) break;
    const std::string key = str_cat(prefix, spec.name);
    const auto at = std::ranges::lower_bound(program.metadata, key, {}, &Metadata::value_type::first);
    if (at == program.metadata.end() || at->first != key) continue;
    Numbers n{};
    bool right = read_numbers(at->second.c_str(), form, n) && n[0] < spec.type.rank();
    for (size_t i = 0; i < n.size(); ++i) right = right && n[i] >= least[i];
    if (!right) {
      return Status(Code::kCorruptFile, str_cat("metadata '", key, "' is '", at->second,
                                                "', which is not of the form that build() writes"));
    }
    found.push_back({&spec.name, n});
  }
  if (found.size() == entries) return found;
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
  PINNACE_ASSIGN(const auto entries,
                 read_entries(program, program.inputs, kInput, "axis #, latency #, multiple #, tail #", {0, 0, 1, 0}));
  std::vector<StreamedInput> all;
  for (const auto& [name, n] : entries) all.push_back({*name, static_cast<int>(n[0]), n[1], n[2], n[3]});
  return all;
}

Result<std::vector<StreamedOutput>> streamed_outputs(const ProgramData& program) {
  PINNACE_ASSIGN(const auto entries,
                 read_entries(program, program.outputs, kOutput, "axis #, rate #/#, more #", {0, 1, 1, INT64_MIN}));
  std::vector<StreamedOutput> all;
  for (const auto& [name, n] : entries) all.push_back({*name, static_cast<int>(n[0]), n[1], n[2], n[3]});
  return all;
}

}  // namespace pinnace
