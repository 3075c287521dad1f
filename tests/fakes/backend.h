// A back end that exists for tests of what lies above back ends: partition, boundaries, payloads, workspace, strict
// mode, loss of the device. It computes in plain loops, in a layout of its own.
#pragma once

#include <atomic>

#include "backends/backend.h"

namespace pinnace::fakes {

/// Takes float32 conv (2-D, one group, constant weights), add (equal shapes) and relu of rank 4, each with at most
/// max_channels channels (rule K-2). Values inside a segment are [N, H, W, C]; weights are packed [taps, C, M] and
/// stored as payloads of target "fake".
class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(std::string name = "fake") : name_(std::move(name)) {}

  int64_t max_channels = 16;
  /// Fails the run with this number (1 is the first) and this many in all as a lost device does; 0: never.
  std::atomic<int> lost_from_run{0}, lost_runs{1 << 30};
  bool opens_anew = false;  ///< what reopens() answers
  /// Fails compilation, as a failed self-check does.
  std::atomic<bool> fails_self_check{false};
  std::string missing;  ///< a reason for unavailable()
  /// Not taken by "auto" unasked but measured, as a device of this name; empty: why not is said.
  bool is_measured = false;
  std::string measured_as = "fake 1";
  /// Runs do nothing, sooner than any processor could do the work; or they take so long more, or end with an error.
  std::atomic<bool> idle{false}, fails{false};
  std::atomic<int> extra_ms{0};
  /// Keeps states on its device, in memory that is lost with it unless the session wants it to survive.
  bool keeps_states = false;
  std::atomic<bool> states_are_gone{false};
  mutable std::atomic<int> states_refused{0};  ///< so many times a state cannot be had for lack of memory

  /// What happened so far.
  mutable std::atomic<int> asked{0}, compiled{0}, runs{0}, nodes_run{0}, packed{0}, states_written{0}, states_read{0};

  std::string_view name() const override { return name_; }
  std::string unavailable(const TargetSpec&) const override { return missing; }
  std::string description() const override { return "a back end for tests"; }
  bool automatic() const override { return !is_measured; }
  bool measured() const override { return is_measured; }
  Result<std::string> signs_of_device() const override {
    if (!missing.empty()) return unsupported(missing);
    return measured_as.empty() ? std::string("fake") : measured_as;
  }
  Result<std::string> measured_device(const TargetSpec&) const override {
    ++asked;
    if (measured_as.empty()) return unsupported("it is this processor");
    return measured_as;
  }
  bool reopens() const override { return opens_anew; }
  Verdict supports(const NodeView& node, const TargetSpec& target) const override;
  Result<std::unique_ptr<Executable>> compile(const Segment& segment, const TargetSpec& target) const override;
  bool stores_payloads(const TargetSpec&) const override { return true; }

 private:
  std::string name_;
};

}  // namespace pinnace::fakes
