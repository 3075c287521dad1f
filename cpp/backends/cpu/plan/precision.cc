// One walk over the segment in order. A value may have a version in another type, float32 of halves or halves of
// float32, once a node computes or reads it so; casts stand where a reader wants the version that is not there. Nodes
// that only move elements follow their operand. Weights of convolutions that are stored as integers, and those of
// products that are stored in 16 bits, become float32 constants, as their kernels pack constants alone.
#include "backends/cpu/plan/precision.h"

#include <algorithm>

#include "backends/cpu/cast/half_f32.h"
#include "base/dtype_code.h"

namespace pinnace::cpu {
namespace {

bool is_half(const TensorType& type) {
  return type.dtype == DType::kF16 || type.dtype == DType::kBF16;
}

class PrecisionLegalization {
 public:
  PrecisionLegalization(const Segment& segment, CpuMode mode)
      : segment_(segment), mode_(mode), narrows_(mode.precision == Precision::kFp16 && has_line("conv", DType::kF16)) {}

  Result<std::optional<LegalizedSegment>> run() {
    bool any = false;
    for (int32_t k : segment_.nodes) {
      for (ValueId id : segment_.graph.nodes[static_cast<size_t>(k)]->inputs) {
        any |= id != kNoValue && has_other(segment_.type_inference.types[static_cast<size_t>(id)]);
      }
    }
    find_dequantized();
    if (!any && !dequantizes()) return std::optional<LegalizedSegment>();
    out_.graph.values = segment_.graph.values;
    out_.type_inference = segment_.type_inference;
    for (size_t i = 0; i < segment_.nodes.size(); ++i) {
      if (is_dequantized(i)) PINNACE_TRY(dequantize(node_at(i)));
    }
    other_.assign(out_.graph.values.size(), kNoValue);
    missing_.assign(out_.graph.values.size(), false);
    nhwc_.assign(out_.graph.values.size(), false);
    for (size_t i = 0; i < segment_.nodes.size(); ++i) {
      if (is_dequantized(i)) {
        out_.node_of.push_back(-1);
      } else {
        PINNACE_TRY(place(node_at(i)));
      }
    }
    // What is computed here counts as part of the first node that reads it.
    for (size_t i = 0; i < segment_.nodes.size(); ++i) {
      if (is_dequantized(i)) out_.node_of[i] = out_.node_of[first_reader_[static_cast<size_t>(node_at(i).outputs[0])]];
    }
    for (ValueId id : segment_.outputs) restore(id, "");
    if (!changed_) return std::optional<LegalizedSegment>();
    for (size_t i = 0; i < out_.graph.nodes.size(); ++i) out_.nodes.push_back(static_cast<int32_t>(i));
    return std::optional<LegalizedSegment>(std::move(out_));
  }

 private:
  const TensorType& type(ValueId id) const { return out_.type_inference.types[static_cast<size_t>(id)]; }
  bool has_other(const TensorType& type) const { return is_half(type) || (narrows_ && type.dtype == DType::kF32); }

  const Node& node_at(size_t i) const { return *segment_.graph.nodes[static_cast<size_t>(segment_.nodes[i])]; }
  bool dequantizes() const { return !first_reader_.empty(); }

