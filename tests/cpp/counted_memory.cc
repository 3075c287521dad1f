// The operators new and delete of the test program.
#include "cpp/counted_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "cpp/fault_harness.h"

namespace pinnace::testing {
namespace {
std::atomic<bool> counting{false};
std::atomic<size_t> allocations_made{0}, largest_block{0}, overdrawn_block{0}, refused_block{0}, limit{0};

// Sanitized, nothing is counted.
[[maybe_unused]] void raise_to(std::atomic<size_t>& most, size_t bytes) {
  size_t before = most.load(std::memory_order_relaxed);
  while (bytes > before && !most.compare_exchange_weak(before, bytes)) {
  }
}
}  // namespace

MemoryWatch::MemoryWatch(size_t limit_bytes) {
  allocations_made = largest_block = overdrawn_block = refused_block = 0;
  limit = limit_bytes;
  counting = true;
}
MemoryWatch::~MemoryWatch() {
  counting = false;
}
size_t MemoryWatch::allocations() const {
  return allocations_made;
}
size_t MemoryWatch::largest() const {
  return largest_block;
}
size_t MemoryWatch::overdrawn() const {
  return overdrawn_block;
}
size_t MemoryWatch::refused() const {
  return refused_block;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
}  // namespace pinnace::testing
#else
/// Null where `may_fail`, else std::bad_alloc.
static void* counted(size_t bytes, size_t alignment, bool may_fail, const void* caller) {
  bool given = !allocation_fails(caller);
  if (given && counting.load(std::memory_order_relaxed)) {
    ++allocations_made;
    if (bytes > limit && may_fail) {
      raise_to(refused_block, bytes);
      return nullptr;
    }
    raise_to(largest_block, bytes);
    if (bytes > limit) raise_to(overdrawn_block, bytes);
  }
  void* block = given ? plain_allocate(bytes, alignment, caller) : nullptr;
  if (!block && !may_fail) throw std::bad_alloc();
  return block;
}
}  // namespace pinnace::testing

#define CALLER __builtin_return_address(0)

void* operator new(size_t bytes) {
  return pinnace::testing::counted(bytes, 0, false, CALLER);
}
void* operator new[](size_t bytes) {
  return pinnace::testing::counted(bytes, 0, false, CALLER);
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return pinnace::testing::counted(bytes, 0, true, CALLER);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return pinnace::testing::counted(bytes, 0, true, CALLER);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return pinnace::testing::counted(bytes, static_cast<size_t>(alignment), false, CALLER);
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return pinnace::testing::counted(bytes, static_cast<size_t>(alignment), false, CALLER);
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return pinnace::testing::counted(bytes, static_cast<size_t>(alignment), true, CALLER);
}
void* operator new[](size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return pinnace::testing::counted(bytes, static_cast<size_t>(alignment), true, CALLER);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}
#endif
