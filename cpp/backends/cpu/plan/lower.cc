// One walk over the segment in order. NHWC-packed is what a kernel with Layouts::kNhwc or kFollows leaves; whoever
// wants the value dense, or wants a dense one NHWC-packed, gets a step that changes it, made once for all that want it.
#include "backends/cpu/plan/lower.h"

#include <algorithm>

#include "backends/cpu/plan/rounded_rows.h"

namespace pinnace::cpu {
namespace {

/// One pixel is the same bytes either way. Not in 8 bits: NHWC-packed bytes are unsigned, and may be read beyond their
/// end.
bool one_pixel(const TensorType& type) {
  if (!has_nhwc_sizes(type) || dtype_bits(type.dtype) == 8) return false;
  const NhwcSizes s = nhwc_sizes(type);
  return s.h * s.w == 1;
}

class Lowering {
 public:
  Lowering(const Segment& segment, CpuMode mode, std::span<const DType> stored_as)
      : segment_(segment), graph_(segment.graph), mode_(mode), stored_as_(stored_as) {
    out_.types = segment.type_inference.types;
    out_.data = segment.type_inference.data;
    for (size_t i = 0; i < out_.types.size(); ++i) {
      // Values that the segment never sees may have no concrete type. Constants are dense: a kernel that takes one
      // beside an NHWC-packed value reads [C,1,1] as channels; packed, that shape would be C items of one channel.
      const TensorType& type = out_.types[i];
      const bool is_nhwc = type.concrete() && one_pixel(type) && !out_.data[i];
      out_.layouts.push_back(is_nhwc ? nhwc_layout(type) : Layout{});
    }
    other_.assign(out_.types.size(), kNoValue);
    out_.node_of.assign(segment.nodes.size(), -1);
    done_by_.assign(segment.nodes.size(), -1);
    for (size_t k = 0; k < segment.nodes.size(); ++k) work_.push_back({&node(k), {}, stored_as_of(k)});
  }

  Lowered run() {
    find_uses();
    find_residuals();
    fold_squeeze_excitation();
    find_casts();
    find_weights();
    find_rounded_rows();
    for (size_t k = 0; k < segment_.nodes.size(); ++k) {
      if (done_by_[k] >= 0) continue;
      place(k);
    }
    for (size_t k = 0; k < segment_.nodes.size(); ++k) {
      if (done_by_[k] >= 0) out_.node_of[k] = out_.node_of[static_cast<size_t>(done_by_[k])];
    }
    for (ValueId id : segment_.outputs) out_.outputs.push_back(dense(id, nullptr));
    return std::move(out_);
  }

 private:
  /// What is run for a node of the segment.
  struct Work {
    const Node* node;  ///< the graph's, or one of Lowered::copies
    FusionOf<ValueId> fusion;
    DType stored_as;
  };

  const Node& node(size_t k) const { return *graph_.nodes[static_cast<size_t>(segment_.nodes[k])]; }
  DType stored_as_of(size_t k) const {
    return stored_as_.empty() ? DType::kF32 : stored_as_[static_cast<size_t>(segment_.nodes[k])];
  }
  /// Runs `copy`, which does node `done` of the segment too, for node k.
  void replace(size_t k, Node copy, const FusionOf<ValueId>& fusion, size_t done) {
    out_.copies.push_back(std::move(copy));
    work_[k].node = &out_.copies.back();
    work_[k].fusion = fusion;
    done_by_[done] = static_cast<int32_t>(k);
  }

  /// Where values are made, and how often they are read.
  void find_uses() {
    made_at_.assign(graph_.values.size(), -1);
    uses_.assign(graph_.values.size(), 0);
    for (size_t k = 0; k < segment_.nodes.size(); ++k) {
      for (ValueId id : node(k).inputs) {
        if (id != kNoValue) ++uses_[static_cast<size_t>(id)];
      }
      for (ValueId id : node(k).outputs) made_at_[static_cast<size_t>(id)] = static_cast<int32_t>(k);
    }
    for (ValueId id : segment_.outputs) ++uses_[static_cast<size_t>(id)];
  }

