// Autotuning of the device, for the target "auto" where a GPU might be faster: the CPU and the GPU run this very model
// briefly, and the faster stays.
#pragma once

#include <functional>

#include "runtime/prepared_data.h"

namespace pinnace {

/// Models with fewer multiply-adds are not measured: one core takes 0.25 to 1 ms for as many, and a device needs 0.1 ms
/// only to be asked.
inline constexpr double kWorthMeasuring = 2e7;

struct AutotuneRequest {
  Program program;
  Options options;
  /// Of "auto" without measured back ends; the CPU is among them.
  std::vector<TargetChoice> targets;
  /// A Prepared for targets; with `recover` also where a device of theirs is lost meanwhile.
  std::function<Result<std::shared_ptr<const Prepared>>(std::vector<TargetChoice>, bool recover)> prepare;
};

/// What `prepare` makes of `targets`, or of a measured back end and these if that runs the model faster.
///
/// before_runs: which of the two, is decided here. Else, where nothing is remembered that speaks against every measured
/// back end, what is returned for `targets` has a search (DeviceSearch) that its sessions begin after their first run;
/// models with operators of the application are decided here all the same, so that those are called by its threads
/// alone, and so is every model on ARM64.
///
/// Runs on inputs of its own making, symbols at about 128 (1 where they only lead shapes), and on copies of the initial
/// states. Each side runs for about a second at most: one run, or several of less than 0.25 s. A slower run is stopped
/// before its next operator, so that one long operator, like the device's own compilation, takes what it takes.
/// Times are remembered (TimesMemory) by build, model, sizes, signs of the device, processor, threads and precision,
/// and hold for one driver. Placements show them. Whatever fails on a measured back end is the reason why it is passed
/// over. Errors: those of `prepare` for `targets`. Thread-safe: one measurement at a time in a process.
Result<std::shared_ptr<const Prepared>> autotune_device(const AutotuneRequest& request, bool before_runs);

}  // namespace pinnace
