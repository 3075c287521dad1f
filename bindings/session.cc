// class Session and Run, devices().
#include <pybind11/stl.h>

#include <mutex>
#include <utility>

#include <pinnace/pack_cache.h>
#include <pinnace/session.h>

#include "arrays.h"
#include "errors.h"
#include "gil.h"
#include "interrupt.h"
#include "types.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

/// Arrays borrowed for one run, and arrays made for those outputs whose size is known before it.
struct Call {
  std::vector<BorrowedArray> borrowed;
  std::vector<Tensor> inputs, outputs;
  std::vector<py::array> results;  // null where the session owns the bytes, of which these are copies
  std::vector<OwnedBytes> copies;
  py::object cancel;  // the token of a submitted run

  Call(const Session& session, const py::sequence& arrays) : borrowed(borrow_inputs(session, arrays)) {
    for (const BorrowedArray& b : borrowed) inputs.push_back(b.tensor);
    for (const TensorSpec& spec : session.outputs()) {
      Tensor tensor;
      py::array result;
      if (spec.type.concrete() && dtype_bits(spec.type.dtype) >= 8) {
        std::vector<py::ssize_t> shape;
        for (const Dim& d : spec.type.shape) shape.push_back(static_cast<py::ssize_t>(d.size));
        result = py::array(numpy_dtype(spec.type.dtype), shape);
        tensor.type = {spec.type.dtype, spec.type.shape, nullptr};
        tensor.memory.host = result.mutable_data();
        tensor.memory.bytes = static_cast<size_t>(result.nbytes());
        results.push_back(std::move(result));
      } else {
        results.push_back(py::reinterpret_steal<py::array>(nullptr));
      }
      outputs.push_back(std::move(tensor));
    }
  }

  /// To be called before the session may run again; without the GIL.
  Session::Finished copier() {
    return [this](const Session& session) {
      copies.resize(results.size());
      for (size_t i = 0; i < results.size(); ++i) {
        if (!results[i]) copies[i] = OwnedBytes::copy_of(session.output(static_cast<int>(i)));
      }
    };
  }

  /// The arrays. After an exception it may be called again: nothing is lost.
  Arrays take() {
    Arrays list;
    for (size_t i = 0; i < results.size(); ++i) list.append(results[i] ? results[i] : array_of(copies[i]));
    copies.clear();
    return list;
  }
};

Arrays run(Session& session, const py::sequence& arrays, std::optional<double> timeout, const CancelToken* cancel) {
  const RunOptions options = run_options(timeout, cancel);
  Call call(session, arrays);
  interruptible([&] { return session.run(call.inputs, call.outputs, call.copier(), options); });
  return call.take();
}

/// A submitted run. What it borrows, the token of its options too, lives as long as the longer of the two. Whoever
/// drops it wants no result: the run is then cancelled.
class PendingRun {
 public:
  PendingRun(const Session& session, const py::sequence& arrays)
      : call_(dropped_with_gil(std::make_unique<Call>(session, arrays))) {}
  static std::unique_ptr<PendingRun> start(Session& session, const py::sequence& arrays, std::optional<double> timeout,
                                           py::object cancel) {
    if (!cancel.is_none() && !py::isinstance<CancelToken>(cancel)) {
      throw py::type_error("cancel is not a CancelToken");
    }
    const RunOptions options = run_options(timeout, cancel.cast<const CancelToken*>());
    auto made = std::make_unique<PendingRun>(session, arrays);
    const std::shared_ptr<Call>& call = made->call_;
    call->cancel = std::move(cancel);
    Session::Finished finished = [call, copy = call->copier()](const Session& ran) { copy(ran); };
    made->run_ = until_exit(check(session.submit(call->inputs, call->outputs, std::move(finished), options)));
    return made;
  }
  ~PendingRun() {
    if (!run_) return;
    run_->cancel();
    drop(std::move(run_));
  }
  PendingRun(const PendingRun&) = delete;
  PendingRun& operator=(const PendingRun&) = delete;

  bool done() const { return run_->done(); }
  void cancel() { run_->cancel(); }
  Arrays result() {
    // The run's thread needs no GIL, so signals are looked at between waits; whoever is told to stop waiting does not
    // want the run to go on either.
    while (!ended_within(std::chrono::milliseconds(50))) {
      try {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        deliver_log_meanwhile();
      } catch (py::error_already_set&) {
        run_->cancel();
        throw;
      }
    }
    const auto wait = [&] {
      const WithoutGil release;
      Status status = run_->wait();
      taking_.lock();
      return status;
    };
    const Status status = wait();
    const std::lock_guard taken_once(taking_, std::adopt_lock);
    deliver_log();
    check(status);
    // Recursive: making arrays may collect garbage, and with it call this.
    if (making_) check(Status(Code::kInvalidArgument, "result() is being made by this thread"));
    if (!taken_) {
      struct Making {
        bool& now;
        ~Making() { now = false; }
      } const making{making_ = true};
      taken_ = call_->take();
    }
    return Arrays(taken_);
  }