  /// Additions that a convolution can do before its result leaves the registers: one operand is a convolution's result
  /// that nobody else reads, the other is there before the convolution runs.
  void find_residuals() {
    const std::vector<TensorType>& types = segment_.type_inference.types;
    for (size_t k = 0; k < segment_.nodes.size(); ++k) {
      const Node& add = node(k);
      if (add.op != "add" || add.inputs[0] == add.inputs[1] || stored_as_of(k) != DType::kF32) continue;
      const TensorType& y = types[static_cast<size_t>(add.outputs[0])];
      int32_t best = -1;
      ValueId other = kNoValue;
      for (int i : {0, 1}) {
        const auto x = static_cast<size_t>(add.inputs[static_cast<size_t>(i)]);
        const auto r = static_cast<size_t>(add.inputs[static_cast<size_t>(1 - i)]);
        const int32_t at = made_at_[x];
        if (at < 0 || uses_[x] != 1 || node(static_cast<size_t>(at)).op != "conv" ||
            work_[static_cast<size_t>(at)].fusion.residual) {
          continue;
        }
        const Attr* activation = node(static_cast<size_t>(at)).attr("activation");
        if (activation && !std::get<std::string>(*activation).empty()) continue;
        if (types[x].shape != y.shape || types[r].shape != y.shape) continue;
        if (segment_.type_inference.data[r] || made_at_[r] >= at || at <= best) continue;
        best = at;
        other = add.inputs[static_cast<size_t>(1 - i)];
      }
      if (best < 0) continue;
      const Work& conv = work_[static_cast<size_t>(best)];
      Node copy = *conv.node;
      copy.outputs = add.outputs;
      for (const char* name : {"activation", "activation_params"}) {
        copy.remove_attr(name);
        if (const Attr* attr = add.attr(name)) copy.set_attr(name, *attr);
      }
      FusionOf<ValueId> fusion;
      fusion.residual = ResidualOf<ValueId>{.addend = other};
      if (const auto& own = types[static_cast<size_t>(conv.node->outputs[0])].quantization) {
        fusion.residual->own_scale = own->scales[0];
        fusion.residual->own_zero_point = own->zero_points[0];
      }
      // Kernels of their own (depthwise) that cannot add are worth more than the addition.
      const CpuKernelLine* line = choose({&copy, fusion, conv.stored_as}, 0);
      if (!line || line != choose(conv, 0)) continue;
      replace(static_cast<size_t>(best), std::move(copy), fusion, k);
    }
  }

  /// Multiplications of a value's channels that only a 1 x 1 convolution reads, which multiplies its weights instead
  /// (conv_squeeze_excitation_f32 in conv_nhwc_f32.cc).
  void fold_squeeze_excitation() {
    const std::vector<TensorType>& types = segment_.type_inference.types;
    for (size_t k = 0; k < segment_.nodes.size(); ++k) {
      const Work& conv = work_[k];
      if (conv.node->op != "conv" || conv.stored_as != DType::kF32) continue;
      const auto x = static_cast<size_t>(conv.node->inputs[0]);
      if (made_at_[x] < 0 || uses_[x] != 1 || node(static_cast<size_t>(made_at_[x])).op != "mul") continue;
      const Node& mul = node(static_cast<size_t>(made_at_[x]));
      const auto shape = [&](size_t i) -> const Shape& { return types[static_cast<size_t>(mul.inputs[i])].shape; };
      const size_t whole_input = shape(0) == types[x].shape ? 0 : 1;
      const Shape &whole = shape(whole_input), &scale = shape(1 - whole_input);
      if (types[x].dtype != DType::kF32 || whole != types[x].shape || !has_nhwc_sizes(types[x])) continue;
      if (scale.size() != whole.size() || scale[1] != whole[1] ||
          types[static_cast<size_t>(mul.inputs[1 - whole_input])].elements() != whole[1].size) {
        continue;
      }
      Node copy = *conv.node;
      copy.inputs[0] = mul.inputs[whole_input];
      FusionOf<ValueId> fusion = conv.fusion;
      fusion.channel_scale = mul.inputs[1 - whole_input];
      // The convolution alone must be computed by the same instructions in the same precision: others are worth more
      // than the multiplication.
      const CpuKernelLine *own = choose(conv, 0), *line = choose({&copy, fusion, conv.stored_as}, 0);
      if (!own || !line || own->needs != line->needs || own->kernel->precision != line->kernel->precision) continue;
      replace(k, std::move(copy), fusion, static_cast<size_t>(made_at_[x]));
    }
  }

