// One walk over the segment in order. A value of 16 bits has a wide version once a node computes it or reads it wide;
// casts stand where a reader wants the other version. Nodes that only move elements follow their operand.
#include "backends/cpu/widen.h"

#include "backends/cpu/half_f32.h"

namespace pinnace {
namespace {

constexpr std::string_view kStoredAs = "stored_as";  // an attribute that only these copies have

bool is_half(const TensorType& type) {
  return type.dtype == DType::kF16 || type.dtype == DType::kBF16;
}

class Widening {
 public:
  Widening(const Segment& segment, CpuMode mode) : segment_(segment), mode_(mode) {}

  Result<std::optional<Widened>> run() {
    bool any = false;
    for (int32_t k : segment_.nodes) {
      for (ValueId id : segment_.graph.nodes[static_cast<size_t>(k)]->inputs) {
        any |= id != kNoValue && is_half(segment_.inference.types[static_cast<size_t>(id)]);
      }
    }
    if (!any) return std::optional<Widened>();
    out_.graph.values = segment_.graph.values;
    out_.inference = segment_.inference;
    wide_.assign(segment_.graph.values.size(), kNoValue);
    missing_.assign(segment_.graph.values.size(), false);
    for (int32_t k : segment_.nodes) PINNACE_TRY(place(*segment_.graph.nodes[static_cast<size_t>(k)]));
    for (ValueId id : segment_.outputs) narrow(id, "");
    if (!changed_) return std::optional<Widened>();
    for (size_t i = 0; i < out_.graph.nodes.size(); ++i) out_.nodes.push_back(static_cast<int32_t>(i));
    return std::optional<Widened>(std::move(out_));
  }

 private:
  const TensorType& type(ValueId id) const { return out_.inference.types[static_cast<size_t>(id)]; }

  Status place(const Node& node) {
    DType half = DType::kF32;
    PINNACE_ASSIGN(const bool computes, computes_wide(node, &half));
    const bool follows = !computes && follows_operand(node);
    Node copy = node;
    for (ValueId& id : copy.inputs) {
      if (id == kNoValue) continue;
      if ((computes || follows) && is_half(type(id))) {
        PINNACE_ASSIGN(id, widen(id, node.name));
      } else {
        narrow(id, node.name);
      }
    }
    if (computes || follows) {
      changed_ = true;
      for (ValueId& id : copy.outputs) {
        if (!is_half(type(id))) continue;
        const ValueId made = add_wide(id);
        missing_[static_cast<size_t>(id)] = true;
        wide_[static_cast<size_t>(id)] = made;
        id = made;
      }
    }
    if (computes) copy.set_attr(kStoredAs, std::string(dtype_name(half)));
    out_.node_of.push_back(static_cast<int32_t>(out_.graph.nodes.size()));
    out_.graph.nodes.push_back(std::make_unique<Node>(std::move(copy)));
    return {};
  }

  /// True if the node would have a float32 kernel, were its operands and results of 16 bits float32.
  Result<bool> computes_wide(const Node& node, DType* half) {
    if (node.inputs.empty() || node.inputs[0] == kNoValue || !is_half(type(node.inputs[0]))) return false;
    *half = type(node.inputs[0]).dtype;
    // Casts are what this is made of.
    if (node.op == "cast" || !one_type(node, *half)) return false;
    const OpDef* op = segment_.ops.find(node.op);
    std::vector<TensorType> wide;
    wide.reserve(node.inputs.size());
    std::vector<const TensorType*> types;
    std::vector<const void*> data;
    for (ValueId id : node.inputs) {
      if (id == kNoValue) {
        types.push_back(nullptr);
        data.push_back(nullptr);
        continue;
      }
      const ConstantPtr* contents = &out_.inference.data[static_cast<size_t>(id)];
      wide.push_back(type(id));
      if (is_half(wide.back())) {
        wide.back().dtype = DType::kF32;
        if (*contents) {
          PINNACE_ASSIGN(const ValueId made, widen(id, node.name));
          contents = &out_.inference.data[static_cast<size_t>(made)];
        }
      }
      types.push_back(&wide.back());
      data.push_back(*contents ? (*contents)->data() : nullptr);
    }
    const CpuKernelLine* line = choose_kernel(NodeView(node, *op, types, data), mode_);
    return line && line->dtype == DType::kF32;
  }

