// Tensors, layouts and steps; the checks that all nodes share.
#include "backends/gpu/lowering.h"

#include <algorithm>
#include <cmath>

#include "base/sorted_table.h"

namespace pinnace::gpu {
namespace {

/// What every Vulkan device has in one buffer, where a tensor lies; also, places in it are 32-bit integers.
constexpr int64_t kTensorBytes = int64_t{1} << 30;
constexpr int64_t kRowGroups = 65535;

}  // namespace

ImageShape image_shape(const TensorType& type) {
  ImageShape s;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    (i == 0 ? s.N : i == 1 ? s.C : s.pixels) *= type.shape[i].size;
  }
  return s;
}

int32_t held_as(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return 1;
    case DType::kU8:
      return 2;
    case DType::kI16:
      return 3;
    case DType::kU16:
      return 4;
    case DType::kI64:
      return 5;
    default:
      return 0;
  }
}

std::array<uint32_t, 3> line_groups(int64_t items, uint32_t local) {
  const int64_t groups = std::max<int64_t>(1, (items + local - 1) / local);
  if (groups <= kRowGroups) return {static_cast<uint32_t>(groups), 1, 1};
  const int64_t rows = (groups + kRowGroups - 1) / kRowGroups;
  return {static_cast<uint32_t>((groups + rows - 1) / rows), static_cast<uint32_t>(rows), 1};
}

Function function_of(UnaryKind kind) {
  switch (kind) {
#define UNARY_POWER(kind, name)
#define UNARY_ALONE(kind, name) \
  case UnaryKind::kind:         \
    return Function::k_##name;
#define UNARY_FUSED(kind, name) UNARY_ALONE(kind, name)
#define UNARY_EPILOGUE(kind, name) UNARY_ALONE(kind, name)
#define UNARY(kind, name, use, ...) UNARY_##use(kind, name)
#include "ops/unary.inc"
#undef UNARY
#undef UNARY_POWER
#undef UNARY_ALONE
#undef UNARY_FUSED
#undef UNARY_EPILOGUE
    default:
      return Function::k_none;
  }
}

Epilogue epilogue_of(const Activation& activation) {
  return {function_of(activation.kind), activation.p, activation.q};
}

bool in_epilogue(const Activation& activation) {
  return activation.none() || unary_use(activation.kind) == UnaryUse::EPILOGUE;
}

// ------------------------------------------------------------------------------------------------------------ Lowering

size_t Lowering::element_bytes(const TensorType& type) const {
  return f16_ && is_device_float(type.dtype) ? 2 : 4;
}

TensorId Lowering::add_tensor(DeviceTensor::Place place, size_t index, size_t bytes) {
  if (dry_) return 0;
  tensors_.push_back({place, index, std::max<size_t>(16, (bytes + 15) / 16 * 16)});
  return static_cast<TensorId>(tensors_.size() - 1);
}

TensorId Lowering::add_error_record(std::string label) {
  if (dry_) return 0;
  error_labels_.push_back(std::move(label));
  return add_tensor(DeviceTensor::Place::kErrorRecord, error_labels_.size() - 1, 16);
}

TensorId Lowering::add_weight(WeightRequest request) {
  if (dry_) return 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].key != request.key) continue;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (tensors_[t].place == DeviceTensor::Place::kWeight && tensors_[t].index == i) return static_cast<TensorId>(t);
    }
  }
  const TensorId id = add_tensor(DeviceTensor::Place::kWeight, weights_.size(), request.bytes());
  weights_.push_back(std::move(request));
  return id;
}

void Lowering::know(ValueId id, std::shared_ptr<const Constant> data) {
  value(id).constant = true;
  value(id).data = data->data();
  known_.push_back(std::move(data));
}

int32_t Lowering::add_step(Step step) {
  if (dry_) return -1;
  step.node = node_;
  steps_.push_back(std::move(step));
  return static_cast<int32_t>(steps_.size() - 1);
}

// -------------------------------------------------------------------------------------------------------- NodeLowering

std::vector<double> NodeLowering::floats(int i) const {
  // A verdict may depend on a number, never on weights, whose bytes may not have been checked yet.
  const int64_t count = in(i).elements();
  if (lowering_.dry() && count != 1) return std::vector<double>(static_cast<size_t>(count), 1.0);
  return view_.input_floats(i).value_or(std::vector<double>());
}

