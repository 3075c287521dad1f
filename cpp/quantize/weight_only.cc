// Scales by blocks along what is summed; for rows that are gathered, along each row.
#include "quantize/weight_only.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/packed.h"
#include "passes/rewrite.h"

namespace pinnace {
namespace {

/// A matrix as lines of numbers that share scales by blocks: columns of a product's weights, rows of a gathered table.
struct Lines {
  int64_t lines = 0, length = 0;
  int64_t line_step = 0, step = 0;  ///< between neighbours in memory
  int axis = 0;                     ///< the matrix's dimension that a line runs along
  bool gathered = false;
};

std::optional<Lines> lines_of(const Graph& graph, const Node& node) {
  const bool gathered = node.op == "gather", turned = node.op == "gemm" && int_or(node, "trans_b", 0) != 0;
  if (!gathered && node.op != "gemm" && node.op != "mat_mul") return std::nullopt;
  const size_t input = gathered ? 0 : 1;
  if (node.inputs.size() < 2 || node.inputs[input] == kNoValue || node.outputs.size() != 1) return std::nullopt;
  if (gathered && int_or(node, "axis", 0) != 0) return std::nullopt;
  const Value& w = graph.value(node.inputs[input]);
  if (!w.constant || w.type.dtype != DType::kF32 || w.type.quantized() || w.type.rank() != 2) return std::nullopt;
  if (w.type.elements() <= 0 || !w.constant->check().ok()) return std::nullopt;
  const int64_t rows = w.type.shape[0].size, columns = w.type.shape[1].size;
  if (gathered || turned) return Lines{rows, columns, columns, 1, 1, gathered};
  return Lines{columns, rows, 1, columns, 0, false};
}

/// What a block of numbers becomes: q in [low, high], real = (q - zero) * scale.
struct BlockScale {
  float scale = 1;
  int32_t zero = 0;
};

/// The scale with the least square error, of some between 0.7 and 1 times what the largest number needs.
template <class Number>
BlockScale scale_of(int64_t count, Number number, int low, int high, bool symmetric) {
  double least = 0, most = 0;
  for (int64_t i = 0; i < count; ++i) least = std::min(least, number(i)), most = std::max(most, number(i));
  if (symmetric) most = std::max(most, -least), least = -most;
  if (!(most > least)) return {};
  BlockScale best;
  double best_error = INFINITY;
  for (int tenth = 0; tenth <= 15; ++tenth) {
    const double part = 1 - 0.02 * tenth;
    const double span = symmetric ? most * part / high : (most - least) * part / (high - low);
    const auto scale = static_cast<float>(std::max(span, 0x1p-126));
    const auto exact = static_cast<double>(scale);
    const auto zero =
        symmetric ? 0 : std::clamp(static_cast<int32_t>(std::nearbyint(low - least * part / exact)), low, high);
    double error = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double q =
          std::clamp(std::nearbyint(number(i) / exact) + zero, static_cast<double>(low), static_cast<double>(high));
      const double off = (q - zero) * exact - number(i);
      error += off * off;
    }
    if (error < best_error) best_error = error, best = {scale, zero};
  }
  return best;
}

class Storing {
 public:
  Storing(Graph& graph, const PassContext& context, const WeightChoices& choices)
      : graph_(graph), rewrite_(graph, context), choices_(choices) {}

  Status run() {
    if (choices_.bits != 4 && choices_.bits != 8)
      return invalid("weights of ", choices_.bits, " bits: 4 or 8 are stored");
    if (choices_.block < 0 || choices_.block % 8 != 0) {
      return invalid("blocks of ", choices_.block, " weights: a multiple of 8, or 0 for one block");
    }
    std::unordered_map<std::string_view, Node*> nodes;
    for (Node* node : rewrite_.nodes()) nodes.emplace(node->name, node);
    for (const std::string& name : choices_.nodes) {
      const auto at = nodes.find(name);
      if (at == nodes.end()) return invalid("there is no node '", name, "' to store the weights of");
      const auto lines = lines_of(graph_, *at->second);
      if (!lines) return invalid("node '", name, "' (", at->second->op, ") has no float32 matrix of constant weights");
      PINNACE_TRY(store(*at->second, *lines));
    }
    rewrite_.finish();
    return verify(graph_);
  }

