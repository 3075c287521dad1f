// Counting work, timing runs, and deciding by times, before the first run or beside the first ones.
#include "runtime/device_autotuning.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>

#include "base/files/user_cache.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/threads/processors.h"
#include "base/threads/thread.h"
#include "base/threads/work_mutex.h"
#include "runtime/measured_times.h"

namespace pinnace {
namespace {

using Clock = std::chrono::steady_clock;

/// What a run may take before it is stopped; a first run that takes kEnough is the measure, after a shorter one others
/// begin for kTimed, or up to three for kEnough.
constexpr std::chrono::milliseconds kLongest{1000}, kEnough{250}, kTimed{100};
constexpr int kRuns = 3;

// ---- what is run

/// Input types to measure with, and the types of all values then.
struct Sizes {
  std::vector<TensorType> inputs, values;
};

Sizes sizes_of(const Graph& graph, const OpTable& ops) {
  std::vector<TensorType> types = sized_inputs(graph, 128);
  const std::vector<TensorType> least = sized_inputs(graph, 1);
  const bool open = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                [&](ValueId id) { return !graph.value(id).type.concrete(); });
  Sizes sizes{types, {}};
  if (!open) {
    for (const Value& value : graph.values) sizes.values.push_back(value.type);
    return sizes;
  }
  std::set<int32_t> inner;  // symbols that stand elsewhere than in front: no numbers of images or sentences
  for (ValueId id : graph.inputs) {
    const TensorType& type = graph.value(id).type;
    for (size_t d = 1; d < type.shape.size(); ++d) inner.insert(type.shape[d].symbol);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorType& declared = graph.value(graph.inputs[i]).type;
    if (declared.rank() > 0 && (declared.shape[0].symbol < 0 || !inner.contains(declared.shape[0].symbol))) {
      types[i].shape[0] = least[i].shape[0];
    }
  }
  std::vector<std::vector<TensorType>> tried = {std::move(types)};
  for (int64_t wanted : kTriedSizes) tried.push_back(sized_inputs(graph, wanted));
  for (auto& inputs : tried) {
    auto type_inference = infer_types(graph, inputs, {}, ops);
    if (type_inference) return {std::move(inputs), std::move(type_inference->types)};
  }
  return sizes;
}

/// Multiply-adds of products, elements of all else; bodies of control flow are not looked into.
double work_of(const Graph& graph, const std::vector<TensorType>& values, const OpTable& ops) {
  double work = 0;
  if (values.empty()) return work;
  for (const auto& node : graph.nodes) {
    const auto of = [&](ValueId id) -> const TensorType& { return values[static_cast<size_t>(id)]; };
    if (node->outputs.empty()) continue;
    const TensorType& y = of(node->outputs[0]);
    const OpDef* op = ops.find(node->op);
    std::vector<const TensorType*> inputs;
    for (ValueId id : node->inputs) inputs.push_back(id == kNoValue ? nullptr : &of(id));
    work += op && op->multiply_adds ? op->multiply_adds(inputs, y) : elements_if_known(y);
  }
  return work;
}

// ---- timing

/// Inputs and states of more bytes are not made up only to be timed.
constexpr double kMostBytes = 1 << 30;

Result<Timing> time_of(const Prepared::Data& data, std::span<const TensorType> types) {
  const Graph& graph = data.graph();
  std::vector<Buffer> memory;
  std::vector<TensorView> inputs, states;
  const auto room = [&](const TensorType& type, std::vector<TensorView>& views) -> Status {
    if (elements_if_known(type) * dtype_bits(type.dtype) / 8 > kMostBytes) {
      return unsupported("a tensor of ", type, " is too large to be made up");
    }
    const auto bytes = static_cast<size_t>(std::max<int64_t>(1, type.bytes()));
    PINNACE_ASSIGN(Buffer made, Buffer::allocate(bytes, "a measurement's tensor"));
    std::memset(made.data(), 0, bytes);
    memory.push_back(std::move(made));
    views.push_back({&type, memory.back().data()});
    return {};
  };
  for (const TensorType& type : types) {
    PINNACE_TRY(room(type, inputs));
    if (type.dtype != DType::kF32) continue;  // zeros are in every range that a run checks
    auto* floats = reinterpret_cast<float*>(inputs.back().bytes);
    for (int64_t i = 0; i < type.elements(); ++i) floats[i] = static_cast<float>(i % 257 - 128) / 64.0f;
  }
  for (const State& s : graph.states) {
    PINNACE_TRY(s.initial->check());
    PINNACE_TRY(room(graph.value(s.input).type, states));
    if (s.initial->bytes()) std::memcpy(states.back().bytes, s.initial->data(), s.initial->bytes());
  }
  // Without a session nothing is committed, and nobody goes on elsewhere after a loss.
  GraphRunner runner(graph, data.outputs, data.state_outputs, data.setup, "", 1);
  PINNACE_ASSIGN(Instance* const instance, runner.prepare(inputs));
  for (size_t i = 0; i < states.size(); ++i) {
    const KeptState& kept = instance->kept_states[i];
    if (kept.states) PINNACE_TRY(kept.states->write(kept.position, states[i].bytes));
  }
  Timing best;
  bool too_slow = false;  // the last run's own time ended
  const auto run = [&]() -> Status {
    const CancelScope scope({.timeout = kLongest});
    RunContext context;
    context.pool = &ThreadPool::shared();
    context.threads = data.threads;
    const auto start = Clock::now();
    Status ended = runner.run(*instance, inputs, states, {}, context, 0);
    too_slow = ended.code() == Code::kCancelled && stopped();
    PINNACE_TRY(ended);
    const auto taken = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
    const int64_t us = std::max<int64_t>(1, taken.count());
    best = {best.finished ? std::min(best.us, us) : us, true};
    return {};
  };
  Status status = run();
  if (status.ok() && std::chrono::microseconds(best.us) < kEnough) {
    best.finished = false;  // the first run touches memory for the first time
    const auto begin = Clock::now();
    for (int i = 0; status.ok() && Clock::now() - begin < (i < kRuns ? kEnough : kTimed); ++i) status = run();
  }
  // Too slow is an answer; that the caller wants no answer any more is none.
  if (!too_slow || stopped()) PINNACE_TRY(status);
  if (!best.finished) best.us = std::chrono::microseconds(kLongest).count();
  return best;
}

std::string text_of(const Timing& t) {
  char text[48];
  const double ms = static_cast<double>(t.us) / 1000;
  std::snprintf(text, sizeof text, ms < 10 ? "%s%.2f ms" : "%s%.0f ms", t.finished ? "" : "more than ", ms);
  return text;
}

// ---- deciding

/// Held while models are timed, which would otherwise slow each other down.
constinit WorkMutex measuring;

/// All that times depend on, but for the device.
std::string key_of(const AutotuneRequest& request, const Sizes& sizes) {
  const Options& o = request.options;
  // The header holds the hash of the table of sections, which holds those of all the rest.
  const FileBytes& file = request.program.data().file;
  const auto head = file.pieces().empty() ? std::span<const std::byte>() : file.pieces()[0];
  std::string key = str_cat("build ", library_build(), ", model ",
                            hash64(head.first(std::min<size_t>(head.size(), 64))), " ", file.size());
  for (const TensorType& type : sizes.inputs) key += " " + to_string(type);
  key += str_cat(", ", o.threads ? o.threads : available_processors(), " threads, ", o.precision,
                 o.fallback ? "" : " alone", ", ", cpu_backend().description(), ", beside");
  for (const TargetChoice& t : request.targets) key += str_cat(" ", t.backend->name());
  if (!o.service.preference.empty()) key += str_cat(", ", o.service.preference);
  if (!o.service.processors.empty()) key += str_cat(", on ", Processors(o.service.processors).text());
  for (const std::string& name : o.keep) key += str_cat(" +", name);
  for (const CustomOp* op : o.ops) key += str_cat(" op ", reinterpret_cast<uintptr_t>(op));
  return key;
}

/// A back end that may be worth a measurement, and what is known of it.
struct Candidate {
  const Backend* backend;
  TargetSpec spec;
  std::string key;  ///< of its times, but for the device where only that tells which it is
  bool device_in_key;
};

/// Models too small, and back ends without a sign of a device, give none.
Result<std::vector<Candidate>> candidates_of(const AutotuneRequest& request, Sizes* sizes) {
  std::vector<Candidate> candidates;
  std::vector<const Backend*> backends = known_backends(request.options.backends);
  std::erase_if(backends, [](const Backend* b) { return !b->measured(); });
  if (backends.empty()) return candidates;
  PINNACE_ASSIGN(const auto custom, CustomOps::create(request.options.ops));
  const Graph& graph = request.program.data().graph;
  *sizes = sizes_of(graph, custom->table());
  if (work_of(graph, sizes->values, custom->table()) < kWorthMeasuring) {
    PINNACE_LOG_DEBUG("auto measures nothing: '", graph.name, "' has too little work for another device to pay");
    return candidates;
  }
  for (const Backend* backend : backends) {
    const auto signs = backend->signs_of_device();
    if (!signs) {
      PINNACE_LOG_DEBUG("auto does not look for ", backend->name(), ": ", signs.status().message());
      continue;
    }
    TargetSpec spec{std::string(backend->name()), "", request.options.precision, true, false, request.options.service};
    settle_precision(*backend, spec);
    candidates.push_back({backend, std::move(spec),
                          str_cat(key_of(request, *sizes), ", ", backend->name(), " ", *signs), !signs->empty()});
  }
  return candidates;
}

struct Decision {
  AutoChoice choice;
  std::shared_ptr<const Prepared> best;  ///< null: none is faster than what runs without them
};
using Rest = std::function<Result<std::shared_ptr<const Prepared>>()>;

/// An operator of the application's that is being timed may make a session of its own.
thread_local bool measuring_here = false;

/// Times a candidate and what runs without it. Whatever fails there is the reason in `times`; an error of this is one
/// of the call, and nothing to be remembered. `with` is left what was timed.
Status measure(const AutotuneRequest& request, const Sizes& sizes, const Candidate& candidate,
               const std::vector<TargetChoice>& targets, const Rest& rest, MeasuredTimes* times,
               std::shared_ptr<const Prepared>* with, bool* lasting) {
  const auto pass_over = [&](const Status& status) -> Status {
    if (status.code() == Code::kCancelled) return status;
    times->passed_over = status.message();
    *lasting = false;
    return {};
  };
  *lasting = true;
  auto made = request.prepare(targets, false);
  if (!made) return pass_over(made.status());
  const auto& rows = (*made)->data().placement;
  if (std::none_of(rows.begin(), rows.end(), [&](const auto& row) { return row.backend == candidate.spec.backend; })) {
    times->passed_over = "it takes no node for which a copy pays";
    return {};
  }
  const auto timed = time_of((*made)->data(), sizes.inputs);
  if (!timed) return pass_over(timed.status());
  *with = std::move(*made);
  PINNACE_ASSIGN(const std::shared_ptr<const Prepared> without, rest());
  const auto plain = time_of(without->data(), sizes.inputs);
  if (!plain) return pass_over(plain.status().with_prefix("the model could not be run to measure it: "));
  times->device = *timed;
  times->rest = *plain;
  return {};
}

/// Finds the fastest of the candidates and `rest`.
Result<Decision> decide(const AutotuneRequest& request, const Sizes& sizes, const std::vector<Candidate>& candidates,
                        const Rest& rest) {
  const Graph& graph = request.program.data().graph;
  Decision decision;
  AutoChoice& choice = decision.choice;
  std::vector<TargetChoice> best_targets;
  MeasuredTimes best_times;
  for (const Candidate& candidate : candidates) {
    const Backend& backend = *candidate.backend;
    const TargetSpec& spec = candidate.spec;
    const auto pass_over = [&](const std::string& reason) {
      PINNACE_LOG_INFO("auto passes over ", spec.backend, " for '", graph.name, "': ", reason);
      choice.passed_over.emplace_back(spec.backend, reason);
    };
    PINNACE_TRY(check_stopped("the search for a device"));
    MeasuredTimes times;
    bool known = candidate.device_in_key && measured_times()->find(candidate.key, &times);
    std::string key = candidate.key, not_kept;
    std::shared_ptr<const Prepared> with;
    if (!known || times.device_is_faster()) {                                       // the device is asked for
      if (const std::string reason = backend.unavailable(spec); !reason.empty()) {  // no news: most machines lack some
        PINNACE_LOG_DEBUG("auto: ", spec.backend, " cannot run here: ", reason);
        continue;
      }
      const auto device = backend.measured_device(spec);
      if (known && device && *device != times.driver) known = false;  // another driver
      if (!known) times = {};
      if (!device) {
        times.passed_over = device.status().message();
      } else {
        times.driver = *device;
      }
      if (!candidate.device_in_key && device) {
        key = str_cat(key, *device);
        known = measured_times()->find(key, &times);
      }
      if (!known) {
        const WorkLockAnew lock(measuring, "the timing of a model");
        PINNACE_TRY(lock.status());
        struct Mark {
          Mark() { measuring_here = true; }
          ~Mark() { measuring_here = false; }
        } const mark;
        const bool meanwhile = measured_times()->find(key, &times) && (!device || times.driver == *device);
        std::vector<TargetChoice> targets = {{&backend, spec, ""}};
        targets.insert(targets.end(), request.targets.begin(), request.targets.end());
        bool lasting = true;
        if (!meanwhile && device) {
          times = {.device = {}, .rest = {}, .passed_over = {}, .driver = *device};
          PINNACE_TRY(measure(request, sizes, candidate, targets, rest, &times, &with, &lasting));
        }
        if (!meanwhile && lasting && (device || candidate.device_in_key)) {
          if (const Status kept = measured_times()->add(key, times); !kept.ok()) {
            PINNACE_LOG_WARN("times of auto are not kept, and measured again by the next process: ", kept.message());
            not_kept = str_cat("; these times are not kept: ", kept.message());
          }
        }
      }
    }
    if (!times.passed_over.empty()) {
      pass_over(times.passed_over);
      continue;
    }
    if (!times.device_is_faster() || (!best_targets.empty() && times.device.us >= best_times.device.us)) {
      pass_over(str_cat(text_of(times.device), " there, ", text_of(times.rest), " without it", not_kept));
      continue;
    }
    if (!best_targets.empty()) {
      choice.passed_over.emplace_back(
          choice.chosen, str_cat(text_of(best_times.device), " there, ", text_of(times.device), " on ", spec.backend));
    }
    PINNACE_LOG_INFO("auto takes ", spec.backend, " for '", graph.name, "': ", text_of(times.device), " there, ",
                     text_of(times.rest), " without it");
    choice.chosen = spec.backend;
    choice.reason = str_cat(text_of(times.device), " here, ", text_of(times.rest), " without it", not_kept);
    decision.best = std::move(with);
    best_targets = {{&backend, spec, ""}};
    best_targets.insert(best_targets.end(), request.targets.begin(), request.targets.end());
    best_times = times;
  }
  if (!best_targets.empty() && !decision.best) {  // as it is remembered
    auto made = request.prepare(std::move(best_targets), false);
    if (made.status().code() == Code::kCancelled) return made.status();
    if (made) {
      decision.best = std::move(*made);
    } else {
      choice.passed_over.emplace_back(choice.chosen, made.status().message());
      choice.chosen.clear();
    }
  }
  return decision;
}

#if PINNACE_SEARCHES_BESIDE_RUNS
/// The choice for the CPU if all candidates are remembered not to be faster; no library is opened for that.
bool all_passed_over(const std::vector<Candidate>& candidates, AutoChoice* choice) {
  for (const Candidate& candidate : candidates) {
    MeasuredTimes times;
    if (!candidate.device_in_key || !measured_times()->find(candidate.key, &times) || times.device_is_faster()) {
      return false;
    }
    choice->passed_over.emplace_back(
        candidate.spec.backend, !times.passed_over.empty()
                                    ? times.passed_over
                                    : str_cat(text_of(times.device), " there, ", text_of(times.rest), " without it"));
  }
  return true;
}

/// What the sessions of `rest` change to, once it is known.
Result<std::shared_ptr<const Prepared>> search_beside(const AutotuneRequest& request, const Sizes& sizes,
                                                      const std::vector<Candidate>& candidates,
                                                      const std::weak_ptr<const Prepared>& rest) {
  const auto still = [&]() -> Result<std::shared_ptr<const Prepared>> {
    if (auto alive = rest.lock()) return alive;
    return Status(Code::kCancelled, "no session is left that could change");
  };
  PINNACE_ASSIGN(Decision decision, decide(request, sizes, candidates, still));
  if (decision.best) {
    decision.best->data().set_choice(std::move(decision.choice));
  } else {
    PINNACE_ASSIGN(const auto without, still());
    without->data().set_choice(std::move(decision.choice));
  }
  return std::move(decision.best);
}
#endif

}  // namespace

