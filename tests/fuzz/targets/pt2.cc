// .pt2 archives. Three mutations of four take a stored archive apart, change one entry, its name, or which entries
// there are, and put it together with the checksums that belong to it; the fourth changes the file's own bytes.
#include <cstring>
#include <random>

#include "cpp/import/torch_fixture.h"
#include "fuzz/fuzzing.h"
#include "fuzz/text_mutator.h"

namespace pinnace {
namespace {

using torch_import::Entry;

template <class T>
T at(std::string_view file, size_t offset) {
  T value{};
  if (offset + sizeof value <= file.size()) std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

/// The entries of an archive as zip_of writes it, read by their own headers up to the directory.
std::vector<Entry> entries_of(std::string_view file) {
  constexpr size_t kHeader = 30;
  std::vector<Entry> entries;
  for (size_t offset = 0; at<uint32_t>(file, offset) == 0x04034b50;) {
    const size_t size = at<uint32_t>(file, offset + 18), name = at<uint16_t>(file, offset + 26),
                 extra = at<uint16_t>(file, offset + 28);
    const size_t begin = offset + kHeader + name + extra;
    if (begin > file.size() || size > file.size() - begin) break;
    entries.push_back({std::string(file.substr(offset + kHeader, name)), std::string(file.substr(begin, size))});
    offset = begin + size;
  }
  return entries;
}

std::string by_bytes(std::string bytes, size_t more) {
  const size_t size = bytes.size();
  bytes.resize(size + more);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
  return bytes;
}

void mutate(std::vector<Entry>& entries, size_t room, unsigned seed) {
  std::minstd_rand random(seed);
  const size_t chosen = random() % entries.size();
  Entry& entry = entries[chosen];
  const Entry& other = entries[random() % entries.size()];
  switch (random() % 16) {
    case 0:
      entry.name = by_bytes(entry.name, 8);
      break;
    case 1:
      std::swap(entry.name, entries[random() % entries.size()].name);
      break;
    case 2:
      entries.push_back(Entry(other));
      break;
    case 3:
      entries.erase(entries.begin() + static_cast<ptrdiff_t>(random() % entries.size()));
      break;
    case 4:
      entry.stated_size = random() % 3 == 0 ? static_cast<uint32_t>(random())
                                            : static_cast<uint32_t>(entry.bytes.size() + random() % 3 - 1);
      break;
    case 5:
      entry.own_name = other.name;
      break;
    case 6:
      entry.place_of = static_cast<int>(random() % (chosen + 1));
      break;
    case 7:
      entry.bytes = by_bytes(entry.bytes, 16);
      break;
    default:  // most of the work is in the JSON
      for (Entry& e : entries) {
        if (!e.name.ends_with(".json") || random() % 2) continue;
        e.bytes = fuzz::mutated_text(e.bytes, other.name.ends_with(".json") ? std::string_view(other.bytes) : "",
                                     e.bytes.size() + room, static_cast<unsigned>(random()));
        break;
      }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::InputFile file("model.pt2");
  if (!fuzz::is_taken_for("pt2", {data, size})) return 0;
  file.write({data, size});
  const auto model = Model::load(file.path());
  fuzz::judge(model, {data, size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::vector<Entry> entries = entries_of({reinterpret_cast<const char*>(data), size});
  if (seed % 4 == 0 || entries.empty()) return LLVMFuzzerMutate(data, size, max_size);
  mutate(entries, max_size - std::min(size, max_size), seed / 4);
  const std::string made = torch_import::zip_of(entries);
  if (made.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, made.data(), made.size());
  return made.size();
}

}  // namespace pinnace
