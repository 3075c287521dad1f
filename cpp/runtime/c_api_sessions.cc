// The C API: sessions, runs, what ends them, and operators of the application. See c_api.cc.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/c_api.h"
#include "runtime/profiled_run.h"

using pinnace::CustomAttributes;
using pinnace::Dim;
using pinnace::DType;
using pinnace::invalid;
using pinnace::Result;
using pinnace::Session;
using pinnace::Status;
using pinnace::Tensor;
using pinnace::TensorType;
using pinnace::c_api::check_index;
using pinnace::c_api::check_rank;
using pinnace::c_api::fill_shape;
using pinnace::c_api::fill_spec;
using pinnace::c_api::fill_type;
using pinnace::c_api::give_rows;
using pinnace::c_api::guarded;
using pinnace::c_api::null_argument;
using pinnace::c_api::report;
using pinnace::c_api::report_null;
using pinnace::c_api::Rows;

struct pnc_session {
  Session session;
};
struct pnc_run {
  pinnace::Run run;
};
struct pnc_cancel_token {
  pinnace::CancelToken token;
};
struct pnc_cancel_scope {
  pinnace::CancelScope scope;
};
struct pnc_custom_op {
  pinnace::CustomOp op;
};

namespace {

/// `open`: -1 is a size that is not known.
Result<Tensor> tensor_of(const char* what, int32_t index, const pnc_tensor& t, bool open = false) {
  if (t.rank < 0 || t.rank > PNC_MAX_RANK) return invalid(what, " ", index, ": rank ", t.rank, " is outside [0, 32]");
  if (static_cast<unsigned>(t.dtype) >= pinnace::kDTypeCount) {
    return invalid(what, " ", index, ": dtype ", static_cast<int>(t.dtype), " is not one of pnc_dtype");
  }
  Tensor tensor;
  tensor.type.dtype = static_cast<DType>(t.dtype);
  for (int32_t d = 0; d < t.rank; ++d) {
    if (t.shape[d] < (open ? -1 : 0)) return invalid(what, " ", index, ": dimension ", d, " is ", t.shape[d]);
    tensor.type.shape.push_back(Dim(t.shape[d]));
  }
  tensor.memory.host = t.data;
  tensor.memory.bytes = t.bytes;
  return tensor;
}

Status tensors_of(const char* what, const pnc_tensor* list, int32_t count, std::vector<Tensor>& tensors) {
  if (count < 0) return invalid("a count is negative");
  if (!list && count) return null_argument("a list of tensors with a count above 0");
  for (int32_t i = 0; i < count; ++i) {
    PINNACE_ASSIGN(Tensor tensor, tensor_of(what, i, list[i]));
    tensors.push_back(std::move(tensor));
  }
  return {};
}

Status fill_tensor(const TensorType& type, const pinnace::Memory& memory, pnc_tensor* tensor) {
  PINNACE_TRY(check_rank(type));
  *tensor = {memory.host, memory.bytes, static_cast<pnc_dtype>(type.dtype), type.rank(), {}};
  fill_shape(type, tensor->shape);
  return {};
}

Status create_session(const pnc_program* program, const pnc_session_options& given, pnc_session** session) {
  pinnace::Options chosen;
  if (given.target) chosen.target = given.target;
  if (given.precision) chosen.precision = given.precision;
  chosen.threads = given.threads;
  chosen.fallback = !given.no_fallback;
  if (given.plan_cache) chosen.plan_cache = given.plan_cache;
  chosen.require_payload = given.require_payload != 0;
  chosen.shape_invariant = given.shape_invariant != 0;
  if (given.keep_count < 0 || given.op_count < 0 || given.processor_count < 0) return invalid("a count is negative");
  if ((!given.keep && given.keep_count) || (!given.ops && given.op_count) ||
      (!given.processors && given.processor_count)) {
    return null_argument("a list of options with a count above 0");
  }
  pinnace::Service& service = chosen.service;
  if (given.preference) service.preference = given.preference;
  if (given.priority) service.priority = given.priority;
  if (given.cache_folder) service.cache_folder = given.cache_folder;
  if (given.device) service.device = given.device;
  service.deadline = std::chrono::nanoseconds(given.deadline_ns);
  service.loop_timeout = std::chrono::nanoseconds(given.loop_timeout_ns);
  service.processors.assign(given.processors, given.processors + given.processor_count);
  for (int32_t i = 0; i < given.keep_count; ++i) {
    if (!given.keep[i]) return null_argument("a name to keep");
    chosen.keep.emplace_back(given.keep[i]);
  }
  for (int32_t i = 0; i < given.op_count; ++i) {
    if (!given.ops[i]) return null_argument("an operator");
    chosen.ops.push_back(&given.ops[i]->op);
  }
  PINNACE_ASSIGN(Session created, Session::create(program->program, chosen));
  *session = new pnc_session{std::move(created)};
  return {};
}

/// What a run is given, checked. Of what is not here the functions that run know nothing.
struct RunArguments {
  std::vector<Tensor> inputs, outputs;
  pinnace::RunOptions options;
};

pinnace::RunOptions options_of(const pnc_run_options* options) {
  pinnace::RunOptions chosen;
  if (options) {
    if (options->cancel) chosen.cancel = &options->cancel->token;
    chosen.timeout = std::chrono::nanoseconds(options->timeout_ns);
  }
  return chosen;
}

Status arguments_of(const pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                    const pnc_tensor* outputs, int32_t output_count, const pnc_run_options* options,
                    RunArguments& run) {
  if (!session) return null_argument("session");
  PINNACE_TRY(tensors_of("input", inputs, input_count, run.inputs));
  PINNACE_TRY(tensors_of("output", outputs, output_count, run.outputs));
  run.options = options_of(options);
  return {};
}

/// What pnc_session_profile was given.
Status output(const pnc_session* session, int32_t index, pnc_tensor* tensor) {
  if (!session) return null_argument("session");
  if (!tensor) return null_argument("tensor");
  const Tensor from = session->session.output(index);
  if (index < 0 || static_cast<size_t>(index) >= session->session.outputs().size()) {
    return invalid("output ", index, " is outside [0, ", session->session.outputs().size(), ")");
  }
  if (!from.memory.host) return invalid("the session has not run, or its last run failed");
  return fill_tensor(from.type, from.memory, tensor);
}

/// Copies a state to `tensor`, or from it where there is `set`.
pnc_status with_state(const pnc_session* session, pnc_session* set, int32_t index, const pnc_tensor* tensor) {
  return guarded([&]() -> Status {
    if (!session || !tensor) return null_argument("session or tensor");
    PINNACE_ASSIGN(const Tensor given, tensor_of("state", index, *tensor));
    return set ? set->session.set_state(index, given) : session->session.copy_state(index, given);
  });
}

/// Types of values, or the values themselves.
struct Values {
  std::span<const TensorType> types;
  std::span<const Tensor> tensors;