 private:
  bool ended_within(std::chrono::milliseconds time) {
    const WithoutGil release;
    return run_->wait_for(time);
  }

  std::shared_ptr<Call> call_;
  std::shared_ptr<Run> run_;
  std::recursive_mutex taking_;  // never waited for with the GIL
  bool making_ = false;
  py::object taken_;
};

Service make_service(const std::string& preference, const std::string& priority, std::optional<double> deadline,
                     std::optional<double> loop_timeout, const std::string& cache_folder, const std::string& device,
                     const std::vector<int>& processors) {
  Service service{preference, priority};
  service.deadline = nanoseconds_of("deadline", deadline);
  service.loop_timeout = nanoseconds_of("loop_timeout", loop_timeout);
  service.cache_folder = cache_folder;
  service.device = device;
  service.processors = processors;
  return service;
}

std::unique_ptr<Session> make_session(const Program& program, const std::string& target, int threads,
                                      const std::string& precision, bool fallback, const std::vector<std::string>& keep,
                                      int plan_cache, const std::vector<const CustomOp*>& ops, bool require_payload,
                                      bool pack_cache, const Service& service, bool shape_invariant) {
  Options options;
  options.service = service;
  options.target = target;
  options.threads = threads;
  options.precision = precision;
  options.fallback = fallback;
  options.keep = keep;
  options.plan_cache = plan_cache;
  options.ops = ops;
  options.require_payload = require_payload;
  options.shape_invariant = shape_invariant;
  if (pack_cache) options.packed_store = &user_pack_cache();
  return std::make_unique<Session>(interruptible([&] { return Session::create(program, options); }));
}

Rows placement_dicts(const Session& session) {
  // Without the GIL: what it waits for may be held by a thread that wants the GIL to look at signals.
  const std::vector<Placement> placement = [&] {
    const WithoutGil release;
    return session.placement();
  }();
  Rows rows;
  for (const Placement& p : placement) {
    py::dict d;
    d["node"] = p.node;
    d["op"] = p.op;
    d["source"] = p.source;
    d["module"] = p.module;
    d["path"] = p.path;
    d["backend"] = p.backend;
    d["kernel"] = p.kernel;
    d["why"] = p.why;
    d["bytes_copied"] = p.bytes_copied;
    d["notice"] = p.notice;
    rows.append(d);
  }
  return rows;
}

py::dict plan_dict(const Session& session) {
  const PlanInfo plan = [&] {
    const WithoutGil release;
    return session.plan();
  }();
  py::dict d;
  d["peak_bytes"] = plan.peak_bytes;
  d["constant_bytes"] = plan.constant_bytes;
  d["segments"] = plan.segments;
  d["nodes_run"] = plan.nodes_run;
  d["nodes_computed_ahead"] = plan.nodes_computed_ahead;
  return d;
}

py::typing::Tuple<Arrays, Rows> profile(Session& session, const py::sequence& arrays, std::optional<double> timeout,
                                        const CancelToken* cancel) {
  const RunOptions options = run_options(timeout, cancel);
  Call call(session, arrays);
  const std::vector<ProfileEvent> events =
      interruptible([&] { return session.profile(call.inputs, call.outputs, call.copier(), options); });
  Rows rows;
  for (const ProfileEvent& e : events) {
    py::dict d;
    d["node"] = e.node;
    d["op"] = e.op;
    d["module"] = e.module;
    d["backend"] = e.backend;
    d["kernel"] = e.kernel;
    d["start_ns"] = e.start_ns;
    d["duration_ns"] = e.duration_ns;
    rows.append(d);
  }
  return py::make_tuple(call.take(), rows);
}

py::array state_array(const Session& session, int i) {
  const Tensor t = check(session.state(i));
  std::vector<std::byte> bytes(t.memory.bytes);
  Tensor copy = t;
  copy.memory.host = bytes.data();
  const auto go = [&] {
    const WithoutGil release;
    return session.copy_state(i, copy);
  };
  check(go());
  return array_of(t.type, bytes);
}

void set_state(Session& session, int i, const py::object& value) {
  const BorrowedArray borrowed = borrow_array(value, "state " + std::to_string(i));
  const auto go = [&] {
    const WithoutGil release;
    return session.set_state(i, borrowed.tensor);
  };
  check(go());
}

py::bytes save_state(const Session& session) {
  const auto go = [&] {
    const WithoutGil release;
    return session.save_state();
  };
  const std::vector<std::byte> saved = check(go());
  return {reinterpret_cast<const char*>(saved.data()), saved.size()};
}

void restore_state(Session& session, const py::bytes& saved) {
  const auto bytes = static_cast<std::string_view>(saved);
  const auto go = [&] {
    const WithoutGil release;
    return session.restore_state(std::as_bytes(std::span(bytes)));
  };
  check(go());
}

