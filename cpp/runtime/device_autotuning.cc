// Counting work, timing runs, and remembering times.
#include "runtime/device_autotuning.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>

#include "base/environment.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/private_folder.h"
#include "base/process.h"
#include "base/thread.h"

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

/// The best run; not finished: none was, within this time.
struct Timing {
  int64_t us = 0;
  bool finished = false;
};

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

// ---- remembering

struct Times {
  Timing device, rest;
  bool device_is_faster() const { return device.finished && (!rest.finished || device.us < rest.us); }
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// As the environment says; empty: no times are kept.
std::string cache_folder() {
  const char* folder = environment("PINNACE_GPU_CACHE");
  return folder ? folder : "";
}
std::string file_of(const std::string& key) {
  return str_cat("auto-", hash64(bytes_of(key)), ".times");
}

/// Times by what they were taken of.
class Memory {
 public:
  bool find(const std::string& key, Times* times) {
    if (const auto found = known_.find(key); found != known_.end()) {
      *times = found->second;
      return true;
    }
    if (!read(key, times)) return false;
    known_[key] = *times;
    return true;
  }

  /// What cannot be written is measured again by the next process: the status says why.
  Status add(const std::string& key, const Times& times) {
    known_[key] = times;
    if (cache_folder().empty()) return {};
    PINNACE_ASSIGN(const PrivateFolder folder, PrivateFolder::open(cache_folder()));
    PINNACE_LOG_DEBUG("times of auto are written to '", cache_folder(), "/", file_of(key), "'");
    std::string text = key + "\n";
    for (const Timing& t : {times.device, times.rest}) text += str_cat(t.us, t.finished ? " finished\n" : " stopped\n");
    text = str_cat(kMagic, hash64(bytes_of(text)), "\n", text);
    return folder.write(file_of(key), bytes_of(text));
  }

 private:
  static constexpr std::string_view kMagic = "pinnace times 1 ";

  /// A number and how the run ended, off the front.
  static bool take(std::string_view* text, Timing* timing) {
    const auto [at, problem] = std::from_chars(text->data(), text->data() + text->size(), timing->us);
    if (problem != std::errc() || timing->us < 1) return false;
    text->remove_prefix(static_cast<size_t>(at - text->data()));
    timing->finished = text->starts_with(" finished\n");
    if (!timing->finished && !text->starts_with(" stopped\n")) return false;
    text->remove_prefix(timing->finished ? 10 : 9);
    return true;
  }

  /// False if the file is not there, not trusted, damaged, or of something else.
  static bool read(const std::string& key, Times* times) {
    if (cache_folder().empty()) return false;
    const auto ignored = [&](std::string_view why) {
      PINNACE_LOG_DEBUG("times of auto in '", cache_folder(), "/", file_of(key), "' are not used: ", why);
      return false;
    };
    const auto folder = PrivateFolder::open(cache_folder());
    if (!folder) return ignored(folder.status().message());
    const auto file = folder->read(file_of(key));
    if (!file) return ignored(file.status().message());
    const auto bytes = (*file)->bytes();
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const size_t line = text.find('\n');
    constexpr std::string_view kDamaged = "the file is damaged or of another model, device or build";
    if (line == std::string_view::npos) return ignored(kDamaged);
    const std::string_view first = text.substr(0, line + 1);
    text.remove_prefix(line + 1);
    if (first != str_cat(kMagic, hash64(bytes_of(text)), "\n") || !text.starts_with(key + "\n")) {
      return ignored(kDamaged);
    }
    text.remove_prefix(key.size() + 1);
    if (!take(&text, &times->device) || !take(&text, &times->rest) || !text.empty()) return ignored(kDamaged);
    PINNACE_LOG_DEBUG("times of auto are read from '", cache_folder(), "/", file_of(key), "'");
    return true;
  }

  std::map<std::string, Times> known_;
};

constinit PerProcess<Memory> memory;
/// Held while models are timed, which would otherwise slow each other down.
constinit WorkMutex measuring;

/// All that times depend on, but for the device.
std::string key_of(const AutotuneRequest& request, const Sizes& sizes) {
  const Options& o = request.options;
  // The header holds the hash of the table of sections, which holds those of all the rest.
  const FileBytes& file = request.program.data().file;
  const auto head = file.pieces().empty() ? std::span<const std::byte>() : file.pieces()[0];
  std::string key = str_cat("model ", hash64(head.first(std::min<size_t>(head.size(), 64))), " ", file.size());
  for (const TensorType& type : sizes.inputs) key += " " + to_string(type);
  key += str_cat(", ", o.threads ? o.threads : available_processors(), " threads, ", o.precision,
                 o.fallback ? "" : " alone", ", ", cpu_backend().description(), ", beside");
  for (const TargetChoice& t : request.targets) key += str_cat(" ", t.backend->name());
  for (const std::string& name : o.keep) key += str_cat(" +", name);
  for (const CustomOp* op : o.ops) key += str_cat(" op ", reinterpret_cast<uintptr_t>(op));
  return key;
}

}  // namespace

