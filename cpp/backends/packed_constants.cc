// Finding constants among what is packed or stored, and packing what is not there.
#include "backends/packed_constants.h"

#include <algorithm>
#include <cassert>

#include "base/files/mapped_file.h"

namespace pinnace {

std::string numbered(int32_t index) {
  std::string number = str_cat(index);
  if (number.size() < 6) number.insert(0, 6 - number.size(), '0');
  return number;
}

Result<const std::byte*> PackedConstants::get(const std::string& target, const std::string& key, size_t bytes,
                                              const std::function<bool(const std::byte*)>& valid,
                                              const std::function<Result<Buffer>()>& make) {
  const WorkLock lock(mutex_, kWork);
  PINNACE_TRY(lock.status());
  if (const auto found = find(target, key, bytes)) {
    if (found->stored) PINNACE_TRY(found->stored->check());
    if (valid(found->bytes.data())) return found->bytes.data();
  }
  PINNACE_ASSIGN(Buffer made, make());
  assert(made.size() >= bytes);
  buffers_.push_back(std::move(made));
  add_made_bytes(buffers_.back().size());
  entries_.insert_or_assign({target, key}, Held{{buffers_.back().data(), bytes}, nullptr, false, {}});
  return buffers_.back().data();
}

Result<std::vector<PackedConstants::Packed>> PackedConstants::get_all(
    std::span<const Request> requests, ThreadPool& pool, const std::function<bool(size_t, const std::byte*)>& valid,
    const std::function<Status(size_t, std::byte*)>& fill) {
  const WorkLock lock(mutex_, kWork);
  PINNACE_TRY(lock.status());
  std::vector<Packed> all(requests.size());
  std::vector<Status> done(requests.size());
  const auto for_each = [&](const std::vector<size_t>& indices, auto&& f) -> Status {
    pool.run(static_cast<int64_t>(indices.size()), available_processors(),
             [&](int64_t k) { f(static_cast<size_t>(k), indices[static_cast<size_t>(k)]); });
    for (const Status& status : done) PINNACE_TRY(status);
    return {};
  };
  std::erase_if(entries_, [](const auto& entry) { return entry.second.of_sizes && entry.second.table.expired(); });
  std::vector<size_t> stored, missing, offsets;
  std::vector<const StoredBytes*> sources(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    auto found = find(requests[i].target, requests[i].key, requests[i].bytes);
    if (!found) continue;
    sources[i] = found->stored.get();
    all[i] = {found->bytes.data(), sources[i] != nullptr, std::move(found->owner)};
    if (sources[i]) stored.push_back(i);
  }
  if (!stored.empty()) {  // payloads of one target follow each other
    const std::byte *first = all[stored[0]].data, *last = first;
    for (size_t i : stored) {
      first = std::min(first, all[i].data);
      last = std::max(last, all[i].data + requests[i].bytes);
    }
    prefer_large_pages({first, last});
  }
  PINNACE_TRY(for_each(stored, [&](size_t, size_t i) {
    done[i] = sources[i]->check();
    if (done[i].ok() && !valid(i, all[i].data)) all[i].data = nullptr;
  }));
  size_t totals[2] = {};  // of what stays, and of what is made for these sizes
  for (size_t i = 0; i < requests.size(); ++i) {
    if (all[i].data) continue;
    size_t& total = totals[requests[i].of_sizes];
    missing.push_back(i);
    offsets.push_back(total);
    total += aligned_size(requests[i].bytes);
  }
  if (missing.empty()) return all;
  Buffer made[2];
  for (int of_sizes = 0; of_sizes < 2; ++of_sizes) {
    if (totals[of_sizes] == 0) continue;
    PINNACE_ASSIGN(made[of_sizes], Buffer::allocate(totals[of_sizes], "packed weights"));
  }
  PINNACE_TRY(for_each(missing, [&](size_t m, size_t i) {
    all[i] = {made[requests[i].of_sizes].data() + offsets[m], false, nullptr};
    done[i] = fill(i, made[requests[i].of_sizes].data() + offsets[m]);
  }));
  // Memory has its owner before anything refers to it.
  std::shared_ptr<const Table> table;
  if (totals[0] > 0) {
    buffers_.push_back(std::move(made[0]));
    add_made_bytes(buffers_.back().size());
  }
  if (totals[1] > 0) {
    add_made_bytes(made[1].size());
    table = std::make_shared<const Table>(*this, std::move(made[1]));
  }
  for (size_t i : missing) {
    if (requests[i].of_sizes) all[i].owner = table;
    entries_.insert_or_assign({requests[i].target, requests[i].key},
                              Held{{all[i].data, requests[i].bytes},
                                   nullptr,
                                   requests[i].of_sizes,
                                   requests[i].of_sizes ? table : std::shared_ptr<const Table>()});
  }
  return all;
}

void PackedConstants::add_stored(const Entry& entry) {
  entries_.insert_or_assign(std::make_pair(entry.target, entry.key), Held{entry.bytes, entry.stored, false, {}});
  if (stored_targets_.empty() || stored_targets_.back() != entry.target) stored_targets_.push_back(entry.target);
}

Result<std::shared_ptr<const StoredBytes>> PackedConstants::stored(const std::string& target, const std::string& key,
                                                                   size_t bytes) const {
  const WorkLock lock(mutex_, kWork);
  PINNACE_TRY(lock.status());
  const auto found = entries_.find({target, key});
  const bool there = found != entries_.end() && found->second.bytes.size() == bytes;
  return there ? found->second.stored : std::shared_ptr<const StoredBytes>();
}

Result<std::vector<PackedConstants::Entry>> PackedConstants::storable() const {
  const WorkLock lock(mutex_, kWork);
  PINNACE_TRY(lock.status());
  std::vector<Entry> all;
  for (const auto& [name, held] : entries_) {
    auto owner = held.table.lock();
    if (name.first.empty() || (held.of_sizes && !owner)) continue;
    all.push_back({name.first, name.second, held.bytes, held.stored, std::move(owner)});
  }
  return all;
}

std::optional<PackedConstants::Entry> PackedConstants::find(const std::string& target, const std::string& key,
                                                            size_t bytes) const {
  const auto of = [&](const std::string& name) -> std::optional<Entry> {
    const auto found = entries_.find({name, key});
    if (found == entries_.end() || found->second.bytes.size() != bytes) return std::nullopt;
    const Held& held = found->second;
    auto owner = held.table.lock();
    if (held.of_sizes && !owner) return std::nullopt;
    return Entry{name, key, held.bytes, held.stored, std::move(owner)};
  };
  auto found = of(target);
  if (found || target.empty()) return found;
  const std::string_view backend = std::string_view(target).substr(0, target.find(':') + 1);
  for (const std::string& other : stored_targets_) {
    if (!other.starts_with(backend)) continue;
    if (found = of(other); found) return found;
  }
  return std::nullopt;
}

}  // namespace pinnace