  /// Casts that keep the bytes of 8-bit integers: quantize_linear gives a plain tensor, which a cast makes a quantised
  /// one, and the other way round before dequantize_linear. The neighbour reads or makes the cast's other value. An
  /// input of the segment that nobody but a cast reads is taken for what the cast makes of it.
  void find_casts() {
    alias_.assign(out_.types.size(), kNoValue);
    std::vector<int32_t> dequantized(graph_.values.size(), 0);
    for (size_t k = 0; k < segment_.nodes.size(); ++k) {
      if (node(k).op == "dequantize_linear") ++dequantized[static_cast<size_t>(node(k).inputs[0])];
    }
    for (size_t k = 0; k < segment_.nodes.size(); ++k) {
      const Node& cast = node(k);
      if (cast.op != "cast") continue;
      const auto x = static_cast<size_t>(cast.inputs[0]), y = static_cast<size_t>(cast.outputs[0]);
      const DType dtype = out_.types[x].dtype;
      if (dtype != out_.types[y].dtype || (dtype != DType::kI8 && dtype != DType::kU8)) continue;
      if (made_at_[x] < 0) {
        const int32_t reader = first_reader(cast.outputs[0]);
        if (segment_.type_inference.data[x] || uses_[x] != 1 || reader < 0 || is_output(cast.outputs[0])) continue;
        out_.types[x] = out_.types[y];
        alias_[y] = cast.inputs[0];
        done_by_[k] = reader;
        continue;
      }
      const auto maker = static_cast<size_t>(made_at_[x]);
      if (node(maker).op == "quantize_linear" && uses_[x] == 1 && work_[maker].node == &node(maker)) {
        Node copy = node(maker);
        copy.outputs = cast.outputs;
        replace(maker, std::move(copy), {}, k);
      } else if (uses_[y] > 0 && uses_[y] == dequantized[y]) {
        alias_[y] = cast.inputs[0];
        done_by_[k] = static_cast<int32_t>(maker);
      }
    }
  }

  int32_t first_reader(ValueId id) const {
    for (size_t k = 0; k < segment_.nodes.size(); ++k) {
      const auto& inputs = node(k).inputs;
      if (std::find(inputs.begin(), inputs.end(), id) != inputs.end()) return static_cast<int32_t>(k);
    }
    return -1;
  }
  bool is_output(ValueId id) const {
    return std::find(segment_.outputs.begin(), segment_.outputs.end(), id) != segment_.outputs.end();
  }

