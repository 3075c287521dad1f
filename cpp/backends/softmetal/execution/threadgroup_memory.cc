// Variables of threadgroup memory, and races between their accesses.
#include "backends/softmetal/execution/threadgroup_memory.h"

#include <cstring>
#include <new>

namespace softmetal {
namespace {

// Two accesses of one element that nothing orders.
bool races(const ThreadgroupMemory::Access& a, const ThreadgroupMemory::Access& b) {
  if (a.invocation == b.invocation) return false;
  return a.simdgroup != b.simdgroup || a.simd_syncs == b.simd_syncs;
}

}  // namespace

bool ThreadgroupMemory::prepare(bool races) {
  if (!memory_) memory_.reset(new (std::align_val_t(64), std::nothrow) char[kLimit]);
  if (races && !cells_) cells_.reset(new (std::nothrow) Cell[kLimit]());
  if (!races) cells_.reset();
  if (epoch_ > UINT32_MAX / 2) {
    epoch_ = 1;
    if (cells_) memset(static_cast<void*>(cells_.get()), 0, sizeof(Cell) * kLimit);
  }
  clear();
  return memory_ && (cells_ || !races);
}

void ThreadgroupMemory::clear() {
  variables_.clear();
  used_ = 0;
  for (int16_t& i : by_key_) i = -1;
}

void* ThreadgroupMemory::variable(uint32_t key, uint32_t bytes, const char* name) {
  if (key >= 64) return nullptr;
  if (by_key_[key] >= 0) return memory_.get() + variables_[static_cast<size_t>(by_key_[key])].begin;
  const uint32_t begin = (used_ + 15) / 16 * 16;
  if (bytes > kLimit || begin > kLimit - bytes) return nullptr;
  used_ = begin + bytes;
  by_key_[key] = static_cast<int16_t>(variables_.size());
  variables_.push_back({name, begin, bytes});
  return memset(memory_.get() + begin, 0xff, bytes);
}

void ThreadgroupMemory::poison() {
  if (used_) memset(memory_.get(), 0xff, used_);
  barrier();
}

const ThreadgroupMemory::Variable* ThreadgroupMemory::find(const void* address) const {
  const char* at = static_cast<const char*>(address);
  if (at < memory_.get() || at >= memory_.get() + used_) return nullptr;
  const uint32_t offset = static_cast<uint32_t>(at - memory_.get());
  for (const Variable& v : variables_) {
    if (offset >= v.begin && offset < v.begin + v.bytes) return &v;
  }
  return nullptr;
}

bool ThreadgroupMemory::note(const void* address, Kind kind, const Access& by, Access* other, Kind* other_kind) {
  const char* at = static_cast<const char*>(address);
  if (!cells_ || at < memory_.get() || at >= memory_.get() + used_) return true;
  Cell& cell = cells_[static_cast<size_t>(at - memory_.get())];
  for (const Kind k : {kRead, kWrite, kAtomic}) {
    if (k == kind && k != kWrite) continue;
    for (uint32_t i = 0; cell.kinds[k].epoch == epoch_ && i < cell.kinds[k].count; ++i) {
      if (!races(cell.kinds[k].by[i], by)) continue;
      *other = cell.kinds[k].by[i];
      *other_kind = k;
      return false;
    }
  }
  auto& mine = cell.kinds[kind];
  if (mine.epoch != epoch_) mine.count = 0;
  mine.epoch = epoch_;
  for (uint32_t i = 0; i < mine.count; ++i) {
    if (mine.by[i].invocation == by.invocation) {
      mine.by[i] = by;
      return true;
    }
  }
  if (mine.count < 2) mine.by[mine.count++] = by;
  return true;
}

}  // namespace softmetal