void Prepared::Data::set_choice(AutoChoice choice) const {
  const ProcessLockAnew lock(choice_mutex_);
  choice_ = std::move(choice);
}

AutoChoice Prepared::Data::choice() const {
  const ProcessLockAnew lock(choice_mutex_);
  return choice_;
}

#if PINNACE_SEARCHES_BESIDE_RUNS
void Prepared::Data::set_search(std::shared_ptr<DeviceSearch> search) const {
  const ProcessLockAnew lock(choice_mutex_);
  search_.swap(search);
}

std::shared_ptr<DeviceSearch> Prepared::Data::search() const {
  const ProcessLockAnew lock(choice_mutex_);
  return search_;
}
#endif

std::vector<Placement> Prepared::Data::with_choice(std::vector<Placement> rows) const {
  const AutoChoice choice = this->choice();
  for (Placement& row : rows) {
    if (row.backend == "none" || row.backend == "runtime") continue;
    for (const auto& [backend, reason] : choice.passed_over) {
      if (row.backend != backend) row.why.push_back(str_cat(backend, " was passed over by auto: ", reason));
    }
    if (row.backend != choice.chosen) continue;
    row.notice = str_cat(row.notice, row.notice.empty() ? "" : "; ", "chosen by auto: ", choice.reason);
  }
  return rows;
}