  Status fill(std::vector<pnc_tensor>& list) const {
    list.resize(std::max(types.size(), tensors.size()));
    for (size_t i = 0; i < list.size(); ++i) {
      PINNACE_TRY(tensors.empty() ? fill_tensor(types[i], {}, &list[i])
                                  : fill_tensor(tensors[i].type, tensors[i].memory, &list[i]));
    }
    return {};
  }
};

/// An operator's function, by C's. `shaped`: where the types go that it gives.
struct OpFunction {
  pnc_op_function function;
  void* user;

  Status call_with(const Values& inputs, const CustomAttributes& attributes, const Values& outputs,
                   std::span<TensorType> shaped) const;
  Status operator()(std::span<const TensorType> inputs, const CustomAttributes& attributes,
                    std::span<TensorType> outputs) const {
    return call_with({inputs, {}}, attributes, {outputs, {}}, outputs);
  }
  Status operator()(std::span<const Tensor> inputs, const CustomAttributes& attributes,
                    std::span<const Tensor> outputs) const {
    return call_with({{}, inputs}, attributes, {{}, outputs}, {});
  }
};

Status OpFunction::call_with(const Values& inputs, const CustomAttributes& attributes, const Values& outputs,
                             std::span<TensorType> shaped) const {
  std::vector<pnc_tensor> in, out;
  PINNACE_TRY(inputs.fill(in));
  PINNACE_TRY(outputs.fill(out));
  std::vector<pnc_fact> facts(attributes.size());
  for (size_t i = 0; i < facts.size(); ++i) facts[i] = {attributes[i].first.c_str(), attributes[i].second.c_str()};
  pnc_op_call call = {};
  call.inputs = in.data();
  call.outputs = out.data();
  call.attributes = facts.data();
  call.input_count = static_cast<int32_t>(in.size());
  call.output_count = static_cast<int32_t>(out.size());
  call.attribute_count = static_cast<int32_t>(facts.size());
  if (const auto status = static_cast<unsigned>(function(user, &call))) {
    call.message[sizeof call.message - 1] = '\0';
    const bool known = status <= PNC_VERIFICATION;
    return Status(known ? static_cast<pinnace::Code>(status) : pinnace::Code::kInvalidArgument, call.message);
  }
  for (size_t i = 0; i < shaped.size(); ++i) {
    PINNACE_ASSIGN(Tensor tensor, tensor_of("output", static_cast<int32_t>(i), out[i], true));
    shaped[i].dtype = tensor.type.dtype;
    shaped[i].shape = std::move(tensor.type.shape);
  }
  return {};
}

}  // namespace

