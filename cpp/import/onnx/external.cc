// Mapped files by location, and pieces of them by place.
#include "import/onnx/external.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace pinnace::onnx {
namespace {

template <class... Parts>
Status corrupt(const char* rule, const Parts&... parts) {
  return Status(Code::kCorruptFile, str_cat(parts...)).with_rule(rule);
}

/// Bits of the last byte that belong to no element.
int spare_bits(const TensorType& type) {
  return static_cast<int>(type.bytes() * 8 - type.elements() * dtype_bits(type.dtype));
}

}  // namespace

/// Tensors may lie over one another, as tied weights of different shapes; more is a file that multiplies itself.
constexpr int64_t kMostUses = 2;

struct ExternalData::File {
  std::shared_ptr<const MappedBytes> mapped;
  int64_t used = 0;                                                 ///< bytes of all different pieces
  std::map<std::tuple<int64_t, int64_t, int>, ConstantPtr> pieces;  ///< by offset, length, and how they were cleaned
};

Result<External> external_of(const proto::TensorProto& t, const std::string& what) {
  External e;
  for (const auto& entry : t.external_data()) {
    if (entry.key() == "location") {
      e.location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      int64_t& number = entry.key() == "offset" ? e.offset : e.length;
      const std::string& text = entry.value();
      const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
      if (end.ec != std::errc() || end.ptr != text.data() + text.size() || number < 0) {
        return corrupt("O-15", what, ": external data has ", entry.key(), " '", text, "', not a number of bytes");
      }
    }
  }
  if (e.location.empty()) return corrupt("O-15", what, ": external data has no location");
  return e;
}

bool needs_cleaning(const TensorType& type, std::span<const std::byte> bytes) {
  if (bytes.empty()) return false;
  if (type.dtype == DType::kBool)
    return std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  const int spare = spare_bits(type);
  return spare > 0 && (bytes.back() & ~std::byte(0xff >> spare)) != std::byte{0};
}

void clean(const TensorType& type, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  if (type.dtype == DType::kBool) {  // any other bit pattern would be undefined behaviour when read as bool
    for (std::byte& b : bytes) b = std::byte{b != std::byte{0}};
  } else if (const int spare = spare_bits(type); spare > 0) {  // what a writer has left behind the last element
    bytes.back() = bytes.back() & std::byte(0xff >> spare);
  }
}

Result<ExternalData::File*> ExternalData::file_at(const std::string& location, const std::string& what) {
  if (const auto at = files_.find(location); at != files_.end()) return at->second.get();
  auto opened = folder_.open_beneath(location);
  if (!opened.ok()) {
    Status status = opened.status().with_prefix(str_cat(what, ": external data "));
    if (status.code() == Code::kCorruptFile) status.with_rule("O-14");
    return status;
  }
  auto file = std::make_shared<File>();
  PINNACE_ASSIGN(file->mapped, MappedBytes::of(*opened, location));
  return files_.emplace(location, std::move(file)).first->second.get();
}

Result<ConstantPtr> ExternalData::get(const External& where, const TensorType& type, const std::string& what) {
  PINNACE_ASSIGN(File* const file, file_at(where.location, what));
  const auto size = static_cast<int64_t>(file->mapped->bytes().size());
  const int64_t left = size - where.offset;
  const int64_t length = where.length < 0 ? left : where.length;
  if (left < 0 || length > left) {
    return corrupt("O-15", what, ": external data '", where.location, "' has ", size, " bytes, wanted are ",
                   where.length, " from ", where.offset);
  }
  if (length != type.bytes()) {
    return corrupt("O-12", what, " is ", to_string(type), ", which has ", type.bytes(),
                   " bytes, but its external data ", length);
  }
  const auto bytes = file->mapped->bytes().subspan(static_cast<size_t>(where.offset), static_cast<size_t>(length));
  const bool cleaned = needs_cleaning(type, bytes);
  const int how = !cleaned ? 0 : type.dtype == DType::kBool ? -1 : spare_bits(type);
  ConstantPtr& piece = file->pieces[{where.offset, length, how}];
  if (piece) return piece;
  if (length > kMostUses * size - file->used) {
    return corrupt("O-17", what, ": with it, tensors at different places of external data '", where.location,
                   "' take more than ", kMostUses, " times its ", size, " bytes");
  }
  file->used += length;
  if (!cleaned && reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment == 0) {
    piece = std::make_shared<const Constant>(file->mapped, bytes.data(), bytes.size());
    return piece;
  }
  PINNACE_ASSIGN(Buffer copy, Buffer::allocate(bytes.size(), what));
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  if (cleaned) clean(type, {copy.data(), copy.size()});
  piece = Constant::of(std::move(copy));
  return piece;
}

ConstantPtr ExternalData::read_before(const proto::TensorProto* tensor) const {
  const auto at = read_.find(tensor);
  return at == read_.end() ? nullptr : at->second.lock();
}

}  // namespace pinnace::onnx
