// The C API: each function checks its pointers, calls its C++ namesake and keeps the sentence of a failure for the
// thread. Here: failures, lists, names, the log, and programs as those who run them need them. Sessions and runs:
// c_api_sessions.cc. What looks into programs and writes them: c_api_programs.cc.
#include "runtime/c_api.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "base/log.h"

using pinnace::DType;
using pinnace::invalid;
using pinnace::Program;
using pinnace::Status;
using pinnace::Verify;
using pinnace::c_api::check_index;
using pinnace::c_api::fill_spec;
using pinnace::c_api::fill_type;
using pinnace::c_api::give_program;
using pinnace::c_api::give_rows;
using pinnace::c_api::guarded;
using pinnace::c_api::null_argument;
using pinnace::c_api::report;
using pinnace::c_api::Rows;

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

}  // namespace

namespace pinnace::c_api {

pnc_status report(const Status& status) {
  if (!status.ok()) {
    // What a terminal would act on is escaped when a sentence is first read, which takes memory: now, not in pnc_error.
    const auto read = [&] { return !status.message().empty(); };
    last_failure() = exception_boundary(read, false) ? status : Status::no_memory();
  }
  return static_cast<pnc_status>(status.code());
}

pnc_status report_call(Status (*f)(void* context), void* context) {
  return report(exception_boundary([&] { return f(context); }));
}

Status null_argument(const char* what) {
  return invalid(what, " is NULL");
}

pnc_status report_null(const char* what) {
  return guarded([&] { return null_argument(what); });
}

Status give_program(Result<Program> program, pnc_program** made) {
  if (!program.ok()) return std::move(program).status();
  *made = new pnc_program{std::move(*program)};
  return {};
}

Status give_text(const std::string& text, const char** given) {
  const size_t bytes = text.size() + 1;
  *given = static_cast<const char*>(std::memcpy(::operator new(bytes), text.c_str(), bytes));
  return {};
}

void Rows::text(const std::string& text) {
  text_list_ += text.c_str();
  text_list_ += '\0';
}

void Rows::texts(std::initializer_list<const std::string*> texts) {
  for (const std::string* one : texts) text(*one);
}

void Rows::lines(const std::vector<std::string>& texts) {
  const char* between = "";
  for (const std::string& line : texts) {
    text_list_ += between;
    text_list_ += line.c_str();
    between = "\n";
  }
  text_list_ += '\0';
}

Status Rows::give(const void** rows, int32_t* count) const {
  const auto row_count = static_cast<size_t>(std::count(text_list_.begin(), text_list_.end(), '\0')) / texts_;
  if (!row_count) return {};
  constexpr size_t kCell = sizeof(int64_t);
  const size_t text_bytes = (texts_ * sizeof(char*) + kCell - 1) / kCell * kCell;
  const size_t row_bytes = text_bytes + numbers_ * kCell;
  auto* const block = static_cast<std::byte*>(::operator new(row_count * row_bytes + text_list_.size()));
  auto* text = reinterpret_cast<char*>(block) + row_count * row_bytes;
  std::memcpy(text, text_list_.data(), text_list_.size());
  const int64_t* number = number_list_.data();
  for (size_t i = 0; i < row_count; ++i) {
    std::byte* const row = block + i * row_bytes;
    for (size_t t = 0; t < texts_; ++t) {
      new (row + t * sizeof(char*)) const char*(text);
      text += std::strlen(text) + 1;
    }
    for (size_t n = 0; n < numbers_; ++n) new (row + text_bytes + n * kCell) int64_t(*number++);
  }
  *rows = block;
  *count = static_cast<int32_t>(row_count);
  return {};
}

Status check_rank(const TensorType& type) {
  if (type.rank() > PNC_MAX_RANK) return pinnace::unsupported("rank ", type.rank(), " is above 32");
  return {};
}

void fill_shape(const TensorType& from, int64_t* shape) {
  for (int d = 0; d < from.rank(); ++d) shape[d] = from.shape[static_cast<size_t>(d)].size;
}

Status fill_type(const TensorType& from, pnc_type* type) {
  if (!type) return null_argument("type");
  PINNACE_TRY(check_rank(from));
  *type = {};
  type->dtype = static_cast<pnc_dtype>(from.dtype);
  type->rank = from.rank();
  for (int d = 0; d < from.rank(); ++d) {
    const Dim& dim = from.shape[static_cast<size_t>(d)];
    type->dims[d] = {dim.size, dim.max, dim.symbol};
  }
  type->axis = -1;
  if (const pinnace::Quantization* q = from.quantization.get()) {
    type->scales = q->scales.data();
    type->zero_points = q->zero_points.data();
    type->scale_count = static_cast<int64_t>(q->scales.size());
    type->block = q->block;
    type->axis = q->axis;
  }
  return {};
}

Status fill_spec(const std::string& name, const TensorType& type, pnc_spec* spec) {
  if (!spec) return null_argument("spec");
  PINNACE_TRY(check_rank(type));
  *spec = {name.c_str(), static_cast<pnc_dtype>(type.dtype), type.rank(), {}};
  fill_shape(type, spec->shape);
  return {};
}

Status check_index(int32_t index, size_t count) {
  if (index < 0 || static_cast<size_t>(index) >= count) return invalid("index ", index, " is outside [0, ", count, ")");
  return {};
}

pnc_status give_rows(const void* object, Rows list, const void** rows, int32_t* count, FillRows fill) {
  return guarded([&]() -> Status {
    if (!rows || !count) return null_argument("the list or its count");
    *rows = nullptr;
    *count = 0;
    if (!object) return null_argument("the object");
    PINNACE_TRY(fill(object, list));
    return list.give(rows, count);
  });
}

}  // namespace pinnace::c_api