TensorId NodeLowering::make_dense(int o) {
  if (lowering_.dry()) return 0;
  LoweredValue& v = lowering_.value(out_id(o));
  v.dense = lowering_.add_tensor(DeviceTensor::Place::kActivation, 0,
                                 static_cast<size_t>(v.type->elements()) * lowering_.element_bytes(*v.type));
  v.dense_step = static_cast<int32_t>(lowering_.steps().size());
  return v.dense;
}

TensorId NodeLowering::make_nc4hw4(int o) {
  if (lowering_.dry()) return 0;
  LoweredValue& v = lowering_.value(out_id(o));
  const ImageShape s = image_shape(*v.type);
  v.nc4hw4 = lowering_.add_tensor(DeviceTensor::Place::kActivation, 0,
                                  static_cast<size_t>(s.vectors()) * (is_byte(v.type->dtype) ? 4
                                                                      : lowering_.f16()      ? 8
                                                                                             : 16));
  v.nc4hw4_step = static_cast<int32_t>(lowering_.steps().size());
  return v.nc4hw4;
}

TensorId NodeLowering::make_scratch(int64_t elements, DType type) {
  return lowering_.add_tensor(DeviceTensor::Place::kActivation, 0,
                              static_cast<size_t>(elements) * lowering_.element_bytes({type, {}, nullptr}));
}

void NodeLowering::note_wide(int i) {
  const LoweredValue& v = in_value(i);
  if (!v.constant || !v.data || v.type->dtype != DType::kI64 || wide_) return;
  const std::span numbers(static_cast<const int64_t*>(v.data), static_cast<size_t>(v.type->elements()));
  const auto found =
      std::find_if(numbers.begin(), numbers.end(), [](int64_t n) { return n != static_cast<int32_t>(n); });
  if (found != numbers.end()) wide_ = *found;
}

void NodeLowering::alias(int o, int i) {
  if (lowering_.dry()) return;
  const TensorId tensor = dense(i);
  LoweredValue& v = lowering_.value(out_id(o));
  v.dense = tensor;
  v.dense_step = -1;
}

TensorId NodeLowering::weights(std::string_view what, int64_t count, std::function<Status(std::span<float>)> fill) {
  return lowering_.add_weight({str_cat(lowering_.key(), " ", what), static_cast<size_t>(count), lowering_.f16(),
                               std::move(fill), lowering_.of_sizes()});
}

TensorId NodeLowering::wide_weights(std::string_view what, int64_t count,
                                    std::function<Status(std::span<float>)> fill) {
  return lowering_.add_weight(
      {str_cat(lowering_.key(), " ", what), static_cast<size_t>(count), false, std::move(fill), lowering_.of_sizes()});
}

TensorId NodeLowering::size_table(std::string_view what, int64_t count, std::function<Status(std::span<float>)> fill) {
  return lowering_.add_weight(
      {str_cat(lowering_.key(), " ", what), static_cast<size_t>(count), false, std::move(fill), true});
}

int32_t NodeLowering::step(KernelId id, SpecValues constants, PushBytes params, std::vector<TensorId> bindings,
                           std::array<uint32_t, 3> groups, double work, bool wide) {
  const bool f16 = lowering_.f16() && !wide;
  const KernelCode& code = kernel_code(id, f16);
  std::vector<int32_t> spec = std::move(constants).take();
  // One name for the dispatches that a long step is cut into.
  std::string& names = verdict_.kernel;
  if (names != code.name && !names.ends_with(str_cat("+", code.name))) {
    names += str_cat(names.empty() ? "" : "+", code.name);
  }
  assert(params.bytes().size() == code.push_bytes && bindings.size() == code.bindings &&
         spec.size() == code.spec_constants);
  Step made{{id, f16, std::move(spec)}, params.copy(), std::move(bindings), groups, 0, work};
  made.turns = std::exchange(turns_, 0);
  return lowering_.add_step(std::move(made));
}

void NodeLowering::repeat(Step step) {
  verdict_.kernel = str_cat(kernel_code(step.kernel.id, step.kernel.f16).name, " of another node");
  lowering_.add_step(std::move(step));
}

Status NodeLowering::refuse(Rule rule, std::string value) {
  verdict_ = refusal(rule, std::move(value));
  return unsupported(verdict_.text, ", is ", verdict_.value);
}

Status NodeLowering::require_float(int i) {
  if (!has(i) || is_device_float(in(i).dtype)) return {};
  return refuse(Rule::kType, to_string(in(i)));
}

LowerFn find_lowering(std::string_view op) {
  static constexpr SortedTable kLowerings({
#define LOWERING(op, function) TableLine<std::string_view, LowerFn>{#op, function},
#include "backends/gpu/lowerings.inc"
#undef LOWERING
  });
  return kLowerings.find(op);
}