Result<std::shared_ptr<const Prepared>> autotune_device(const AutotuneRequest& request,
                                                        [[maybe_unused]] bool before_runs) {
  if (measuring_here) return request.prepare(request.targets, true);
  Sizes sizes;
  PINNACE_ASSIGN(std::vector<Candidate> candidates, candidates_of(request, &sizes));
  if (candidates.empty()) return request.prepare(request.targets, true);
#if PINNACE_SEARCHES_BESIDE_RUNS
  // The application's operators run on its own threads alone.
  if (!before_runs && request.options.ops.empty()) {
    PINNACE_ASSIGN(std::shared_ptr<const Prepared> rest, request.prepare(request.targets, true));
    const Prepared::Data& data = rest->data();
    if (const auto search = data.search(); search && !search->given_up()) {
      auto found = search->found();
      return found ? std::move(found) : std::move(rest);
    }
    AutoChoice choice;
    if (!all_passed_over(candidates, &choice)) {
      choice.passed_over.clear();
      for (const Candidate& candidate : candidates) {
        choice.passed_over.emplace_back(
            candidate.spec.backend, "it is tried beside the first runs, and takes over between two if it is faster");
      }
      const bool borrows = !request.options.backends.empty();
      data.set_search(std::make_shared<DeviceSearch>(
          [request, sizes = std::move(sizes), candidates = std::move(candidates),
           rest = std::weak_ptr<const Prepared>(rest)] { return search_beside(request, sizes, candidates, rest); },
          borrows));
    }
    data.set_choice(std::move(choice));
    return rest;
  }
#endif
  std::shared_ptr<const Prepared> rest;
  const auto without = [&]() -> Result<std::shared_ptr<const Prepared>> {
    if (!rest) {
      PINNACE_ASSIGN(rest, request.prepare(request.targets, true));
    }
    return rest;
  };
  PINNACE_ASSIGN(Decision decision, decide(request, sizes, candidates, without));
  if (!decision.best) {
    PINNACE_ASSIGN(decision.best, without());
  }
  decision.best->data().set_choice(std::move(decision.choice));
  return std::move(decision.best);
}

}  // namespace pinnace
