// Buffer: owned bytes whose size comes from a file, a shape or a user. Failure to allocate is a Status, never an abort.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"

namespace pinnace {

/// Every tensor starts at a multiple of this many bytes: a cache line and the widest vector register.
inline constexpr size_t kAlignment = 64;

/// `bytes` rounded up to a multiple of kAlignment. The caller knows that it does not overflow.
constexpr size_t aligned_size(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Owned, 64-byte aligned bytes; moves, does not copy.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  /// Uninitialised bytes; `what` names them in the kOutOfMemory sentence. Zero bytes give a valid, non-null data().
  static Result<Buffer> allocate(size_t bytes, std::string_view what);

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// Scratch of `count` elements of a trivial type for reference code.
template <class T>
class Scratch {
 public:
  static Result<Scratch> allocate(int64_t count, std::string_view what) {
    if (count < 0 || static_cast<uint64_t>(count) > SIZE_MAX / 2 / sizeof(T)) {
      return out_of_memory(what, " needs ", count, " elements of ", sizeof(T), " bytes");
    }
    PINNACE_ASSIGN(Buffer buffer, Buffer::allocate(static_cast<size_t>(count) * sizeof(T), what));
    return Scratch(std::move(buffer), count);
  }
  T* data() { return reinterpret_cast<T*>(buffer_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(buffer_.data()); }
  T& operator[](int64_t i) { return data()[i]; }
  std::span<T> span() { return {data(), static_cast<size_t>(count_)}; }

 private:
  Scratch(Buffer buffer, int64_t count) : buffer_(std::move(buffer)), count_(count) {}
  Buffer buffer_;
  int64_t count_;
};

}  // namespace pinnace