std::string measured_times_path(const std::string& key) {
  return cache_folder().empty() ? std::string() : str_cat(cache_folder(), "/", file_of(key));
}

void Prepared::Data::set_choice(AutoChoice choice) const {
  const ProcessLockAnew lock(choice_mutex_);
  choice_ = std::move(choice);
}

AutoChoice Prepared::Data::choice() const {
  const ProcessLockAnew lock(choice_mutex_);
  return choice_;
}

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

Result<std::shared_ptr<const Prepared>> autotune_device(const AutotuneRequest& request) {
  // An operator of the application's that is being timed may make a session of its own.
  static thread_local bool measuring_here = false;
  if (measuring_here) return request.prepare(request.targets, true);
  std::vector<const Backend*> backends = known_backends(request.options.backends);
  std::erase_if(backends, [](const Backend* b) { return !b->measured(); });
  if (backends.empty()) return request.prepare(request.targets, true);
  PINNACE_ASSIGN(const auto custom, CustomOps::create(request.options.ops));
  const Graph& graph = request.program.data().graph;
  const Sizes sizes = sizes_of(graph, custom->table());
  if (work_of(graph, sizes.values, custom->table()) < kWorthMeasuring) {
    PINNACE_LOG_DEBUG("auto measures nothing: '", graph.name, "' has too little work for another device to pay");
    return request.prepare(request.targets, true);
  }

  AutoChoice choice;
  std::shared_ptr<const Prepared> rest, best;
  std::vector<TargetChoice> best_targets;
  Times best_times;
  for (const Backend* backend : backends) {
    const TargetSpec spec{std::string(backend->name()), "", request.options.precision, true};
    if (const auto signs = backend->signs_of_device(); !signs) {
      PINNACE_LOG_DEBUG("auto does not look for ", spec.backend, ": ", signs.status().message());
      continue;
    }
    if (const std::string reason = backend->unavailable(spec); !reason.empty()) {  // no news: most machines lack some
      PINNACE_LOG_DEBUG("auto: ", spec.backend, " cannot run here: ", reason);
      continue;
    }
    const auto pass_over = [&](const std::string& reason) {
      PINNACE_LOG_INFO("auto passes over ", spec.backend, " for '", graph.name, "': ", reason);
      choice.passed_over.emplace_back(spec.backend, reason);
    };
    const auto device = backend->measured_device(spec);
    if (!device) {
      pass_over(device.status().message());
      continue;
    }
    std::vector<TargetChoice> targets = {{backend, spec, ""}};
    targets.insert(targets.end(), request.targets.begin(), request.targets.end());
    const std::string key = str_cat(key_of(request, sizes), ", ", spec.backend, " ", *device);
    Times times;
    std::string not_kept;
    std::shared_ptr<const Prepared> with;
    if (!memory.lock()->find(key, &times)) {
      const WorkLockAnew lock(measuring, "the timing of a model");
      PINNACE_TRY(lock.status());
      struct Mark {
        Mark() { measuring_here = true; }
        ~Mark() { measuring_here = false; }
      } const mark;
      if (!memory.lock()->find(key, &times)) {
        auto made = request.prepare(targets, false);
        if (made.status().code() == Code::kCancelled) return made.status();
        if (!made) {
          pass_over(made.status().message());
          continue;
        }
        const auto& rows = (*made)->data().placement;
        if (std::none_of(rows.begin(), rows.end(), [&](const auto& row) { return row.backend == spec.backend; })) {
          pass_over("it takes no node for which a copy pays");
          continue;
        }
        const auto timed = time_of((*made)->data(), sizes.inputs);
        if (timed.status().code() == Code::kCancelled) return timed.status();
        if (!timed) {
          pass_over(timed.status().message());
          continue;
        }
        with = std::move(*made);
        if (!rest) {
          PINNACE_ASSIGN(rest, request.prepare(request.targets, true));
        }
        const auto plain = time_of(rest->data(), sizes.inputs);
        if (plain.status().code() == Code::kCancelled) return plain.status();
        if (!plain) {
          pass_over(str_cat("the model could not be run to measure it: ", plain.status().message()));
          continue;
        }
        times = {*timed, *plain};
        if (const Status kept = memory.lock()->add(key, times); !kept.ok()) {
          PINNACE_LOG_WARN("times of auto are not kept, and measured again by the next process: ", kept.message());
          not_kept = str_cat("; these times are not kept: ", kept.message());
        }
      }
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
    best = std::move(with);
    best_targets = std::move(targets);
    best_times = times;
  }
  if (!best_targets.empty() && !best) {  // as it is remembered
    auto made = request.prepare(std::move(best_targets), false);
    if (made) {
      best = std::move(*made);
    } else {
      choice.passed_over.emplace_back(choice.chosen, made.status().message());
      choice.chosen.clear();
    }
  }
  if (!best && !rest) {
    PINNACE_ASSIGN(rest, request.prepare(request.targets, true));
  }
  std::shared_ptr<const Prepared> taken = best ? std::move(best) : std::move(rest);
  taken->data().set_choice(std::move(choice));
  return taken;
}

}  // namespace pinnace
