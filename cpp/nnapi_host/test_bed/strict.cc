// The rules of strict mode.
#include "nnapi_host/test_bed/strict.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/hash.h"
#include "base/text.h"
#include "nnapi_host/execution.h"
#include "nnapi_host/test_bed/settings.h"

namespace pinnace::nnapi_host {
namespace {

using Kind = Argument::Kind;

bool starts(Function f) {
  return f == Function::Execution_compute || f == Function::Execution_burstCompute ||
         f == Function::Execution_startCompute || f == Function::Execution_startComputeWithDependencies;
}
bool starts_only(Function f) {
  return f == Function::Execution_startCompute || f == Function::Execution_startComputeWithDependencies;
}
bool binds(Function f) {
  return f == Function::Execution_setInput || f == Function::Execution_setInputFromMemory ||
         f == Function::Execution_setOutput || f == Function::Execution_setOutputFromMemory;
}
bool frees(Function f) {
  return std::string_view(info(f).name).ends_with("_free");
}
/// Calls that two threads may not make on one object at a time.
bool changes(Function f) {
  const std::string_view name = info(f).name;
  const bool builds = name.starts_with("Model_") || name.starts_with("Compilation_") || name.starts_with("MemoryDesc_");
  return (builds && name.find("_create") == std::string_view::npos) || name.starts_with("Execution_set") ||
         f == Function::Execution_enableInputAndOutputPadding;
}
/// Answers of these depend on more than the client can know.
bool may_fail(Function f) {
  return starts(f) || f == Function::Compilation_finish || f == Function::Event_getSyncFenceFd ||
         f == Function::Event_wait || f == Function::Model_getExtensionOperandType ||
         f == Function::Model_getExtensionOperationType || f == Function::Event_createFromSyncFenceFd;
}

/// Hash of memory that may be gone: nothing then.
std::optional<uint64_t> hash_of(const std::byte* data, size_t length) {
  Hasher hasher;
  std::vector<std::byte> copy(std::min<size_t>(length, 1 << 16));
  while (length > 0) {
    const size_t part = std::min(length, copy.size());
    const iovec to = {copy.data(), part}, from = {const_cast<std::byte*>(data), part};
    const ssize_t read = ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0);
    if (read < 0 && errno != EFAULT) {
      hasher.add({data, part});  // the system refuses such reads: without a net then
    } else if (read != static_cast<ssize_t>(part)) {
      return std::nullopt;
    } else {
      hasher.add({copy.data(), part});
    }
    data += part;
    length -= part;
  }
  return hasher.digest();
}

struct Range {
  const std::byte* data;
  size_t length;
  std::string name;
  bool overlaps(const Range& other) const { return data < other.data + other.length && other.data < data + length; }
};

void add_constants(const nnapi::Model& model, std::vector<Range>& to) {
  for (const nnapi::Operand& operand : model.operands) {
    if (operand.lifetime == nnapi::Lifetime::kConstant) {
      to.push_back({operand.data.data(), operand.data.size(), "a constant"});
    }
    if (operand.model) add_constants(*operand.model, to);
  }
}

}  // namespace

void Strict::report(std::string_view rule, std::string_view text) {
  ++violations_;
  sink_.line(str_cat("strict: ", rule, ": ", text));
}

std::string Strict::name(const void* object) const {
  const auto found = tracked_.find(object);
  return registry_.name(found == tracked_.end() ? ObjectKind::kMemory : found->second.kind, object);
}

bool Strict::check_alive(Function function, Arguments arguments) {
  const auto check = [&](ObjectKind kind, const void* object) {
    if (!object || kind == ObjectKind::kDevice) return true;
    const auto found = tracked_.find(object);
    if (found != tracked_.end() && found->second.kind == kind) return true;
    report("not-alive", str_cat(info(function).name, ": ", hex(reinterpret_cast<uintptr_t>(object)), " is no ",
                                kObjectNames[static_cast<int>(kind)], " that is alive"));
    return false;
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    if (argument.kind == Kind::kObject && !check(argument.object, argument.pointer)) return false;
    if (argument.kind != Kind::kObjects || !argument.pointer) continue;
    const auto count = static_cast<size_t>(arguments[i + 1].number);
    for (const void* object : std::span(static_cast<const void* const*>(argument.pointer), count)) {
      if (!check(argument.object, object)) return false;
    }
  }
  return true;
}

void Strict::check_free(Function function, const void* object) {
  const std::string what = str_cat(info(function).name, "(", name(object), ")");
  const Tracked& own = tracked_.at(object);
  for (const auto& [other, tracked] : tracked_) {
    const bool needs = std::find(tracked.needs.begin(), tracked.needs.end(), object) != tracked.needs.end();
    const bool uses = std::find(tracked.memories.begin(), tracked.memories.end(), object) != tracked.memories.end();
    if (needs || uses) report("freed-too-early", str_cat(what, ": ", name(other), " needs it"));
  }
  if (own.changing > 0) report("two-threads", str_cat(what, ": another thread is changing it"));
  if (own.computing > 0) report("not-waited", str_cat(what, ": its computation was not waited for"));
  if (own.kind != ObjectKind::kEvent || own.waited) return;
  const auto& completion = *static_cast<const ANeuralNetworksEvent*>(object)->completion;
  if (completion.foreign) return;
  if (!own.exported) report("not-waited", str_cat(what, ": Event_wait did not return before"));
  ended(own.execution, true);
}