pnc_status pnc_session_create(const pnc_program* program, const pnc_options* options, pnc_session** session) {
  pnc_session_options all = {};
  all.size = sizeof all;
  if (options) {
    all.target = options->target;
    all.precision = options->precision;
    all.threads = options->threads;
    all.no_fallback = options->no_fallback;
  }
  return pnc_session_create_with(program, &all, session);
}

pnc_status pnc_session_create_with(const pnc_program* program, const pnc_session_options* options,
                                   pnc_session** session) {
  return guarded([&]() -> Status {
    if (!session) return null_argument("session");
    *session = nullptr;
    if (!program) return null_argument("program");
    // What is known of the options: of an older caller its members, of a newer one ours.
    pnc_session_options all = {};
    if (options) {
      if (options->size < sizeof all) return invalid("options of ", options->size, " bytes are of no version");
      all = *options;
    }
    return create_session(program, all, session);
  });
}

void pnc_session_close(pnc_session* session) {
  delete session;
}

int32_t pnc_session_output_count(const pnc_session* session) {
  return session ? static_cast<int32_t>(session->session.outputs().size()) : 0;
}

pnc_status pnc_session_output_spec(const pnc_session* session, int32_t index, pnc_spec* spec) {
  return guarded([&]() -> Status {
    if (!session) return null_argument("session");
    PINNACE_TRY(check_index(index, session->session.outputs().size()));
    const pinnace::TensorSpec& from = session->session.outputs()[static_cast<size_t>(index)];
    return fill_spec(from.name, from.type, spec);
  });
}

pnc_status pnc_session_output_type(const pnc_session* session, int32_t index, pnc_type* type) {
  return guarded([&]() -> Status {
    if (!session) return null_argument("session");
    PINNACE_TRY(check_index(index, session->session.outputs().size()));
    return fill_type(session->session.output_type(index), type);
  });
}

pnc_status pnc_session_run(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                           const pnc_tensor* outputs, int32_t output_count) {
  return pnc_session_run_with(session, inputs, input_count, outputs, output_count, nullptr);
}

pnc_status pnc_session_run_with(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                                const pnc_tensor* outputs, int32_t output_count, const pnc_run_options* options) {
  return guarded([&]() -> Status {
    RunArguments run;
    PINNACE_TRY(arguments_of(session, inputs, input_count, outputs, output_count, options, run));
    return session->session.run(run.inputs, run.outputs, {}, run.options);
  });
}

pnc_status pnc_session_submit(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                              const pnc_tensor* outputs, int32_t output_count, const pnc_run_options* options,
                              pnc_finished finished, void* user, pnc_run** run) {
  return guarded([&]() -> Status {
    if (!run) return null_argument("run");
    *run = nullptr;
    RunArguments call;
    PINNACE_TRY(arguments_of(session, inputs, input_count, outputs, output_count, options, call));
    Session::Finished then;
    if (finished) then = [finished, user](const Session&) { finished(user); };
    // Its memory first: a run that is under way would be waited for where there is none.
    auto* const memory = static_cast<pnc_run*>(::operator new(sizeof(pnc_run)));
    auto submitted = session->session.submit(call.inputs, call.outputs, std::move(then), call.options);
    if (!submitted.ok()) {
      ::operator delete(memory);
      return std::move(submitted).status();
    }
    *run = new (memory) pnc_run{std::move(*submitted)};
    return {};
  });
}

