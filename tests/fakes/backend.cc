// FakeBackend: verdicts, compilation to a list of steps over [N, H, W, C] values in the workspace, plain loops.
#include "fakes/backend.h"

#include <cmath>
#include <cstring>
#include <thread>

#include "backends/packed_constants.h"
#include "cpp/fault_harness.h"
#include "ops/activation.h"
#include "ops/convolution.h"

namespace pinnace::fakes {
namespace {

/// A payload starts with these bytes; one that does not was not written by this back end and is packed anew.
constexpr char kMagic[64] = "fake back end, weights [taps, C, M]";

Verdict refused(std::string rule, std::string text, std::string value = {}) {
  return {false, std::move(rule), std::move(text), std::move(value), {}, {}};
}

struct Step {
  const Node* node;
  Activation activation;
  std::vector<ValueId> inputs;
  ValueId output;
  Window window;                   ///< conv
  const float* weights = nullptr;  ///< conv
  const float* bias = nullptr;     ///< conv, may be null
};

Status went_away() {
  return {Code::kDeviceLost, "the fake device went away"};
}

/// Where a test wants this call to fail.
Status failure_on_demand() {
  switch (testing::device_call_fails()) {
    case testing::Fault::kDevice:
      return went_away();
    case testing::Fault::kDeviceMemory:
      return Status::no_memory();
    default:
      return {};
  }
}

/// Values of states in the device's layout, two of each: a run reads one and writes the other.
class FakeKeptStates final : public KeptStates {
 public:
  FakeKeptStates(const FakeBackend& backend, std::vector<const TensorType*> types, bool survives)
      : backend_(backend), types_(std::move(types)), survives_(survives) {
    for (const TensorType* type : types_) {
      for (auto& values : values_) values.emplace_back(static_cast<size_t>(type->elements()), NAN);
    }
  }
  bool keeps(size_t) const override { return true; }
  Status write(size_t i, const std::byte* from) override {
    ++backend_.states_written;
    PINNACE_TRY(failure_on_demand());
    std::memcpy(now(i).data(), from, now(i).size() * sizeof(float));
    return {};
  }
  Status read(size_t i, std::byte* to) override {
    ++backend_.states_read;
    PINNACE_TRY(failure_on_demand());
    if (backend_.states_refused > 0) {
      --backend_.states_refused;
      return Status::no_memory();
    }
    if (backend_.states_are_gone && !survives_) return Status(Code::kDeviceLost, "the fake device's memory is gone");
    std::memcpy(to, now(i).data(), now(i).size() * sizeof(float));
    return {};
  }
  void commit() override { now_ = 1 - now_; }
  std::vector<float>& now(size_t i) { return values_[now_][i]; }
  std::vector<float>& next(size_t i) { return values_[1 - now_][i]; }

 private:
  const FakeBackend& backend_;
  std::vector<const TensorType*> types_;
  bool survives_;
  std::vector<std::vector<float>> values_[2];
  int now_ = 0;
};

class FakeExecutable final : public Executable {
 public:
  FakeExecutable(const FakeBackend& backend, const Segment& segment)
      : backend_(backend), types_(segment.type_inference.types) {}

  size_t workspace_bytes() const override { return bytes_; }
  std::string_view kernel(size_t) const override { return "fake_loops"; }

  Status run(const RunContext& context, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs) const override {
    const int run = ++backend_.runs;
    PINNACE_TRY(failure_on_demand());
    if (backend_.fails) return invalid("the fake device does not do this");
    const int from = backend_.lost_from_run;
    const bool lost = from && run >= from && run - from < backend_.lost_runs;
    if (backend_.idle) return lost ? went_away() : Status();
    std::this_thread::sleep_for(std::chrono::milliseconds(backend_.extra_ms));
    auto* const kept = static_cast<FakeKeptStates*>(context.states);
    const auto bytes = [](std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); };
    std::vector<TensorView> in(inputs.begin(), inputs.end()), out(outputs.begin(), outputs.end());
    for (size_t i = 0; kept && i < states_.size(); ++i) {
      in[states_[i].input].bytes = bytes(kept->now(i));
      out[states_[i].output].bytes = bytes(kept->next(i));
    }
    for (size_t i = 0; i < in.size(); ++i) to_own_layout(in[i], at(context, input_ids_[i]));
    for (const auto& [id, data] : constants_) {
      to_own_layout({&types_[id], const_cast<std::byte*>(data->data())}, at(context, id));
    }
    for (const Step& step : steps_) {
      if (context.cancelled()) return stop_status("a node of the fake");
      // In the middle of the work, so that a retry meets half-written values.
      if (lost) return went_away();
      const auto start = std::chrono::steady_clock::now();
      compute(context, step);
      ++backend_.nodes_run;
      if (context.timings) {
        context.timings->add(*step.node, backend_.name(), "fake_loops", start, std::chrono::steady_clock::now());
      }
    }
    for (size_t i = 0; i < out.size(); ++i) from_own_layout(at(context, output_ids_[i]), out[i]);
    return {};
  }

