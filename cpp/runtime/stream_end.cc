// "stream.<input>" is "axis 2, latency 15, multiple 1, tail 15", "streamed.<output>" "axis 2, rate 1/8, more -1".
#include "runtime/stream_end.h"

#include <algorithm>
#include <cstdlib>

#include "base/type_size.h"

namespace pinnace {
namespace {

/// The whole numbers of a fact; kCorruptFile: they are not four.
Result<std::vector<int64_t>> numbers(const ProgramData& program, const std::string& key) {
  for (const auto& [name, text] : program.metadata) {
    if (name != key) continue;
    std::vector<int64_t> found;
    for (const char* at = text.c_str(); *at;) {
      const bool digit = *at >= '0' && *at <= '9';
      if (!digit && !(*at == '-' && at[1] >= '0' && at[1] <= '9')) {
        ++at;
        continue;
      }
      char* after = nullptr;
      found.push_back(std::strtoll(at, &after, 10));
      at = after;
    }
    const bool right = found.size() == 4 && found[0] >= 0 && found[1] >= 0 && found[2] > 0 &&
                       std::all_of(found.begin(), found.end(), [](int64_t n) { return n < int64_t{1} << 31; });
    if (!right) return Status(Code::kCorruptFile, str_cat("metadata '", key, "' is '", text, "'"));
    return found;
  }
  return std::vector<int64_t>();
}

}  // namespace

Result<StreamEnd> stream_end(const ProgramData& program, std::span<const Tensor> inputs) {
  StreamEnd end;
  int64_t latency = -1;
  size_t bytes = 0;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const TensorSpec& spec = program.inputs[i];
    PINNACE_ASSIGN(const auto fact, numbers(program, str_cat("stream.", spec.name)));
    Tensor tensor;
    if (!fact.empty()) {
      latency = fact[1];
      end.tail = fact[3];
      tensor.type = spec.type;
      if (fact[0] >= tensor.type.rank()) return Status(Code::kCorruptFile, "metadata: a stream has no such axis");
      tensor.type.shape[static_cast<size_t>(fact[0])] = end.tail;
      if (!tensor.type.concrete()) return invalid("input '", spec.name, "' has an open size beside time");
      if (!fits_memory(tensor.type)) return Status(Code::kCorruptFile, "metadata: the end of a stream fits no memory");
      tensor.memory.bytes = static_cast<size_t>(tensor.type.bytes());
      bytes = std::max(bytes, tensor.memory.bytes);
    } else if (i < inputs.size() && inputs[i].memory.host) {
      tensor = inputs[i];
    } else {
      return invalid("input '", spec.name, "' is no stream and is not given");
    }
    end.inputs.push_back(std::move(tensor));
  }
  if (latency < 0) return invalid("the program takes the whole at once: there is no stream to end");
  end.nothing.resize(bytes);
  for (Tensor& t : end.inputs) {
    if (!t.memory.host) t.memory.host = end.nothing.data();
  }
  for (const TensorSpec& spec : program.outputs) {
    PINNACE_ASSIGN(const auto fact, numbers(program, str_cat("streamed.", spec.name)));
    if (fact.empty() || fact[1] == 0 || fact[0] >= spec.type.rank()) {
      return Status(Code::kCorruptFile, str_cat("metadata: output '", spec.name, "' has no rate or no axis of time"));
    }
    end.axes.push_back(static_cast<size_t>(fact[0]));
    end.rest.push_back(std::max<int64_t>(0, latency * fact[1] / fact[2] + fact[3]));
  }
  for (size_t i = 0; i < program.states.size(); ++i) {
    const std::string& name = program.states[i].name;
    const TensorType& type = program.states[i].type;
    if (type.dtype != DType::kI64 || type.elements() != 1) continue;
    for (const TensorSpec& input : program.inputs) {
      if (name == str_cat(input.name, ".open")) end.open = static_cast<int>(i);
    }
  }
  return end;
}

}  // namespace pinnace
