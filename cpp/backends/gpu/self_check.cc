// Running known-answer tests and judging their answers.
#include "backends/gpu/self_check.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "backends/gpu/executable.h"
#include "backends/packed_constants.h"
#include "base/log.h"

namespace pinnace::gpu {
namespace {

/// A known-answer test as a segment of its own, with what its inputs hold.
struct Trial {
  Graph graph;
  TypeInference type_inference;
  std::vector<ConstantPtr> contents;  ///< of all inputs, in the order of Graph::inputs
  std::vector<ValueId> open;          ///< inputs that come from the host
  std::vector<int32_t> nodes;
  OpTable ops;
  PackedConstants packed;
  Segment segment() { return {graph, type_inference, nodes, open, graph.outputs, ops, packed, ""}; }
};

/// Multiples of 1/64 from -2 to 2, or integers from -128 to 127; the same for each input each time.
Result<ConstantPtr> contents_of(const TensorType& type, uint32_t seed) {
  const auto count = static_cast<size_t>(type.elements());
  std::vector<float> floats(count);
  std::vector<int32_t> integers(count);
  std::vector<int8_t> bytes(count);
  uint32_t state = seed * 2654435761u + 12345u;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    integers[i] = static_cast<int32_t>(state >> 16) % 256 - 128;
    floats[i] = static_cast<float>(integers[i]) / 64.0f;
    bytes[i] = static_cast<int8_t>(integers[i]);
  }
  switch (type.dtype) {
    case DType::kI32:
      return Constant::copy_of(integers.data(), count * 4);
    case DType::kI8:
    case DType::kU8:
      return Constant::copy_of(bytes.data(), count);
    default:
      assert(type.dtype == DType::kF32);
      return Constant::copy_of(floats.data(), count * 4);
  }
}

/// Null where the build lacks an operator of it: a library for one model.
Result<std::unique_ptr<Trial>> trial_of(const KnownAnswerTest& test) {
  auto trial = std::make_unique<Trial>();
  PINNACE_ASSIGN(trial->graph, parse(str_cat("graph \"known answer\" {\n", test.graph, "\n}")));
  for (const auto& node : trial->graph.nodes) {
    if (!trial->ops.find(node->op) || !find_lowering(node->op)) return std::unique_ptr<Trial>();
  }
  std::vector<ConstantPtr> known;
  for (size_t i = 0; i < trial->graph.inputs.size(); ++i) {
    const ValueId id = trial->graph.inputs[i];
    const Value& value = trial->graph.value(id);
    PINNACE_ASSIGN(ConstantPtr made, contents_of(value.type, static_cast<uint32_t>(i)));
    trial->contents.push_back(made);
    const bool constant = value.name.starts_with("k_");
    known.push_back(constant ? std::move(made) : nullptr);
    if (!constant) trial->open.push_back(id);
  }
  PINNACE_ASSIGN(trial->type_inference, infer_types(trial->graph, {}, known, trial->ops));
  for (size_t i = 0; i < trial->graph.nodes.size(); ++i) {
    if (!trial->type_inference.computed[i]) trial->nodes.push_back(static_cast<int32_t>(i));
  }
  return trial;
}

int64_t integer(DType dtype, const std::byte* at) {
  const auto load = [at](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return static_cast<int64_t>(value);
  };
  switch (dtype) {
    case DType::kI64:
      return load(int64_t{});
    case DType::kI32:
      return load(int32_t{});
    case DType::kI8:
      return load(int8_t{});
    default:
      return load(uint8_t{});
  }
}

/// Integers must be equal. Sums and functions in float32 differ from the reference by 2e-5 of the largest; operands and
/// results of 16 bits have 11 of them, and some tests are four operators.
std::string difference(const ReferenceOutput& want, const std::byte* got, bool f16) {
  const auto count = static_cast<size_t>(want.type.elements());
  if (want.type.dtype != DType::kF32) {
    const auto bytes = static_cast<size_t>(want.type.bytes()), size = bytes / count;
    const auto first = static_cast<size_t>(std::mismatch(got, got + bytes, want.bytes.data()).first - got);
    if (first == bytes) return {};
    const size_t at = first / size * size;
    return str_cat("element ", first / size, " is ", integer(want.type.dtype, got + at), ", must be ",
                   integer(want.type.dtype, want.bytes.data() + at));
  }
  const auto *w = reinterpret_cast<const float*>(want.bytes.data()), *g = reinterpret_cast<const float*>(got);
  float largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(w[i]));
  const float bound = (f16 ? 1e-2f : 2e-5f) * std::max(largest, 0.1f);
  for (size_t i = 0; i < count; ++i) {
    if (std::fabs(w[i] - g[i]) <= bound) continue;  // false for NaN
    return str_cat("element ", i, " is ", g[i], ", must be ", w[i], " within ", bound);
  }
  return {};
}

/// A known-answer test of an ordinary kernel is lowered to that one, not to what stands beside it for simdgroup
/// matrices.
Result<FittedSegment> fitted(Trial& trial, KernelId kernel, const Context& context, bool f16) {
  FittedSegment made;
  made.f16 = f16;
  DeviceCaps caps = context.caps();
  caps.simdgroup_matrices &= kernel_code(kernel, f16).simdgroup_matrices;
  PINNACE_ASSIGN(made.lowered, lower_segment(trial.segment(), caps, f16, {}));
  made.notices.resize(trial.nodes.size());
  return made;
}

/// Empty, or why the device does not make a kernel of these steps.
Result<std::string> refused_kernel(Context& context, const LoweredSegment& lowered) {
  std::vector<KernelKey> keys;
  for (const Step& step : lowered.steps) keys.push_back(step.kernel);
  Status made = context.kernels(keys).status();
  if (made.ok()) return std::string();
  if (made.code() != Code::kUnsupported) return made;
  std::string why = made.message();  // a list's may have lines, of which a stored result is one
  std::replace(why.begin(), why.end(), '\n', ' ');
  return why;
}

