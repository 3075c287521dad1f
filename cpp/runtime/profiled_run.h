// Session::profile() for those who keep the events in a form of their own.
#pragma once

#include <functional>

#include <pinnace/session.h>

namespace pinnace {

class ProfiledRun {
 public:
  /// Gets the events when all nodes have run and no state has changed yet. What it returns as an error, or throws, ends
  /// the run as a failed one, so that nothing that needs memory is left to be done for a run that counts.
  using Take = std::function<Status(std::vector<ProfileEvent> events)>;
  static Status run(Session& session, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                    const Session::Finished& finished, const RunOptions& options, const Take& take);
};

}  // namespace pinnace