LowerFn find_quantized_lowering(std::string_view op) {
  static constexpr SortedTable kLowerings({
#define QUANTIZED_LOWERING(op, function) TableLine<std::string_view, LowerFn>{#op, function},
#include "backends/gpu/quantized_lowerings.inc"
#undef QUANTIZED_LOWERING
  });
  return kLowerings.find(op);
}

Status lower_node(Lowering& lowering, const NodeView& view, std::span<const TensorType* const> outputs,
                  Verdict& verdict) {
  NodeLowering n(lowering, view, outputs);
  const auto run = [&]() -> Status {
    bool quantized = false;
    for (int i = 0; i < view.input_count(); ++i) quantized |= view.has_input(i) && view.input(i).quantized();
    for (const TensorType* type : outputs) quantized |= type->quantized();
    const LowerFn lower = quantized ? find_quantized_lowering(view.node().op) : find_lowering(view.node().op);
    if (!lower) return n.refuse(quantized ? Rule::kQuantized : Rule::kOperator, view.node().op);
    for (int i = 0; i < view.input_count() + view.output_count(); ++i) {
      const int o = i - view.input_count();
      if (o < 0 && !view.has_input(i)) continue;
      const TensorType& type = o < 0 ? view.input(i) : *outputs[static_cast<size_t>(o)];
      // A cast goes by the integers that are stored, as all kernels hold them.
      if (type.quantized() && !is_byte(type.dtype) && view.node().op != "cast") {
        return n.refuse(Rule::kQuantized, to_string(type));
      }
      // Stored weights of any width become floats with the plan, and so do their zero points.
      if (o < 0 && view.input_data(0) && view.node().op == "dequantize_linear") continue;
      constexpr DTypes kHeld = kF32 | kF16 | kBF16 | kBool | kI8 | kU8 | kI32 | kI64 | dtypes(DType::kI16, DType::kU16);
      if (!(kHeld >> static_cast<int>(type.dtype) & 1)) return n.refuse(Rule::kType, to_string(type));
      // Both layouts: in NC4HW4 up to three lanes of a block are padding.
      const ImageShape s = image_shape(type);
      if (type.elements() > kTensorBytes / 4 || s.vectors() > kTensorBytes / 16) {
        return n.refuse(Rule::kBytes, to_string(type));
      }
    }
    bool empty = true;
    for (const TensorType* type : outputs) empty &= type->elements() == 0;
    if (empty) {  // nothing to compute
      for (int o = 0; o < view.output_count(); ++o) n.make_dense(o);
      return {};
    }
    PINNACE_TRY(lower(n));
    if (n.wide()) return n.refuse(Rule::kWide, str_cat("a constant ", *n.wide()));
    return {};
  };
  const Status status = run();
  verdict = n.verdict();
  verdict.supported = status.ok();
  if (!status.ok() && verdict.rule.empty()) verdict = refusal(Rule::kAttribute, status.message());
  return status;
}

Verdict lower_alone(const NodeView& node) {
  const auto made = infer_node_types(node);
  if (!made) return refusal(Rule::kAttribute, made.status().message());
  ValueId last = 0;
  for (ValueId id : node.node().inputs) last = std::max(last, id);
  for (ValueId id : node.node().outputs) last = std::max(last, id);
  // A graph may have many values, a node has few: they are numbered anew.
  Node alone;
  alone.op = node.node().op;
  alone.version = node.node().version;
  alone.name = node.node().name;
  alone.attrs = node.node().attrs;
  std::vector<LoweredValue> values;
  std::vector<const TensorType*> types, outputs;
  std::vector<const void*> data;
  for (int i = 0; i < node.input_count(); ++i) {
    types.push_back(node.has_input(i) ? &node.input(i) : nullptr);
    data.push_back(node.input_data(i));
    alone.inputs.push_back(kNoValue);
    if (!node.has_input(i)) continue;
    alone.inputs.back() = static_cast<ValueId>(values.size());
    values.push_back({&node.input(i), data.back(), data.back() != nullptr});
  }
  for (const TensorType& type : *made) {
    alone.outputs.push_back(static_cast<ValueId>(values.size()));
    values.push_back({&type});
    outputs.push_back(&type);
  }
  Lowering lowering(true, false, std::move(values));
  const NodeView view(alone, node.op(), types, data, outputs);
  Verdict verdict;
  static_cast<void>(lower_node(lowering, view, outputs, verdict).ok());
  return verdict;
}

}  // namespace pinnace::gpu