 private:
  Status store(Node& node, const Lines& lines) {
    const size_t input = lines.gathered ? 0 : 1;
    const ValueId from = node.inputs[input];
    // Tied weights are stored once for each way in which they are read.
    auto& made = stored_[{from, lines.axis, lines.gathered}];
    if (made.empty()) {
      PINNACE_ASSIGN(made, stored(node, from, lines));
    }
    if (choices_.integers) return lines.gathered ? gather(node, made) : multiply(node, made, lines);
    std::vector<ValueId> inputs = node.inputs;
    inputs[input] = made[0];
    node.inputs = std::move(inputs);
    return {};
  }

  /// Integers, scales and zero points (none where symmetric) as constants.
  Result<std::vector<ValueId>> stored(const Node& node, ValueId from, const Lines& lines) {
    // Elements of fewer than 8 bits cannot be gathered.
    const int bits = lines.gathered ? 8 : choices_.bits;
    const bool symmetric = choices_.symmetric;
    const int low = symmetric ? 1 - (1 << (bits - 1)) : 0, high = symmetric ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    const int64_t block = block_of(lines.length);
    const int64_t blocks = (lines.length + block - 1) / block;
    const std::string name = graph_.value(from).name;
    const Shape shape = graph_.value(from).type.shape;
    const auto* w = reinterpret_cast<const float*>(graph_.value(from).constant->data());
    const int64_t all = lines.lines * lines.length;
    for (int64_t i = 0; i < all; ++i) {
      if (!std::isfinite(w[i])) return invalid("node '", node.name, "': weight ", i, " of '", name, "' is ", w[i]);
    }
    std::vector<float> floats(choices_.integers ? 0 : static_cast<size_t>(all));
    const DType dtype = bits == 8 ? (symmetric ? DType::kI8 : DType::kU8) : (symmetric ? DType::kI4 : DType::kU4);
    std::vector<float> scales(static_cast<size_t>(lines.lines * blocks));
    std::vector<uint8_t> zeros(scales.size()), integers(static_cast<size_t>(all));
    for (int64_t line = 0; line < lines.lines; ++line) {
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = b * block, count = std::min(block, lines.length - first);
        const auto place = [&](int64_t i) { return line * lines.line_step + (first + i) * lines.step; };
        const BlockScale s =
            scale_of(count, [&](int64_t i) { return static_cast<double>(w[place(i)]); }, low, high, symmetric);
        // Scales lie as the weights do, with the line divided.
        const int64_t at = lines.axis == 1 ? line * blocks + b : b * lines.lines + line;
        scales[static_cast<size_t>(at)] = s.scale;
        zeros[static_cast<size_t>(at)] = static_cast<uint8_t>(s.zero);
        for (int64_t i = 0; i < count; ++i) {
          const double q = std::nearbyint(static_cast<double>(w[place(i)]) / static_cast<double>(s.scale)) + s.zero;
          const auto integer = static_cast<int32_t>(std::clamp(q, static_cast<double>(low), static_cast<double>(high)));
          integers[static_cast<size_t>(place(i))] = static_cast<uint8_t>(integer);
          // As dequantize_linear has it.
          if (!choices_.integers)
            floats[static_cast<size_t>(place(i))] = static_cast<float>(integer - s.zero) * s.scale;
        }
      }
    }
    std::vector<ValueId> made;
    if (!choices_.integers) {
      PINNACE_ASSIGN(made.emplace_back(),
                     graph_.add_constant_of<float>(str_cat(name, ".rounded"), DType::kF32, shape, floats));
      return made;
    }
    Shape by_block = shape;
    by_block[static_cast<size_t>(lines.axis)] = blocks;
    PINNACE_ASSIGN(made.emplace_back(), packed(str_cat(name, ".int", bits), dtype, shape, integers));
    PINNACE_ASSIGN(made.emplace_back(),
                   graph_.add_constant_of<float>(str_cat(name, ".scales"), DType::kF32, by_block, scales));
    if (!symmetric) {
      PINNACE_ASSIGN(made.emplace_back(), packed(str_cat(name, ".zero_points"), dtype, by_block, zeros));
    }
    return made;
  }