namespace {

/// One of inputs, outputs and states, by its specification or its type: whichever of the two is asked for.
template <class Spec>
Status describe(std::span<const Spec> specs, int32_t index, pnc_spec* spec, pnc_type* type) {
  PINNACE_TRY(check_index(index, specs.size()));
  const Spec& from = specs[static_cast<size_t>(index)];
  return spec ? fill_spec(from.name, from.type, spec) : fill_type(from.type, type);
}

const Program& program_of(const void* object) {
  return static_cast<const pnc_program*>(object)->program;
}

enum class Of : uint8_t { kInputs, kOutputs, kStates };

pnc_status describe(const pnc_program* program, Of of, int32_t index, pnc_spec* spec, pnc_type* type) {
  return guarded([&]() -> Status {
    if (!program) return null_argument("program");
    if (!spec && !type) return null_argument("what is to be filled");
    if (of == Of::kStates) return describe(program->program.states(), index, spec, type);
    return describe(of == Of::kInputs ? program->program.inputs() : program->program.outputs(), index, spec, type);
  });
}

void call_log_sink(const pinnace::LogReceiver& to, pinnace::LogLevel level, const std::string& text) {
  reinterpret_cast<pnc_log_sink>(to.function)(to.user, static_cast<pnc_log_level>(level), text.c_str());
}

/// Numbers that are no level stay none.
pinnace::LogLevel level_of(pnc_log_level level) {
  const auto number = static_cast<unsigned>(level);
  return static_cast<pinnace::LogLevel>(std::min(number, PNC_LOG_OFF + 1u));
}

/// Empties what a program goes to, and gives how it is to be verified.
pinnace::Result<Verify> check_open(const void* from, pnc_verify verify, pnc_program** program) {
  if (!program) return null_argument("program");
  *program = nullptr;
  if (!from) return null_argument("what is to be opened");
  switch (verify) {
    case PNC_VERIFY_FULL:
      return Verify::kFull;
    case PNC_VERIFY_ON_USE:
      return Verify::kOnUse;
    case PNC_VERIFY_STRUCTURE:
      return Verify::kStructure;
  }
  return invalid(static_cast<int>(verify), " is not one of pnc_verify");
}

}  // namespace

