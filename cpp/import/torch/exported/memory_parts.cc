// MemoryParts: an exported program that was never in a file.
#include <cstring>

#include "base/hash.h"
#include "import/torch/exported/parts.h"

namespace pinnace::torch_import {

Result<MemoryParts> MemoryParts::of(const TorchProgram& program) {
  MemoryParts parts;
  for (const TorchPart& part : program.parts) {
    if (!safe_name(part.name)) return invalid("a part is named '", part.name, "', not a relative path");
    if (!parts.parts_.emplace(part.name, &part).second) return invalid("part '", part.name, "' appears twice");
    parts.bytes_ += part.bytes.size();
  }
  return parts;
}

std::vector<std::string> MemoryParts::names() const {
  std::vector<std::string> all;
  for (const auto& [name, part] : parts_) all.push_back(name);
  return all;
}

Result<Buffer> MemoryParts::read(std::string_view name, size_t padding) const {
  const auto at = parts_.find(name);
  if (at == parts_.end()) return invalid("there is no part '", name, "'");
  const std::span<const std::byte> from = at->second->bytes;
  PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(from.size() + padding, str_cat("part '", name, "'")));
  if (!from.empty()) std::memcpy(bytes.data(), from.data(), from.size());
  std::memset(bytes.data() + from.size(), 0, padding);
  return bytes;
}

Result<ConstantPtr> MemoryParts::storage(std::string_view name) {
  const auto at = parts_.find(name);
  if (at == parts_.end()) return invalid("there is no part '", name, "'");
  const TorchPart& part = *at->second;
  PINNACE_ASSIGN(const uint64_t hash, hash_unless_stopped(part.bytes, "the weights"));
  lent_.push_back({part.name, part.bytes, part.owner, hash});
  return std::make_shared<const Constant>(part.owner, part.bytes.data(), part.bytes.size());
}

}  // namespace pinnace::torch_import
