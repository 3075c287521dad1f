// Running a session against a deadline: a watch on the clock cancels the run.
#include "nnapi_host/deadline.h"

#include <condition_variable>
#include <mutex>

#include "base/thread.h"

namespace pinnace::nnapi_host {

Deadline::Deadline(uint64_t nanoseconds) {
  constexpr uint64_t kForEver = uint64_t(1) << 62;
  if (nanoseconds > 0 && nanoseconds < kForEver) {
    moment_ = Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(nanoseconds));
  }
}

Deadline Deadline::earlier(const Deadline& a, const Deadline& b) {
  if (!a.moment_ || !b.moment_) return a.moment_ ? a : b;
  return *a.moment_ < *b.moment_ ? a : b;
}

Status run_until(const Deadline& deadline, Session& session, std::span<const Tensor> inputs,
                 std::span<const Tensor> outputs) {
  if (!deadline.exists()) return session.run(inputs, outputs);
  if (deadline.passed()) return Status(Code::kCancelled, "the deadline had passed before the run began");
  Result<Run> run = session.submit(inputs, outputs);
  if (!run.ok()) return run.status();
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  auto watch = Thread::start([&] {
    std::unique_lock lock(mutex);
    if (!changed.wait_until(lock, *deadline.moment_, [&] { return ended; })) run->cancel();
  });
  if (!watch.ok()) run->cancel();  // nobody would
  Status status = run->wait();
  if (!watch.ok()) return watch.status();
  {
    std::lock_guard lock(mutex);
    ended = true;
  }
  changed.notify_one();
  watch->join();
  return status;
}

}  // namespace pinnace::nnapi_host
