// Which processors a thread may run on, and which of them are of the slowest kind.
#pragma once

#if defined(__linux__)
#include <sched.h>
#endif

#include <span>
#include <string>

#include "base/status.h"

namespace pinnace {

class Thread;

/// A set of processors by the system's numbers. Where the system has no such sets (it is not Linux) all are unknown.
class Processors {
 public:
  Processors() = default;
  /// Those of the numbers that the system could have; no numbers are the unknown set.
  explicit Processors(std::span<const int> numbers);
  static Processors of_this_thread();
  /// kInvalidArgument: a number twice, or of a processor that this thread may not run on; kUnsupported: there are
  /// numbers, and this system has no such sets.
  static Status check(std::span<const int> numbers);
  /// Those that this thread may run on and that do the least in the same time, by the files that Linux has for each
  /// processor below `folder`: cpu_capacity, else the highest frequency. Unknown where all are alike or nothing says.
  static Processors slowest(const std::string& folder = "/sys/devices/system/cpu");

  /// False: no set, all processors will do.
  bool known() const { return count() > 0; }
  int count() const;
  bool operator==(const Processors& other) const;
  /// "0-3,6"; "any" if unknown.
  std::string text() const;

  void give_to(const Thread& thread) const;
  /// The thread that calls. False: the system refused, as where one was taken away meanwhile.
  bool give_to_this_thread() const;

 private:
#if defined(__linux__)
  cpu_set_t set_{};
#endif
};

/// The calling thread runs on `processors` while one lives, and then where it could before. Nothing if unknown.
class StaysOn {
 public:
  explicit StaysOn(const Processors& processors);
  ~StaysOn();
  StaysOn(const StaysOn&) = delete;
  StaysOn& operator=(const StaysOn&) = delete;

 private:
  Processors before_;  // unknown: nothing to give back
};

}  // namespace pinnace
