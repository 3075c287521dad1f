// What the test program takes from operator new: counted, its largest block noted, and refused beyond a limit where the
// caller can bear it. Sanitizers have operators of their own; with them only the limit of cpp/guarded.cc's default
// options holds.
#pragma once

#include <cstddef>

namespace pinnace::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryIsCounted = false;
#else
inline constexpr bool kMemoryIsCounted = true;
#endif

/// Counts from construction to destruction, on all threads; one at a time. `limit_bytes`: larger blocks are not given
/// by the operator that may fail (Buffer's), and are noted as overdrawn() where the other one is asked, which may not
/// fail.
class MemoryWatch {
 public:
  explicit MemoryWatch(size_t limit_bytes = static_cast<size_t>(-1));
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;
  size_t allocations() const;
  size_t largest() const;
  size_t overdrawn() const;  ///< the largest block beyond the limit that was given after all; 0: none
  size_t refused() const;    ///< the largest that was not given; 0: none
};

}  // namespace pinnace::testing