  /// True if every float among operands and results is of that type.
  bool one_type(const Node& node, DType half) const {
    const auto fits = [&](ValueId id, bool may_be_f32) {
      if (id == kNoValue || !(dtypes(type(id).dtype) & kFloats)) return true;
      return type(id).dtype == half || (may_be_f32 && type(id).dtype == DType::kF32);
    };
    for (ValueId id : node.inputs) {
      if (!fits(id, node.op == "resize")) return false;  // whose scales are float32 always
    }
    for (ValueId id : node.outputs) {
      if (!fits(id, false)) return false;
    }
    return type(node.outputs[0]).dtype == half;
  }

  /// True for a node that moves elements, one of whose operands has a wide version already.
  bool follows_operand(const Node& node) const {
    const OpDef* op = segment_.ops.find(node.op);
    bool any = false;
    DType half = DType::kF32;
    std::vector<const TensorType*> types;
    std::vector<const void*> data;
    for (ValueId id : node.inputs) {
      types.push_back(id == kNoValue ? nullptr : &type(id));
      const ConstantPtr contents = id == kNoValue ? nullptr : segment_.inference.data[static_cast<size_t>(id)];
      data.push_back(contents ? contents->data() : nullptr);
      if (id == kNoValue || !is_half(type(id))) continue;
      any |= missing_[static_cast<size_t>(id)];
      half = type(id).dtype;
    }
    if (!any || !one_type(node, half)) return false;
    if (op->view) return true;
    const CpuKernelLine* line = choose_kernel(NodeView(node, *op, types, data), mode_);
    return line && line->dtype == kAnyDType;
  }

  ValueId add_wide(ValueId of) {
    TensorType wide = type(of);
    wide.dtype = DType::kF32;
    Value value{"", wide, nullptr};
    out_.graph.values.push_back(std::move(value));
    out_.inference.types.push_back(std::move(wide));
    out_.inference.data.push_back(nullptr);
    out_.inference.known.emplace_back();
    return static_cast<ValueId>(out_.graph.values.size() - 1);
  }

  /// The wide version of a value of 16 bits.
  Result<ValueId> widen(ValueId id, const std::string& reader) {
    ValueId& wide = wide_[static_cast<size_t>(id)];
    if (wide != kNoValue) return wide;
    wide = add_wide(id);
    const ValueId made = wide;
    if (const ConstantPtr contents = out_.inference.data[static_cast<size_t>(id)]) {
      PINNACE_TRY(contents->check());
      const TensorType& from = type(id);
      PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type(made).bytes()), reader));
      half_f32_kernels_generic.widen(from.dtype == DType::kF16 ? HalfKind::kF16 : HalfKind::kBf16,
                                     reinterpret_cast<const uint16_t*>(contents->data()), from.elements(),
                                     reinterpret_cast<float*>(bytes.data()));
      out_.inference.data[static_cast<size_t>(made)] = Constant::of(std::move(bytes));
    } else {
      cast(id, made, reader);
    }
    return made;
  }

  /// Makes sure that the value itself is there.
  void narrow(ValueId id, const std::string& reader) {
    if (static_cast<size_t>(id) >= missing_.size() || !missing_[static_cast<size_t>(id)]) return;
    missing_[static_cast<size_t>(id)] = false;
    cast(wide_[static_cast<size_t>(id)], id, reader);
  }

  void cast(ValueId from, ValueId to, const std::string& reader) {
    auto node = std::make_unique<Node>();
    node->op = "cast";
    node->name = reader.empty() ? out_.graph.value(to).name : reader;
    node->inputs = {from};
    node->outputs = {to};
    node->set_attr("to", std::string(dtype_name(type(to).dtype)));
    out_.graph.nodes.push_back(std::move(node));
  }

  const Segment& segment_;
  CpuMode mode_;
  Widened out_;
  std::vector<ValueId> wide_;  // of a value: its wide version, or kNoValue
  std::vector<bool> missing_;  // only the wide version has been made so far
  bool changed_ = false;
};

}  // namespace

DType stored_as(const Node& node) {
  const Attr* attr = node.attr(kStoredAs);
  return attr ? *dtype_from_name(std::get<std::string>(*attr)) : DType::kF32;
}

Result<std::optional<Widened>> widen_halves(const Segment& segment, CpuMode mode) {
  return Widening(segment, mode).run();
}

}  // namespace pinnace