  Result<std::unique_ptr<KeptStates>> keep_states(bool survives) const override {
    if (!backend_.keeps_states) return std::unique_ptr<KeptStates>();
    std::vector<const TensorType*> types;
    for (const SegmentState& s : states_) types.push_back(&types_[input_ids_[s.input]]);
    return std::unique_ptr<KeptStates>(std::make_unique<FakeKeptStates>(backend_, std::move(types), survives));
  }

 private:
  friend class FakeBackendCompiler;

  float* at(const RunContext& context, ValueId id) const {
    return reinterpret_cast<float*>(context.workspace + offsets_[id]);
  }
  static void to_own_layout(const TensorView& from, float* to) {
    const int64_t N = from.dim(0), C = from.dim(1), size = from.dim(2) * from.dim(3);
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t c = 0; c < C; ++c) {
        for (int64_t i = 0; i < size; ++i) to[(n * size + i) * C + c] = from.data<float>()[(n * C + c) * size + i];
      }
    }
  }
  static void from_own_layout(const float* from, const TensorView& to) {
    const int64_t N = to.dim(0), C = to.dim(1), size = to.dim(2) * to.dim(3);
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t c = 0; c < C; ++c) {
        for (int64_t i = 0; i < size; ++i) to.data<float>()[(n * C + c) * size + i] = from[(n * size + i) * C + c];
      }
    }
  }

  void compute(const RunContext& context, const Step& step) const {
    const TensorType& y_type = types_[step.output];
    float* y = at(context, step.output);
    const float* x = at(context, step.inputs[0]);
    const auto count = y_type.elements();
    if (step.node->op == "relu") {
      for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? 0 : x[i];
    } else if (step.node->op == "add") {
      const float* b = at(context, step.inputs[1]);
      for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(step.activation(double{x[i]} + double{b[i]}));
    } else {
      convolve(step, x, y);
    }
  }

  void convolve(const Step& step, const float* x, float* y) const {
    const Window& w = step.window;
    const TensorType& in = types_[step.inputs[0]];
    const TensorType& out = types_[step.output];
    const int64_t N = in.shape[0].size, C = in.shape[1].size, M = out.shape[1].size;
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t oy = 0; oy < w.out[1]; ++oy) {
        for (int64_t ox = 0; ox < w.out[2]; ++ox) {
          float* to = y + ((n * w.out[1] + oy) * w.out[2] + ox) * M;
          for (int64_t m = 0; m < M; ++m) {
            double sum = step.bias ? step.bias[m] : 0;
            for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
              const int64_t iy = oy * w.stride[1] + ky * w.dilation[1] - w.before[1];
              for (int64_t kx = 0; kx < w.kernel[2]; ++kx) {
                const int64_t ix = ox * w.stride[2] + kx * w.dilation[2] - w.before[2];
                if (iy < 0 || iy >= w.in[1] || ix < 0 || ix >= w.in[2]) continue;
                const float* from = x + ((n * w.in[1] + iy) * w.in[2] + ix) * C;
                const float* weight = step.weights + (ky * w.kernel[2] + kx) * C * M + m;
                for (int64_t c = 0; c < C; ++c) sum += double{from[c]} * weight[c * M];
              }
            }
            to[m] = static_cast<float>(step.activation(sum));
          }
        }
      }
    }
  }

  const FakeBackend& backend_;
  std::vector<TensorType> types_;
  std::vector<ValueId> input_ids_, output_ids_;
  std::vector<SegmentState> states_;
  std::vector<std::pair<ValueId, ConstantPtr>> constants_;
  std::vector<Step> steps_;
  std::vector<size_t> offsets_;  // per value, in the workspace
  size_t bytes_ = 0;
};

