// Session and Run.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "base/border.h"
#include "base/memory.h"
#include "base/thread.h"
#include "runtime/binding.h"
#include "runtime/prepared_data.h"
#include "runtime/session_states.h"

namespace pinnace {

struct Session::Data {
  explicit Data(std::shared_ptr<const Prepared> p) : prepared(std::move(p)), runner(runner_of(*prepared)) {}
  static std::unique_ptr<GraphRunner> runner_of(const Prepared& p) {
    return std::make_unique<GraphRunner>(p.data().graph(), p.data().outputs, p.data().state_outputs, p.data().setup, "",
                                         1);
  }

  std::shared_ptr<const Prepared> prepared;
  std::unique_ptr<GraphRunner> runner;  ///< of `prepared`
  std::vector<int64_t> symbol_sizes;
  std::vector<TensorView> inputs, outputs;
  SessionStates states;
  const Instance* last = nullptr;      ///< of the last successful run
  std::vector<TensorType> last_types;  ///< of its outputs
  std::atomic<bool> busy{false};
  std::chrono::nanoseconds loop_limit{0};

  Status run(std::span<const Tensor> in, std::span<const Tensor> out, const std::atomic<bool>* cancel,
             std::vector<NodeTiming>* timings);
  /// run() once, as `prepared` has it.
  Status attempt(std::span<const Tensor> in, std::span<const Tensor> out, const std::atomic<bool>* cancel,
                 std::vector<NodeTiming>* timings);
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

}  // namespace

Status Session::Data::run(std::span<const Tensor> in, std::span<const Tensor> out, const std::atomic<bool>* cancel,
                          std::vector<NodeTiming>* timings) {
  const DefaultFloats floats;
  for (;;) {
    Status status = attempt(in, out, cancel, timings);
    if (status.code() != Code::kDeviceLost) return status;
    // State was not committed, so the same run can be made again: on the device opened anew, or without it.
    PINNACE_ASSIGN(std::shared_ptr<const Prepared> next, prepared->recovered(status));
    PINNACE_TRY(states.fetch_all());
    if (timings) timings->clear();
    auto next_runner = runner_of(*next);
    runner = std::move(next_runner);
    prepared = std::move(next);
  }
}

Status Session::Data::attempt(std::span<const Tensor> in, std::span<const Tensor> out, const std::atomic<bool>* cancel,
                              std::vector<NodeTiming>* timings) {
  const Prepared::Data& shared = prepared->data();
  const Program& program = shared.program;
  PINNACE_TRY(bind_inputs(program.inputs(), program.symbols(), in, symbol_sizes, inputs));
  PINNACE_TRY(bind_outputs(shared.output_specs, in, out, symbol_sizes, outputs));
  last = nullptr;
  PINNACE_ASSIGN(Instance * instance, runner->prepare(inputs));
  PINNACE_TRY(states.enter(*instance));
  for (size_t i = 0; i < out.size(); ++i) {  // room for the upper bound is demanded before anything runs
    if (!outputs[i].bytes) continue;
    const int64_t bound = bound_bytes(instance->plan->inference.types[shared.outputs[i]]);
    if (bound > static_cast<int64_t>(out[i].memory.bytes)) {
      return invalid("output '", shared.output_specs[i].name, "' has ", out[i].memory.bytes,
                     " bytes of memory, its upper bound is ", bound);
    }
  }
  RunContext context;
  context.pool = &ThreadPool::shared();
  context.threads = shared.threads;
  context.cancel = cancel;
  context.loop_limit = loop_limit;
  context.timings = timings;
  for (size_t i = 0; i < out.size(); ++i) {
    const TensorType& type = instance->plan->inference.types[shared.outputs[i]];
    if (outputs[i].bytes && !type.concrete() && bound_bytes(type) < 0) {
      return invalid("output '", shared.output_specs[i].name, "' has no upper bound: leave its memory to the session");
    }
  }
  PINNACE_TRY(runner->run(*instance, inputs, states.views(), std::span<const TensorView>(outputs.data(), out.size()),
                          context, 0));
  PINNACE_TRY(states.commit(*instance));  // everything succeeded
  last = instance;
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
  return at_border([&]() -> Result<Session> {
    if (!prepared) return invalid("Session::create needs a Prepared");
    auto data = std::make_shared<Data>(std::move(prepared));
    const Graph& graph = data->prepared->data().graph();
    data->symbol_sizes.resize(graph.symbols.size());
    data->inputs.resize(graph.inputs.size());
    data->outputs.resize(data->prepared->data().outputs.size());
    PINNACE_TRY(data->states.create(graph));
    Session session(std::move(data));
    PINNACE_TRY(session.reset_state());
    return session;
  });
}

std::span<const TensorSpec> Session::inputs() const {
  return data_->prepared->program().inputs();
}
std::span<const TensorSpec> Session::outputs() const {
  return data_->prepared->data().output_specs;
}
std::span<const Symbol> Session::symbols() const {
  return data_->prepared->program().symbols();
}

Status Session::run(std::span<const Tensor> inputs, std::span<const Tensor> outputs, const Finished& finished) {
  return at_border([&]() -> Status {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    PINNACE_TRY(data_->run(inputs, outputs, nullptr, nullptr));
    if (finished) finished(*this);
    return {};
  });
}

Result<std::vector<ProfileEvent>> Session::profile(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                                   const Finished& finished) {
  return at_border([&]() -> Result<std::vector<ProfileEvent>> {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    std::vector<NodeTiming> timings;
    const auto start = std::chrono::steady_clock::now();
    PINNACE_TRY(data_->run(inputs, outputs, nullptr, &timings));
    const auto ns = [](auto duration) {
      return static_cast<int64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
    };
    std::vector<ProfileEvent> events;
    for (const NodeTiming& t : timings) {
      events.push_back({t.node->name, t.node->op, std::string(t.backend), std::string(t.kernel), ns(t.start - start),
                        ns(t.end - t.start)});
    }
    if (finished) finished(*this);
    return events;
  });
}

TensorType Session::output_type(int i) const {
  const auto index = static_cast<size_t>(i);
  if (data_->last && index < data_->last->results.size()) return *data_->last->results[index].type;
  return index < outputs().size() ? outputs()[index].type : TensorType{};
}

Tensor Session::output(int i) const {
  const auto index = static_cast<size_t>(i);
  Tensor tensor;
  if (!data_->last || index >= data_->last->results.size()) return tensor;
  const TensorView& view = data_->last->results[index];
  tensor.type = *view.type;
  tensor.memory.host = view.bytes;
  tensor.memory.bytes = static_cast<size_t>(view.type->bytes());
  return tensor;
}

std::vector<Placement> Session::placement() const {
  return data_->last ? data_->prepared->data().with_choice(data_->last->plan->placement) : data_->prepared->placement();
}

PlanInfo Session::plan() const {
  PlanInfo info;
  info.constant_bytes = static_cast<int64_t>(data_->prepared->data().packed.made_bytes());
  if (!data_->last) return info;
  const Plan& plan = *data_->last->plan;
  info.peak_bytes = static_cast<int64_t>(GraphRunner::instance_bytes(*data_->last));
  info.segments = static_cast<int>(plan.steps.size());
  for (bool computed : plan.inference.computed) ++(computed ? info.nodes_computed_ahead : info.nodes_run);
  return info;
}

Status Session::limit_loops(std::chrono::nanoseconds limit) {
  return at_border([&]() -> Status {
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
}  // namespace

Result<Tensor> Session::state(int i) const {
  return at_border([&]() -> Result<Tensor> {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    PINNACE_ASSIGN(Tensor now, state_memory(data_->states, i));
    PINNACE_TRY(data_->states.fetch(static_cast<size_t>(i)));
    return now;
  });
}

Status Session::set_state(int i, const Tensor& value) {
  return at_border([&]() -> Status {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    PINNACE_ASSIGN(Tensor now, state_memory(data_->states, i));
    if (value.type.dtype != now.type.dtype || value.type.shape != now.type.shape) {
      return invalid("state '", data_->prepared->data().graph().states[static_cast<size_t>(i)].name, "' is ",
                     to_string(now.type), ", was given ", to_string(value.type));
    }
    if (value.memory.kind != Memory::Kind::kHost || (!value.memory.host && now.memory.bytes)) {
      return invalid("a state's new value must be host memory");
    }
    if (value.memory.bytes < now.memory.bytes) {
      return invalid("a state's new value has ", value.memory.bytes, " bytes, needs ", now.memory.bytes);
    }
    if (now.memory.bytes) std::memmove(now.memory.host, value.memory.host, now.memory.bytes);
    data_->states.set_here(static_cast<size_t>(i));
    return {};
  });
}

Status Session::reset_state() {
  return at_border([&]() -> Status {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    const Graph& graph = data_->prepared->data().graph();
    for (size_t i = 0; i < data_->states.size(); ++i) {
      if (const size_t bytes = data_->states.bytes(i)) {
        std::memcpy(data_->states.view(i).bytes, graph.states[i].initial->data(), bytes);
      }
      data_->states.set_here(i);
    }
    return {};
  });
}

struct Run::Data {
  Thread thread;
  std::atomic<bool> cancel{false};
  std::atomic<bool> done{false};
  Status status;
};

Run::Run(std::shared_ptr<Data> data) : data_(std::move(data)) {}
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&& other) noexcept {
  if (data_ && data_->thread.joinable()) data_->thread.join();
  data_ = std::move(other.data_);
  return *this;
}
Run::~Run() {
  if (data_ && data_->thread.joinable()) data_->thread.join();
}

Status Run::wait() {
  if (!data_) return at_border([] { return invalid("this Run was moved from"); });
  if (data_->thread.joinable()) data_->thread.join();
  return data_->status;
}

bool Run::done() const {
  return data_ && data_->done.load(std::memory_order_acquire);
}

void Run::cancel() {
  if (data_) data_->cancel.store(true, std::memory_order_relaxed);
}

Result<Run> Session::submit(std::span<const Tensor> inputs, std::span<const Tensor> outputs, Finished finished) {
  return at_border([&]() -> Result<Run> {
    Use use(data_->busy);
    if (!use.got()) return Use::refused();
    auto run = std::make_shared<Run::Data>();
    // The lists are copied; only the memory they point to is borrowed.
    auto thread =
        Thread::start([run = run.get(), session = data_, in = std::vector<Tensor>(inputs.begin(), inputs.end()),
                       out = std::vector<Tensor>(outputs.begin(), outputs.end()), finished = std::move(finished)] {
          run->status = at_border([&]() -> Status {
            PINNACE_TRY(session->run(in, out, &run->cancel, nullptr));
            if (finished) finished(Session(session));
            return {};
          });
          session->busy.store(false, std::memory_order_release);
          run->done.store(true, std::memory_order_release);
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
