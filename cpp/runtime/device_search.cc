// A thread, a state, and the list of those that are running for the process's end.
#include "runtime/device_search.h"

#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "base/cancel.h"
#include "base/exception_boundary.h"
#include "base/log.h"
#include "base/process.h"
#include "base/threads/exit_calls.h"
#include "base/threads/thread.h"

namespace pinnace {
namespace {

/// Before a search opens anything: processes that run once are gone by then, and pay nothing.
constexpr std::chrono::milliseconds kPatience{100}, kPause{2};
constexpr int kLongestExitSeconds = 5;

/// The search that this thread is; null on other threads.
constinit thread_local const DeviceSearch* this_search = nullptr;

void end_all_at_exit() {
  DeviceSearch::end_all(kLongestExitSeconds);
}

}  // namespace

constinit PerProcess<std::vector<DeviceSearch::Running>> DeviceSearch::running;

DeviceSearch::DeviceSearch(Work work, bool borrows) : work_(std::move(work)), borrows_(borrows), process_(::getpid()) {}
DeviceSearch::~DeviceSearch() = default;

DeviceSearch::Use::Use(std::shared_ptr<DeviceSearch> search) : search_(std::move(search)) {
  search_->users_.fetch_add(1);
}
DeviceSearch::Use::~Use() {
  if (search_->users_.fetch_sub(1) == 1) search_->leave();
}

bool DeviceSearch::here() const {
  return process_ == ::getpid();
}

void DeviceSearch::leave() {
  if (state_->load(std::memory_order_acquire) == State::kIdle) return;  // it may still begin, for others
  cancel_.cancel();
  if (!borrows_ || this_search == this) return;
  while (here() && state_->load(std::memory_order_acquire) == State::kRunning) std::this_thread::sleep_for(kPause);
}

void DeviceSearch::Use::begin() noexcept {
  State idle = State::kIdle;
  if (search_->state_->load(std::memory_order_relaxed) != idle || !search_->here()) return;
  if (!search_->state_->compare_exchange_strong(idle, State::kRunning)) return;
  const std::shared_ptr<std::atomic<State>> state = search_->state_;
  const auto forget = [state] { std::erase_if(*running.lock(), [&](const Running& r) { return r.state == state; }); };
  const Status started = exception_boundary([&]() -> Status {
    running.lock()->push_back({search_->process_, state, search_});
    call_at_exit(end_all_at_exit);
    auto thread = Thread::start([search = search_, state, forget]() mutable {
      const State end = search->run();
      search.reset();
      forget();
      state->store(end, std::memory_order_release);
    });
    PINNACE_TRY(thread.status());
    thread->detach();
    return {};
  });
  if (started.ok()) return;
  static_cast<void>(exception_boundary([&]() -> Status {  // without memory there is no entry either
    forget();
    return {};
  }));
  state->store(State::kGivenUp, std::memory_order_release);
  PINNACE_LOG_DEBUG("auto looks for no device: ", started.message());
}

DeviceSearch::State DeviceSearch::run() {
  this_search = this;
  const CancelScope scope({.cancel = &cancel_});
  const StopsBeforeLibraries stops;
  for (auto waited = kPause; waited < kPatience && !stopped(); waited += kPause) std::this_thread::sleep_for(kPause);
  auto found = exception_boundary([&]() -> Result<std::shared_ptr<const Prepared>> {
    PINNACE_TRY(check_stopped("the search for a device"));
    return work_();
  });
  work_ = nullptr;
  this_search = nullptr;
  if (found) {
    found_ = std::move(*found);
    return State::kEnded;
  }
  PINNACE_LOG_DEBUG("auto has found no device: ", found.status().message());
  return found.status().code() == Code::kCancelled ? State::kGivenUp : State::kEnded;
}

std::shared_ptr<const Prepared> DeviceSearch::found() const {
  if (state_->load(std::memory_order_acquire) != State::kEnded || !here()) return nullptr;
  return found_;
}

bool DeviceSearch::ended() const {
  return !here() || state_->load(std::memory_order_acquire) >= State::kEnded;
}

bool DeviceSearch::given_up() const {
  const State state = state_->load(std::memory_order_acquire);
  return !here() || state == State::kGivenUp || (state == State::kRunning && cancel_.cancelled());
}

void DeviceSearch::end_all(int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  const auto left = [] {
    const auto all = running.lock();
    std::erase_if(*all, [](const Running& r) { return r.process != ::getpid(); });
    for (const Running& r : *all) {
      if (const auto search = r.search.lock()) search->cancel_.cancel();
    }
    return !all->empty();
  };
  while (left() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kPause);
}

}  // namespace pinnace
