// A kit may come from anyone: the header, the index, names, and the tensors against the programs that take them.
#include "report/kit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

namespace pinnace::report {
namespace {

using Bytes = std::span<const std::byte>;

static_assert(std::endian::native == std::endian::little, "fields are little-endian");

constexpr std::string_view kMagic = "\x89PNK\r\n\x1a\n";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kHeader = 32, kEntry = 24, kAlignment = 64;
constexpr uint32_t kMostEntries = 65536, kLongestName = 255;

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? 0xedb88320U ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}

template <class T>
T load(Bytes bytes, uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Status corrupt(uint64_t offset, const std::string& what) {
  char hex[24];
  const auto [end, code] = std::to_chars(hex, hex + sizeof hex, offset, 16);
  Status status(Code::kCorruptFile, "kit at 0x" + std::string(hex, end) + ": " + what);
  return status.with_offset(static_cast<int64_t>(offset));
}

std::string text(uint64_t number) {
  return std::to_string(number);
}

struct Range {
  std::string name;
  uint64_t offset = 0;
  Bytes bytes;

  Status corrupt(uint64_t at, const std::string& what) const {
    return report::corrupt(offset + at, "range '" + name + "' " + what);
  }
};

/// Letters, digits and "_.-", in parts between single slashes: what a terminal, a page and a path can show.
bool good_name(std::string_view name) {
  char before = '/';
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && c != '_' && c != '.' && c != '-' && (c != '/' || before == '/')) return false;
    before = c;
  }
  return before != '/';
}

/// The index: every range inside the file, one behind the other, each name once, each checksum right.
Result<std::vector<Range>> read_index(Bytes file, uint32_t* checksum) {
  if (file.size() < kHeader + 8) {
    return corrupt(file.size(), "the file ends after " + text(file.size()) + " bytes, in its header");
  }
  if (std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) return corrupt(0, "this is no kit of pinnace");
  const auto version = load<uint32_t>(file, 8), count = load<uint32_t>(file, 12);
  const auto bytes = load<uint64_t>(file, 16), index_bytes = load<uint64_t>(file, 24);
  if (version != kVersion) {
    return Status(version > kVersion ? Code::kUnsupported : Code::kCorruptFile,
                  "kit: its version is " + text(version) + ", this library reads version " + text(kVersion));
  }
  if (bytes != file.size()) {
    return corrupt(16, "the file is said to have " + text(bytes) + " bytes and has " + text(file.size()));
  }
  if (index_bytes > file.size() - kHeader - 8) {
    return corrupt(24, "an index of " + text(index_bytes) + " bytes in a file of " + text(file.size()));
  }
  const uint64_t end = kHeader + index_bytes;
  *checksum = crc32(file.first(end));
  if (load<uint32_t>(file, end) != *checksum) return corrupt(end, "header and index do not have their checksum");
  if (count > kMostEntries) return corrupt(12, text(count) + " ranges, at most " + text(kMostEntries) + " are read");
  std::vector<Range> ranges;
  std::vector<std::string> names;
  uint64_t at = kHeader, free_from = end + 8;
  for (uint32_t i = 0; i < count; ++i) {
    if (end - at < kEntry) return corrupt(at, "the index ends in entry " + text(i) + " of " + text(count));
    const auto offset = load<uint64_t>(file, at), size = load<uint64_t>(file, at + 8);
    const auto sum = load<uint32_t>(file, at + 16), name_bytes = load<uint32_t>(file, at + 20);
    if (name_bytes == 0 || name_bytes > kLongestName || name_bytes > end - at - kEntry) {
      return corrupt(at + 20, "a name of " + text(name_bytes) + " bytes in entry " + text(i));
    }
    Range range;
    range.offset = offset;
    range.name.assign(reinterpret_cast<const char*>(file.data()) + at + kEntry, name_bytes);
    if (!good_name(range.name)) return corrupt(at + kEntry, "the name of entry " + text(i) + " is none of a range");
    const auto wrong = [&](const std::string& what) { return corrupt(at, "range '" + range.name + "' " + what); };
    if (offset % kAlignment) return wrong("begins at " + text(offset) + ", which is no multiple of 64");
    if (offset < free_from) {
      return wrong("begins at " + text(offset) + ", inside of what ends at " + text(free_from));
    }
    if (offset > file.size() || size > file.size() - offset) {
      return wrong("has " + text(size) + " bytes from " + text(offset) + " on, the file has " + text(file.size()));
    }
    range.bytes = file.subspan(offset, size);
    if (crc32(range.bytes) != sum) return range.corrupt(0, "does not have its checksum: the file is damaged");
    free_from = offset + size;
    names.push_back(range.name);
    ranges.push_back(std::move(range));
    at += std::min((kEntry + name_bytes + 7) / 8 * 8, end - at);
  }
  if (at != end) return corrupt(at, "the index has " + text(end - at) + " bytes behind its last entry");
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    return corrupt(kHeader, "there are two ranges '" + *twice + "'");
  }
  return ranges;
}

