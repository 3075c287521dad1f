// Running a session against a deadline: what is left of the time is the run's timeout.
#include "nnapi_host/deadline.h"

#include <algorithm>

namespace pinnace::nnapi_host {

Deadline::Deadline(uint64_t nanoseconds) {
  constexpr uint64_t kForEver = uint64_t(1) << 62;
  if (nanoseconds > 0 && nanoseconds < kForEver) {
    moment_ = Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(nanoseconds));
  }
}

std::chrono::nanoseconds Deadline::left() const {
  if (!moment_) return std::chrono::nanoseconds(0);
  return std::max<std::chrono::nanoseconds>(*moment_ - Clock::now(), std::chrono::nanoseconds(1));
}

Deadline Deadline::earlier(const Deadline& a, const Deadline& b) {
  if (!a.moment_ || !b.moment_) return a.moment_ ? a : b;
  return *a.moment_ < *b.moment_ ? a : b;
}

Status run_until(const Deadline& deadline, Session& session, std::span<const Tensor> inputs,
                 std::span<const Tensor> outputs) {
  if (!deadline.exists()) return session.run(inputs, outputs);
  if (deadline.passed()) return Status(Code::kCancelled, "the deadline had passed before the run began");
  return session.run(inputs, outputs, {}, {.timeout = deadline.left()});
}

}  // namespace pinnace::nnapi_host
