// Session and Run.
//
// What runs, reads state or changes the session marks it busy and is refused while another thread does. What describes
// the session reads either what never changes, or facts that a run publishes at its end, under a lock that nobody holds
// for longer than a few assignments.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/exception_boundary.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/threads/thread.h"
#include "runtime/binding.h"
#include "runtime/prepared_data.h"
#include "runtime/profiled_run.h"
#include "runtime/saved_states.h"
#include "runtime/session_states.h"
#include "runtime/stream_end.h"

namespace pinnace {

/// A session looks at the shares of its nodes once, in this run: what the first ones do for the first time is over.
constexpr int kRunsBeforeLook = 8;

struct Session::Data {
  explicit Data(std::shared_ptr<const Prepared> p)
      : program(p->program()),
        output_specs(p->data().output_specs),
        prepared(std::move(p)),
        runner(runner_of(*prepared)),
        facts{prepared, nullptr, nullptr, 0} {
#if PINNACE_SEARCHES_BESIDE_RUNS
    if (auto found = prepared->data().search()) search.emplace(std::move(found));
#endif
  }
  static std::unique_ptr<GraphRunner> runner_of(const Prepared& p) {
    return std::make_unique<GraphRunner>(p.data().graph(), p.data().outputs, p.data().state_outputs, p.data().setup, "",
                                         1);
  }

  // For the session's life: a run that loses its device, or has a better one, changes to another Prepared.
  const Program program;
  const std::vector<TensorSpec> output_specs;

  // Of whoever has marked the session busy.
  std::shared_ptr<const Prepared> prepared;
  std::unique_ptr<GraphRunner> runner;  ///< of `prepared`
  std::vector<int64_t> symbol_sizes;
  std::vector<TensorView> inputs, outputs;
  SessionStates states;
  std::chrono::nanoseconds loop_limit{0};
  std::atomic<bool> busy{false};
  int runs = 0;  ///< counted up to kRunsBeforeLook

  /// Of the last run that succeeded; before it, and after another Prepared took over, without a plan.
  struct Facts {
    std::shared_ptr<const Prepared> prepared;
    std::shared_ptr<const Plan> plan;
    std::shared_ptr<const ChosenKernels> chosen;
    size_t peak_bytes = 0;
  };
  // Under `published`: written by the run, read by anyone. A forked child that finds it locked has no facts until it
  // runs: a writer that stayed behind in the parent leaves the session busy, a reader leaves the lock to the next
  // writer.
  mutable ProcessMutex published;
  Facts facts;
  const Instance* last = nullptr;  ///< whose results can be read; null while a run is under way or if it failed

  /// A copy that later runs leave alone.
  Facts known() const {
    const ProcessLock lock(published);
    return lock.held() ? facts : Facts{};
  }
  /// What output() and output_type() read is about to change.
  void withdraw() {
    const ProcessLockAnew lock(published);
    last = nullptr;
  }
  void publish(Facts next, const Instance* instance) {
    const ProcessLockAnew lock(published);
    std::swap(facts, next);  // the old ones go after the lock
    last = instance;
  }
  /// Calls `read` with result i of the last run, if there is one.
  template <class Read>
  void with_result(int i, Read read) const {
    const ProcessLock lock(published);
    const auto index = static_cast<size_t>(i);
    if (lock.held() && last && index < last->results.size()) read(last->results[index]);
  }