  /// Finds the nodes of the segment that make float32 weights of convolutions, or of products from 16-bit integers, and
  /// nothing else, from constants.
  void find_dequantized() {
    const auto& data = segment_.type_inference.data;
    dequantized_.assign(segment_.nodes.size(), false);
    std::vector<size_t> candidate_of;  // of values: the node's place among the segment's, plus one; 0: none
    for (size_t i = 0; i < segment_.nodes.size(); ++i) {
      const Node& node = node_at(i);
      if (node.op != "dequantize_linear") continue;
      const ValueId id = node.outputs[0];
      const bool constant = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
        return input == kNoValue || data[static_cast<size_t>(input)] != nullptr;
      });
      if (!constant || segment_.type_inference.types[static_cast<size_t>(id)].dtype != DType::kF32) continue;
      candidate_of.resize(data.size());
      candidate_of[static_cast<size_t>(id)] = i + 1;
    }
    if (candidate_of.empty()) return;
    // Products read integers of up to 8 bits as they are (mat_mul_weights_f32.cc).
    const auto has_wide_integers = [&](size_t candidate) {
      if (candidate == 0) return false;
      const auto id = static_cast<size_t>(node_at(candidate - 1).inputs[0]);
      return dtype_bits(segment_.type_inference.types[id].dtype) == 16;
    };
    std::vector<size_t> first_reader(data.size(), segment_.nodes.size());
    for (size_t i = 0; i < segment_.nodes.size(); ++i) {
      const Node& reader = node_at(i);
      const bool convolves = reader.op == "conv" || reader.op == "conv_transpose";
      const bool multiplies = reader.op == "mat_mul" || reader.op == "gemm";
      for (size_t k = 0; k < reader.inputs.size(); ++k) {
        if (reader.inputs[k] == kNoValue) continue;
        const auto id = static_cast<size_t>(reader.inputs[k]);
        if (k == 0 || !(convolves || (multiplies && has_wide_integers(candidate_of[id])))) candidate_of[id] = 0;
        first_reader[id] = std::min(first_reader[id], i);
      }
    }
    for (ValueId id : segment_.outputs) candidate_of[static_cast<size_t>(id)] = 0;
    bool any = false;
    for (size_t id = 0; id < data.size(); ++id) {
      if (candidate_of[id] == 0 || first_reader[id] == segment_.nodes.size()) continue;
      dequantized_[candidate_of[id] - 1] = true;
      any = true;
    }
    if (any) first_reader_ = std::move(first_reader);
  }
  bool is_dequantized(size_t i) const { return dequantizes() && dequantized_[i]; }

