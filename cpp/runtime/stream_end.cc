// What the last run of a stream reads, and what it leaves.
#include "runtime/stream_end.h"

#include <algorithm>

#include "base/type_size.h"
#include "program/streams.h"

namespace pinnace {

Result<StreamEnd> stream_end(const ProgramData& program, std::span<const Tensor> inputs) {
  PINNACE_ASSIGN(const auto streams, streamed_inputs(program));
  PINNACE_ASSIGN(const auto streamed, streamed_outputs(program));
  if (streams.empty()) return invalid("the program takes the whole at once: there is no stream to end");
  StreamEnd end;
  end.tail = streams[0].tail;
  size_t bytes = 0;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const TensorSpec& spec = program.inputs[i];
    const auto stream = std::ranges::find(streams, spec.name, &StreamedInput::name);
    Tensor tensor;
    if (stream != streams.end()) {
      tensor.type = spec.type;
      tensor.type.shape[static_cast<size_t>(stream->axis)] = stream->tail;
      if (!tensor.type.concrete()) return invalid("input '", spec.name, "' has a dynamic size beside time");
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
  end.nothing.resize(bytes);
  for (Tensor& t : end.inputs) {
    if (!t.memory.host) t.memory.host = end.nothing.data();
  }
  if (streamed.size() != program.outputs.size()) {
    return Status(Code::kCorruptFile, "metadata: an output of a stream has no rate and no axis of time");
  }
  for (const StreamedOutput& s : streamed) {
    end.axes.push_back(static_cast<size_t>(s.axis));
    end.rest.push_back(std::max<int64_t>(0, streams[0].latency * s.up / s.down + s.more));
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
