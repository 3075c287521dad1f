// The C API: each function checks its pointers, calls its C++ namesake and keeps the sentence of a failure for the
// thread.
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <new>

#include <pinnace/pinnace.h>

#include "base/border.h"
#include "base/log.h"
#include "base/status.h"

using pinnace::at_border;
using pinnace::Dim;
using pinnace::DType;
using pinnace::invalid;
using pinnace::Program;
using pinnace::Session;
using pinnace::Status;
using pinnace::Tensor;
using pinnace::TensorSpec;

struct pnc_program {
  Program program;
};
struct pnc_session {
  Session session;
};
struct pnc_cancel_token {
  pinnace::CancelToken token;
};

namespace {

static_assert(static_cast<int>(pinnace::Code::kVerification) == PNC_VERIFICATION);
static_assert(static_cast<int>(pinnace::LogLevel::kOff) == PNC_LOG_OFF);
static_assert(static_cast<int>(DType::kU4) == PNC_U4);
static_assert(static_cast<int>(DType::kU2) == PNC_U2);

/// A thread's last failure. Keeping it takes no memory, for copies share their sentence.
struct LastFailure {
  bool made;
  alignas(Status) std::byte status[sizeof(Status)];

  static void destroy(void* kept) {
    auto* const self = static_cast<LastFailure*>(kept);
    self->made = false;  // what else ends with the thread may still call
    reinterpret_cast<Status*>(self->status)->~Status();
  }
};

/// Ends a thread's last failure with it. Where the library is unloaded or the process ends before, it is deleted.
class FailureKey {
 public:
  FailureKey() : made_(::pthread_key_create(&key_, LastFailure::destroy) == 0) {}
  void end_with_thread(LastFailure& kept) const {
    if (made_) ::pthread_setspecific(key_, &kept);
  }
  void remove() const {
    if (made_) ::pthread_key_delete(key_);
  }

 private:
  pthread_key_t key_{};
  bool made_;
};
const FailureKey& failure_key() {
  static const FailureKey key;
  return key;
}
[[gnu::destructor]] void remove_failure_key() {
  failure_key().remove();
}

/// No thread_local with a destructor: to register one takes memory, and glibc ends the process where there is none. A
/// key beyond the process's 32nd takes memory too, and can be refused: then a failure's sentence outlives its thread.
Status& last_failure() {
  static constinit thread_local LastFailure kept{};
  if (!kept.made) {
    new (kept.status) Status;
    kept.made = true;
    failure_key().end_with_thread(kept);
  }
  return *std::launder(reinterpret_cast<Status*>(kept.status));
}

pnc_status report(const Status& status) {
  if (!status.ok()) {
    // What a terminal would act on is escaped when a sentence is first read, which takes memory: now, not in pnc_error.
    const auto read = [&] { return !status.message().empty(); };
    last_failure() = at_border(read, false) ? status : Status::no_memory();
  }
  return static_cast<pnc_status>(status.code());
}

/// f()'s status, reported.
template <class F>
pnc_status guarded(F f) {
  return report(at_border(f));
}

Status null_argument(const char* what) {
  return invalid(what, " is NULL");
}

pinnace::Result<Tensor> tensor_of(const char* what, int32_t index, const pnc_tensor& t) {
  if (t.rank < 0 || t.rank > PNC_MAX_RANK) return invalid(what, " ", index, ": rank ", t.rank, " is outside [0, 32]");
  if (static_cast<unsigned>(t.dtype) >= pinnace::kDTypeCount) {
    return invalid(what, " ", index, ": dtype ", static_cast<int>(t.dtype), " is not one of pnc_dtype");
  }
  Tensor tensor;
  tensor.type.dtype = static_cast<DType>(t.dtype);
  for (int32_t d = 0; d < t.rank; ++d) {
    if (t.shape[d] < 0) return invalid(what, " ", index, ": dimension ", d, " is ", t.shape[d]);
    tensor.type.shape.push_back(Dim(t.shape[d]));
  }
  tensor.memory.host = t.data;
  tensor.memory.bytes = t.bytes;
  return tensor;
}

Status fill_spec(std::span<const TensorSpec> specs, int32_t index, pnc_spec* spec) {
  if (!spec) return null_argument("spec");
  if (index < 0 || static_cast<size_t>(index) >= specs.size()) {
    return invalid("index ", index, " is outside [0, ", specs.size(), ")");
  }
  const TensorSpec& from = specs[static_cast<size_t>(index)];
  if (from.type.rank() > PNC_MAX_RANK) return pinnace::unsupported("rank ", from.type.rank(), " is above 32");
  *spec = {from.name.c_str(), static_cast<pnc_dtype>(from.type.dtype), from.type.rank(), {}};
  for (int d = 0; d < from.type.rank(); ++d) spec->shape[d] = from.type.shape[d].size;
  return {};
}

void call_log_sink(const pinnace::LogReceiver& to, pinnace::LogLevel level, const std::string& text) {
  reinterpret_cast<pnc_log_sink>(to.function)(to.user, static_cast<pnc_log_level>(level), text.c_str());
}

/// Numbers that are no level stay none.
pinnace::LogLevel level_of(pnc_log_level level) {
  const auto number = static_cast<unsigned>(level);
  return static_cast<pinnace::LogLevel>(std::min(number, PNC_LOG_OFF + 1u));
}

Status open_program(const char* path, pnc_program** program) {
  if (!program) return null_argument("program");
  *program = nullptr;
  if (!path) return null_argument("path");
  PINNACE_ASSIGN(Program opened, Program::open(path));
  *program = new pnc_program{std::move(opened)};
  return {};
}

Status create_session(const pnc_program* program, const pnc_options* options, pnc_session** session) {
  if (!session) return null_argument("session");
  *session = nullptr;
  if (!program) return null_argument("program");
  pinnace::Options chosen;
  if (options) {
    if (options->target) chosen.target = options->target;
    if (options->precision) chosen.precision = options->precision;
    chosen.threads = options->threads;
    chosen.fallback = !options->no_fallback;
  }
  PINNACE_ASSIGN(Session created, Session::create(program->program, chosen));
  *session = new pnc_session{std::move(created)};
  return {};
}

Status run(pnc_session* session, const pnc_tensor* inputs, int32_t input_count, const pnc_tensor* outputs,
           int32_t output_count, const pnc_run_options* options) {
  if (!session) return null_argument("session");
  if (input_count < 0 || output_count < 0) return invalid("a count is negative");
  if ((!inputs && input_count) || (!outputs && output_count)) {
    return null_argument("a list of tensors with a count above 0");
  }
  std::vector<Tensor> in, out;
  for (int32_t i = 0; i < input_count; ++i) {
    PINNACE_ASSIGN(Tensor tensor, tensor_of("input", i, inputs[i]));
    in.push_back(std::move(tensor));
  }
  for (int32_t i = 0; i < output_count; ++i) {
    PINNACE_ASSIGN(Tensor tensor, tensor_of("output", i, outputs[i]));
    out.push_back(std::move(tensor));
  }
  pinnace::RunOptions chosen;
  if (options) {
    if (options->cancel) chosen.cancel = &options->cancel->token;
    chosen.timeout = std::chrono::nanoseconds(options->timeout_ns);
  }
  return session->session.run(in, out, {}, chosen);
}

Status output(const pnc_session* session, int32_t index, pnc_tensor* tensor) {
  if (!session) return null_argument("session");
  if (!tensor) return null_argument("tensor");
  const Tensor from = session->session.output(index);
  if (index < 0 || static_cast<size_t>(index) >= session->session.outputs().size()) {
    return invalid("output ", index, " is outside [0, ", session->session.outputs().size(), ")");
  }
  if (!from.memory.host) return invalid("the session has not run, or its last run failed");
  if (from.type.rank() > PNC_MAX_RANK) return pinnace::unsupported("rank ", from.type.rank(), " is above 32");
  *tensor = {from.memory.host, from.memory.bytes, static_cast<pnc_dtype>(from.type.dtype), from.type.rank(), {}};
  for (int d = 0; d < from.type.rank(); ++d) tensor->shape[d] = from.type.shape[d].size;
  return {};
}

}  // namespace