/// A range's name, as far as it was understood: "answers/NAME/program", "…/bounds", "…/STEP/in/INPUT".
struct Place {
  std::string program;
  std::string_view part;
  uint32_t step = 0, index = 0;
};

std::optional<uint32_t> number(std::string_view digits) {
  uint32_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool plain = digits.size() == 1 || (digits.size() <= 4 && !digits.starts_with('0'));
  if (code != std::errc() || end != digits.data() + digits.size() || !plain) return std::nullopt;
  return value;
}

std::optional<Place> place_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (size_t from = 0; from <= name.size();) {
    const size_t slash = std::min(name.find('/', from), name.size());
    parts.push_back(name.substr(from, slash - from));
    from = slash + 1;
  }
  if (parts.size() < 3 || (parts[0] != "answers" && parts[0] != "times")) return std::nullopt;
  Place place;
  place.program = std::string(parts[0]) + "/" + std::string(parts[1]);
  place.part = parts.back();
  if (parts.size() == 3 && (place.part == "program" || place.part == "bounds")) return place;
  if (parts.size() != 5) return std::nullopt;
  place.part = parts[3];
  const auto step = number(parts[2]), index = number(parts[4]);
  if (!step || !index || (place.part != "in" && place.part != "out")) return std::nullopt;
  place.step = *step;
  place.index = *index;
  return place;
}

/// uint32 dtype, uint32 rank, int64 sizes, elements. Every product is checked.
Result<pnc_tensor> read_tensor(const Range& range) {
  pnc_tensor tensor{};
  if (range.bytes.size() < 8) return range.corrupt(0, "is no tensor: it has " + text(range.bytes.size()) + " bytes");
  const auto dtype = load<uint32_t>(range.bytes, 0), rank = load<uint32_t>(range.bytes, 4);
  const int32_t bits = dtype <= PNC_U2 ? pnc_dtype_bits(static_cast<pnc_dtype>(dtype)) : 0;
  if (bits == 0) return range.corrupt(0, "has elements of type " + text(dtype) + ", which there is not");
  if (rank > PNC_MAX_RANK || range.bytes.size() < 8 + 8 * uint64_t{rank}) {
    return range.corrupt(4, "has rank " + text(rank) + " and " + text(range.bytes.size()) + " bytes");
  }
  tensor.dtype = static_cast<pnc_dtype>(dtype);
  tensor.rank = static_cast<int32_t>(rank);
  const uint64_t head = 8 + 8 * uint64_t{rank}, data = range.bytes.size() - head;
  uint64_t elements = 1;
  for (uint32_t d = 0; d < rank; ++d) {
    const auto size = load<int64_t>(range.bytes, 8 + 8 * uint64_t{d});
    if (size < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements)) {
      return range.corrupt(8 + 8 * uint64_t{d},
                           "has a size of " + std::to_string(size) + " in " + text(data) + " bytes");
    }
    tensor.shape[d] = size;
  }
  if (elements > data * 8 || (elements * static_cast<uint64_t>(bits) + 7) / 8 != data) {
    return range.corrupt(8, "has " + text(elements) + " elements of " + text(static_cast<uint64_t>(bits)) +
                                " bits in " + text(data) + " bytes");
  }
  tensor.bytes = data;
  tensor.data = const_cast<std::byte*>(range.bytes.data() + head);  // the C API has one type for inputs and outputs
  return tensor;
}

