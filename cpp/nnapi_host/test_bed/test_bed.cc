// What happens around a call while the test bed is on: refusals, faults, traces, and the parts of their own.
#include "nnapi_host/test_bed/test_bed.h"

#include <chrono>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "nnapi_host/execution.h"

namespace pinnace::nnapi_host {
namespace {

/// Never looked at, only its address.
alignas(TestBed) std::byte unread[sizeof(TestBed)];

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const void* first_object(Arguments arguments) {
  for (const Argument& argument : arguments) {
    if (argument.kind == Argument::Kind::kObject && argument.object != ObjectKind::kDevice) return argument.pointer;
  }
  return nullptr;
}

/// A client learns the level from these, whatever it is.
bool tells_the_feature_level(Function function) {
  switch (function) {
    case Function::getRuntimeFeatureLevel:
    case Function::getDeviceCount:
    case Function::getDevice:
    case Function::Device_getName:
    case Function::Device_getType:
    case Function::Device_getVersion:
    case Function::Device_getFeatureLevel:
      return true;
    default:
      return false;
  }
}

void wait(uint64_t microseconds) {
  if (microseconds > 0) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

bool frees(Function function) {
  return std::string_view(info(function).name).ends_with("_free");
}

}  // namespace

std::atomic<TestBed*> test_bed_or_unread = reinterpret_cast<TestBed*>(unread);

TestBed* TestBed::read() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::vector<std::string> errors;
    Settings settings = read_settings(errors);
    if (!errors.empty()) settings = {};  // nothing of it is done
    const bool on = settings.any() || !errors.empty();
    // Stays until the process ends: threads of the client may still call.
    test_bed_or_unread.store(on ? new TestBed(std::move(settings), std::move(errors)) : nullptr,
                             std::memory_order_release);
  });
  return test_bed_or_unread.load(std::memory_order_acquire);
}

TestBed::TestBed(Settings settings, std::vector<std::string> errors)
    : settings_(std::move(settings)), errors_(std::move(errors)), errors_sink_("stderr") {
  for (const std::string& error : errors_) errors_sink_.line(str_cat(error, "; every call is refused"));
  if (!settings_.trace.empty()) trace_ = std::make_unique<Sink>(settings_.trace);
  if (!settings_.dump.empty()) dump_ = std::make_unique<Dump>(settings_.dump, errors_sink_);
  if (settings_.strict.empty()) return;
  strict_sink_ = std::make_unique<Sink>(settings_.strict);
  strict_ = std::make_unique<Strict>(*strict_sink_, registry_);
  static Strict* at_exit = nullptr;
  at_exit = strict_.get();
  std::atexit([] { at_exit->summarise(); });
}

int TestBed::inject(const Fault& fault, uint64_t count, const void* object, uint64_t& delay_us) {
  if (count < fault.first || count > fault.last) return 0;
  delay_us += fault.delay_us;
  if (fault.dead && object) registry_.kill(object);
  return fault.code;
}

std::optional<int> TestBed::refusal(Function function, Arguments arguments, Answer& answer) {
  const FunctionInfo& f = info(function);
  const uint64_t count = ++counts_[static_cast<int>(function)], any = ++calls_;
  answer.number = any;
  if (f.gives_code) {
    answer.why = "a variable of the environment is wrong";
    if (!errors_.empty()) return ANEURALNETWORKS_UNAVAILABLE_DEVICE;
    answer.why = "above the pretended feature level";
    if (f.feature_level > settings_.feature_level && !tells_the_feature_level(function))
      return ANEURALNETWORKS_OP_FAILED;
  }
  const void* const object = first_object(arguments);
  answer.why = "injected";
  for (const Fault& fault : settings_.faults) {
    const bool here = fault.place == Fault::Place::kFunction && fault.function == function;
    if (!here && fault.place != Fault::Place::kAny) continue;
    const int code = inject(fault, here ? count : any, object, answer.delay_us);
    // A wait that fails has waited: nothing else tells a client when it may free things.
    answer.made = function == Function::Event_wait;
    if (code && f.gives_code) return code;
  }
  answer.why = "dead";
  if (f.gives_code && object && registry_.dead(object)) return ANEURALNETWORKS_DEAD_OBJECT;
  return std::nullopt;
}

TestBed::Answer TestBed::before(Function function, Arguments arguments) {
  Answer answer{.began_ns = now_ns()};
  answer.code = refusal(function, arguments, answer);
  if ((!answer.code || answer.made) && strict_ && !strict_->before(function, arguments)) {
    answer.made = false;
    answer.why = "an object that is not alive";
    answer.code = ANEURALNETWORKS_BAD_DATA;
  }
  wait(answer.delay_us);
  // Trace lines name objects by their numbers, which a freed one has no more.
  if (frees(function)) {
    if (trace_) trace(function, arguments, 0, answer);
    if (!answer.code && arguments[0].pointer) registry_.remove(arguments[0].pointer);
  }
  return answer;
}

void TestBed::after(Function function, Arguments arguments, int64_t result, const Answer& answer) {
  if (frees(function)) return;
  const bool made = !answer.code && info(function).gives_code && result == ANEURALNETWORKS_NO_ERROR;
  for (const Argument& argument : arguments) {
    if (argument.kind != Argument::Kind::kMade || !argument.pointer) continue;
    auto** place = static_cast<void**>(const_cast<void*>(argument.pointer));
    if (answer.code) *place = nullptr;
    if (made && argument.object != ObjectKind::kDevice) registry_.add(argument.object, *place, first_object(arguments));
  }
  if ((!answer.code || answer.made) && strict_) strict_->after(function, arguments, static_cast<int>(result));
  if (trace_) trace(function, arguments, result, answer);
  if (made && dump_ && function == Function::Model_finish) {
    const auto* model = static_cast<const ANeuralNetworksModel*>(arguments[0].pointer);
    dump_->model(*model->model, registry_.name(ObjectKind::kModel, model));
  }
}

int TestBed::before_computation(const ANeuralNetworksExecution& execution) {
  const uint64_t count = ++computations_;
  uint64_t delay_us = 0;
  int code = 0;
  for (const Fault& fault : settings_.faults) {
    if (code || fault.place != Fault::Place::kComputation) continue;
    code = inject(fault, count, &execution, delay_us);
  }
  wait(delay_us);
  return code;
}

void TestBed::cache_folder(const ANeuralNetworksCompilation& compilation, const std::string& problem) {
  if (strict_ && !problem.empty()) strict_->refused_cache(&compilation, problem);
}

void TestBed::after_computation(const ANeuralNetworksExecution& execution, int code,
                                const std::vector<std::vector<uint32_t>>& output_dims) {
  if (dump_ && code == ANEURALNETWORKS_NO_ERROR) dump_->computation(execution, output_dims);
}

}  // namespace pinnace::nnapi_host
