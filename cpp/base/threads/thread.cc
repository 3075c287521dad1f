// Threads by pthread_create, and the registers that hold how floats are computed.
#include "base/threads/thread.h"

#include <unistd.h>

#include <cassert>
#include <cstring>
#include <memory>
#include <utility>

#include "base/exception_boundary.h"

namespace pinnace {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kDefault = 0x1f80;  // MXCSR: round to nearest, no flush to zero, all exceptions masked
uint64_t float_control() {
  return __builtin_ia32_stmxcsr();
}
void set_float_control(uint64_t control) {
  __builtin_ia32_ldmxcsr(static_cast<uint32_t>(control));
}
#elif defined(__aarch64__)
constexpr uint64_t kDefault = 0;  // FPCR
uint64_t float_control() {
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
void set_float_control(uint64_t control) {
  asm volatile("msr fpcr, %0" : : "r"(control) : "memory");
}
#else
constexpr uint64_t kDefault = 0;
uint64_t float_control() {
  return 0;
}
void set_float_control(uint64_t) {}
#endif

/// A body must not throw, for there is nobody above it: whoever starts a thread puts exception_boundary into its body
/// and passes on what comes out.
void* run_body(void* given) noexcept {
  const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(given));
  const DefaultFloats floats;
  (*body)();
  return nullptr;
}

}  // namespace

DefaultFloats::DefaultFloats() : before_(float_control()) {
  if (before_ != kDefault) set_float_control(kDefault);
}
DefaultFloats::~DefaultFloats() {
  if (before_ != kDefault) set_float_control(before_);
}

Thread::Thread(Thread&& other) noexcept
    : handle_(other.handle_), process_(other.process_), joinable_(std::exchange(other.joinable_, false)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  assert(!joinable_);
  handle_ = other.handle_;
  process_ = other.process_;
  joinable_ = std::exchange(other.joinable_, false);
  return *this;
}

Thread::~Thread() {
  assert(!joinable_);
}

Result<Thread> Thread::start(std::function<void()> body) {
  return exception_boundary([&]() -> Result<Thread> {
    auto given = std::make_unique<std::function<void()>>(std::move(body));
    Thread thread;
    if (const int problem = pthread_create(&thread.handle_, nullptr, run_body, given.get())) {
      return out_of_memory("a thread cannot be started: ", std::strerror(problem));
    }
    (void)given.release();  // NOLINT(bugprone-unused-return-value): the thread's now
    thread.process_ = ::getpid();
    thread.joinable_ = true;
    return thread;
  });
}

void Thread::join() {
  assert(joinable_);
  if (process_ == ::getpid()) pthread_join(handle_, nullptr);
  joinable_ = false;
}

void Thread::detach() {
  assert(joinable_);
  if (process_ == ::getpid()) pthread_detach(handle_);
  joinable_ = false;
}

}  // namespace pinnace
