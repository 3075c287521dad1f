// Deadlines: the moment by which a compilation or computation is to have ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include <pinnace/session.h>

namespace pinnace::nnapi_host {

class Deadline {
 public:
  Deadline() = default;  ///< none
  /// `nanoseconds` from now; 0, and more than centuries, are none.
  explicit Deadline(uint64_t nanoseconds);

  bool exists() const { return moment_.has_value(); }
  /// At least 1 ns, for timeouts; 0 where there is none.
  std::chrono::nanoseconds left() const;
  bool passed() const { return moment_ && Clock::now() >= *moment_; }
  static Deadline earlier(const Deadline& a, const Deadline& b);

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> moment_;
};

/// Session::run, cancelled when the deadline passes: kCancelled then.
Status run_until(const Deadline& deadline, Session& session, std::span<const Tensor> inputs,
                 std::span<const Tensor> outputs);

}  // namespace pinnace::nnapi_host
