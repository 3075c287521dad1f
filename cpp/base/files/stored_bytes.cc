// Hash on first use; pages by madvise.
#include "base/files/stored_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"

namespace pinnace {

StoredBytes::StoredBytes(std::shared_ptr<const StoredFile> file, std::span<const std::byte> bytes, uint64_t hash,
                         std::string_view what, std::string_view rule)
    : file_(std::move(file)), bytes_(bytes), hash_(hash), what_(what), rule_(rule), state_(State::kUnknown) {}

StoredBytes::StoredBytes(std::shared_ptr<const StoredFile> file, std::span<const std::byte> bytes)
    : file_(std::move(file)), bytes_(bytes), state_(State::kGood) {}

Status StoredBytes::check() const {
  State state = state_.load(std::memory_order_relaxed);
  if (state == State::kUnknown) {
    PINNACE_ASSIGN(const uint64_t found, hash_unless_stopped(bytes_, what_));
    state = found == hash_ ? State::kGood : State::kDamaged;
    state_.store(state, std::memory_order_relaxed);
  }
  if (state == State::kGood) return {};
  Status status(Code::kCorruptFile,
                str_cat(file_->name, " at ", hex(offset()), ": the ", bytes_.size(), " bytes of ", what_,
                        " do not have the hash that is recorded, ", hex(hash_), " (rule ", rule_, ")"));
  return status.with_offset(static_cast<int64_t>(offset())).with_rule(std::string(rule_));
}

void StoredBytes::drop_pages() const {
  if (file_->descriptor < 0 || bytes_.empty()) return;
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes_.data());
  const uintptr_t first = (begin + page - 1) / page * page, last = (begin + bytes_.size()) / page * page;
  // A wish: where it is not granted the pages stay.
  if (first < last) ::madvise(const_cast<std::byte*>(bytes_.data()) + (first - begin), last - first, MADV_DONTNEED);
}

}  // namespace pinnace