pnc_status pnc_session_profile(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                               const pnc_tensor* outputs, int32_t output_count, const pnc_run_options* options,
                               const pnc_profile_event** events, int32_t* count) {
  const pnc_status status = guarded([&]() -> Status {
    if (!events || !count) return null_argument("the list or its count");
    *events = nullptr;
    *count = 0;
    RunArguments run;
    PINNACE_TRY(arguments_of(session, inputs, input_count, outputs, output_count, options, run));
    return pinnace::ProfiledRun::run(session->session, run.inputs, run.outputs, {}, run.options,
                                     [&](const auto& profile) {
                                       Rows list(5, 2);
                                       for (const pinnace::ProfileEvent& e : profile) {
                                         list.texts({&e.node, &e.op, &e.backend, &e.kernel, &e.module});
                                         list.number(e.start_ns);
                                         list.number(e.duration_ns);
                                       }
                                       pnc_free(std::exchange(*events, nullptr));  // of a run that was made again
                                       return list.give(reinterpret_cast<const void**>(events), count);
                                     });
  });
  if (status == PNC_OK || !events || !count) return status;
  pnc_free(std::exchange(*events, nullptr));
  *count = 0;
  return status;
}

pnc_status pnc_session_output(const pnc_session* session, int32_t index, pnc_tensor* tensor) {
  return guarded([&] { return output(session, index, tensor); });
}

pnc_status pnc_session_precision(const pnc_session* session, const char** precision) {
  return guarded([&]() -> Status {
    if (precision) *precision = nullptr;
    if (!session || !precision) return null_argument("session or precision");
    return pinnace::c_api::give_text(session->session.precision(), precision);
  });
}

pnc_status pnc_session_placement(const pnc_session* session, const pnc_placement** rows, int32_t* count) {
  return give_rows(session, Rows(9, 1), rows, count, [](const void* of, Rows& list) -> Status {
    for (const pinnace::Placement& p : static_cast<const pnc_session*>(of)->session.placement()) {
      list.texts({&p.node, &p.op, &p.source, &p.backend, &p.kernel});
      list.lines(p.why);
      list.texts({&p.notice, &p.module, &p.path});
      list.number(p.bytes_copied);
    }
    return {};
  });
}

pnc_status pnc_session_plan(const pnc_session* session, pnc_plan_info* plan) {
  if (!session || !plan) return report_null("session or plan");
  const pinnace::PlanInfo info = session->session.plan();
  *plan = {info.peak_bytes, info.constant_bytes, info.segments, info.nodes_run, info.nodes_computed_ahead};
  return PNC_OK;
}

pnc_status pnc_session_limit_loops(pnc_session* session, int64_t limit_ns) {
  if (!session) return report_null("session");
  return report(session->session.limit_loops(std::chrono::nanoseconds(limit_ns)));
}

pnc_status pnc_session_state(const pnc_session* session, int32_t index, pnc_tensor* tensor) {
  return guarded([&]() -> Status {
    if (!session || !tensor) return null_argument("session or tensor");
    PINNACE_ASSIGN(const Tensor state, session->session.state(index));
    return fill_tensor(state.type, state.memory, tensor);
  });
}

pnc_status pnc_session_copy_state(const pnc_session* session, int32_t index, const pnc_tensor* to) {
  return with_state(session, nullptr, index, to);
}

pnc_status pnc_session_set_state(pnc_session* session, int32_t index, const pnc_tensor* value) {
  return with_state(session, session, index, value);
}

pnc_status pnc_session_reset_state(pnc_session* session) {
  return session ? report(session->session.reset_state()) : report_null("session");
}