  /// Products whose second operand is dequantised on the way, by a node that nobody else reads, perhaps with a
  /// transpose behind it: kernels that keep the integers do it themselves (mat_mul_weights_f32.cc).
  void find_weights() {
    const auto inner_maker = [&](ValueId id, std::string_view op) {
      const auto i = static_cast<size_t>(id);
      const bool found = made_at_[i] >= 0 && uses_[i] == 1 && node(static_cast<size_t>(made_at_[i])).op == op;
      return found && !segment_.type_inference.data[i] ? made_at_[i] : -1;
    };
    for (size_t k = 0; k < segment_.nodes.size(); ++k) {
      const Node& product = node(k);
      if (product.op != "mat_mul" && product.op != "gemm") continue;
      const int32_t transpose = inner_maker(product.inputs[1], "transpose");
      const int32_t dequantize = inner_maker(
          transpose >= 0 ? node(static_cast<size_t>(transpose)).inputs[0] : product.inputs[1], "dequantize_linear");
      if (dequantize < 0) continue;
      const Node& weights = node(static_cast<size_t>(dequantize));
      const bool constant = std::all_of(weights.inputs.begin(), weights.inputs.end(), [&](ValueId id) {
        return id == kNoValue || segment_.type_inference.data[static_cast<size_t>(id)];
      });
      if (!constant) continue;
      const int32_t rank = segment_.type_inference.types[static_cast<size_t>(weights.inputs[0])].rank();
      const auto number = [&](std::string_view name, int64_t otherwise) {
        const Attr* attr = weights.attr(name);
        return attr ? std::get<int64_t>(*attr) : otherwise;
      };
      const int64_t axis = number("axis", 1);
      FusionOf<ValueId> fusion;
      fusion.weights = IntegerWeightsOf<ValueId>{.integers = weights.inputs[0],
                                                 .scales = weights.inputs[1],
                                                 .zero_points = {},
                                                 .axis = axis < 0 ? axis + rank : axis,
                                                 .block_size = number("block_size", 0),
                                                 .transposed = transpose >= 0};
      if (weights.inputs.size() > 2 && weights.inputs[2] != kNoValue) fusion.weights->zero_points = weights.inputs[2];
      Node copy = product;
      copy.inputs[1] = kNoValue;
      if (!choose({&copy, fusion, work_[k].stored_as}, 0)) continue;
      replace(k, std::move(copy), fusion, static_cast<size_t>(dequantize));
      if (transpose >= 0) done_by_[static_cast<size_t>(transpose)] = static_cast<int32_t>(k);
    }
  }

  /// Products of rows that are rounded on the way, where one kernel does all of it.
  void find_rounded_rows() {
#if defined(__x86_64__)
    if (mode_.for_arm64) return;
    for (RoundedRowsGroup& group : cpu::find_rounded_rows(segment_)) {
      const auto has_kernel = [&](const RoundedRowsProduct& p) {
        return stored_as_of(p.last) == DType::kF32 && choose({&p.product, p.fusion, DType::kF32}, 0);
      };
      if (!std::all_of(group.products.begin(), group.products.end(), has_kernel)) continue;
      const size_t first = group.products.front().last;
      for (RoundedRowsProduct& p : group.products) {
        replace(p.last, std::move(p.product), p.fusion, p.done.front());
        for (size_t k : p.done) done_by_[k] = static_cast<int32_t>(p.last);
      }
      for (size_t k : group.rounding) done_by_[k] = static_cast<int32_t>(first);
    }
#endif
  }

  /// The value that is read for `id`.
  ValueId read(ValueId id) const {
    while (id != kNoValue && static_cast<size_t>(id) < alias_.size() && alias_[static_cast<size_t>(id)] != kNoValue) {
      id = alias_[static_cast<size_t>(id)];
    }
    return id;
  }

  /// True if a reader takes the value NHWC-packed whatever it is now.
  bool nhwc_wanted(ValueId id) const {
    for (size_t k = 0; k < segment_.nodes.size(); ++k) {
      const Node& reader = node(k);
      for (size_t i = 0; i < reader.inputs.size() && i < 32; ++i) {
        if (reader.inputs[i] != id) continue;
        const CpuKernelLine* line = choose({&reader, {}, stored_as_of(k)}, 0);
        if (line && line->kernel->layouts == Layouts::kNhwc && (line->kernel->nhwc_inputs >> i & 1)) return true;
      }
    }
    return false;
  }

