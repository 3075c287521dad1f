// Counts what is allocated anywhere in the program, its libraries and threads included: malloc() is where all of it
// ends, operator new too. For the GNU C library, which has its own under a second name; elsewhere nothing is counted.
#include <atomic>
#include <cstddef>
#include <cstdlib>

#if __has_include(<features.h>)
#include <features.h>
#endif

static std::atomic<size_t> count{0};

size_t allocations() {
  return count;
}

bool allocations_are_counted() {
#if defined(__GLIBC__)
  return true;
#else
  return false;
#endif
}

#if defined(__GLIBC__)
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t items, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  ++count;
  return __libc_malloc(bytes);
}
void* calloc(size_t items, size_t bytes) {
  ++count;
  return __libc_calloc(items, bytes);
}
void* realloc(void* block, size_t bytes) {
  ++count;
  return __libc_realloc(block, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  ++count;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** to, size_t alignment, size_t bytes) {
  ++count;
  *to = __libc_memalign(alignment, bytes);
  return *to ? 0 : 12;  // ENOMEM
}
}
#endif
