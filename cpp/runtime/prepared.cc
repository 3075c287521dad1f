// Prepared: options checked, targets chosen, a first plan made for the declared shapes, so that what cannot run fails
// here.
#include <algorithm>

#include "base/exception_boundary.h"
#include "base/log.h"
#include "base/process.h"
#include "base/threads/thread.h"
#include "base/threads/work_mutex.h"
#include "ops/work.h"
#include "runtime/device_autotuning.h"
#include "runtime/packed_store.h"

namespace pinnace {
namespace {

/// One Prepared per program and options while any is alive: sixteen sessions pack weights once, those that come while
/// the first one packs wait for it. A forked child shares what was finished in its parent, and makes the rest anew.
struct Registry {
  struct Slot {
    WorkMutex making;  // held while it is made; guards `prepared`
    std::weak_ptr<const Prepared> prepared;
  };
  struct Entry {
    const ProgramData* program;
    std::string options;
    std::shared_ptr<Slot> slot;
  };

  std::shared_ptr<Slot> slot(const ProgramData* program, std::string options) {
    std::erase_if(entries, [](const Entry& e) {
      if (e.slot->making.left_behind()) return true;
      // In nobody else's hands: no maker, no one waiting, and none can come before this is done.
      if (!e.slot->making.try_lock()) return false;
      const bool idle = e.slot.use_count() == 1 && e.slot->prepared.expired();
      e.slot->making.unlock();
      return idle;
    });
    for (const Entry& entry : entries) {
      if (entry.program == program && entry.options == options) return entry.slot;
    }
    entries.push_back({program, std::move(options), std::make_shared<Slot>()});
    return entries.back().slot;
  }