const char* pnc_version(void) {
  return PINNACE_VERSION;
}
const char* pnc_error(void) {
  return last_failure().message().c_str();
}
int64_t pnc_error_offset(void) {
  return last_failure().offset();
}
const char* pnc_error_rule(void) {
  return last_failure().rule().c_str();
}
pnc_status pnc_error_nodes(const pnc_node_problem** nodes, int32_t* count) {
  return give_rows(&last_failure(), Rows(6), nodes, count, [](const void* failure, Rows& list) -> Status {
    for (const pinnace::NodeProblem& p : static_cast<const Status*>(failure)->nodes()) {
      list.texts({&p.node, &p.op, &p.source, &p.rule, &p.value, &p.module});
    }
    return {};
  });
}
const char* pnc_status_name(pnc_status status) {
  if (static_cast<unsigned>(status) > PNC_VERIFICATION) return "Unknown";
  return pinnace::code_name(static_cast<pinnace::Code>(status));
}
void pnc_free(const void* made) {
  ::operator delete(const_cast<void*>(made));
}

const char* pnc_dtype_name(pnc_dtype dtype) {
  return static_cast<unsigned>(dtype) < pinnace::kDTypeCount ? dtype_name(static_cast<DType>(dtype)).data() : "";
}
pnc_status pnc_dtype_from_name(const char* name, pnc_dtype* dtype) {
  return guarded([&]() -> Status {
    if (!name || !dtype) return null_argument("name or dtype");
    const auto found = pinnace::dtype_from_name(name);
    if (!found) return invalid("there is no dtype '", name, "'");
    *dtype = static_cast<pnc_dtype>(*found);
    return {};
  });
}
int32_t pnc_dtype_bits(pnc_dtype dtype) {
  return static_cast<unsigned>(dtype) < pinnace::kDTypeCount ? pinnace::dtype_bits(static_cast<DType>(dtype)) : 0;
}

pnc_status pnc_devices(const pnc_device** devices, int32_t* count) {
  return give_rows("", Rows(2, 1), devices, count, [](const void*, Rows& list) -> Status {
    for (const pinnace::Device& device : pinnace::devices()) {
      list.texts({&device.target, &device.description});
      list.number(device.available);
    }
    return {};
  });
}

pnc_status pnc_set_log_sink(pnc_log_sink sink, pnc_log_level least, void* user) {
  const pinnace::LogReceiver receiver{call_log_sink, reinterpret_cast<void (*)()>(sink), user};
  return report(pinnace::set_log_receiver(sink ? receiver : pinnace::LogReceiver{}, level_of(least)));
}

pnc_status pnc_set_log_level(pnc_log_level least) {
  return report(pinnace::set_log_level(level_of(least)));
}

const char* pnc_log_level_name(pnc_log_level level) {
  return pinnace::log_level_name(level_of(level));
}

pnc_status pnc_log_level_from_name(const char* name, pnc_log_level* level) {
  return guarded([&]() -> Status {
    if (!name || !level) return null_argument("name or level");
    PINNACE_ASSIGN(const pinnace::LogLevel found, pinnace::log_level_from_name(name));
    *level = static_cast<pnc_log_level>(found);
    return {};
  });
}

pnc_status pnc_program_open(const char* path, pnc_program** program) {
  return pnc_program_open_with(path, PNC_VERIFY_ON_USE, program);
}

pnc_status pnc_program_open_with(const char* path, pnc_verify verify, pnc_program** program) {
  return guarded([&]() -> Status {
    PINNACE_ASSIGN(const Verify how, check_open(path, verify, program));
    return give_program(Program::open(path, how), program);
  });
}

pnc_status pnc_program_open_descriptor(int32_t descriptor, int64_t offset, int64_t bytes, pnc_verify verify,
                                       pnc_program** program) {
  return guarded([&]() -> Status {
    PINNACE_ASSIGN(const Verify how, check_open(&descriptor, verify, program));
    return give_program(pinnace::open_descriptor(descriptor, offset, bytes, how), program);
  });
}