  /// before_commit: called once the nodes have run; where it fails, states and results are as after a failed run.
  Status run(std::span<const Tensor> in, std::span<const Tensor> out, const RunOptions& options, NodeTimings* timings,
             const std::function<Status()>& before_commit = {});
  /// The same without timings, with a message of its time where runs are traced. One run, after the first ones, is
  /// timed where reference code has a part in it, and a warning says so if that part is large.
  Status run_logged(std::span<const Tensor> in, std::span<const Tensor> out, const RunOptions& options) {
    bool looks = false;
    if (runs < kRunsBeforeLook && logs(LogLevel::kWarn)) {
      ++runs;
      looks = runs == kRunsBeforeLook && runs_reference_code();
    }
    if (!looks && !logs(LogLevel::kTrace)) return run(in, out, options, nullptr);
    const LogTime time;
    NodeTimings timings;
    Status status = run(in, out, options, looks ? &timings : nullptr);
    if (looks && status.ok()) log_several(LogLevel::kWarn, [&] { warn_of_reference_code(timings.rows()); });
    PINNACE_LOG_TRACE("ran '", prepared->data().graph().name, "' in ", time.text(),
                      status.ok() ? "" : ", which failed: ", status.ok() ? "" : code_name(status.code()));
    return status;
  }
  bool runs_reference_code() const {
    const Facts now = known();
    if (!now.plan) return false;
    const auto is_reference = [](const auto& row) { return row.kernel == kReferenceCode; };
    return std::any_of(now.plan->placement.begin(), now.plan->placement.end(), is_reference) ||
           (now.chosen && std::any_of(now.chosen->begin(), now.chosen->end(), is_reference));
  }
  void warn_of_reference_code(std::span<const NodeTimings::Row> timings) const;
  /// Every state as at first.
  void reset_states() {
    const Graph& graph = prepared->data().graph();
    for (size_t i = 0; i < states.size(); ++i) {
      if (const size_t bytes = states.bytes(i))
        std::memcpy(states.view(i).bytes, graph.states[i].initial->data(), bytes);
      states.set_here(i);
    }
  }
  /// Every state, from dense bytes that follow each other.
  void set_states(const std::byte* bytes) {
    for (size_t i = 0; i < states.size(); ++i) {
      if (const size_t count = states.bytes(i)) std::memcpy(states.view(i).bytes, bytes, count);
      bytes += states.bytes(i);
      states.set_here(i);
    }
  }
  /// From now on runs are `next`'s. Their states come along.
  Status change_to(std::shared_ptr<const Prepared> next);
#if PINNACE_SEARCHES_BESIDE_RUNS
  /// For the device that "auto" may find meanwhile; none: there is no search, or it has ended.
  std::optional<DeviceSearch::Use> search;
  /// Before a run: changes to what the search has found. A session that cannot have what its run would need there,
  /// memory for instance, tries again before its next run.
  void change_to_found();
#endif
  /// run() once, as `prepared` has it.
  Status attempt(std::span<const Tensor> in, std::span<const Tensor> out, NodeTimings* timings,
                 const std::function<Status()>& before_commit);
};

namespace {

/// Marks a session as in use for a scope, or until hand_over(); a second user is told so.
class Use {
 public:
  explicit Use(std::atomic<bool>& busy) : busy_(busy), got_(!busy.exchange(true, std::memory_order_acquire)) {}
  ~Use() {
    if (got_) busy_.store(false, std::memory_order_release);
  }
  bool got() const { return got_; }
  /// From now on another thread gives the session back.
  void hand_over() { got_ = false; }
  static Status refused() {
    return invalid("the session is running on another thread: make one session per thread, they share weights");
  }

 private:
  std::atomic<bool>& busy_;
  bool got_;
};

/// While a stream's tail runs, the state that says whether the stream is open says that it is not. At the end, however
/// that comes about, all states are as at first if the tail has run, else as before.
template <class Data>
class TailRun {
 public:
  /// open: the number of that state; -1: there is none.
  TailRun(Data& data, int open) : data_(data), open_(open) { set_open(0); }
  ~TailRun() {
    if (has_run_) {
      data_.reset_states();
    } else {
      set_open(1);
    }
  }
  TailRun(const TailRun&) = delete;
  TailRun& operator=(const TailRun&) = delete;
  void has_run() { has_run_ = true; }