  const CpuKernelLine* choose(const Work& work, uint32_t has_nhwc, bool nhwc_wanted = false) const {
    const Node& node = *work.node;
    const auto type = [&](ValueId id) { return &segment_.type_inference.types[static_cast<size_t>(id)]; };
    const auto contents = [&](ValueId id) -> const void* {
      const ConstantPtr& data = segment_.type_inference.data[static_cast<size_t>(id)];
      return data ? data->data() : nullptr;
    };
    std::vector<const TensorType*> types;
    std::vector<const void*> data;
    std::vector<const TensorType*> declared;
    for (ValueId id : node.inputs) {
      types.push_back(id == kNoValue ? nullptr : type(id));
      data.push_back(id == kNoValue ? nullptr : contents(id));
    }
    for (ValueId id : node.outputs) declared.push_back(&graph_.value(id).type);
    const Fusion fusion = work.fusion.map([&](ValueId id) {
      return FusedView{{type(id), static_cast<std::byte*>(const_cast<void*>(contents(id)))}, {}};
    });
    const NodeView view(node, *segment_.ops.find(node.op), types, data, declared);
    return choose_kernel(KernelNode(view, fusion, work.stored_as), mode_, has_nhwc, nhwc_wanted);
  }

  void place(size_t k) {
    const Work& work = work_[k];
    const Node& from = *work.node;
    uint32_t has_nhwc = 0;
    for (size_t i = 0; i < from.inputs.size() && i < 32; ++i) {
      const ValueId id = read(from.inputs[i]);
      if (id != kNoValue && nhwc_exists(id)) has_nhwc |= 1u << i;
    }
    if (grows_to_output(from)) has_nhwc = 0;
    LoweredNode step;
    step.node = &from;
    step.source = &node(k);
    step.op = segment_.ops.find(from.op);
    step.stored_as = work.stored_as;
    step.line = choose(work, has_nhwc, true);
    if (step.line && step.line->kernel->layouts == Layouts::kLeads && !nhwc_wanted(from.outputs[0])) {
      step.line = choose(work, has_nhwc);
    }
    const Layouts layouts = step.line ? step.line->kernel->layouts : Layouts::kDense;
    for (size_t i = 0; i < from.inputs.size(); ++i) {
      const ValueId id = read(from.inputs[i]);
      if (id == kNoValue) {
        step.inputs.push_back(kNoValue);
        continue;
      }
      const bool wants = layouts != Layouts::kDense && i < 32 && (step.line->kernel->nhwc_inputs >> i & 1);
      if (!wants || (layouts == Layouts::kFollows && out_.data[static_cast<size_t>(id)])) {
        step.inputs.push_back(dense(id, step.source));
        continue;
      }
      Border border;
      if (i == 0 && step.line->kernel->border) border = border_of(step, from);
      step.inputs.push_back(nhwc_packed(id, border, step.source));
    }
    step.fusion = work.fusion.map([&](ValueId id) {
      const bool wants = layouts != Layouts::kDense && work.fusion.residual && id == work.fusion.residual->addend;
      return wants ? nhwc_packed(read(id), {}, step.source) : dense(read(id), step.source);
    });
    step.outputs.assign(from.outputs.begin(), from.outputs.end());
    if (layouts != Layouts::kDense) {
      const auto y = static_cast<size_t>(step.outputs[0]);
      out_.layouts[y] = nhwc_layout(out_.types[y]);
    }
    out_.node_of[k] = static_cast<int32_t>(out_.nodes.size());
    out_.nodes.push_back(std::move(step));
  }

  /// True for what only the caller reads and is much larger than what it is made of (an enlarged mask): it is faster to
  /// make the small input dense than the large output.
  bool grows_to_output(const Node& from) const {
    if (from.inputs.empty() || from.inputs[0] == kNoValue) return false;
    const ValueId y = from.outputs[0];
    const auto elements = [&](ValueId id) { return out_.types[static_cast<size_t>(id)].elements(); };
    if (elements(y) < 2 * elements(from.inputs[0])) return false;
    if (!is_output(y)) return false;
    for (size_t k = 0; k < segment_.nodes.size(); ++k) {
      for (ValueId id : node(k).inputs) {
        if (id == y) return false;
      }
    }
    return true;
  }