pnc_status pnc_program_from_bytes(const void* data, size_t bytes, pnc_verify verify, pnc_program** program) {
  return guarded([&]() -> Status {
    PINNACE_ASSIGN(const Verify how, check_open(data, verify, program));
    const std::span all(static_cast<const std::byte*>(data), bytes);
    return give_program(Program::from_bytes(all, how), program);
  });
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

int32_t pnc_program_state_count(const pnc_program* program) {
  return program ? static_cast<int32_t>(program->program.states().size()) : 0;
}

pnc_status pnc_program_input(const pnc_program* program, int32_t index, pnc_spec* spec) {
  return describe(program, Of::kInputs, index, spec, nullptr);
}

pnc_status pnc_program_output(const pnc_program* program, int32_t index, pnc_spec* spec) {
  return describe(program, Of::kOutputs, index, spec, nullptr);
}

pnc_status pnc_program_state(const pnc_program* program, int32_t index, pnc_spec* spec) {
  return describe(program, Of::kStates, index, spec, nullptr);
}

pnc_status pnc_program_input_type(const pnc_program* program, int32_t index, pnc_type* type) {
  return describe(program, Of::kInputs, index, nullptr, type);
}

pnc_status pnc_program_output_type(const pnc_program* program, int32_t index, pnc_type* type) {
  return describe(program, Of::kOutputs, index, nullptr, type);
}

pnc_status pnc_program_state_type(const pnc_program* program, int32_t index, pnc_type* type) {
  return describe(program, Of::kStates, index, nullptr, type);
}

pnc_status pnc_program_symbols(const pnc_program* program, const pnc_symbol** symbols, int32_t* count) {
  return give_rows(program, Rows(1, 3), symbols, count, [](const void* of, Rows& list) -> Status {
    for (const pinnace::Symbol& symbol : program_of(of).symbols()) {
      list.text(symbol.name);
      for (const int64_t number : {symbol.min, symbol.max, symbol.multiple_of}) list.number(number);
    }
    return {};
  });
}

pnc_status pnc_program_metadata(const pnc_program* program, const pnc_fact** facts, int32_t* count) {
  return give_rows(program, Rows(2), facts, count, [](const void* of, Rows& list) -> Status {
    for (const auto& [key, value] : program_of(of).metadata()) list.texts({&key, &value});
    return {};
  });
}

pnc_status pnc_program_payloads(const pnc_program* program, const pnc_payload** payloads, int32_t* count) {
  return give_rows(program, Rows(2, 1), payloads, count, [](const void* of, Rows& list) -> Status {
    for (const pinnace::PayloadInfo& payload : program_of(of).payloads()) {
      list.texts({&payload.target, &payload.key});
      list.number(payload.bytes);
    }
    return {};
  });
}

pnc_status pnc_program_streamed_inputs(const pnc_program* program, const pnc_streamed_input** inputs, int32_t* count) {
  return give_rows(program, Rows(1, 4), inputs, count, [](const void* of, Rows& list) -> Status {
    PINNACE_ASSIGN(const auto streams, program_of(of).streamed_inputs());
    for (const pinnace::StreamedInput& s : streams) {
      list.text(s.name);
      for (const int64_t number : {int64_t{s.axis}, s.latency, s.multiple, s.tail}) list.number(number);
    }
    return {};
  });
}

pnc_status pnc_program_streamed_outputs(const pnc_program* program, const pnc_streamed_output** outputs,
                                        int32_t* count) {
  return give_rows(program, Rows(1, 4), outputs, count, [](const void* of, Rows& list) -> Status {
    PINNACE_ASSIGN(const auto streams, program_of(of).streamed_outputs());
    for (const pinnace::StreamedOutput& s : streams) {
      list.text(s.name);
      for (const int64_t number : {int64_t{s.axis}, s.up, s.down, s.more}) list.number(number);
    }
    return {};
  });
}

pnc_status pnc_program_bytes(const pnc_program* program, const void** data, size_t* bytes) {
  return guarded([&]() -> Status {
    if (data) *data = nullptr;
    if (bytes) *bytes = 0;
    if (!program || !data || !bytes) return null_argument("program, data or bytes");
    const auto all = program->program.bytes();
    *data = all.data();
    *bytes = all.size();
    return {};
  });
}
