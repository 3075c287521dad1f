// What a report says of the machine and of its targets.
#pragma once

#include <string>
#include <vector>

#include <pinnace/pinnace.h>

#include "report/json.h"

namespace pinnace::report {

struct TargetInfo {
  std::string target, description;
  bool available = false;
  bool software = false;  ///< this machine's processor stands in for the device
};

/// The targets of this build on this machine, as pnc_devices lists them.
Result<std::vector<TargetInfo>> target_infos();

/// Processors that the process may use.
int processors();

/// Writes the machine as one object: architecture, processor (as the target cpu describes it), processors, system, and
/// on Android its API level and the device's and the chip's names, elsewhere null.
void write_machine(const std::vector<TargetInfo>& targets, Json* page);

/// "2026-11-27T15:05:00Z"
std::string date_now();

}  // namespace pinnace::report