void Strict::ended(const void* execution, bool ran) {
  const auto found = tracked_.find(execution);
  if (found == tracked_.end()) return;
  found->second.computing = std::max(0, found->second.computing - 1);
  if (!found->second.reusable && ran) found->second.memories.clear();
}

void Strict::check_constants(Function function, const void* model) {
  const auto found = tracked_.find(model);
  if (found == tracked_.end()) return;
  for (Constant& constant : found->second.constants) {
    const auto now = hash_of(constant.data, constant.length);
    if (now == constant.hash) continue;
    report("constant-changed",
           str_cat(info(function).name, ": operand ", constant.operand, " of ", name(model),
                   now ? " has another value than when it was set" : " lies in memory that is gone"));
    constant.hash = now.value_or(constant.hash);
  }
  for (const void* needed : found->second.needs) check_constants(function, needed);
}

void Strict::check_overlaps(const ANeuralNetworksExecution& execution) {
  std::vector<Range> outputs, others;
  const auto collect = [](const std::vector<Binding>& bindings, const char* side, std::vector<Range>& to) {
    for (size_t i = 0; i < bindings.size(); ++i) {
      if (bindings[i].data) to.push_back({bindings[i].data, bindings[i].length, str_cat(side, ' ', i)});
    }
  };
  collect(execution.outputs, "output", outputs);
  collect(execution.inputs, "input", others);
  add_constants(execution.engine->model(), others);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto check = [&](const Range& other) {
      if (!outputs[i].overlaps(other)) return;
      report("overlap", str_cat(outputs[i].name, " of ", name(&execution), " overlaps ", other.name));
    };
    std::for_each(outputs.begin() + static_cast<ptrdiff_t>(i) + 1, outputs.end(), check);
    std::for_each(others.begin(), others.end(), check);
  }
}

void Strict::check_start(Function function, const ANeuralNetworksExecution& execution) {
  Tracked& own = tracked_.at(&execution);
  {
    std::lock_guard lock(execution.mutex);
    if (execution.state == ExecutionState::kComputation) {
      report("not-waited", str_cat(info(function).name, ": ", name(&execution), " still computes"));
    }
    check_overlaps(execution);
  }
  ++own.computing;
  const auto compilation = tracked_.find(own.compilation);
  if (compilation != tracked_.end()) check_constants(function, compilation->second.model);
}

void Strict::check_binding(Function function, Arguments arguments) {
  const auto& execution = *static_cast<const ANeuralNetworksExecution*>(arguments[0].pointer);
  const bool input = function == Function::Execution_setInput || function == Function::Execution_setInputFromMemory;
  std::lock_guard lock(execution.mutex);
  const std::vector<Binding>& bindings = input ? execution.inputs : execution.outputs;
  const auto index = static_cast<uint64_t>(arguments[1].number);
  if (index >= bindings.size()) return;
  const std::string what =
      str_cat(info(function).name, ": ", input ? "input " : "output ", index, " of ", name(&execution));
  if (bindings[index].set) report("bound-twice", str_cat(what, " is bound already"));
  const auto* type = static_cast<const ANeuralNetworksOperandType*>(arguments[2].pointer);
  const nnapi::Model& model = execution.engine->model();
  const nnapi::Operand& operand = model.operands[(input ? model.inputs : model.outputs)[index]];
  if (!type || (type->type == static_cast<int32_t>(operand.type) && type->scale == operand.scale &&
                type->zeroPoint == operand.zero_point)) {
    return;
  }
  report("other-type", str_cat(what, " has another type, scale or zero point in the model"));
}

bool Strict::before(Function function, Arguments arguments) {
  std::lock_guard lock(mutex_);
  reported_before_call_ = violations_;
  if (!check_alive(function, arguments)) return false;
  const void* object = arguments.empty() ? nullptr : arguments[0].pointer;
  const auto own = tracked_.find(object);
  if (own == tracked_.end()) return true;
  if (frees(function)) {
    check_free(function, object);
    tracked_.erase(own);
    return true;
  }
  if (changes(function) && arguments[0].mutable_object && ++own->second.changing > 1) {
    report("two-threads", str_cat(info(function).name, ": another thread is changing ", name(object)));
  }
  if (starts(function)) check_start(function, *static_cast<const ANeuralNetworksExecution*>(object));
  if (binds(function)) check_binding(function, arguments);
  if (function == Function::Model_finish) check_constants(function, object);
  if (function == Function::Compilation_finish) check_constants(function, own->second.model);
  return true;
}

