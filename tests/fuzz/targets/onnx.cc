// ONNX models. Most mutations take the protobuf message apart by its wire format alone, without a schema, change the
// tree of its fields, and write it again with the lengths that belong to it. Beside the model lies weights.bin, 64
// bytes that external data may name.
#include <cstring>
#include <random>

#include "fuzz/fuzzing.h"

namespace pinnace {
namespace {

using Random = std::minstd_rand;

/// One field: of type 2 a tree of fields if its bytes can be read as such, else bytes.
struct Field {
  uint64_t key = 0;  ///< number << 3 | type
  uint64_t number = 0;
  std::string bytes;
  std::vector<Field> fields;
  bool nested = false;
};

constexpr int kDeepest = 24;

bool read_varint(std::string_view& from, uint64_t& to) {
  to = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(from[0]);
    from.remove_prefix(1);
    to |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

void write_varint(std::string& to, uint64_t n) {
  for (; n >= 0x80; n >>= 7) to.push_back(static_cast<char>(n | 0x80));
  to.push_back(static_cast<char>(n));
}

bool read_fields(std::string_view from, std::vector<Field>& to, int depth) {
  while (!from.empty()) {
    Field field;
    if (!read_varint(from, field.key) || field.key >> 3 == 0 || field.key >> 3 > 1000) return false;
    switch (field.key & 7) {
      case 0:
        if (!read_varint(from, field.number)) return false;
        break;
      case 1:
      case 5: {
        const size_t size = (field.key & 7) == 1 ? 8 : 4;
        if (from.size() < size) return false;
        field.bytes = from.substr(0, size);
        from.remove_prefix(size);
        break;
      }
      case 2: {
        uint64_t size = 0;
        if (!read_varint(from, size) || size > from.size()) return false;
        const std::string_view inside = from.substr(0, size);
        field.nested = depth < kDeepest && size > 1 && read_fields(inside, field.fields, depth + 1);
        if (!field.nested) field.fields.clear(), field.bytes = inside;
        from.remove_prefix(size);
        break;
      }
      default:
        return false;
    }
    to.push_back(std::move(field));
  }
  return true;
}

std::string written(const std::vector<Field>& fields) {
  std::string made;
  for (const Field& field : fields) {
    write_varint(made, field.key);
    if ((field.key & 7) == 0) {
      write_varint(made, field.number);
      continue;
    }
    const std::string bytes = field.nested ? written(field.fields) : field.bytes;
    if ((field.key & 7) == 2) write_varint(made, bytes.size());
    made += bytes;
  }
  return made;
}

void collect(std::vector<Field>& fields, std::vector<std::vector<Field>*>& lists) {
  if (!fields.empty()) lists.push_back(&fields);
  for (Field& field : fields) collect(field.fields, lists);
}

uint64_t other_number(uint64_t old, Random& random) {
  constexpr uint64_t kNumbers[] = {0,
                                   1,
                                   2,
                                   3,
                                   4,
                                   7,
                                   8,
                                   16,
                                   17,
                                   64,
                                   127,
                                   128,
                                   255,
                                   256,
                                   1u << 16,
                                   1u << 31,
                                   1ull << 32,
                                   uint64_t(INT64_MAX),
                                   uint64_t(INT64_MIN),
                                   UINT64_MAX,
                                   UINT64_MAX - 1};
  switch (random() % 4) {
    case 0:
      return old + 1;
    case 1:
      return old - 1;
    case 2:
      return random() % 32;
    default:
      return kNumbers[random() % std::size(kNumbers)];
  }
}

void mutate(std::vector<Field>& root, const std::vector<Field>& other, Random& random) {
  std::vector<std::vector<Field>*> lists, sources;
  collect(root, lists);
  if (lists.empty()) return;
  std::vector<Field>& list = *lists[random() % lists.size()];
  const size_t i = random() % list.size();
  std::vector<Field> donor = other.empty() ? root : other;
  collect(donor, sources);
  const std::vector<Field>& source = *sources[random() % sources.size()];
  const auto place = [&] { return list.begin() + static_cast<ptrdiff_t>(random() % (list.size() + 1)); };
  switch (random() % 12) {
    case 0:
      list.erase(list.begin() + static_cast<ptrdiff_t>(i));
      break;
    case 1:
      list.insert(place(), Field(list[i]));
      break;
    case 2:
      list.insert(place(), source[random() % source.size()]);
      break;
    case 3:
      std::swap(list[i], list[random() % list.size()]);
      break;
    case 4:
    case 5: {  // the contents of another field of the same kind, wherever it stands
      for (int tries = 0; tries < 20; ++tries) {
        const std::vector<Field>& from = *sources[random() % sources.size()];
        const Field& found = from[random() % from.size()];
        if (found.key != list[i].key) continue;
        list[i] = Field(found);
        break;
      }
      break;
    }
    case 6:
      list[i].key = (list[i].key & 7) | uint64_t(1 + random() % 26) << 3;
      break;
    default: {  // a number or bytes
      Field& field = list[i];
      if ((field.key & 7) == 0) {
        field.number = other_number(field.number, random);
      } else if (!field.nested) {
        const size_t size = field.bytes.size();
        const bool fixed = (field.key & 7) != 2;
        field.bytes.resize(fixed ? size : size + 8);
        const size_t now = LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(field.bytes.data()), size, field.bytes.size());
        field.bytes.resize(fixed ? size : now);
      } else {  // a packed list or a string looks like fields, by chance
        std::string bytes = written(field.fields);
        if (bytes.size() > 24) return mutate(field.fields, other, random);
        const size_t size = bytes.size();
        bytes.resize(size + 8);
        bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
        field.bytes = bytes, field.nested = false, field.fields.clear();
      }
    }
  }
}

size_t change(std::string_view text, std::string_view other, uint8_t* out, size_t max_size, unsigned seed) {
  Random random(seed);
  std::vector<Field> root, donor;
  if (!read_fields(text, root, 0)) return 0;
  if (!read_fields(other, donor, 0)) donor.clear();
  for (unsigned times = 1 + random() % 3; times > 0; --times) mutate(root, donor, random);
  const std::string made = written(root);
  if (made.size() > max_size) return 0;
  std::memcpy(out, made.data(), made.size());
  return made.size();
}

std::string_view view(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::InputFile file("model.onnx"), weights("weights.bin");
  static const bool written = (weights.write(std::string(64, '\1')), true);
  if (!written || !fuzz::is_taken_for("onnx", {data, size})) return 0;
  file.write({data, size});
  const auto model = Model::load(file.path());
  fuzz::judge(model, {data, size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const std::string copy(view(data, size));
  const size_t made = seed % 8 == 0 ? 0 : change(copy, {}, data, max_size, seed / 8);
  return made > 0 ? made : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  return change(view(a, a_size), view(b, b_size), out, max_size, seed);
}

}  // namespace pinnace