  Result<ValueId> packed(const std::string& name, DType dtype, const Shape& shape,
                         const std::vector<uint8_t>& elements) {
    const TensorType type{dtype, shape, nullptr};
    PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type.bytes()), "stored weights"));
    const int bits = dtype_bits(dtype);
    const auto count = static_cast<int64_t>(elements.size());
    if (bits == 8) {
      std::copy(elements.begin(), elements.end(), reinterpret_cast<uint8_t*>(bytes.data()));
    } else {
      for (int64_t i = 0; i < count; ++i) {
        store_packed(bytes.data(), bits, i, count, elements[static_cast<size_t>(i)] & ((1u << bits) - 1));
      }
    }
    return graph_.add_constant(name, type, Constant::of(std::move(bytes)));
  }

  int64_t block_of(int64_t length) const { return choices_.block ? std::min(choices_.block, length) : length; }

  Status multiply(Node& node, const std::vector<ValueId>& made, const Lines& lines) {
    decltype(Node::attrs) attrs = {{"axis", int64_t{lines.axis}}, {"block_size", block_of(lines.length)}};
    const TensorType type{DType::kF32, graph_.value(node.inputs[1]).type.shape, nullptr};
    const std::string name = str_cat(graph_.value(node.inputs[1]).name, ".dequantized");
    std::vector<ValueId> inputs = node.inputs;
    inputs[1] = rewrite_.insert_before(node, "dequantize_linear", made, std::move(attrs), type, name);
    rewrite_.set_inputs(node, std::move(inputs));
    return {};
  }

  /// Rows of integers and of their scales are gathered, then dequantised.
  Status gather(Node& node, const std::vector<ValueId>& made) {
    const ValueId indices = node.inputs[1];
    const TensorType result = graph_.value(node.outputs[0]).type;
    const std::string name = graph_.value(node.outputs[0]).name;
    const int64_t length = graph_.value(node.inputs[0]).type.shape[1].size;
    std::vector<ValueId> rows;
    for (size_t i = 0; i < made.size(); ++i) {
      TensorType type = graph_.value(made[i]).type;
      const Dim last = type.shape[1];
      type.shape = result.shape;
      type.shape.back() = last;
      constexpr const char* kSuffix[] = {".integers", ".scales", ".zero_points"};
      rows.push_back(
          rewrite_.insert_before(node, "gather", {made[i], indices}, {}, std::move(type), str_cat(name, kSuffix[i])));
    }
    rewrite_.replace(node, "dequantize_linear", std::move(rows),
                     {{"axis", static_cast<int64_t>(result.rank() - 1)}, {"block_size", block_of(length)}},
                     node.source);
    return {};
  }

  struct Key {
    ValueId from;
    int axis;
    bool gathered;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return static_cast<size_t>(k.from) * 4 + static_cast<size_t>(k.axis) * 2 + static_cast<size_t>(k.gathered);
    }
  };
  Graph& graph_;
  Rewrite rewrite_;
  const WeightChoices& choices_;
  std::unordered_map<Key, std::vector<ValueId>, KeyHash> stored_;
};

}  // namespace

std::vector<WeightSite> find_weight_sites(const Graph& graph) {
  std::vector<WeightSite> sites;
  for (const auto& node : graph.nodes) {
    const auto lines = lines_of(graph, *node);
    if (lines) sites.push_back({node->name, node->op, node->source.module, lines->lines * lines->length});
  }
  return sites;
}

Status store_weights(Graph& graph, const OpTable& ops, const WeightChoices& choices) {
  const PassContext context{ops, {}};
  return Storing(graph, context, choices).run();
}

}  // namespace pinnace