void Strict::check_refused(Function function, Arguments arguments, int code) {
  const bool wrong =
      code == ANEURALNETWORKS_UNEXPECTED_NULL || code == ANEURALNETWORKS_BAD_DATA || code == ANEURALNETWORKS_BAD_STATE;
  if (!wrong || !info(function).gives_code || may_fail(function) || violations_ > reported_before_call_) return;
  const bool named = !arguments.empty() && arguments[0].kind == Kind::kObject && arguments[0].pointer;
  const bool elsewhere = function == Function::Memory_createFromAHardwareBuffer && code == ANEURALNETWORKS_BAD_DATA;
  report("refused", str_cat(info(function).name, named ? str_cat("(", name(arguments[0].pointer), ")") : "", " gave ",
                            result_name(code), elsewhere ? ": there are no hardware buffers but on Android" : ""));
}

void Strict::add_constant(const void* model, Arguments arguments, const std::byte* data, size_t length) {
  const auto operand = static_cast<int32_t>(arguments[1].number);
  std::vector<Constant>& all = tracked_[model].constants;
  std::erase_if(all, [&](const Constant& c) { return c.operand == operand; });
  if (!data || length == 0) return;
  if (const auto hash = hash_of(data, length)) all.push_back({operand, data, length, *hash});
}

void Strict::record_made(Function function, Arguments arguments) {
  for (const Argument& argument : arguments) {
    if (argument.kind != Kind::kMade || argument.object == ObjectKind::kDevice) continue;
    Tracked& made = tracked_[*static_cast<const void* const*>(argument.pointer)];
    made = {.kind = argument.object};
    const void* const from = arguments[0].kind == Kind::kObject ? arguments[0].pointer : nullptr;
    if (argument.object == ObjectKind::kCompilation) made.model = from;
    if (argument.object == ObjectKind::kExecution) made.compilation = from;
    if (argument.object == ObjectKind::kEvent) made.execution = starts_only(function) ? from : nullptr;
    if (made.model || made.compilation) made.needs.push_back(from);
  }
}

void Strict::record_set(Function function, Arguments arguments) {
  Tracked& own = tracked_[arguments[0].pointer];
  switch (function) {
    case Function::Model_setOperandValue: {
      // Short values are copied.
      const auto length = static_cast<size_t>(arguments[3].number);
      const bool kept = length > ANEURALNETWORKS_MAX_SIZE_OF_IMMEDIATELY_COPIED_VALUES;
      const auto* data = static_cast<const std::byte*>(arguments[2].pointer);
      add_constant(arguments[0].pointer, arguments, kept ? data : nullptr, length);
      break;
    }
    case Function::Model_setOperandValueFromMemory: {
      own.needs.push_back(arguments[2].pointer);
      const auto* memory = static_cast<const ANeuralNetworksMemory*>(arguments[2].pointer);
      add_constant(arguments[0].pointer, arguments, memory->mapping->data() + arguments[3].number,
                   static_cast<size_t>(arguments[4].number));
      break;
    }
    case Function::Model_setOperandValueFromModel:
      own.needs.push_back(arguments[2].pointer);
      break;
    case Function::Execution_setInputFromMemory:
    case Function::Execution_setOutputFromMemory:
      own.memories.push_back(arguments[3].pointer);
      break;
    case Function::Execution_setReusable:
      own.reusable = arguments[1].number != 0;
      break;
    case Function::Event_getSyncFenceFd:
      own.exported = true;
      break;
    default:
      break;
  }
}

void Strict::after(Function function, Arguments arguments, int code) {
  std::lock_guard lock(mutex_);
  const void* object = arguments.empty() || arguments[0].kind != Kind::kObject ? nullptr : arguments[0].pointer;
  const auto own = tracked_.find(object);
  if (own != tracked_.end()) {
    Tracked& tracked = own->second;
    if (changes(function) && arguments[0].mutable_object) --tracked.changing;
    // What was started goes on; what has computed, or never began, has ended.
    const bool ran = code != ANEURALNETWORKS_BAD_DATA && code != ANEURALNETWORKS_BAD_STATE && !starts_only(function);
    if (starts(function) && (!starts_only(function) || code != ANEURALNETWORKS_NO_ERROR)) ended(object, ran);
    if (function == Function::Event_wait && !tracked.waited) {
      tracked.waited = true;
      ended(tracked.execution, true);
    }
  }
  check_refused(function, arguments, code);
  if (!info(function).gives_code || code != ANEURALNETWORKS_NO_ERROR) return;
  record_made(function, arguments);
  if (tracked_.contains(object)) record_set(function, arguments);  // devices, which nobody frees, are not
}

void Strict::refused_cache(const void* compilation, std::string_view problem) {
  std::lock_guard lock(mutex_);
  report("cache-folder", str_cat("Compilation_finish(", name(compilation), "): nothing is cached: ", problem));
}

void Strict::summarise() {
  std::lock_guard lock(mutex_);
  if (!tracked_.empty()) report("never-freed", registry_.alive());
  sink_.line(str_cat("strict: ", violations_, " violations"));
}

}  // namespace pinnace::nnapi_host