 private:
  std::vector<Entry> entries;
};

constinit PerProcess<Registry> registry;

std::string key_of(const Options& o, const std::vector<TargetChoice>& targets) {
  std::string key = str_cat(o.target, "|", o.threads, "|", o.precision, "|", o.fallback, "|", o.plan_cache, "|",
                            o.require_payload, o.shape_invariant ? "|i" : "");
  for (const std::string& name : o.keep) key += str_cat("|k", name.size(), ":", name);
  const Service& s = o.service;
  key += str_cat("|s", s.preference, "|", s.priority, "|", s.deadline.count(), "|", s.loop_timeout.count(), "|",
                 s.cache_folder.size(), ":", s.cache_folder, "|", s.device.size(), ":", s.device);
  for (const int processor : s.processors) key += str_cat("|", processor);
  if (o.packed_store) key += str_cat("|p", reinterpret_cast<uintptr_t>(o.packed_store));
  for (const CustomOp* op : o.ops) key += str_cat("|o", reinterpret_cast<uintptr_t>(op));
  for (const Backend* b : o.backends) key += str_cat("|b", reinterpret_cast<uintptr_t>(b));
  for (const TargetChoice& t : targets) {
    const char* use = t.spec.storing ? "|s" : !t.lost.empty() ? "|-" : t.reopened.empty() ? "|+" : "|~";
    key += str_cat(use, t.backend->name());
  }
  return key;
}

bool is_automatic(const Options& o) {
  return o.target == "auto" || o.target == kAutoFixed;
}

/// Only the CPU computes so; "auto" then means it.
Status make_shape_invariant(const Options& o, std::vector<TargetChoice>& targets) {
  if (o.precision != "fp32" && o.precision != "auto") {
    return invalid("shape_invariant needs the precision fp32, was given ", o.precision);
  }
  if (is_automatic(o)) std::erase_if(targets, [](const TargetChoice& t) { return t.backend != &cpu_backend(); });
  for (TargetChoice& t : targets) {
    if (t.backend != &cpu_backend())
      return unsupported("shape_invariant is the CPU's alone, not ", t.backend->name(), "'s");
    t.spec.precision = "fp32";
    t.spec.shape_invariant = true;
  }
  return {};
}

/// Takes note of a kDeviceLost (see name_lost). True if another plan is worth making: the device can be opened anew and
/// this is its first loss, or, with `fallback`, its back end is taken out of use.
bool note_loss(std::vector<TargetChoice>& targets, const Status& status, bool fallback) {
  if (status.code() != Code::kDeviceLost) return false;
  const std::string_view rule = status.rule(), name = rule.substr(0, rule.find(' '));
  const bool gone = rule == name;
  const std::string how = status.message().empty() ? "no reason given" : status.message();
  bool again = false;
  for (TargetChoice& t : targets) {
    if (!t.lost.empty() || t.backend->name() != name) continue;
    const bool reopen = gone && t.reopened.empty() && t.backend->reopens();
    if (!reopen && !fallback) continue;
    (reopen ? t.reopened : t.lost) = how;
    again = true;
    PINNACE_LOG_WARN(name, gone ? " lost its device (" : " does not run this (", how,
                     "): ", reopen ? "it is opened anew" : "its nodes go to the next target");
  }
  return again;
}

/// A plan for the declared shapes, to learn what can run. Where sizes are symbols, several are tried, all inputs alike.
/// If none of them passes the shape rules, which sizes go together is not known here (one may be the sum of two
/// others): the first run makes the first plan. Without fallback, nodes that the target does not take at one
/// of these sizes are no reason to refuse the session if another size gives a plan, or if it was size 1 and others
/// break shape rules: beside a table of fixed length, which broadcasts there, the one size that matters was not tried.
Status plan_declared(Prepared::Data& data) {
  const Graph& graph = data.graph();
  const bool open = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                [&](ValueId id) { return !graph.value(id).type.concrete(); });
  Status refused;
  bool broken = false, beyond_one = false;  // some size breaks a shape rule; some other than 1 is refused
  for (int64_t wanted : kTriedSizes) {
    const std::vector<TensorType> types = sized_inputs(graph, wanted);
    std::vector<ValueId> leaving = data.outputs;
    leaving.insert(leaving.end(), data.state_outputs.begin(), data.state_outputs.end());
    const PlanRequest request{graph,   types,           data.setup.targets, data.setup.fallback,
                              leaving, *data.setup.ops, data.packed,        ""};
    auto plan = data.plans.get(request);
    if (plan) {
      data.placement = data.placement_of(**plan, !open && !data.targets[0].spec.storing);
      return {};
    }
    const bool breaks_rule = plan.status().code() == Code::kInvalidArgument;
    const bool elsewhere = plan.status().code() == Code::kUnsupported && !plan.status().nodes().empty();
    if (!open || !(breaks_rule || elsewhere)) return plan.status();
    broken |= breaks_rule;
    beyond_one |= elsewhere && wanted > 1;
    if (elsewhere && refused.ok()) refused = plan.status();
  }
  return broken && !beyond_one ? Status() : refused;
}

/// What was chosen, in one line.
void log_prepared(const Prepared::Data& data, const LogTime& time) {
  std::string order;
  for (const TargetChoice& t : data.targets) {
    order += str_cat(order.empty() ? "" : ", then ", t.spec.backend, t.spec.variant.empty() ? "" : ":", t.spec.variant,
                     t.lost.empty() ? "" : " (lost)");
  }
  PINNACE_LOG_INFO("prepared '", data.graph().name, "' for ", order, ": ", data.options.precision, ", ", data.threads,
                   " threads, ", cpu_backend().description(), ", ", data.packed.made_bytes(),
                   " bytes packed beside the file, in ", time.text());
}

Status keep_values(Prepared::Data& data) {
  const Graph& graph = data.graph();
  for (const std::string& name : data.options.keep) {
    const auto found =
        std::find_if(graph.values.begin(), graph.values.end(), [&](const Value& v) { return v.name == name; });
    if (found == graph.values.end()) return invalid("keep: the program has no value '", name, "'");
    data.outputs.push_back(static_cast<ValueId>(found - graph.values.begin()));
    data.output_specs.push_back({name, found->type});
  }
  return {};
}

}  // namespace

Prepared::Prepared() = default;
Prepared::~Prepared() = default;

Result<std::shared_ptr<const Prepared>> Prepared::create(const Program& program, const Options& options) {
  return exception_boundary([&]() -> Result<std::shared_ptr<const Prepared>> {
    if (options.threads < 0) return invalid("threads is ", options.threads, ", must be 0 or more");
    if (options.plan_cache < 1) return invalid("plan_cache is ", options.plan_cache, ", must be 1 or more");
    PINNACE_TRY(check_service(options.service));
    PINNACE_TRY(Processors::check(options.service.processors));
    PINNACE_ASSIGN(std::vector<TargetChoice> targets,
                   parse_targets(options.target, options.precision, options.backends, options.service));
    // The CPU is in every plan, as the last resort if not by wish.
    if (const std::string reason = cpu_backend().unavailable(TargetSpec{"cpu", "", "fp32"}); !reason.empty()) {
      return unsupported("the CPU back end cannot run: ", reason);
    }
    const bool has_cpu =
        std::any_of(targets.begin(), targets.end(), [](const TargetChoice& t) { return t.backend == &cpu_backend(); });
    if (!has_cpu) {
      TargetSpec cpu{"cpu", "", options.precision, false, false, options.service};
      settle_precision(cpu_backend(), cpu);
      targets.push_back({&cpu_backend(), std::move(cpu), "", "", false});
    }
    if (options.shape_invariant) PINNACE_TRY(make_shape_invariant(options, targets));
    const auto prepare = [program, options](std::vector<TargetChoice> with, bool recover) {
      for (;;) {
        auto prepared = create(program, options, with);
        if (prepared || !recover || !note_loss(with, prepared.status(), options.fallback)) return prepared;
      }
    };
    if (is_automatic(options) && !options.shape_invariant) {
      return autotune_device({program, options, targets, prepare}, options.target == kAutoFixed);
    }
    return prepare(std::move(targets), true);
  });
}