  /// Computes such a node's result, a constant that stands for it.
  Status dequantize(const Node& node) {
    const OpDef& op = *segment_.ops.find(node.op);
    std::vector<TensorView> in;
    std::vector<const TensorType*> types;
    std::vector<const void*> data;
    for (ValueId id : node.inputs) {
      if (id == kNoValue) {
        in.emplace_back();
        types.push_back(nullptr);
        data.push_back(nullptr);
        continue;
      }
      const ConstantPtr& contents = segment_.type_inference.data[static_cast<size_t>(id)];
      PINNACE_TRY(contents->check());
      types.push_back(&segment_.type_inference.types[static_cast<size_t>(id)]);
      data.push_back(contents->data());
      in.push_back({types.back(), const_cast<std::byte*>(contents->data())});
    }
    const TensorType made = segment_.type_inference.types[static_cast<size_t>(node.outputs[0])];
    PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(made.bytes()), node.name));
    const TensorView out{&made, bytes.data()};
    const NodeView view(node, op, types, data);
    // What packs for ARM64 elsewhere has its kernels' names alone.
    const CpuKernelLine* line = mode_.for_arm64 ? nullptr : choose_kernel(view, mode_);
    PINNACE_TRY(line ? run_forced(*line, view, in, {&out, 1}, 1) : op.reference(view, in, {&out, 1}));
    const ValueId value = add_value(made);
    out_.type_inference.data[static_cast<size_t>(value)] = Constant::of(std::move(bytes));
    constant_of_.resize(segment_.graph.values.size(), kNoValue);
    constant_of_[static_cast<size_t>(node.outputs[0])] = value;
    changed_ = true;
    return {};
  }

  Status place(const Node& given) {
    Node node = given;
    for (ValueId& id : node.inputs) {
      if (id != kNoValue && !constant_of_.empty() && constant_of_[static_cast<size_t>(id)] != kNoValue) {
        id = constant_of_[static_cast<size_t>(id)];
      }
    }
    PINNACE_ASSIGN(const bool stays, computes_halves(node));
    PINNACE_ASSIGN(const bool changes, stays ? Result<bool>(false) : computes_other(node));
    const bool follows = !stays && !changes && follows_operand(node);
    Node copy = node;
    const DType own = node.outputs.empty() ? DType::kF32 : type(node.outputs[0]).dtype;
    for (ValueId& id : copy.inputs) {
      if (id == kNoValue) continue;
      if ((changes || follows) && type(id).dtype == own) {
        PINNACE_ASSIGN(id, other(id, node.name));
      } else {
        restore(id, node.name);
      }
    }
    if (changes || follows) {
      changed_ = true;
      for (ValueId& id : copy.outputs) {
        if (type(id).dtype != own) continue;
        const ValueId made = add_other(id);
        missing_[static_cast<size_t>(id)] = true;
        other_[static_cast<size_t>(id)] = made;
        id = made;
      }
    }
    if (stays || (changes && own == DType::kF32)) note_nhwc(copy);
    out_.node_of.push_back(static_cast<int32_t>(out_.graph.nodes.size()));
    add_node(std::make_unique<Node>(std::move(copy)), changes ? own : DType::kF32);
    return {};
  }

  /// True if the node has halves and a kernel that computes with them.
  Result<bool> computes_halves(const Node& node) {
    if (node.inputs.empty() || node.inputs[0] == kNoValue || type(node.inputs[0]).dtype != DType::kF16) return false;
    if (node.op == "cast" || !one_type(node, DType::kF16)) return false;
    const CpuKernelLine* line = line_of(node);
    return line && line->dtype == DType::kF16;
  }

  /// True if the node would have a kernel in the other type: a float32 one, were its operands and results of 16 bits
  /// float32; one for halves, were they of float32 halves, and it is a convolution or has an operand of halves already.
  Result<bool> computes_other(const Node& node) {
    if (node.inputs.empty() || node.inputs[0] == kNoValue || !has_other(type(node.inputs[0]))) return false;
    const DType own = type(node.inputs[0]).dtype, wanted = own == DType::kF32 ? DType::kF16 : DType::kF32;
    // Casts are what this is made of.
    if (node.op == "cast" || !one_type(node, own)) return false;
    if (wanted == DType::kF16) {
      bool any = node.op == "conv";
      for (ValueId id : node.inputs) any |= id != kNoValue && missing_[static_cast<size_t>(id)];
      if (!any || !has_line(node.op, wanted)) return false;
    }
    std::vector<TensorType> types(node.inputs.size());
    std::vector<const TensorType*> type_of;
    std::vector<const void*> data;
    uint32_t nhwc_inputs = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNoValue) {
        type_of.push_back(nullptr);
        data.push_back(nullptr);
        continue;
      }
      const ConstantPtr* contents = &out_.type_inference.data[static_cast<size_t>(id)];
      types[i] = type(id);
      if (types[i].dtype == own) {
        types[i].dtype = wanted;
        if (*contents) {
          PINNACE_ASSIGN(const ValueId made, other(id, node.name));
          contents = &out_.type_inference.data[static_cast<size_t>(made)];
        } else if (const ValueId made = other_[static_cast<size_t>(id)]; made != kNoValue && i < 32) {
          nhwc_inputs |= uint32_t{nhwc_[static_cast<size_t>(made)]} << i;
        }
      }
      type_of.push_back(&types[i]);
      data.push_back(*contents ? (*contents)->data() : nullptr);
    }
    const CpuKernelLine* line =
        choose_kernel(NodeView(node, *segment_.ops.find(node.op), type_of, data), mode_, nhwc_inputs);
    return line && line->dtype == wanted;
  }

  bool has_line(std::string_view op, DType dtype) const {
    for (const CpuKernelLine& line : cpu_kernels(mode_.for_arm64)) {
      if (line.op == op && line.dtype == dtype && cpu_includes(mode_.instruction_set, line.needs)) return true;
    }
    return false;
  }

  /// The line of a node of `out_`, or of one that stays as it is.
  const CpuKernelLine* line_of(const Node& node) const {
    std::vector<const TensorType*> types;
    std::vector<const void*> data;
    uint32_t nhwc_inputs = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      types.push_back(id == kNoValue ? nullptr : &type(id));
      const ConstantPtr contents = id == kNoValue ? nullptr : out_.type_inference.data[static_cast<size_t>(id)];
      data.push_back(contents ? contents->data() : nullptr);
      if (id != kNoValue && i < 32) nhwc_inputs |= uint32_t{nhwc_[static_cast<size_t>(id)]} << i;
    }
    return choose_kernel(NodeView(node, *segment_.ops.find(node.op), types, data), mode_, nhwc_inputs);
  }

  /// Halves are followed as lowering will keep them: kernels that are chosen for NHWC-packed tensors alone need one.
  void note_nhwc(const Node& node) {
    const CpuKernelLine* line = line_of(node);
    if (!line || line->kernel->layouts == Layouts::kDense) return;
    const NhwcSizes s = nhwc_sizes(type(node.outputs[0]));
    nhwc_[static_cast<size_t>(node.outputs[0])] = s.h * s.w > 1;
  }

  /// True if every float among operands and results is of that type.
  bool one_type(const Node& node, DType own) const {
    const auto fits = [&](ValueId id, bool may_be_f32) {
      if (id == kNoValue || !(dtypes(type(id).dtype) & kFloats)) return true;
      return type(id).dtype == own || (may_be_f32 && type(id).dtype == DType::kF32);
    };
    for (ValueId id : node.inputs) {
      if (!fits(id, node.op == "resize")) return false;  // whose scales are float32 always
    }
    for (ValueId id : node.outputs) {
      if (!fits(id, false)) return false;
    }
    return type(node.outputs[0]).dtype == own;
  }

  /// True for a node that moves elements, one of whose operands is there in the other type alone.
  bool follows_operand(const Node& node) const {
    bool any = false;
    DType own = DType::kF32;
    for (ValueId id : node.inputs) {
      if (id == kNoValue || !has_other(type(id))) continue;
      any |= missing_[static_cast<size_t>(id)];
      own = type(id).dtype;
    }
    if (!any || !one_type(node, own)) return false;
    if (segment_.ops.find(node.op)->has(Trait::kView)) return true;
    const CpuKernelLine* line = line_of(node);
    return line && line->dtype == kAnyDType;
  }

  ValueId add_other(ValueId of) {
    TensorType made = type(of);
    made.dtype = made.dtype == DType::kF32 ? DType::kF16 : DType::kF32;
    return add_value(std::move(made));
  }

  ValueId add_value(TensorType made) {
    Value value{"", made, nullptr};
    out_.graph.values.push_back(std::move(value));
    out_.type_inference.types.push_back(std::move(made));
    out_.type_inference.data.push_back(nullptr);
    out_.type_inference.known.emplace_back();
    nhwc_.push_back(false);
    return static_cast<ValueId>(out_.graph.values.size() - 1);
  }

  /// The version of a value in the other type.
  Result<ValueId> other(ValueId id, const std::string& reader) {
    if (const ValueId there = other_[static_cast<size_t>(id)]; there != kNoValue) return there;
    const ValueId made = other_[static_cast<size_t>(id)] = add_other(id);
    if (const ConstantPtr contents = out_.type_inference.data[static_cast<size_t>(id)]) {
      PINNACE_TRY(contents->check());
      const TensorType& from = type(id);
      PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type(made).bytes()), reader));
      const HalfF32Kernels& half = half_f32_kernels_generic;
      if (from.dtype == DType::kF32) {
        half.narrow(HalfKind::kF16, reinterpret_cast<const float*>(contents->data()), from.elements(),
                    reinterpret_cast<uint16_t*>(bytes.data()));
      } else {
        half.widen(from.dtype == DType::kF16 ? HalfKind::kF16 : HalfKind::kBf16,
                   reinterpret_cast<const uint16_t*>(contents->data()), from.elements(),
                   reinterpret_cast<float*>(bytes.data()));
      }
      out_.type_inference.data[static_cast<size_t>(made)] = Constant::of(std::move(bytes));
    } else {
      cast(id, made, reader);
    }
    return made;
  }

  /// Makes sure that the value itself is there.
  void restore(ValueId id, const std::string& reader) {
    if (static_cast<size_t>(id) >= missing_.size() || !missing_[static_cast<size_t>(id)]) return;
    missing_[static_cast<size_t>(id)] = false;
    cast(other_[static_cast<size_t>(id)], id, reader);
  }

  void cast(ValueId from, ValueId to, const std::string& reader) {
    auto node = std::make_unique<Node>();
    node->op = "cast";
    node->name = reader.empty() ? out_.graph.value(to).name : reader;
    node->inputs = {from};
    node->outputs = {to};
    node->set_attr("to", std::string(dtype_code(type(to).dtype)));
    add_node(std::move(node), DType::kF32);
  }

  void add_node(std::unique_ptr<Node> node, DType stored_as) {
    out_.graph.nodes.push_back(std::move(node));
    out_.stored_as.push_back(stored_as);
  }

  const Segment& segment_;
  CpuMode mode_;
  bool narrows_;  // float32 may become halves
  LegalizedSegment out_;
  std::vector<bool> dequantized_;     // of the segment's nodes: a constant stands for the result
  std::vector<size_t> first_reader_;  // of the segment's values: its place among the nodes; empty: none is dequantised
  std::vector<ValueId> constant_of_;  // of the segment's values: the constant that stands for it, or kNoValue
  std::vector<ValueId> other_;        // of a value: its version in the other type, or kNoValue
  std::vector<bool> missing_;         // only that version has been made so far
  std::vector<bool> nhwc_;            // of a value of `out_`: it will be kept NHWC-packed
  bool changed_ = false;
};

}  // namespace

Result<std::optional<LegalizedSegment>> legalize_precision(const Segment& segment, CpuMode mode) {
  return PrecisionLegalization(segment, mode).run();
}

}  // namespace pinnace::cpu