/// Empty, or what is wrong with the answers. `spoil`: a test wants them to be wrong.
Result<std::string> judge(Trial& trial, FittedSegment ready, const std::shared_ptr<Context>& context, bool spoil) {
  const bool f16 = ready.f16;
  std::vector<TensorView> all, inputs, outputs;
  for (size_t i = 0; i < trial.graph.inputs.size(); ++i) {
    const ValueId id = trial.graph.inputs[i];
    auto* bytes = const_cast<std::byte*>(static_cast<const std::byte*>(trial.contents[i]->data()));
    all.push_back({&trial.type_inference.types[static_cast<size_t>(id)], bytes});
    if (std::find(trial.open.begin(), trial.open.end(), id) != trial.open.end()) inputs.push_back(all.back());
  }
  PINNACE_ASSIGN(const auto want, run_graph_reference(trial.graph, all, nullptr, trial.ops));
  std::vector<Buffer> memory;
  for (const ReferenceOutput& output : want) {
    PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(output.type.bytes()), "a self-check"));
    memory.push_back(std::move(bytes));
    outputs.push_back({&output.type, memory.back().data()});
  }
  PINNACE_ASSIGN(const auto executable,
                 GpuExecutable::compile(std::move(ready), trial.segment(), context, "self-check"));
  PINNACE_TRY(executable->run(RunContext(), inputs, outputs));
  if (spoil) memory[0].data()[3] ^= std::byte{0x7f};
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::string wrong = difference(want[i], memory[i].data(), f16); !wrong.empty()) return wrong;
  }
  return std::string();
}

}  // namespace

std::span<const KnownAnswerTest> known_answer_tests() {
  static constexpr KnownAnswerTest all[] = {
#define KNOWN_ANSWER(kernel, graph) {KernelId::kernel, graph},
#include "backends/gpu/known_answers.inc"
#undef KNOWN_ANSWER
  };
  return all;
}

Result<std::set<KernelId>> kernels_of(const KnownAnswerTest& test, const std::shared_ptr<Context>& context, bool f16) {
  PINNACE_ASSIGN(const auto trial, trial_of(test));
  if (!trial) return unsupported("this build lacks an operator of the test");
  PINNACE_ASSIGN(const FittedSegment made, fitted(*trial, test.kernel, *context, f16));
  std::set<KernelId> all;
  for (const Step& step : made.lowered.steps) all.insert(step.kernel.id);
  return all;
}

Result<std::map<KernelId, std::string>> failed_self_checks(const std::shared_ptr<Context>& context,
                                                           const std::set<std::pair<KernelId, bool>>& kernels) {
  std::map<KernelId, std::string> failed;
  if (!context->checks_itself()) return failed;
  SelfChecks& known = context->self_checks();
  const WorkLock running(known.running, "the self-check of kernels");
  PINNACE_TRY(running.status());
  SelfChecks::Results results;
  {
    std::lock_guard lock(known.mutex);
    results = known.results;
  }
  struct Pending {
    std::string name;
    bool f16;
    std::unique_ptr<Trial> trial;
    FittedSegment ready;
  };
  std::vector<Pending> pending;
  std::vector<KernelKey> keys;
  for (const auto& [id, f16] : kernels) {
    const std::string name(kernel_code(id, f16).name);
    if (results.contains(name)) continue;
    for (const KnownAnswerTest& test : known_answer_tests()) {
      if (test.kernel != id) continue;
      PINNACE_ASSIGN(auto trial, trial_of(test));
      if (!trial) continue;
      PINNACE_ASSIGN(FittedSegment ready, fitted(*trial, test.kernel, *context, f16));
      for (const Step& step : ready.lowered.steps) keys.push_back(step.kernel);
      pending.push_back({name, f16, std::move(trial), std::move(ready)});
    }
  }
  if (!pending.empty()) {
    const LogTime time;
    const size_t known_before = results.size();
    // All at once, by several threads; where the device's compiler refuses one, each test says whether it needs it.
    std::set<std::string, std::less<>> refused;
    Status all = context->kernels(keys).status();
    if (!all.ok() && all.code() != Code::kUnsupported) return all;
    for (Pending& p : pending) {
      std::string& result = results[p.name];
      if (!result.empty()) continue;
      if (!all.ok()) {
        PINNACE_ASSIGN(result, refused_kernel(*context, p.ready.lowered));
        if (!result.empty()) {
          refused.insert(p.name);
          continue;
        }
      }
      PINNACE_ASSIGN(result, judge(*p.trial, std::move(p.ready), context, context->spoils(p.name)));
    }
    log_several(LogLevel::kInfo, [&] {
      for (const Pending& p : pending) {
        const auto found = results.find(p.name);
        if (found == results.end() || found->second.empty()) continue;
        PINNACE_LOG_WARN("kernel ", p.name, " of ", context->caps().identity,
                         " is not used, its self-check failed: ", found->second);
      }
      PINNACE_LOG_INFO("self-checks of ", results.size() - known_before, " kernels on ", context->caps().identity,
                       ", in ", time.text());
    });
    {
      std::lock_guard lock(known.mutex);
      known.results = results;
      known.refused.merge(refused);
    }
    context->store_cache();
  }
  for (const auto& [id, f16] : kernels) {
    const auto found = results.find(kernel_code(id, f16).name);
    if (found != results.end() && !found->second.empty()) failed[id] = found->second;
  }
  return failed;
}

}  // namespace pinnace::gpu
