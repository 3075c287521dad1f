// What a Prepared holds: the program, the choices of Options, and what its sessions share.
#pragma once

#include <pinnace/session.h>

#include "program/program_data.h"
#include "runtime/custom_ops.h"
#include "runtime/graph_runner.h"

namespace pinnace {

struct Prepared::Data {
  Data(Program p, Options o) : program(std::move(p)), options(std::move(o)), plans(plan_capacity(options)) {
    for (const Payload& stored : program.data().payloads) {
      packed.add_stored({stored.target, stored.key, stored.bytes, stored.stored});
    }
    if (options.require_payload) packed.require_stored();
  }
  static size_t plan_capacity(const Options& o) { return static_cast<size_t>(o.plan_cache < 1 ? 1 : o.plan_cache); }

  Program program;
  Options options;
  std::shared_ptr<const CustomOps> custom;
  std::vector<TargetChoice> targets;
  int threads = 1;
  PackedConstants packed;
  mutable PlanCache plans;
  RunnerSetup setup;
  std::vector<ValueId> outputs;  ///< the program's, then the kept ones
  std::vector<TensorSpec> output_specs;
  std::vector<ValueId> state_outputs;
  std::vector<Placement> placement;  ///< for the declared shapes

  const Graph& graph() const { return program.data().graph; }
};

}  // namespace pinnace
