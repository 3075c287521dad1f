// What "auto" measured, remembered for the process and in files for the next ones.
#pragma once

#include <map>
#include <string>

#include "base/process.h"
#include "base/status.h"

namespace pinnace {

/// The best run; not finished: none was, within this time.
struct Timing {
  int64_t us = 0;
  bool finished = false;
};

/// Of one model on one device and without it.
struct MeasuredTimes {
  Timing device, rest;
  std::string passed_over;  ///< why nothing was timed; empty: both were
  std::string driver;       ///< what was timed, as Backend::measured_device says
  bool device_is_faster() const {
    return passed_over.empty() && device.finished && (!rest.finished || device.us < rest.us);
  }
};

/// By text that names all that they depend on, in one line. Files lie in the folder PINNACE_GPU_CACHE or else in the
/// user's cache folder, are replaced as a whole, and count for 30 days, since not every change of a driver is in the
/// key. What is damaged, of another key or not the user's alone is ignored.
class TimesMemory {
 public:
  bool find(const std::string& key, MeasuredTimes* times);
  /// What cannot be written is measured again by the next process: the status says why, where a variable names the
  /// folder.
  Status add(const std::string& key, const MeasuredTimes& times);
  /// As a process that has just begun. For tests.
  void forget() { known_.clear(); }

 private:
  std::map<std::string, MeasuredTimes> known_;
};

/// The process's.
PerProcess<TimesMemory>::Locked measured_times();

/// The file that remembers times under `key`; empty: none is kept. For tests.
std::string measured_times_path(const std::string& key);

}  // namespace pinnace