  Border border_of(const LoweredNode& step, const Node& from) const {
    std::vector<const TensorType*> types;
    for (ValueId id : from.inputs) types.push_back(id == kNoValue ? nullptr : &out_.types[static_cast<size_t>(id)]);
    return step.line->kernel->border(NodeView(from, *step.op, types));
  }

  /// True if the value is kept NHWC-packed that differs from the dense bytes.
  bool nhwc_exists(ValueId id) const {
    const auto i = static_cast<size_t>(id);
    if (one_pixel(out_.types[i])) return false;
    return out_.layouts[i].nhwc || other_[i] != kNoValue;
  }

  ValueId add_value(ValueId of, const Layout& layout) {
    out_.types.push_back(TensorType(out_.types[static_cast<size_t>(of)]));
    out_.data.push_back(nullptr);
    out_.layouts.push_back(layout);
    other_.push_back(kNoValue);
    return static_cast<ValueId>(out_.types.size() - 1);
  }

  void change(LoweredNode::Kind kind, ValueId from, ValueId to, const Node* source) {
    LoweredNode step;
    step.kind = kind;
    step.source = source;
    step.inputs = {from};
    step.outputs = {to};
    out_.nodes.push_back(std::move(step));
  }

  ValueId dense(ValueId id, const Node* source) {
    const auto i = static_cast<size_t>(id);
    if (!out_.layouts[i].nhwc || one_pixel(out_.types[i])) return id;
    if (other_[i] == kNoValue) {
      const ValueId made = add_value(id, {});
      other_[i] = made;
      change(LoweredNode::Kind::kToDense, id, made, source);
    }
    return other_[i];
  }

  ValueId nhwc_packed(ValueId id, const Border& border, const Node* source) {
    const auto i = static_cast<size_t>(id);
    ValueId found = id;
    if (one_pixel(out_.types[i])) {
      if (border.none() && out_.layouts[i].nhwc) return id;
      // The dense bytes have no border, or are a constant that others read as it is: a value of its own.
      found = add_value(id, nhwc_layout(out_.types[i]));
      change(LoweredNode::Kind::kToNhwc, id, found, source);
    } else if (!out_.layouts[i].nhwc) {
      if (other_[i] == kNoValue) {
        const ValueId made = add_value(id, nhwc_layout(out_.types[i]));
        other_[i] = made;
        change(LoweredNode::Kind::kToNhwc, id, made, source);
      }
      found = other_[i];
    }
    out_.layouts[static_cast<size_t>(found)].border.widen(border);
    return found;
  }

  const Segment& segment_;
  const Graph& graph_;
  CpuMode mode_;
  std::span<const DType> stored_as_;  // of the graph's nodes; empty: f32 for all
  Lowered out_;
  std::vector<int32_t> made_at_;  // of the graph's values: the segment's node that makes them, or -1
  std::vector<int32_t> uses_;     // and how many of its inputs and outputs they are
  std::vector<ValueId> other_;    // the value in the other layout, where there is one
  std::vector<Work> work_;        // of the segment's nodes
  std::vector<int32_t> done_by_;  // of a node that another one does along with its own work: that one, else -1
  std::vector<ValueId> alias_;    // of a cast's result: the value that is read instead
};

}  // namespace

std::vector<LoweredNode::Read> LoweredNode::reads() const {
  std::vector<Read> all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != kNoValue) all.push_back({inputs[i], line && i < 32 && (line->kernel->packs >> i & 1)});
  }
  if (fusion.residual) all.push_back({fusion.residual->addend, false});
  if (fusion.channel_scale) all.push_back({*fusion.channel_scale, false});
  if (fusion.weights) {
    all.push_back({fusion.weights->integers, true});
    all.push_back({fusion.weights->scales, true});
    if (fusion.weights->zero_points) all.push_back({*fusion.weights->zero_points, true});
  }
  return all;
}

Lowered lower_cpu(const Segment& segment, CpuMode mode, std::span<const DType> stored_as) {
  return Lowering(segment, mode, stored_as).run();
}

}  // namespace pinnace::cpu
