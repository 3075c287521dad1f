// Buffer by the aligned, non-throwing form of operator new.
#include "base/memory.h"

#include <new>

namespace pinnace {

Buffer::~Buffer() {
  ::operator delete[](data_, std::align_val_t(kAlignment));
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
  buffer.data_ = static_cast<std::byte*>(
      ::operator new[](aligned_size(bytes ? bytes : 1), std::align_val_t(kAlignment), std::nothrow));
  if (!buffer.data_) return out_of_memory(what, " needs ", bytes, " bytes, which the system does not give");
  buffer.size_ = bytes;
  return buffer;
}

}  // namespace pinnace