 private:
  void set_open(int64_t open) {
    if (open_ < 0) return;
    const auto at = static_cast<size_t>(open_);
    std::memcpy(data_.states.view(at).bytes, &open, sizeof open);
    data_.states.set_here(at);
  }

  Data& data_;
  const int open_;
  bool has_run_ = false;
};

}  // namespace

void Session::Data::warn_of_reference_code(std::span<const NodeTimings::Row> timings) const {
  std::chrono::nanoseconds all{0}, reference{0}, longest{0};
  const NodeTimings::Row* slowest = nullptr;
  for (const NodeTimings::Row& t : timings) {
    const std::chrono::nanoseconds time = t.end - t.start;
    all += time;
    if (t.kernel != kReferenceCode) continue;
    reference += time;
    if (time >= longest) {
      longest = time;
      slowest = &t;
    }
  }
  if (!slowest || reference * 5 <= all) return;  // a fifth; 0 of 0, too
  PINNACE_LOG_WARN("reference code takes ", reference * 100 / all, " % of a run of '", prepared->data().graph().name,
                   "', most of it for ", slowest->op, " '", slowest->node,
                   "': no kernel takes these nodes' types and sizes, which placement names");
}

Status Session::Data::run(std::span<const Tensor> in, std::span<const Tensor> out, const RunOptions& options,
                          NodeTimings* timings, const std::function<Status()>& before_commit) {
  if (options.timeout.count() < 0) return invalid("a run cannot be given ", options.timeout.count(), " ns");
  const CancelScope scope(options);
  const DefaultFloats floats;
  const StaysOn stays(prepared->data().processors);
#if PINNACE_SEARCHES_BESIDE_RUNS
  change_to_found();
#endif
  for (;;) {
    Status status = attempt(in, out, timings, before_commit);
#if PINNACE_SEARCHES_BESIDE_RUNS
    if (status.ok() && search) search->begin();
#endif
    if (status.code() != Code::kDeviceLost) return status;
    // State was not committed, so the same run can be made again: on the device opened anew, or without it.
    PINNACE_ASSIGN(std::shared_ptr<const Prepared> next, prepared->recovered(status));
    PINNACE_TRY(change_to(std::move(next)));
    if (timings) timings->clear();
  }
}

Status Session::Data::change_to(std::shared_ptr<const Prepared> next) {
  PINNACE_TRY(states.fetch_all());
  auto next_runner = runner_of(*next);
  withdraw();  // results are the old runner's
  runner = std::move(next_runner);
  prepared = std::move(next);
  publish({prepared, nullptr, nullptr, 0}, nullptr);
  return {};
}

#if PINNACE_SEARCHES_BESIDE_RUNS
void Session::Data::change_to_found() {
  if (!search || !search->ended()) return;
  auto found = search->found();
  if (found && !exception_boundary([&] { return change_to(std::move(found)); }).ok()) return;
  search.reset();
}
#endif

Status Session::Data::attempt(std::span<const Tensor> in, std::span<const Tensor> out, NodeTimings* timings,
                              const std::function<Status()>& before_commit) {
  const Prepared::Data& shared = prepared->data();
  const Program& program = shared.program;
  PINNACE_TRY(bind_inputs(program.inputs(), program.symbols(), in, symbol_sizes, inputs));
  PINNACE_TRY(bind_outputs(shared.output_specs, program.symbols(), in, out, symbol_sizes, outputs));
  withdraw();
  PINNACE_ASSIGN(Instance * instance, runner->prepare(inputs, states.holder()));
  for (size_t i = 0; i < shared.output_specs.size(); ++i) {
    const TensorType& made = instance->plan->type_inference.types[shared.outputs[i]];
    PINNACE_TRY(check_declared(shared.output_specs[i], program.symbols(), symbol_sizes, made));
  }
  PINNACE_TRY(states.enter(*instance));
  for (size_t i = 0; i < out.size(); ++i) {  // room for the upper bound is demanded before anything runs
    if (!outputs[i].bytes) continue;
    const int64_t bound = bound_bytes(instance->plan->type_inference.types[shared.outputs[i]]);
    if (bound > 0 && static_cast<size_t>(bound) > out[i].memory.bytes) {
      return invalid("output '", shared.output_specs[i].name, "' has ", out[i].memory.bytes,
                     " bytes of memory, its upper bound is ", bound);
    }
  }
  RunContext context;
  context.pool = &ThreadPool::shared();
  context.threads = shared.threads;
  context.workers_stay_awake = shared.workers_stay_awake;
  context.loop_limit = loop_limit;
  context.timings = timings;
  for (size_t i = 0; i < out.size(); ++i) {
    const TensorType& type = instance->plan->type_inference.types[shared.outputs[i]];
    if (outputs[i].bytes && !type.concrete() && bound_bytes(type) < 0) {
      return invalid("output '", shared.output_specs[i].name, "' has no upper bound: leave its memory to the session");
    }
  }
  PINNACE_TRY(runner->run(*instance, inputs, states.views(), std::span<const TensorView>(outputs.data(), out.size()),
                          context, 0));
  GraphRunner::note_chosen(*instance);
  if (before_commit) PINNACE_TRY(before_commit());
  PINNACE_TRY(states.commit(*instance));  // everything succeeded
  publish({prepared, instance->plan, instance->chosen, GraphRunner::instance_bytes(*instance)}, instance);
  return {};
}

Session::Session(std::shared_ptr<Data> data) : data_(std::move(data)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(const Program& program, const Options& options) {
  PINNACE_ASSIGN(std::shared_ptr<const Prepared> prepared, Prepared::create(program, options));
  return create(std::move(prepared));
}

Result<Session> Session::create(std::shared_ptr<const Prepared> prepared) {
  return exception_boundary([&]() -> Result<Session> {
    if (!prepared) return invalid("Session::create needs a Prepared");
    auto data = std::make_shared<Data>(std::move(prepared));
    const Graph& graph = data->prepared->data().graph();
    data->symbol_sizes.resize(graph.symbols.size());
    data->inputs.resize(graph.inputs.size());
    data->outputs.resize(data->prepared->data().outputs.size());
    data->loop_limit = data->prepared->options().service.loop_timeout;
    PINNACE_TRY(data->states.create(graph));
    Session session(std::move(data));
    PINNACE_TRY(session.reset_state());
    return session;
  });
}

std::span<const TensorSpec> Session::inputs() const {
  return data_->program.inputs();
}
std::span<const TensorSpec> Session::outputs() const {
  return data_->output_specs;
}
std::span<const Symbol> Session::symbols() const {
  return data_->program.symbols();
}

Status Session::run(std::span<const Tensor> inputs, std::span<const Tensor> outputs, const Finished& finished,
                    const RunOptions& options) {
  return exception_boundary([&]() -> Status {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    PINNACE_TRY(data_->run_logged(inputs, outputs, options));
    if (finished) finished(*this);
    return {};
  });
}

Result<std::vector<ProfileEvent>> Session::profile(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                                   const Finished& finished, const RunOptions& options) {
  std::vector<ProfileEvent> events;
  PINNACE_TRY(ProfiledRun::run(*this, inputs, outputs, finished, options, [&](std::vector<ProfileEvent> made) {
    events = std::move(made);
    return Status();
  }));
  return events;
}

Status ProfiledRun::run(Session& session, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                        const Session::Finished& finished, const RunOptions& options, const Take& take) {
  return exception_boundary([&]() -> Status {
    Use use(session.data_->busy);
    if (!use.got()) return Use::refused();
    NodeTimings timings;
    const auto start = std::chrono::steady_clock::now();
    const auto ns = [](auto duration) {
      return static_cast<int64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
    };
    PINNACE_TRY(session.data_->run(inputs, outputs, options, &timings, [&] {
      std::vector<ProfileEvent> events;
      for (const NodeTimings::Row& t : timings.rows()) {
        events.push_back({std::string(t.node), std::string(t.op), std::string(t.backend), std::string(t.kernel),
                          ns(t.start - start), ns(t.end - t.start), std::string(t.module)});
      }
      return take(std::move(events));
    }));
    if (finished) finished(session);
    return {};
  });
}

TensorType Session::output_type(int i) const {
  const auto index = static_cast<size_t>(i);
  TensorType type = index < outputs().size() ? outputs()[index].type : TensorType{};
  data_->with_result(i, [&](const TensorView& view) { type = *view.type; });
  return type;
}

Tensor Session::output(int i) const {
  Tensor tensor;
  data_->with_result(i, [&](const TensorView& view) {
    tensor.type = *view.type;
    tensor.memory.host = view.bytes;
    tensor.memory.bytes = static_cast<size_t>(view.type->bytes());
  });
  return tensor;
}

std::string Session::precision() const {
  const Data::Facts known = data_->known();
  if (!known.prepared) return {};
  for (const TargetChoice& choice : known.prepared->data().targets) {
    if (choice.backend == &cpu_backend()) return choice.spec.precision;
  }
  return known.prepared->options().precision;
}

std::vector<Placement> Session::placement() const {
  const Data::Facts known = data_->known();
  if (!known.prepared) return {};
  if (!known.plan) return known.prepared->placement();
  const Prepared::Data& data = known.prepared->data();
  return data.with_choice(data.placement_of(*known.plan, false, known.chosen.get()));
}

PlanInfo Session::plan() const {
  PlanInfo info;
  const Data::Facts known = data_->known();
  if (!known.prepared) return info;
  info.constant_bytes = static_cast<int64_t>(known.prepared->data().packed.made_bytes());
  if (!known.plan) return info;
  info.peak_bytes = static_cast<int64_t>(known.peak_bytes);
  info.segments = static_cast<int>(known.plan->steps.size());
  for (bool computed : known.plan->type_inference.computed) ++(computed ? info.nodes_computed_ahead : info.nodes_run);
  return info;
}

Status Session::limit_loops(std::chrono::nanoseconds limit) {
  return exception_boundary([&]() -> Status {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    if (limit.count() < 0) return invalid("loops cannot be limited to ", limit.count(), " ns");
    data_->loop_limit = limit;
    return {};
  });
}

namespace {
/// A state's memory, whatever is in it.
Result<Tensor> state_memory(const SessionStates& states, int i) {
  if (i < 0 || static_cast<size_t>(i) >= states.size()) {
    return invalid("state ", i, " is outside the program's ", states.size(), " states");
  }
  Tensor tensor;
  tensor.type = *states.view(static_cast<size_t>(i)).type;
  tensor.memory.host = states.view(static_cast<size_t>(i)).bytes;
  tensor.memory.bytes = states.bytes(static_cast<size_t>(i));
  return tensor;
}

/// Whether `other` is memory that a state can be copied from or to.
Status check_copy(const std::string& name, const Tensor& state, const Tensor& other) {
  if (other.type.dtype != state.type.dtype || other.type.shape != state.type.shape) {
    return invalid("state '", name, "' is ", state.type, ", was given ", other.type);
  }
  if (!other.memory.host && state.memory.bytes) return invalid("state '", name, "' was given no memory");
  if (other.memory.bytes < state.memory.bytes) {
    return invalid("state '", name, "' has ", state.memory.bytes, " bytes, was given memory of ", other.memory.bytes);
  }
  return {};
}
}  // namespace

Result<Tensor> Session::state(int i) const {
  return exception_boundary([&]() -> Result<Tensor> {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    PINNACE_ASSIGN(Tensor now, state_memory(data_->states, i));
    PINNACE_TRY(data_->states.fetch(static_cast<size_t>(i)));
    return now;
  });
}

Status Session::copy_state(int i, const Tensor& to) const {
  return exception_boundary([&]() -> Status {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    PINNACE_ASSIGN(Tensor now, state_memory(data_->states, i));
    PINNACE_TRY(check_copy(data_->program.data().graph.states[static_cast<size_t>(i)].name, now, to));
    PINNACE_TRY(data_->states.fetch(static_cast<size_t>(i)));
    if (now.memory.bytes) std::memcpy(to.memory.host, now.memory.host, now.memory.bytes);
    return {};
  });
}

Status Session::set_state(int i, const Tensor& value) {
  return exception_boundary([&]() -> Status {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    PINNACE_ASSIGN(Tensor now, state_memory(data_->states, i));
    PINNACE_TRY(check_copy(data_->program.data().graph.states[static_cast<size_t>(i)].name, now, value));
    if (now.memory.bytes) std::memmove(now.memory.host, value.memory.host, now.memory.bytes);
    data_->states.set_here(static_cast<size_t>(i));
    return {};
  });
}

Status Session::reset_state() {
  return exception_boundary([&]() -> Status {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    data_->reset_states();
    return {};
  });
}

Result<std::vector<int64_t>> Session::finish(std::span<const Tensor> inputs, const Finished& finished,
                                             const RunOptions& options) {
  return exception_boundary([&]() -> Result<std::vector<int64_t>> {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    PINNACE_ASSIGN(StreamEnd end, stream_end(data_->program.data(), inputs));
    const size_t streamed = end.rest.size();
    end.rest.resize(outputs().size(), 0);  // once the tail has run, nothing needs memory
    if (!end.tail) {
      data_->withdraw();
      std::fill(end.rest.begin(), end.rest.end(), 0);
      data_->reset_states();
      return std::move(end.rest);
    }
    TailRun tail(*data_, end.open);
    PINNACE_TRY(data_->run_logged(end.inputs, {}, options));
    tail.has_run();
    for (size_t i = 0; i < streamed; ++i) {  // metadata may say what is not so
      data_->with_result(static_cast<int>(i), [&](const TensorView& y) {
        end.rest[i] = std::min(end.rest[i], y.type->shape[end.axes[i]].size);
      });
    }
    if (finished) finished(*this);
    return std::move(end.rest);
  });
}

Result<std::vector<std::byte>> Session::save_state() const {
  return exception_boundary([&]() -> Result<std::vector<std::byte>> {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    for (size_t i = 0; i < data_->states.size(); ++i) PINNACE_TRY(data_->states.fetch(i));
    return saved_states(data_->program.data(), data_->states);
  });
}

Status Session::restore_state(std::span<const std::byte> saved) {
  return exception_boundary([&]() -> Status {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    PINNACE_ASSIGN(const auto bytes, checked_states(data_->program.data(), data_->states, saved));
    data_->set_states(bytes.data());
    return {};
  });
}

Result<Session> Session::fork() const {
  return exception_boundary([&]() -> Result<Session> {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    for (size_t i = 0; i < data_->states.size(); ++i) PINNACE_TRY(data_->states.fetch(i));
    PINNACE_ASSIGN(Session other, create(data_->prepared));
    other.data_->loop_limit = data_->loop_limit;
    for (size_t i = 0; i < data_->states.size(); ++i) {
      if (const size_t bytes = data_->states.bytes(i)) {
        std::memcpy(other.data_->states.view(i).bytes, data_->states.view(i).bytes, bytes);
      }
    }
    return other;
  });
}

/// Shared by the owner, whoever waits, and the thread that runs.
struct Run::Data {
  Thread thread;  ///< the owner's
  const pid_t process = ::getpid();
  CancelToken cancel;
  Status status;  ///< written before `done` is set
  std::atomic<bool> done{false};
  std::atomic<bool> told{false};  ///< somebody has waited for the status
  std::mutex mutex;               ///< of `ended`
  std::condition_variable ended;

  void finish(Status result) {
    status = std::move(result);
    {
      std::lock_guard lock(mutex);
      done.store(true, std::memory_order_release);
    }
    ended.notify_all();
  }
  /// The owner goes away.
  void leave() {
    if (!thread.joinable()) return;
    if (thread.is_this_thread()) {
      thread.detach();
    } else {
      thread.join();
      const bool failed = !status.ok() && status.code() != Code::kCancelled;
      if (failed && !told.load(std::memory_order_relaxed) && process == ::getpid()) {
        PINNACE_LOG_ERROR("a run that nobody waited for failed (", code_name(status.code()),
                          "); who waits for it gets the sentence that names place, rule and value");
      }
    }
  }
};

Run::Run(std::shared_ptr<Data> data) : data_(std::move(data)) {}
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&& other) noexcept {
  if (this == &other) return *this;
  if (data_) data_->leave();
  data_ = std::move(other.data_);
  return *this;
}
Run::~Run() {
  if (data_) data_->leave();
}

Status Run::wait() {
  const std::shared_ptr<Data> data = data_;
  return exception_boundary([&]() -> Status {
    if (!data) return invalid("this Run was moved from");
    if (!data->done.load(std::memory_order_acquire)) {
      if (data->process != ::getpid()) {
        return invalid("the run is under way in the process that this one was forked from");
      }
      if (data->thread.is_this_thread()) return invalid("a run cannot wait for itself");
    }
    std::unique_lock lock(data->mutex);
    data->ended.wait(lock, [&] { return data->done.load(std::memory_order_acquire); });
    data->told.store(true, std::memory_order_relaxed);
    return data->status;
  });
}

bool Run::wait_for(std::chrono::nanoseconds time) const {
  const std::shared_ptr<Data> data = data_;
  if (!data || data->done.load(std::memory_order_acquire)) return true;
  if (data->process != ::getpid()) return true;  // wait() says why
  std::unique_lock lock(data->mutex);
  return data->ended.wait_until(lock, end_of(time), [&] { return data->done.load(std::memory_order_acquire); });
}

bool Run::done() const {
  return data_ && data_->done.load(std::memory_order_acquire);
}

void Run::cancel() {
  if (data_) data_->cancel.cancel();
}

Result<Run> Session::submit(std::span<const Tensor> inputs, std::span<const Tensor> outputs, Finished finished,
                            const RunOptions& options) {
  return exception_boundary([&]() -> Result<Run> {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    auto run = std::make_shared<Run::Data>();
    // The lists are copied; only the memory they point to is borrowed. When the run is done, the thread has let go of
    // all else that it holds.
    auto thread = Thread::start([run, session = data_, in = std::vector<Tensor>(inputs.begin(), inputs.end()),
                                 out = std::vector<Tensor>(outputs.begin(), outputs.end()),
                                 finished = std::move(finished), options]() mutable {
      Status status = exception_boundary([&]() -> Status {
        {
          const CancelScope scope({.cancel = &run->cancel});
          PINNACE_TRY(session->run_logged(in, out, options));
        }
        if (finished) finished(Session(session));
        return {};
      });
      finished = nullptr;
      session->busy.store(false, std::memory_order_release);
      session.reset();
      run->finish(std::move(status));
    });
    if (!thread.ok()) return thread.status();
    use.hand_over();
    run->thread = std::move(*thread);
    return Run(std::move(run));
  });
}

std::vector<Device> devices() {
  std::vector<Device> found;
  for (const Backend* backend : all_backends()) {
    TargetSpec spec;
    spec.backend = backend->name();
    const std::string reason = backend->unavailable(spec);
    found.push_back({spec.backend, reason.empty(), reason.empty() ? backend->description() : reason});
  }
  return found;
}

}  // namespace pinnace
