// One line per call: number, thread, function, arguments, result, what was made or found, time.
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>

#include "base/text.h"
#include "nnapi_host/test_bed/test_bed.h"

namespace pinnace::nnapi_host {
namespace {

using Kind = Argument::Kind;

std::string type_text(const ANeuralNetworksOperandType& type) {
  const nnapi::OperandCodeInfo* known = nnapi::operand_code_info(type.type);
  std::string text = known ? known->name : str_cat("type ", type.type);
  if (type.dimensions) text += list_text(std::span(type.dimensions, type.dimensionCount));
  if (type.scale != 0 || type.zeroPoint != 0) text += str_cat(" scale ", type.scale, " zero ", type.zeroPoint);
  return text;
}

std::string argument_text(Function function, Arguments all, size_t i, const Registry& registry) {
  const Argument& argument = all[i];
  if (argument.kind == Kind::kInteger) {
    const nnapi::OperationInfo* operation = function == Function::Model_addOperation && i == 1
                                                ? nnapi::operation_info(static_cast<int32_t>(argument.number))
                                                : nullptr;
    return operation ? operation->name : str_cat(argument.number);
  }
  if (argument.kind == Kind::kReal) return str_cat(argument.real);
  if (argument.kind == Kind::kObject) return registry.name(argument.object, argument.pointer);
  if (!argument.pointer) return "null";
  switch (argument.kind) {
    case Kind::kObjects: {
      std::string text = "[";
      const auto count = static_cast<size_t>(all[i + 1].number);
      for (const void* object : std::span(static_cast<const void* const*>(argument.pointer), count)) {
        text += str_cat(text.size() > 1 ? "," : "", registry.name(argument.object, object));
      }
      return text + "]";
    }
    case Kind::kType:
      return type_text(*static_cast<const ANeuralNetworksOperandType*>(argument.pointer));
    case Kind::kChannels: {
      const auto& q = *static_cast<const ANeuralNetworksSymmPerChannelQuantParams*>(argument.pointer);
      return str_cat("dimension ", q.channelDim, ", ", q.scaleCount, " scales");
    }
    case Kind::kIndices:
      return list_text(
          std::span(static_cast<const uint32_t*>(argument.pointer), static_cast<size_t>(all[i - 1].number)));
    case Kind::kText:
      return str_cat('"', static_cast<const char*>(argument.pointer), '"');
    case Kind::kBytes:
      return hex(reinterpret_cast<uintptr_t>(argument.pointer));
    default:
      return "&";
  }
}

/// What a call that succeeded left where the client wanted it.
std::string found_text(Arguments all, const Registry& registry) {
  std::string text;
  for (const Argument& argument : all) {
    if (!argument.pointer) continue;
    if (argument.kind == Kind::kMade) {
      text += str_cat(" -> ", registry.name(argument.object, *static_cast<const void* const*>(argument.pointer)));
    }
    if (argument.kind == Kind::kResult32) text += str_cat(" -> ", *static_cast<const int32_t*>(argument.pointer));
    if (argument.kind == Kind::kResult64) text += str_cat(" -> ", *static_cast<const int64_t*>(argument.pointer));
  }
  return text;
}

}  // namespace

void TestBed::trace(Function function, Arguments arguments, int64_t result, const Answer& answer) const {
  const FunctionInfo& f = info(function);
  std::string text = str_cat(answer.number, " thread ", ::syscall(SYS_gettid), " ", f.name, "(");
  for (size_t i = 0; i < arguments.size(); ++i) {
    text += str_cat(i ? ", " : "", argument_text(function, arguments, i, registry_));
  }
  text += ")";
  if (f.gives_code) text += str_cat(" = ", result_name(static_cast<int>(result)));
  if (!f.gives_code && result != 0) text += str_cat(" = ", result);
  if (answer.code) text += str_cat(" (", answer.why, ")");
  if (f.gives_code && result == ANEURALNETWORKS_NO_ERROR) text += found_text(arguments, registry_);
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const int64_t took = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - answer.began_ns;
  text += str_cat(" ", took / 1000, " us");
  trace_->line(text);
}

}  // namespace pinnace::nnapi_host
