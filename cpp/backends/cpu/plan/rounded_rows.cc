// Matching from each quantize_linear forwards to results and backwards to floats.
#include "backends/cpu/plan/rounded_rows.h"

#if defined(__x86_64__)
#include <algorithm>

namespace pinnace::cpu {
namespace {

class Matching {
 public:
  explicit Matching(const Segment& segment) : segment_(segment) {
    made_at_.assign(segment.graph.values.size(), kNone);
    readers_.resize(segment.graph.values.size());
    leaves_.assign(segment.graph.values.size(), false);
    for (size_t k = 0; k < segment.nodes.size(); ++k) {
      for (ValueId id : node(k).inputs) {
        if (id != kNoValue) readers_[at(id)].push_back(k);
      }
      for (ValueId id : node(k).outputs) made_at_[at(id)] = k;
    }
    for (ValueId id : segment.outputs) leaves_[at(id)] = true;
  }

  std::optional<RoundedRowsGroup> match(size_t quantize) const {
    RoundedRowsGroup group;
    Rows rows;
    if (!match_rounding(quantize, group, rows)) return std::nullopt;
    for (size_t reader : readers_[at(rows.integers)]) {
      auto product = match_product(reader, rows);
      if (!product) return std::nullopt;
      group.products.push_back(std::move(*product));
    }
    // Whoever else reads scales or zero points needs them.
    const size_t products = group.products.size();
    if (products == 0 || readers_[at(rows.scales)].size() != products + 2) return std::nullopt;
    if (readers_[at(rows.zeros_i32)].size() != products) return std::nullopt;
    return group;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  /// A value, and what it is rounded to.
  struct Rows {
    ValueId x = kNoValue, integers = kNoValue, scales = kNoValue, zeros = kNoValue, zeros_i32 = kNoValue;
  };
  static size_t at(ValueId id) { return static_cast<size_t>(id); }
  const Node& node(size_t k) const { return *segment_.graph.nodes[at(segment_.nodes[k])]; }
  const TensorType& type(ValueId id) const { return segment_.type_inference.types[at(id)]; }
  template <class T>
  const T* contents(ValueId id) const {
    const ConstantPtr& data = segment_.type_inference.data[at(id)];
    return data && data->check().ok() ? reinterpret_cast<const T*>(data->data()) : nullptr;
  }
  bool is_f32(ValueId id) const { return type(id).dtype == DType::kF32 && !type(id).quantized(); }

  template <class T>
  static T attr_or(const Node& node, const char* name, const T& otherwise) {
    const Attr* attr = node.attr(name);
    return attr ? std::get<T>(*attr) : otherwise;
  }

  /// The node of that operator that makes the value.
  size_t maker(ValueId id, std::string_view op) const {
    const size_t k = made_at_[at(id)];
    return k != kNone && node(k).op == op ? k : kNone;
  }
  /// The same, if it makes it for one reader alone.
  size_t inner_maker(ValueId id, std::string_view op) const {
    return readers_[at(id)].size() == 1 && !leaves_[at(id)] ? maker(id, op) : kNone;
  }
  /// The only reader, of that operator, of what node k makes.
  size_t only_reader(size_t k, std::string_view op) const {
    const ValueId id = node(k).outputs[0];
    return readers_[at(id)].size() == 1 && !leaves_[at(id)] && node(readers_[at(id)][0]).op == op ? readers_[at(id)][0]
                                                                                                  : kNone;
  }

  /// With above = relu(reduce_max(x)) and below = relu(-reduce_min(x)) over the last axis, scale = (above + below) /
  /// 255 and zero = quantize_linear(below, scale): quantize_linear(x, scale, zero), all of one number for each row.
  bool match_rounding(size_t quantize, RoundedRowsGroup& group, Rows& rows) const {
    const Node& q = node(quantize);
    if (q.inputs.size() < 3 || q.inputs[2] == kNoValue) return false;
    rows = {q.inputs[0], q.outputs[0], q.inputs[1], q.inputs[2], kNoValue};
    size_t cast = kNone;
    for (size_t reader : readers_[at(rows.zeros)]) {
      if (node(reader).op == "cast") cast = reader;
    }
    if (cast == kNone || readers_[at(rows.zeros)].size() != 2) return false;
    rows.zeros_i32 = node(cast).outputs[0];
    if (type(rows.zeros_i32).dtype != DType::kI32 || leaves_[at(rows.zeros_i32)]) return false;
    if (!is_f32(rows.x) || type(rows.x).rank() < 2 || !is_f32(rows.scales) || leaves_[at(rows.scales)] ||
        leaves_[at(rows.zeros)] || leaves_[at(rows.integers)]) {
      return false;
    }
    const int64_t last = type(rows.x).rank() - 1;
    if (!quantizes_rows(q, last, type(rows.x).shape.back().size)) return false;
    const size_t zero = maker(rows.zeros, "quantize_linear"), part = maker(rows.scales, "mul");
    if (zero == kNone || part == kNone || !quantizes_rows(node(zero), last, 1)) return false;
    if (node(zero).inputs[1] != rows.scales || (node(zero).inputs.size() > 2 && node(zero).inputs[2] != kNoValue)) {
      return false;
    }
    const ValueId below = node(zero).inputs[0];
    for (size_t i : {0, 1}) {
      const ValueId step = node(part).inputs[1 - i];
      const auto* number = contents<float>(step);
      const size_t span = inner_maker(node(part).inputs[i], "add");
      if (!number || !is_f32(step) || type(step).elements() != 1 || *number != 1.0f / 255.0f || span == kNone) continue;
      const ValueId above = other(span, below);
      if (has_activation(span) || above == below || (node(span).inputs[0] != below && node(span).inputs[1] != below)) {
        continue;
      }
      const size_t up = inner_maker(above, "relu"), down = maker(below, "relu");
      if (up == kNone || down == kNone || leaves_[at(below)] || readers_[at(below)].size() != 2) continue;
      const size_t largest = inner_maker(node(up).inputs[0], "reduce_max");
      const size_t negated = inner_maker(node(down).inputs[0], "neg");
      const size_t least = negated == kNone ? kNone : inner_maker(node(negated).inputs[0], "reduce_min");
      if (largest == kNone || least == kNone || !reduces_rows(largest, rows.x, last) ||
          !reduces_rows(least, rows.x, last)) {
        continue;
      }
      group.rounding = {largest, up, least, negated, down, span, part, zero, cast, quantize};
      return true;
    }
    return false;
  }

  bool quantizes_rows(const Node& q, int64_t last, int64_t length) const {
    const int64_t axis = attr_or<int64_t>(q, "axis", 1);
    const std::string precision = attr_or<std::string>(q, "precision", "");
    return (axis == -1 || axis == last) && attr_or<int64_t>(q, "block_size", 0) >= length &&
           type(q.outputs[0]).dtype == DType::kU8 && (precision.empty() || precision == "f32");
  }

  bool reduces_rows(size_t k, ValueId x, int64_t last) const {
    const Node& reduce = node(k);
    if (reduce.inputs[0] != x || reduce.inputs.size() < 2 || reduce.inputs[1] == kNoValue ||
        attr_or<int64_t>(reduce, "keepdims", 1) == 0) {
      return false;
    }
    const TensorType& axes = type(reduce.inputs[1]);
    if (axes.elements() != 1) return false;
    const auto* of_64 = axes.dtype == DType::kI64 ? contents<int64_t>(reduce.inputs[1]) : nullptr;
    const auto* of_32 = axes.dtype == DType::kI32 ? contents<int32_t>(reduce.inputs[1]) : nullptr;
    if (!of_64 && !of_32) return false;
    const int64_t axis = of_64 ? *of_64 : *of_32;
    return axis == -1 || axis == last;
  }

  /// cast(mat_mul_integer(q, constants) - cast(zeros) * column sums) * columns * scales, perhaps + bias.
  std::optional<RoundedRowsProduct> match_product(size_t integers, const Rows& row) const {
    const Node& product = node(integers);
    if (product.op != "mat_mul_integer" || product.inputs[0] != row.integers) return std::nullopt;
    const ValueId w = product.inputs[1];
    const auto has = [&](size_t i) { return product.inputs.size() > i && product.inputs[i] != kNoValue; };
    const auto* weights = has(2) || has(3) || w == row.integers ? nullptr : contents<int8_t>(w);
    if (!weights || type(w).rank() != 2 || type(w).dtype != DType::kI8) return std::nullopt;
    const int64_t N = type(w).shape[1].size;
    const size_t own = only_reader(integers, "sub");
    if (own == kNone || node(own).inputs[0] != product.outputs[0]) return std::nullopt;
    const size_t excess = inner_maker(node(own).inputs[1], "mul");
    if (excess == kNone) return std::nullopt;
    const ValueId column_sums = other(excess, row.zeros_i32);
    const bool excesses = node(excess).inputs[0] == row.zeros_i32 || node(excess).inputs[1] == row.zeros_i32;
    if (!excesses || !sums_columns(column_sums, weights, type(w))) return std::nullopt;
    const size_t cast = only_reader(own, "cast");
    const size_t columns = cast == kNone ? kNone : only_reader(cast, "mul");
    const size_t rows = columns == kNone ? kNone : only_reader(columns, "mul");
    if (rows == kNone || !is_f32(node(cast).outputs[0])) return std::nullopt;
    const ValueId column_scales = other(columns, node(cast).outputs[0]);
    if (other(rows, node(columns).outputs[0]) != row.scales || !is_row(column_scales, N)) return std::nullopt;
    if (has_activation(columns)) return std::nullopt;
    RoundedRowsProduct found{rows, {integers, excess, own, cast, columns}, Node(), {}};
    ValueId bias = kNoValue;
    if (const size_t add = only_reader(rows, "add"); add != kNone && !has_activation(rows)) {
      const ValueId addend = other(add, node(rows).outputs[0]);
      if (is_row(addend, N) && clamps_at_most(add)) {
        bias = addend;
        found.done.push_back(rows);
        found.last = add;
      }
    }
    if (!clamps_at_most(found.last)) return std::nullopt;
    const Node& last = node(found.last);
    if (type(last.outputs[0]).shape != type(product.outputs[0]).shape || !is_f32(last.outputs[0])) return std::nullopt;
    found.product = last;
    found.product.op = "mat_mul";
    found.product.inputs = {row.x, kNoValue, bias};
    found.fusion.weights = IntegerWeightsOf<ValueId>{.integers = w,
                                                     .scales = column_scales,
                                                     .zero_points = {},
                                                     .axis = 1,
                                                     .block_size = 0,
                                                     .transposed = false,
                                                     .rounds_rows = true};
    return found;
  }

  /// The operand of a node of two beside `id`.
  ValueId other(size_t k, ValueId id) const {
    const Node& two = node(k);
    return two.inputs[0] == id ? two.inputs[1] : two.inputs[0];
  }
  /// A constant with a number for each column.
  bool is_row(ValueId id, int64_t columns) const {
    return is_f32(id) && contents<float>(id) && type(id).elements() == columns && type(id).rank() >= 1 &&
           type(id).shape.back().size == columns;
  }
  bool sums_columns(ValueId id, const int8_t* weights, const TensorType& w) const {
    const int64_t K = w.shape[0].size, N = w.shape[1].size;
    const auto* sums = type(id).dtype == DType::kI32 && type(id).rank() >= 1 ? contents<int32_t>(id) : nullptr;
    if (!sums || type(id).elements() != N || type(id).shape.back().size != N) return false;
    std::vector<uint32_t> own(static_cast<size_t>(N));  // modulo 2^32
    for (int64_t i = 0; i < K * N; ++i) own[static_cast<size_t>(i % N)] += static_cast<uint32_t>(weights[i]);
    return std::equal(own.begin(), own.end(), sums,
                      [](uint32_t a, int32_t b) { return a == static_cast<uint32_t>(b); });
  }
  bool has_activation(size_t k) const { return !attr_or<std::string>(node(k), "activation", "").empty(); }
  bool clamps_at_most(size_t k) const {
    const std::string activation = attr_or<std::string>(node(k), "activation", "");
    return activation.empty() || activation == "relu" || activation == "clip";
  }

  const Segment& segment_;
  std::vector<size_t> made_at_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<bool> leaves_;
};

}  // namespace

std::vector<RoundedRowsGroup> find_rounded_rows(const Segment& segment) {
  std::vector<RoundedRowsGroup> groups;
  std::optional<Matching> matching;
  for (size_t k = 0; k < segment.nodes.size(); ++k) {
    if (segment.graph.nodes[static_cast<size_t>(segment.nodes[k])]->op != "quantize_linear") continue;
    if (!matching) matching.emplace(segment);
    if (auto group = matching->match(k)) groups.push_back(std::move(*group));
  }
  return groups;
}

}  // namespace pinnace::cpu
#endif