/// Builds a FakeExecutable.
class FakeBackendCompiler {
 public:
  static Result<std::unique_ptr<Executable>> compile(const FakeBackend& backend, const Segment& segment) {
    auto made = std::make_unique<FakeExecutable>(backend, segment);
    made->offsets_.resize(segment.graph.values.size(), SIZE_MAX);
    const auto place = [&](ValueId id) {
      if (made->offsets_[id] != SIZE_MAX) return;
      made->offsets_[id] = made->bytes_;
      made->bytes_ += aligned_size(static_cast<size_t>(made->types_[id].bytes()));
    };
    made->input_ids_ = segment.inputs;
    made->output_ids_ = segment.outputs;
    made->states_ = segment.states;
    for (ValueId id : segment.inputs) place(id);
    for (int32_t k : segment.nodes) {
      const Node& node = *segment.graph.nodes[k];
      std::vector<const TensorType*> types;
      for (ValueId id : node.inputs) types.push_back(id == kNoValue ? nullptr : &made->types_[id]);
      const NodeView view(node, *segment.ops.find(node.op), types);
      Step step{&node, {}, node.inputs, node.outputs[0], {}};
      if (node.op != "relu") {
        PINNACE_ASSIGN(step.activation, parse_activation(view));
      }
      if (node.op == "conv") {
        PINNACE_ASSIGN(step.window, check_convolution(view, 2));
        PINNACE_ASSIGN(step.weights, weights(backend, segment, node));
        step.inputs.resize(1);
        if (node.inputs.size() > 2 && node.inputs[2] != kNoValue) {
          step.bias = reinterpret_cast<const float*>(segment.type_inference.data[node.inputs[2]]->data());
        }
      }
      for (ValueId id : step.inputs) {
        if (made->offsets_[id] == SIZE_MAX && segment.type_inference.data[id]) {
          made->constants_.emplace_back(id, segment.type_inference.data[id]);
        }
        place(id);
      }
      place(step.output);
      made->steps_.push_back(std::move(step));
    }
    return std::unique_ptr<Executable>(std::move(made));
  }

 private:
  /// [taps, C, M] floats, from the file or packed now.
  static Result<const float*> weights(const FakeBackend& backend, const Segment& segment, const Node& node) {
    const Shape& shape = segment.type_inference.types[node.inputs[1]].shape;
    const int64_t M = shape[0].size, C = shape[1].size, taps = shape[2].size * shape[3].size;
    const auto* w = reinterpret_cast<const float*>(segment.type_inference.data[node.inputs[1]]->data());
    const size_t bytes = sizeof kMagic + static_cast<size_t>(M * C * taps) * sizeof(float);
    const auto pack = [&]() -> Result<Buffer> {
      PINNACE_ASSIGN(Buffer buffer, Buffer::allocate(bytes, "packed weights"));
      std::memcpy(buffer.data(), kMagic, sizeof kMagic);
      auto* to = reinterpret_cast<float*>(buffer.data() + sizeof kMagic);
      for (int64_t m = 0; m < M; ++m) {
        for (int64_t c = 0; c < C; ++c) {
          for (int64_t t = 0; t < taps; ++t) to[(t * C + c) * M + m] = w[(m * C + c) * taps + t];
        }
      }
      ++backend.packed;
      return buffer;
    };
    const auto valid = [](const std::byte* data) { return std::memcmp(data, kMagic, sizeof kMagic) == 0; };
    PINNACE_ASSIGN(const std::byte* found,
                   segment.packed.get(std::string(backend.name()), segment.key_prefix + node.name, bytes, valid, pack));
    return reinterpret_cast<const float*>(found + sizeof kMagic);
  }
};

}  // namespace

Verdict FakeBackend::supports(const NodeView& node, const TargetSpec& target) const {
  const std::string& op = node.node().op;
  if (op != "conv" && op != "add" && op != "relu") return refused("K-1", "it has conv, add and relu only");
  if (target.precision != "fp32") return refused("K-6", "it computes in fp32", target.precision);
  const TensorType& x = node.input(0);
  if (x.dtype != DType::kF32 || x.quantized() || x.rank() != 4) {
    return refused("K-3", "it takes float32 of rank 4", to_string(x));
  }
  for (const Dim& channels : {x.shape[1], op == "conv" ? node.input(1).shape[0] : x.shape[1]}) {
    if (channels.size > max_channels) {
      return refused("K-2", str_cat("it has room for ", max_channels, " channels"), str_cat(channels.size));
    }
  }
  if (op == "conv") {
    if (node.attr_int("group") != 1) return refused("K-4", "it has no groups", str_cat(node.attr_int("group")));
    if (!node.input_data(1) || (node.has_input(2) && !node.input_data(2))) {
      return refused("K-5", "weights and bias must be constants");
    }
  }
  if (op == "add" && node.input(0).shape != node.input(1).shape) {
    return refused("K-7", "it does not broadcast", to_string(node.input(1)));
  }
  Verdict taken;
  taken.kernel = "fake_loops";
  return taken;
}

Result<std::unique_ptr<Executable>> FakeBackend::compile(const Segment& segment, const TargetSpec&) const {
  PINNACE_TRY(failure_on_demand());
  if (fails_self_check) return Status(Code::kDeviceLost, "the self-check gave 3 instead of 4");
  ++compiled;
  return FakeBackendCompiler::compile(*this, segment);
}

}  // namespace pinnace::fakes
