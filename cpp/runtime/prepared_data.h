// What a Prepared holds: the program, the choices of Options, and what its sessions share.
#pragma once

#include <optional>
#include <utility>

#include <pinnace/session.h>

#include "backends/packed_constants.h"
#include "base/process.h"
#include "base/threads/processors.h"
#include "program/program_data.h"
#include "runtime/custom_ops.h"
#include "runtime/device_search.h"
#include "runtime/graph_runner.h"

namespace pinnace {

/// How "auto" came to its targets (device_autotuning.h).
struct AutoChoice {
  std::string chosen, reason;                                    ///< the measured back end that was taken; empty: none
  std::vector<std::pair<std::string, std::string>> passed_over;  ///< the others, each with the reason
};

struct Prepared::Data {
  Data(Program p, Options o) : program(std::move(p)), options(std::move(o)), plans(plan_capacity(options)) {
    for (const Payload& stored : program.data().payloads) {
      packed.add_stored({stored.target, stored.key, stored.bytes, stored.stored});
    }
    if (options.require_payload) packed.require_stored();
  }
  /// The payloads of another program, if there is one, count as this one's. Before the first plan.
  void use_stored(std::optional<Program> other) {
    if (!other) return;
    beside = std::move(other);
    for (const Payload& stored : beside->data().payloads) {
      packed.add_stored({stored.target, stored.key, stored.bytes, stored.stored});
    }
  }
  static size_t plan_capacity(const Options& o) { return static_cast<size_t>(o.plan_cache < 1 ? 1 : o.plan_cache); }

  Program program;
  std::optional<Program> beside;  ///< whose payloads are used as well (Options::packed_store)
  Options options;
  std::shared_ptr<const CustomOps> custom;
  std::vector<TargetChoice> targets;
  int threads = 1;
  Processors processors;           ///< that runs stay on; unknown: those of the calling thread
  bool workers_stay_awake = true;  ///< see RunContext
  PackedConstants packed;
  mutable PlanCache plans;
  RunnerSetup setup;
  std::vector<ValueId> outputs;  ///< the program's, then the kept ones
  std::vector<TensorSpec> output_specs;
  std::vector<ValueId> state_outputs;
  std::vector<Placement> placement;  ///< for the declared shapes

  const Graph& graph() const { return program.data().graph; }

  /// Whether a forked child cannot go on with this: another thread of its parent was at work on it.
  bool left_behind() const { return plans.left_behind() || packed.left_behind(); }

  /// Set once a Prepared is in hand that others may share already.
  void set_choice(AutoChoice choice) const;
  AutoChoice choice() const;
#if PINNACE_SEARCHES_BESIDE_RUNS
  /// For sessions of this; set as the choice is. null: there is none.
  void set_search(std::shared_ptr<DeviceSearch> search) const;
  std::shared_ptr<DeviceSearch> search() const;
#endif
  /// The rows of a plan of the program's graph, those of bodies of control flow behind the node that holds them.
  /// `may_plan`: bodies are planned, as the first run would; else their rows are of plans that runs have made.
  /// `chosen`: what a run made of the nodes whose sizes come with it, null before one.
  std::vector<Placement> placement_of(const Plan& plan, bool may_plan, const ChosenKernels* chosen = nullptr) const;
  /// Rows with what the choice says of them.
  std::vector<Placement> with_choice(std::vector<Placement> rows) const;

 private:
  mutable ProcessMutex choice_mutex_;
  mutable AutoChoice choice_;
#if PINNACE_SEARCHES_BESIDE_RUNS
  mutable std::shared_ptr<DeviceSearch> search_;
#endif
};

}  // namespace pinnace