/// arrays: null for streams, and the results where nothing had to run.
py::typing::Tuple<py::object, std::vector<int64_t>> finish(Session& session, const py::sequence& arrays,
                                                           std::optional<double> timeout, const CancelToken* cancel) {
  const RunOptions options = run_options(timeout, cancel);
  std::vector<BorrowedArray> borrowed;
  std::vector<Tensor> inputs;
  for (const py::handle& array : arrays) {
    Tensor tensor;
    if (!array.is_none()) {
      borrowed.push_back(
          borrow_array(py::reinterpret_borrow<py::object>(array), "input " + std::to_string(inputs.size())));
      tensor = borrowed.back().tensor;
    }
    inputs.push_back(std::move(tensor));
  }
  std::vector<OwnedBytes> copies;
  const Session::Finished copy = [&](const Session& ran) {
    for (size_t i = 0; i < ran.outputs().size(); ++i)
      copies.push_back(OwnedBytes::copy_of(ran.output(static_cast<int>(i))));
  };
  const std::vector<int64_t> rest = interruptible([&] { return session.finish(inputs, copy, options); });
  py::object results = py::none();
  if (!copies.empty()) {
    Arrays list;
    for (const OwnedBytes& bytes : copies) list.append(array_of(bytes));
    results = std::move(list);
  }
  return py::make_tuple(results, rest);
}

std::unique_ptr<Session> fork(const Session& session) {
  return std::make_unique<Session>(interruptible([&] { return session.fork(); }));
}

bool wait_for_cache(double seconds) {
  const WithoutGil release;
  return wait_for_pack_cache(std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)));
}

Rows device_dicts() {
  Rows all;
  const auto look = [] {
    const WithoutGil release;
    return devices();
  };
  for (const Device& device : look()) {
    py::dict d;
    d["target"] = device.target;
    d["available"] = device.available;
    d["description"] = device.description;
    all.append(d);
  }
  return all;
}

}  // namespace

void add_session(py::module_& module) {
  py::class_<Service>(module, "Service", "An application's wishes. See pinnace.Service.")
      .def(py::init(&make_service), py::arg("preference") = "", py::arg("priority") = "",
           py::arg("deadline") = py::none(), py::arg("loop_timeout") = py::none(), py::arg("cache_folder") = "",
           py::arg("device") = "", py::arg("processors") = std::vector<int>{});
  py::class_<Session>(module, "Session", "A program made ready for a target. See pinnace.Session.")
      .def(py::init(&make_session), py::arg("program"), py::arg("target") = "auto", py::arg("threads") = 0,
           py::arg("precision") = "fp32", py::arg("fallback") = true, py::arg("keep") = std::vector<std::string>{},
           py::arg("plan_cache") = 8, py::arg("ops") = std::vector<const CustomOp*>{},
           py::arg("require_payload") = false, py::arg("pack_cache") = false, py::arg("service") = Service(),
           py::arg("shape_invariant") = false)
      .def_property_readonly("inputs", [](const Session& s) { return spec_dicts(s.inputs()); })
      .def_property_readonly("outputs", [](const Session& s) { return spec_dicts(s.outputs()); })
      .def_property_readonly("symbols", [](const Session& s) { return symbol_dicts(s.symbols()); })
      .def("run", run, py::arg("inputs"), py::arg("timeout") = py::none(), py::arg("cancel") = py::none(),
           "Arrays in order in, list of new arrays out. The GIL is released.")
      .def("profile", profile, py::arg("inputs"), py::arg("timeout") = py::none(), py::arg("cancel") = py::none(),
           "(outputs, list of timed nodes).")
      .def_property_readonly("precision", &Session::precision)
      .def_property_readonly("placement", placement_dicts)
      .def_property_readonly("plan", plan_dict)
      .def("state", state_array, py::arg("index"), "A copy of a state's contents.")
      .def("set_state", set_state, py::arg("index"), py::arg("value"))
      .def("reset_state", [](Session& session) { check(session.reset_state()); })
      .def("save_state", save_state)
      .def("restore_state", restore_state, py::arg("state"))
      .def("finish", finish, py::arg("inputs"), py::arg("timeout") = py::none(), py::arg("cancel") = py::none())
      .def("fork", fork);
  py::class_<PendingRun>(module, "PendingRun", "A run on a thread of its own. See pinnace.Future.")
      .def(py::init(&PendingRun::start), py::arg("session"), py::arg("inputs"), py::arg("timeout") = py::none(),
           py::arg("cancel") = py::none())
      .def("done", &PendingRun::done)
      .def("cancel", &PendingRun::cancel)
      .def("result", &PendingRun::result);
  module.def("wait_for_pack_cache", wait_for_cache, py::arg("seconds"),
             "Waits until all that was packed is in the user's cache folder; False: not within this time.");
  module.def("devices", device_dicts, "Targets of this build, whether each can run here, and what or why not.");
}

}  // namespace pinnace::bindings