const char* pnc_version(void) {
  return PINNACE_VERSION;
}
const char* pnc_error(void) {
  return last_failure().message().c_str();
}

pnc_status pnc_set_log_sink(pnc_log_sink sink, pnc_log_level least, void* user) {
  const pinnace::LogReceiver receiver{call_log_sink, reinterpret_cast<void (*)()>(sink), user};
  return report(pinnace::set_log_receiver(sink ? receiver : pinnace::LogReceiver{}, level_of(least)));
}

pnc_status pnc_set_log_level(pnc_log_level least) {
  return report(pinnace::set_log_level(level_of(least)));
}

pnc_status pnc_program_open(const char* path, pnc_program** program) {
  return guarded([&] { return open_program(path, program); });
}

void pnc_program_close(pnc_program* program) {
  delete program;
}

int32_t pnc_program_input_count(const pnc_program* program) {
  return program ? static_cast<int32_t>(program->program.inputs().size()) : 0;
}

int32_t pnc_program_output_count(const pnc_program* program) {
  return program ? static_cast<int32_t>(program->program.outputs().size()) : 0;
}

pnc_status pnc_program_input(const pnc_program* program, int32_t index, pnc_spec* spec) {
  return guarded(
      [&] { return program ? fill_spec(program->program.inputs(), index, spec) : null_argument("program"); });
}

pnc_status pnc_program_output(const pnc_program* program, int32_t index, pnc_spec* spec) {
  return guarded(
      [&] { return program ? fill_spec(program->program.outputs(), index, spec) : null_argument("program"); });
}

pnc_status pnc_session_create(const pnc_program* program, const pnc_options* options, pnc_session** session) {
  return guarded([&] { return create_session(program, options, session); });
}

void pnc_session_close(pnc_session* session) {
  delete session;
}

pnc_status pnc_session_run(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                           const pnc_tensor* outputs, int32_t output_count) {
  return pnc_session_run_with(session, inputs, input_count, outputs, output_count, nullptr);
}

pnc_status pnc_session_run_with(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                                const pnc_tensor* outputs, int32_t output_count, const pnc_run_options* options) {
  return guarded([&] { return run(session, inputs, input_count, outputs, output_count, options); });
}

pnc_status pnc_session_output(const pnc_session* session, int32_t index, pnc_tensor* tensor) {
  return guarded([&] { return output(session, index, tensor); });
}

pnc_status pnc_session_reset_state(pnc_session* session) {
  return guarded([&] { return session ? session->session.reset_state() : null_argument("session"); });
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
