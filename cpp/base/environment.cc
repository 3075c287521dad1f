// Who may set variables: the kernel says whether the process has rights that its caller lacks.
#include "base/environment.h"

#include <atomic>
#include <cstdlib>

#if defined(__linux__)
#include <sys/auxv.h>
#else
#include <unistd.h>
#endif

namespace pinnace {
namespace {

std::atomic<bool> pretended{false};

bool ask_kernel() {
#if defined(__linux__)
  return ::getauxval(AT_SECURE) != 0;
#else
  return ::issetugid() != 0;
#endif
}

}  // namespace

bool has_foreign_environment() {
  static const bool foreign = ask_kernel();  // decided when the program was started
  return foreign || pretended.load(std::memory_order_relaxed);
}

void pretend_foreign_environment(bool pretend) {
  pretended.store(pretend, std::memory_order_relaxed);
}

const char* environment(const char* name) {
  return has_foreign_environment() ? nullptr : std::getenv(name);
}

}  // namespace pinnace