std::string shape_text(const int64_t* shape, int32_t rank) {
  std::string list = "[";
  for (int32_t d = 0; d < rank; ++d) list += (d ? "," : "") + (shape[d] < 0 ? "?" : std::to_string(shape[d]));
  return list + "]";
}

/// Against what the program declares: type, rank, and the sizes that no run fixes.
Status check_tensor(const Range& range, const pnc_tensor& tensor, const pnc_spec& spec) {
  bool fits = tensor.dtype == spec.dtype && tensor.rank == spec.rank;
  for (int32_t d = 0; fits && d < spec.rank; ++d) fits = spec.shape[d] < 0 || spec.shape[d] == tensor.shape[d];
  if (fits) return {};
  return range.corrupt(0, std::string("is ") + pnc_dtype_name(tensor.dtype) + shape_text(tensor.shape, tensor.rank) +
                              ", the program takes and gives " + pnc_dtype_name(spec.dtype) +
                              shape_text(spec.shape, spec.rank) + " there");
}

/// The ranges of one program while they are collected.
struct Parts {
  const Range* program = nullptr;
  const Range* bounds = nullptr;
  std::map<std::pair<uint32_t, uint32_t>, const Range*> in, out;  ///< by step and place
};

/// The tensors of one step in order; all of them, and no other.
Status read_step(const Range& program_range, const pnc_program* program, const Parts& parts, uint32_t step,
                 bool outputs, std::vector<pnc_tensor>* tensors) {
  const auto& ranges = outputs ? parts.out : parts.in;
  const auto at = [&](uint32_t index) {
    const auto found = ranges.find({step, index});
    return found == ranges.end() ? nullptr : found->second;
  };
  uint32_t count = 0;
  while (at(count)) ++count;
  const auto first = ranges.lower_bound({step, 0});
  if (first != ranges.end() && first->first.first == step && first->first.second != 0) {
    return first->second->corrupt(0, "has no neighbour 0");
  }
  const int32_t wanted = !program ? -1 : outputs ? pnc_program_output_count(program) : pnc_program_input_count(program);
  if (wanted >= 0 && count != static_cast<uint32_t>(wanted)) {
    return program_range.corrupt(0, "has " + std::to_string(wanted) + (outputs ? " outputs" : " inputs") + ", step " +
                                        text(step) + " has tensors for " + text(count));
  }
  for (uint32_t i = 0; i < count; ++i) {
    auto tensor = read_tensor(*at(i));
    if (!tensor) return tensor.status();
    if (program) {
      pnc_spec spec;
      const auto spec_of = outputs ? pnc_program_output : pnc_program_input;
      if (const pnc_status status = spec_of(program, static_cast<int32_t>(i), &spec); status != PNC_OK) {
        return {static_cast<Code>(status), pnc_error()};
      }
      if (Status status = check_tensor(*at(i), *tensor, spec); !status.ok()) return status;
    }
    tensors->push_back(*tensor);
  }
  return {};
}