pnc_status pnc_session_save_state(const pnc_session* session, const void** saved, size_t* bytes) {
  return guarded([&]() -> Status {
    if (!saved || !bytes) return null_argument("saved or bytes");
    *saved = nullptr;
    *bytes = 0;
    if (!session) return null_argument("session");
    PINNACE_ASSIGN(const auto all, session->session.save_state());
    *saved = std::memcpy(::operator new(all.size()), all.data(), all.size());
    *bytes = all.size();
    return {};
  });
}

pnc_status pnc_session_restore_state(pnc_session* session, const void* saved, size_t bytes) {
  return guarded([&]() -> Status {
    if (!session || !saved) return null_argument("session or saved");
    return session->session.restore_state({static_cast<const std::byte*>(saved), bytes});
  });
}

pnc_status pnc_session_finish(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                              const pnc_run_options* options, int64_t* rest, int32_t rest_count) {
  return guarded([&]() -> Status {
    RunArguments run;
    PINNACE_TRY(arguments_of(session, inputs, input_count, nullptr, 0, options, run));
    if (!rest) return null_argument("rest");
    if (rest_count != static_cast<int32_t>(session->session.outputs().size())) {
      return invalid("rest has ", rest_count, " entries, there are ", session->session.outputs().size(), " outputs");
    }
    PINNACE_ASSIGN(const auto left, session->session.finish(run.inputs, {}, run.options));
    std::copy(left.begin(), left.end(), rest);
    return {};
  });
}

pnc_status pnc_session_fork(const pnc_session* session, pnc_session** forked) {
  return guarded([&]() -> Status {
    if (!forked) return null_argument("forked");
    *forked = nullptr;
    if (!session) return null_argument("session");
    PINNACE_ASSIGN(Session other, session->session.fork());
    *forked = new pnc_session{std::move(other)};
    return {};
  });
}

pnc_status pnc_run_wait(pnc_run* run) {
  return run ? report(run->run.wait()) : report_null("run");
}

int32_t pnc_run_wait_for(const pnc_run* run, int64_t time_ns) {
  return !run || run->run.wait_for(std::chrono::nanoseconds(time_ns));
}

int32_t pnc_run_done(const pnc_run* run) {
  return !run || run->run.done();
}

void pnc_run_cancel(pnc_run* run) {
  if (run) run->run.cancel();
}

void pnc_run_close(pnc_run* run) {
  delete run;
}

pnc_status pnc_cancel_token_create(pnc_cancel_token** token) {
  return guarded([&]() -> Status {
    if (!token) return null_argument("token");
    *token = nullptr;
    *token = new pnc_cancel_token;
    return {};
  });
}

void pnc_cancel_token_close(pnc_cancel_token* token) {
  delete token;
}

void pnc_cancel_token_cancel(pnc_cancel_token* token) {
  if (token) token->token.cancel();
}

int32_t pnc_cancel_token_cancelled(const pnc_cancel_token* token) {
  return token && token->token.cancelled();
}

pnc_status pnc_cancel_scope_enter(const pnc_run_options* options, pnc_cancel_scope** scope) {
  return guarded([&]() -> Status {
    if (!scope) return null_argument("scope");
    *scope = nullptr;
    if (!options) return null_argument("options");
    *scope = new pnc_cancel_scope{pinnace::CancelScope(options_of(options))};
    return {};
  });
}

pnc_status pnc_cancel_scope_enter_poll(bool (*poll)(void*), void* context, pnc_cancel_scope** scope) {
  return guarded([&]() -> Status {
    if (!scope) return null_argument("scope");
    *scope = nullptr;
    if (!poll) return null_argument("poll");
    *scope = new pnc_cancel_scope{pinnace::CancelScope(poll, context)};
    return {};
  });
}

void pnc_cancel_scope_leave(pnc_cancel_scope* scope) {
  delete scope;
}

pnc_status pnc_custom_op_create(const char* name, int32_t outputs, pnc_op_function shape, pnc_op_function reference,
                                void* user, pnc_custom_op** op) {
  return guarded([&]() -> Status {
    if (!op) return null_argument("op");
    *op = nullptr;
    if (!name || !shape || !reference) return null_argument("a name or function of an operator");
    *op = new pnc_custom_op{{name, outputs, OpFunction{shape, user}, OpFunction{reference, user}}};
    return {};
  });
}

void pnc_custom_op_close(pnc_custom_op* op) {
  delete op;
}