Result<std::shared_ptr<const Prepared>> Prepared::to_store(const Program& program, const Options& options,
                                                           const TargetChoice& target) {
  return exception_boundary([&]() -> Result<std::shared_ptr<const Prepared>> {
    std::vector<TargetChoice> targets = {target};
    if (target.backend != &cpu_backend()) targets.push_back({&cpu_backend(), TargetSpec{"cpu", "", "fp32"}, ""});
    targets[0].spec.storing = true;
    Options wanted = options;
    wanted.target =
        target.spec.variant.empty() ? target.spec.backend : str_cat(target.spec.backend, ":", target.spec.variant);
    return create(program, wanted, targets);
  });
}

Result<std::shared_ptr<const Prepared>> Prepared::recovered(const Status& lost) const {
  std::vector<TargetChoice> targets = data_->targets;
  Status status = lost;
  while (note_loss(targets, status, data_->options.fallback)) {
    auto prepared = create(data_->program, data_->options, targets);
    if (prepared) {
      (*prepared)->data().set_choice(data_->choice());
      return prepared;
    }
    status = prepared.status();
  }
  return status;
}

Result<std::shared_ptr<const Prepared>> Prepared::create(const Program& program, const Options& options,
                                                         const std::vector<TargetChoice>& targets) {
  const DefaultFloats floats;  // what is computed ahead, packed and tried on devices
  const AheadBudget budget;
  const std::shared_ptr<Registry::Slot> slot = registry.lock()->slot(&program.data(), key_of(options, targets));
  // Slots that were left behind are in the registry no longer.
  const WorkLockAnew making(slot->making, "the preparation of the same program");
  PINNACE_TRY(making.status());
  if (auto alive = slot->prepared.lock(); alive && !alive->data().left_behind()) return alive;
  const LogTime time;
  std::shared_ptr<Prepared> prepared(new Prepared);
  prepared->data_ = std::make_unique<Data>(program, options);
  Data& data = *prepared->data_;
  PINNACE_ASSIGN(data.custom, CustomOps::create(options.ops));
  data.targets = targets;
  data.processors = Processors(options.service.processors);
  const bool low_power = options.service.preference == "low_power";
  if (low_power && !data.processors.known()) data.processors = Processors::slowest();
  data.workers_stay_awake = !low_power;
  const int most = data.processors.known() ? data.processors.count() : available_processors();
  data.threads = options.threads ? options.threads : most;
  data.setup = {data.targets, options.fallback, &data.custom->table(),
                &data.packed, &data.plans,      static_cast<size_t>(options.plan_cache)};
  const Graph& graph = data.graph();
  data.outputs = graph.outputs;
  data.output_specs.assign(program.outputs().begin(), program.outputs().end());
  PINNACE_TRY(keep_values(data));
  for (const State& s : graph.states) data.state_outputs.push_back(s.output);
  // What runs elsewhere has weights of its own there, and what is only stored is no session's.
  const bool kept = options.packed_store && targets[0].backend == &cpu_backend() && !targets[0].spec.storing;
  if (kept) data.use_stored(options.packed_store->find(program, options));
  PINNACE_TRY(plan_declared(data));
  if (kept) options.packed_store->keep(prepared);
  slot->prepared = prepared;
  log_several(LogLevel::kInfo, [&] { log_prepared(data, time); });
  return std::shared_ptr<const Prepared>(std::move(prepared));
}

const Program& Prepared::program() const {
  return data_->program;
}
const Options& Prepared::options() const {
  return data_->options;
}
std::vector<Placement> Prepared::placement() const {
  return data_->with_choice(data_->placement);
}

}  // namespace pinnace
