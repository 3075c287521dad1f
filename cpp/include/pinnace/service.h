// Service: what an application wishes of its sessions beside right results: little power, a place among others, an end
// in time, a folder, a device, processors.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace pinnace {

/// Quality of service of the sessions of one Options. Every member has a default, which leaves the matter to the back
/// end and, for NNAPI, to its environment variables (docs/nnapi.md); a member that is set wins over them. No member
/// changes a result. What a back end has no use of is said by placement(), as a notice of the back end's first node.
/// kInvalidArgument from Session::create names the member and its value: a word that is not listed here, a negative
/// time, a processor that does not exist or that the calling thread may not use.
struct Service {
  /// "low_power", "fast_single_answer" or "sustained_speed". NNAPI hands it to the driver. On the CPU "low_power" means
  /// that workers sleep between the loops of a run rather than look for the next one, and that runs stay on the
  /// processors of the slowest kind where the system lists several kinds (big.LITTLE); "fast_single_answer" is how the
  /// CPU works anyway.
  std::string preference = {};
  /// "low", "medium" or "high": beside the compilations and runs of other applications. NNAPI from feature level 4 on.
  std::string priority = {};
  /// For a compilation, and for each run of a compiled part, on a device. A part that misses it goes to the next
  /// target, and without Options::fallback ends as kDeviceLost. NNAPI from feature level 4 on. RunOptions::timeout ends
  /// runs on every back end. 0: none.
  std::chrono::nanoseconds deadline{0};
  /// As Session::limit_loops, from the first run on. 0: none.
  std::chrono::nanoseconds loop_timeout{0};
  /// Where the driver keeps what it compiled: a folder of the user's, made if it is not there, and passed over, with a
  /// notice, where others may write to it. NNAPI from feature level 3 on.
  std::string cache_folder = {};
  /// The device to use by its name, as `pinnace devices` lists it. NNAPI from feature level 3 on.
  std::string device = {};
  /// The processors, by the system's numbers, that runs stay on: the calling thread's part too, which is given back
  /// what it had when the run ends. With Options::threads = 0 a run uses as many threads. Linux and Android only:
  /// kUnsupported elsewhere. Empty: those of the calling thread.
  std::vector<int> processors = {};
};

}  // namespace pinnace
#pragma GCC visibility pop