Status read_program(const std::string& name, const Parts& parts, KitProgram* made) {
  made->timed = name.starts_with("times/");
  made->name = name.substr(name.find('/') + 1);
  const Range& range = *parts.program;
  pnc_program* program = nullptr;
  const pnc_status status = pnc_program_from_bytes(range.bytes.data(), range.bytes.size(), PNC_VERIFY_FULL, &program);
  made->program.reset(program);
  if (status != PNC_OK) {
    const auto offset = static_cast<uint64_t>(std::max<int64_t>(pnc_error_offset(), 0));
    if (status == PNC_CORRUPT_FILE) return range.corrupt(offset, std::string("is damaged: ") + pnc_error());
    if (status == PNC_OUT_OF_MEMORY || status == PNC_CANCELLED) return {static_cast<Code>(status), pnc_error()};
    made->refusal = Status(static_cast<Code>(status), pnc_error());
  }
  uint32_t steps = 0;
  for (const auto* ranges : {&parts.in, &parts.out}) {
    if (!ranges->empty()) steps = std::max(steps, ranges->rbegin()->first.first + 1);
  }
  steps = std::max(steps, 1U);  // a program may have no inputs
  if (made->timed && (steps != 1 || !parts.out.empty())) {
    return range.corrupt(0,
                         "is only timed, and has " + text(steps) + " steps and " + text(parts.out.size()) + " answers");
  }
  if (steps > parts.in.size() + parts.out.size() + 1) return range.corrupt(0, "has steps without tensors");
  for (uint32_t step = 0; step < steps; ++step) {
    KitStep& made_step = made->steps.emplace_back();
    if (Status s = read_step(range, program, parts, step, false, &made_step.inputs); !s.ok()) return s;
    if (made->timed) continue;
    if (Status s = read_step(range, program, parts, step, true, &made_step.outputs); !s.ok()) return s;
  }
  if (!parts.bounds) return range.corrupt(0, "has no bounds beside it");
  const Bytes bounds = parts.bounds->bytes;
  const uint64_t outputs = program ? static_cast<uint64_t>(pnc_program_output_count(program)) : bounds.size() / 8;
  if (bounds.size() / 8 != outputs || bounds.size() % 8) {
    return parts.bounds->corrupt(0, "has " + text(bounds.size()) + " bytes for " + text(outputs) + " outputs");
  }
  for (uint64_t i = 0; i < outputs; ++i) {
    const auto bound = load<double>(bounds, 8 * i);
    if (!(bound >= 0 && bound < 1)) return parts.bounds->corrupt(8 * i, "has a bound that is not in [0, 1)");
    made->bounds.push_back(bound);
  }
  return {};
}

}  // namespace

uint32_t crc32(Bytes bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t sum = ~0U;
  for (const std::byte b : bytes) sum = kTable[(sum ^ static_cast<uint32_t>(b)) & 0xff] ^ (sum >> 8);
  return ~sum;
}

Result<Kit> read_kit(Bytes bytes) {
  Kit kit;
  auto ranges = read_index(bytes, &kit.checksum);
  if (!ranges) return ranges.status();
  std::vector<std::string> order;
  std::map<std::string, Parts> programs;
  for (const Range& range : *ranges) {
    const auto place = place_of(range.name);
    if (!place) return range.corrupt(0, "has a name that this library does not know");
    if (!programs.contains(place->program)) order.push_back(place->program);
    Parts& parts = programs[place->program];
    if (place->part == "program") parts.program = &range;
    if (place->part == "bounds") parts.bounds = &range;
    if (place->part == "in") parts.in[{place->step, place->index}] = &range;
    if (place->part == "out") parts.out[{place->step, place->index}] = &range;
  }
  // Answers first, whatever their order in the file.
  for (const bool answers : {true, false}) {
    for (const std::string& name : order) {
      if (name.starts_with("answers/") != answers) continue;
      const Parts& parts = programs[name];
      if (!parts.program) return corrupt(kHeader, "there is no range '" + name + "/program'");
      KitProgram& made = kit.programs.emplace_back();
      if (Status status = read_program(name, parts, &made); !status.ok()) return status;
    }
  }
  return kit;
}

}  // namespace pinnace::report
