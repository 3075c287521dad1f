// Specialisation and its cache.
#include "nnapi_host/engine.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "base/status.h"
#include "graph/graph.h"
#include "passes/pass.h"
#include "program/program_data.h"

namespace pinnace::nnapi_host {
namespace {

/// Specialisations of one compilation that are kept; the least recently used goes first.
constexpr size_t kMostSpecialisations = 8;
/// Idle sessions of one specialisation that are kept.
constexpr size_t kMostIdle = 4;

/// A program in memory: nothing is written or read back, and constants stay where they lie.
Program program_of(Graph graph) {
  auto data = std::make_shared<ProgramData>();
  data->name = "nnapi";
  for (ValueId id : graph.inputs) data->inputs.push_back({graph.value(id).name, graph.value(id).type});
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    data->outputs.push_back({graph.output_names[i], graph.value(graph.outputs[i]).type});
  }
  data->graph = std::move(graph);
  return Program(std::move(data));
}

}  // namespace

Specialisation::Specialisation(std::shared_ptr<const Prepared> prepared, std::vector<uint32_t> inputs,
                               std::vector<TensorType> outputs)
    : inputs(std::move(inputs)), outputs(std::move(outputs)), prepared_(std::move(prepared)) {
  idle_.reserve(kMostIdle);  // a computation that has succeeded does not fail because its session has no place
}

Result<std::unique_ptr<Session>> Specialisation::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Session> session = std::move(idle_.back());
      idle_.pop_back();
      return session;
    }
  }
  PINNACE_ASSIGN(Session session, Session::create(prepared_));
  return std::make_unique<Session>(std::move(session));
}

void Specialisation::give_back(std::unique_ptr<Session> session) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(session));
}

bool Engine::matches(const Entry& entry, std::span<const InputArgument> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (entry.dims[i] != inputs[i].dims || entry.omitted[i] != inputs[i].omitted) return false;
  }
  return std::all_of(entry.values.begin(), entry.values.end(), [&](const auto& value) {
    const std::span<const std::byte> now = inputs[value.first].data;
    return now.size() == value.second->bytes() &&
           (now.empty() || std::memcmp(now.data(), value.second->data(), now.size()) == 0);
  });
}

Result<Engine::Entry> Engine::make(std::span<const InputArgument> inputs, std::vector<uint32_t> constants,
                                   bool have_values, const Deadline& deadline) {
  // All of it looks whether this scope has ended.
  const CancelScope scope(RunOptions{.timeout = deadline.left()});
  for (;;) {
    std::vector<nnapi::InputSpec> specs;
    for (const InputArgument& input : inputs) specs.push_back({input.dims, input.omitted, false, input.data});
    for (uint32_t i : constants) specs[i].constant = true;
    PINNACE_ASSIGN(nnapi::ModelGraph mapped, nnapi::to_graph(*model_, specs, true));
    if (!mapped.needed.empty()) {
      if (!have_values) return unsupported("values of inputs are needed");
      for (uint32_t i : mapped.needed) {
        if (std::find(constants.begin(), constants.end(), i) == constants.end()) constants.push_back(i);
      }
      continue;
    }
    PINNACE_TRY(run_passes(mapped.graph, PassContext{}, {}).status());
    mapped.graph.compact();
    std::vector<TensorType> outputs;
    for (ValueId id : mapped.graph.outputs) outputs.push_back(mapped.graph.value(id).type);
    const Program program = program_of(std::move(mapped.graph));
    PINNACE_ASSIGN(auto prepared, Prepared::create(program, options_));
    Entry entry;
    for (const InputArgument& input : inputs) {
      entry.dims.push_back(input.dims);
      entry.omitted.push_back(input.omitted);
    }
    for (uint32_t i : constants) {
      PINNACE_ASSIGN(ConstantPtr copy, Constant::copy_of(inputs[i].data.data(), inputs[i].data.size()));
      entry.values.emplace_back(i, std::move(copy));
    }
    entry.made = std::make_shared<Specialisation>(std::move(prepared), std::move(mapped.inputs), std::move(outputs));
    return entry;
  }
}

Result<std::shared_ptr<Specialisation>> Engine::find(std::span<const InputArgument> inputs, const Deadline& deadline) {
  const ProcessLock lock(mutex_);
  if (!lock.held()) return unsupported("this process was forked while another thread prepared the model");
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!matches(*entry, inputs)) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->made;
  }
  PINNACE_LOG_DEBUG("a run has shapes or values that the model is not prepared for yet");
  PINNACE_ASSIGN(Entry made, make(inputs, constants_, true, deadline));
  constants_.clear();
  for (const auto& value : made.values) constants_.push_back(value.first);
  entries_.push_front(std::move(made));
  if (entries_.size() > kMostSpecialisations) entries_.pop_back();
  return entries_.front().made;
}

std::shared_ptr<Specialisation> Engine::cached(const Cache& cache) const {
  auto found = cache.load(options_);
  if (!found) return nullptr;
  std::vector<TensorType> outputs;
  for (const TensorSpec& output : found->prepared->program().outputs()) outputs.push_back(output.type);
  auto made =
      std::make_shared<Specialisation>(std::move(found->prepared), std::move(found->inputs), std::move(outputs));
  made->give_back(std::move(found->session));
  return made;
}

Status Engine::prepare_ahead(const Deadline& deadline, const Cache* cache) {
  std::vector<InputArgument> inputs;
  for (uint32_t i : model_->inputs) {
    const nnapi::Operand& operand = model_->operands[i];
    if (!operand.shape_known()) return {};
    inputs.push_back({operand.dims, false, {}});
  }
  const ProcessLock lock(mutex_);
  if (!lock.held()) return unsupported("this process was forked while another thread prepared the model");
  if (auto made = cache ? cached(*cache) : nullptr) {
    Entry entry{.made = std::move(made)};
    for (const InputArgument& input : inputs) entry.dims.push_back(input.dims);
    entry.omitted.resize(inputs.size());
    entries_.push_front(std::move(entry));
    return {};
  }
  PINNACE_ASSIGN(Entry made, make(inputs, {}, false, deadline));
  entries_.push_front(std::move(made));
  if (cache) cache->store(entries_.front().made->prepared(), entries_.front().made->inputs);
  return {};
}

}  // namespace pinnace::nnapi_host
