// Scales by blocks along what is summed; for rows that are gathered, along each row. A recurrent cell has several
// matrices, whose floats are made once, when kernels pack them.
#include "quantize/weight_only.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/packed.h"
#include "ops/recurrent.h"
#include "passes/rewrite.h"
#include "quantize/carried_rounding.h"
#include "quantize/rewrite_graph.h"

namespace pinnace {
namespace {

enum class Use { kProduct, kGathered, kRecurrent };

/// A matrix as lines of numbers that share scales by blocks: columns of a product's weights, rows of a gathered table,
/// what each gate of a recurrent cell multiplies.
struct Lines {
  size_t input = 0;  ///< of the node
  Use use = Use::kProduct;
  int64_t lines = 0, length = 0;
  int64_t line_step = 0, step = 0;  ///< between neighbours in memory
  int axis = 0;                     ///< the matrix's dimension that a line runs along

  bool gathered() const { return use == Use::kGathered; }
  bool product() const { return use == Use::kProduct; }
};

/// Whether input i is a constant of floats of that rank.
bool is_matrix(const Graph& graph, const Node& node, size_t i, int rank) {
  if (i >= node.inputs.size() || node.inputs[i] == kNoValue) return false;
  const Value& w = graph.value(node.inputs[i]);
  return w.constant && w.type.dtype == DType::kF32 && !w.type.quantized() && w.type.rank() == rank &&
         w.type.elements() > 0 && w.constant->check().ok();
}

bool all_finite(const Constant& floats) {
  const auto* x = reinterpret_cast<const float*>(floats.data());
  return std::all_of(x, x + floats.bytes() / sizeof(float), [](float one) { return std::isfinite(one); });
}

/// The matrices of a node that can be stored as integers, in the order of its inputs. Cells are stored beside what a
/// user asked for, so one with infinite weights is none.
std::vector<Lines> lines_of(const Graph& graph, const Node& node) {
  std::vector<Lines> found;
  if (is_recurrent(node.op)) {
    for (const size_t i : kRecurrentMatrices) {
      if (!is_matrix(graph, node, i, 3) || !all_finite(*graph.value(node.inputs[i]).constant)) continue;
      const Shape& shape = graph.value(node.inputs[i]).type.shape;
      const int64_t length = shape[2].size;
      found.push_back({i, Use::kRecurrent, shape[0].size * shape[1].size, length, length, 1, 2});
    }
    return found;
  }
  const bool gathered = node.op == "gather", turned = node.op == "gemm" && int_or(node, "trans_b", 0) != 0;
  if (!gathered && node.op != "gemm" && node.op != "mat_mul") return found;
  const size_t input = gathered ? 0 : 1;
  if (node.outputs.size() != 1 || !is_matrix(graph, node, input, 2)) return found;
  if (gathered && int_or(node, "axis", 0) != 0) return found;
  const Shape& shape = graph.value(node.inputs[input]).type.shape;
  const int64_t rows = shape[0].size, columns = shape[1].size;
  if (gathered || turned) {
    found.push_back({input, gathered ? Use::kGathered : Use::kProduct, rows, columns, columns, 1, 1});
  } else {
    found.push_back({input, Use::kProduct, columns, rows, 1, columns, 0});
  }
  return found;
}

/// Rows that are gathered begin with a whole byte.
int stored_bits(const Lines& lines, int bits) {
  return lines.gathered() && lines.length * bits % 8 != 0 ? 8 : bits;
}

/// Sums of so many products of bytes fit into an int32.
constexpr int64_t kMostSummed = ((int64_t{1} << 31) - 1) / (255 * 127);

/// Why rows of what the node multiplies cannot be rounded by themselves; empty where they can.
std::string why_not_dynamic(const Graph& graph, const Node& node, const Lines& lines) {
  const TensorType& x = graph.value(node.inputs[0]).type;
  if (x.dtype != DType::kF32 || x.quantized()) return str_cat("it multiplies ", to_string(x, graph.symbols));
  if (x.rank() < 2) return "it multiplies a vector";
  if (lines.length > kMostSummed) return str_cat("sums of ", lines.length, " products do not fit into an int32");
  if (node.op != "gemm") return "";
  const auto factor = [&](std::string_view name) {
    const Attr* attr = node.attr(name);
    return attr ? std::get<double>(*attr) : 1.0;
  };
  if (int_or(node, "trans_a", 0) != 0) return "it multiplies columns";
  return factor("alpha") == 1 && factor("beta") == 1 ? "" : "its sums are scaled";
}

/// Whether a product's weights multiply rows of what it reads.
bool multiplies_rows(const Graph& graph, const Node& node, const Lines& lines) {
  if (!lines.product() || node.inputs[0] == kNoValue || int_or(node, "trans_a", 0) != 0) return false;
  const Value& x = graph.value(node.inputs[0]);
  return !x.constant && x.type.dtype == DType::kF32 && !x.type.quantized() && x.type.rank() >= 1;
}

/// The scale with the least square error, of some between 0.7 and 1 times what the largest number needs, and of what
/// each becomes where its integers are kept and the scale is fitted to them.
RoundingStep step_of(std::span<const double> numbers, int low, int high, bool symmetric) {
  double least = 0, most = 0;
  for (const double x : numbers) least = std::min(least, x), most = std::max(most, x);
  if (symmetric) most = std::max(most, -least), least = -most;
  if (!(most > least)) return {};
  RoundingStep best;
  double best_error = INFINITY;
  for (int tenth = 0; tenth <= 15; ++tenth) {
    const double part = 1 - 0.02 * tenth;
    const double span = symmetric ? most * part / high : (most - least) * part / (high - low);
    const auto scale = static_cast<float>(std::max(span, 0x1p-126));
    const auto exact = static_cast<double>(scale);
    const auto zero =
        symmetric ? 0 : std::clamp(static_cast<int32_t>(std::nearbyint(low - least * part / exact)), low, high);
    double products = 0, squares = 0;
    const auto consider = [&](float s) {
      const auto by = static_cast<double>(s);
      double error = 0;
      products = squares = 0;
      for (const double x : numbers) {
        const double q = std::clamp(std::nearbyint(x / by) + zero, static_cast<double>(low), static_cast<double>(high));
        const double off = (q - zero) * by - x;
        error += off * off;
        products += (q - zero) * x;
        squares += (q - zero) * (q - zero);
      }
      if (error < best_error) best_error = error, best = {s, zero};
    };
    consider(scale);
    if (squares > 0 && products > 0) consider(static_cast<float>(std::max(products / squares, 0x1p-126)));
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
    if (choices_.dynamic && (choices_.bits != 8 || choices_.block != 0 || !choices_.symmetric)) {
      return invalid("products of integers take weights of 8 bits, symmetric, with one scale for each column");
    }
    std::unordered_set<std::string_view> chosen(choices_.nodes.begin(), choices_.nodes.end());
    PINNACE_TRY(take_grams(chosen));
    // In the order of the graph: products that share rows share what the first of them makes of these.
    for (Node* node : rewrite_.nodes()) {
      if (chosen.erase(node->name) == 0) continue;
      const std::vector<Lines> matrices = lines_of(graph_, *node);
      if (matrices.empty()) {
        return invalid("node '", node->name, "' (", node->op, ") has no float32 matrix of constant weights");
      }
      for (const Lines& lines : matrices) {
        const bool rows = choices_.dynamic && lines.product();
        const std::string why = rows ? why_not_dynamic(graph_, *node, lines) : "";
        if (!why.empty()) return invalid("node '", node->name, "' (", node->op, ") has no dynamic form: ", why);
        PINNACE_TRY(store(*node, lines));
      }
    }
    if (!chosen.empty()) return invalid("there is no node '", *chosen.begin(), "' to store the weights of");
    rewrite_.finish();
    return verify(graph_);
  }

 private:
  Status store(Node& node, const Lines& lines) {
    const ValueId from = node.inputs[lines.input];
    // Tied weights are stored once for each way in which they are read.
    auto& made = stored_[{from, lines.axis, lines.use}];
    if (made.empty()) {
      PINNACE_ASSIGN(made, stored(node, from, lines));
    }
    if (choices_.dynamic && lines.product()) return multiply_rows(node, made);
    if (choices_.integers) return lines.gathered() ? gather(node, made) : dequantize(node, made, lines);
    node.inputs[lines.input] = made[0];
    return {};
  }

  /// Gram matrices by the matrix that multiplies their rows.
  Status take_grams(const std::unordered_set<std::string_view>& chosen) {
    std::unordered_map<std::string_view, const GramMatrix*> left;
    for (const auto& [name, gram] : choices_.grams) {
      if (!chosen.contains(name)) return invalid("a Gram matrix is of node '", name, "', which is not chosen");
      left.emplace(name, gram);
    }
    for (const auto& node : graph_.nodes) {
      const auto found = left.find(node->name);
      if (found == left.end()) continue;
      const std::vector<Lines> matrices = lines_of(graph_, *node);
      if (matrices.empty() || !multiplies_rows(graph_, *node, matrices[0]))
        return invalid("node '", node->name, "' (", node->op, ") multiplies no rows");
      const Lines& lines = matrices[0];
      if (found->second->length() != lines.length) {
        return invalid("node '", node->name, "' multiplies rows of ", lines.length, " elements, its Gram matrix is of ",
                       found->second->length());
      }
      grams_[Key{node->inputs[1], lines.axis, lines.use}].push_back(found->second);
      left.erase(found);
    }
    return {};
  }

  /// Integers, scales and zero points (none where symmetric) as constants.
  Result<std::vector<ValueId>> stored(const Node& node, ValueId from, const Lines& lines) {
    const int bits = stored_bits(lines, choices_.bits);
    const bool symmetric = choices_.symmetric;
    // Of 16 integers, one without its opposite is worth using; of 256 it is not, and products of bytes overflow by it.
    const int low = symmetric ? (bits == 8 ? -127 : -8) : 0, high = symmetric ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    const int64_t block = block_of(lines.length);
    const int64_t blocks = (lines.length + block - 1) / block;
    const std::string name = graph_.value(from).name;
    // Products of integers take [summed][columns].
    const bool columns = choices_.dynamic && lines.product();
    const Shape shape = columns ? Shape{lines.length, lines.lines} : graph_.value(from).type.shape;
    const auto* w = reinterpret_cast<const float*>(graph_.value(from).constant->data());
    const int64_t all = lines.lines * lines.length;
    for (int64_t i = 0; i < all; ++i) {
      if (!std::isfinite(w[i])) return invalid("node '", node.name, "': weight ", i, " of '", name, "' is ", w[i]);
    }
    std::vector<float> floats(choices_.integers ? 0 : static_cast<size_t>(all));
    const DType dtype = bits == 8 ? (symmetric ? DType::kI8 : DType::kU8) : (symmetric ? DType::kI4 : DType::kU4);
    std::vector<float> scales(static_cast<size_t>(lines.lines * blocks));
    std::vector<uint8_t> zeros(scales.size()), integers(static_cast<size_t>(all));
    std::optional<CarriedRounding> carried;
    if (const auto grams = grams_.find(Key{from, lines.axis, lines.use}); grams != grams_.end()) {
      PINNACE_ASSIGN(carried, CarriedRounding::create(grams->second));
    }
    constexpr int64_t kTogether = CarriedRounding::kLines;
    std::vector<double> weights(static_cast<size_t>(kTogether * lines.length));
    std::vector<RoundingStep> steps(static_cast<size_t>(kTogether * blocks));
    std::vector<int32_t> rounded(weights.size());
    for (int64_t start = 0; start < lines.lines; start += kTogether) {
      const int64_t together = std::min(kTogether, lines.lines - start);
      for (int64_t k = 0; k < together; ++k) {
        const int64_t line = start + k;
        double* own = weights.data() + k * lines.length;
        for (int64_t i = 0; i < lines.length; ++i) {
          own[i] = static_cast<double>(w[line * lines.line_step + i * lines.step]);
        }
        for (int64_t b = 0; b < blocks; ++b) {
          const int64_t first = b * block, count = std::min(block, lines.length - first);
          const RoundingStep s = step_of({own + first, static_cast<size_t>(count)}, low, high, symmetric);
          steps[static_cast<size_t>(k * blocks + b)] = s;
          // Scales lie as the weights do, with the line divided.
          const int64_t at = lines.axis > 0 ? line * blocks + b : b * lines.lines + line;
          scales[static_cast<size_t>(at)] = s.scale;
          zeros[static_cast<size_t>(at)] = static_cast<uint8_t>(s.zero);
        }
      }
      const RoundedLines group{together, lines.length, block, low, high, weights, steps, rounded};
      carried ? carried->round(group) : round_to_nearest(group);
      for (int64_t k = 0; k < together; ++k) {
        const int64_t line = start + k;
        for (int64_t i = 0; i < lines.length; ++i) {
          const auto at =
              static_cast<size_t>(columns ? i * lines.lines + line : line * lines.line_step + i * lines.step);
          const int32_t integer = rounded[static_cast<size_t>(k * lines.length + i)];
          integers[at] = static_cast<uint8_t>(integer);
          if (choices_.integers) continue;
          const RoundingStep& s = steps[static_cast<size_t>(k * blocks + i / block)];
          floats[at] = static_cast<float>(integer - s.zero) * s.scale;  // as dequantize_linear has it
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
    if (columns) by_block = {lines.lines};
    const bool halves = lines.gathered() && bits == 4;
    if (halves) {
      PINNACE_ASSIGN(made.emplace_back(), half_bytes(str_cat(name, ".int4"), shape, integers, low));
    } else {
      PINNACE_ASSIGN(made.emplace_back(), packed(str_cat(name, ".int", bits), dtype, shape, integers));
    }
    PINNACE_ASSIGN(made.emplace_back(),
                   graph_.add_constant_of<float>(str_cat(name, ".scales"), DType::kF32, by_block, scales));
    if (!symmetric) {
      PINNACE_ASSIGN(made.emplace_back(),
                     packed(str_cat(name, ".zero_points"), halves ? DType::kU8 : dtype, by_block, zeros));
    }
    if (columns) {
      std::vector<int32_t> sums(static_cast<size_t>(lines.lines));
      for (size_t i = 0; i < integers.size(); ++i) {
        sums[i % sums.size()] += static_cast<int8_t>(integers[i]);
      }
      PINNACE_ASSIGN(made.emplace_back(),
                     graph_.add_constant_of<int32_t>(str_cat(name, ".column_sums"), DType::kI32, by_block, sums));
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

  /// Two numbers, less the lowest, in each byte of a row: gather takes bytes, and no elements of 4 bits.
  Result<ValueId> half_bytes(const std::string& name, Shape shape, const std::vector<uint8_t>& elements, int low) {
    std::vector<uint8_t> bytes(elements.size() / 2);
    const auto number = [&](size_t i) { return (elements[i] - low) & 15; };
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<uint8_t>(number(2 * i) | number(2 * i + 1) << 4);
    }
    shape.back() = shape.back().size / 2;
    return graph_.add_constant_of<uint8_t>(name, DType::kU8, std::move(shape), bytes);
  }

  int64_t block_of(int64_t length) const { return choices_.block ? std::min(choices_.block, length) : length; }

  /// The floats that integers stand for, in place of the matrix: for kernels that read integers as they are, and that
  /// make floats of them once.
  Status dequantize(Node& node, const std::vector<ValueId>& made, const Lines& lines) {
    decltype(Node::attrs) attrs = {{"axis", int64_t{lines.axis}}, {"block_size", block_of(lines.length)}};
    const TensorType type{DType::kF32, graph_.value(node.inputs[lines.input]).type.shape, nullptr};
    const std::string name = str_cat(graph_.value(node.inputs[lines.input]).name, ".dequantized");
    std::vector<ValueId> inputs = node.inputs;
    inputs[lines.input] = rewrite_.insert_before(node, "dequantize_linear", made, std::move(attrs), type, name);
    rewrite_.set_inputs(node, std::move(inputs));
    return {};
  }

  /// Rows of unsigned bytes, with a scale and a zero point for each, in place of what a product multiplies.
  struct Rows {
    ValueId integers, scales, zeros;  ///< [..., K] u8; [..., 1] f32; [..., 1] u8
    ValueId zeros_i32;
  };

  Result<Rows> rows_of(Node& reader, ValueId x, int64_t length) {
    if (const auto at = rows_.find(x); at != rows_.end()) return at->second;
    const std::string name = graph_.value(x).name;
    TensorType one = graph_.value(x).type;
    one.shape.back() = 1;
    const int64_t last = -1;
    const float step = 1.0f / 255.0f;
    PINNACE_ASSIGN(const ValueId axes,
                   graph_.add_constant_of<int64_t>(str_cat(name, ".row_axis"), DType::kI64, {1}, std::span(&last, 1)));
    PINNACE_ASSIGN(const ValueId part,
                   graph_.add_constant_of<float>(str_cat(name, ".row_step"), DType::kF32, {}, std::span(&step, 1)));
    const auto insert = [&](std::string_view op, std::vector<ValueId> inputs, decltype(Node::attrs) attrs,
                            const char* suffix) {
      return rewrite_.insert_before(reader, op, std::move(inputs), std::move(attrs), one, str_cat(name, suffix));
    };
    const auto quantize = [&](std::vector<ValueId> inputs, int64_t block, const char* suffix) {
      TensorType bytes = graph_.value(inputs[0]).type;
      bytes.dtype = DType::kU8;
      return rewrite_.insert_before(reader, "quantize_linear", std::move(inputs),
                                    {{"axis", last}, {"block_size", block}, {"output_dtype", std::string("u8")}},
                                    std::move(bytes), str_cat(name, suffix));
    };
    const ValueId largest = insert("reduce_max", {x, axes}, {{"keepdims", int64_t{1}}}, ".row_largest");
    const ValueId above = insert("relu", {largest}, {}, ".row_above");
    const ValueId least = insert("reduce_min", {x, axes}, {{"keepdims", int64_t{1}}}, ".row_least");
    const ValueId negated = insert("neg", {least}, {}, ".row_negated");
    const ValueId below = insert("relu", {negated}, {}, ".row_below");
    const ValueId span = insert("add", {above, below}, {}, ".row_span");
    Rows rows{};
    rows.scales = insert("mul", {span, part}, {}, ".row_scales");
    // A row of zeros has the scale 0, and 0 / 0 is stored as 0.
    rows.zeros = quantize({below, rows.scales}, 1, ".row_zeros");
    rows.integers = quantize({x, rows.scales, rows.zeros}, length, ".row_integers");
    one.dtype = DType::kI32;
    if (choices_.integers)
      rows.zeros_i32 = insert("cast", {rows.zeros}, {{"to", std::string("i32")}}, ".row_zeros_i32");
    return rows_.emplace(x, rows).first->second;
  }

  Status multiply_rows(Node& node, const std::vector<ValueId>& made) {
    const ValueId x = node.inputs[0], bias = node.inputs.size() > 2 ? node.inputs[2] : kNoValue;
    const int64_t summed = graph_.value(made[0]).type.shape[0].size;
    PINNACE_ASSIGN(const Rows rows, rows_of(node, x, summed));
    const TensorType type = graph_.value(node.outputs[0]).type;
    const std::string name = graph_.value(node.outputs[0]).name;
    std::string_view last = "mul";
    std::vector<ValueId> operands;
    const auto next = [&](std::string_view op, std::vector<ValueId> inputs, const char* suffix) {
      if (!operands.empty()) {
        inputs.insert(inputs.begin(),
                      rewrite_.insert_before(node, last, std::move(operands), {}, type, str_cat(name, suffix)));
      }
      last = op;
      operands = std::move(inputs);
    };
    if (choices_.integers) {
      TensorType sums = type;
      sums.dtype = DType::kI32;
      const ValueId product = rewrite_.insert_before(node, "mat_mul_integer", {rows.integers, made[0]}, {}, sums,
                                                     str_cat(name, ".integer_sums"));
      const ValueId excess =
          rewrite_.insert_before(node, "mul", {rows.zeros_i32, made[2]}, {}, sums, str_cat(name, ".integer_excess"));
      const ValueId own = rewrite_.insert_before(node, "sub", {product, excess}, {}, sums, str_cat(name, ".integers"));
      const ValueId floats =
          rewrite_.insert_before(node, "cast", {own}, {{"to", std::string("f32")}}, type, str_cat(name, ".float_sums"));
      next("mul", {floats, made[1]}, "");
      next("mul", {rows.scales}, ".column_scaled");
      if (bias != kNoValue) next("add", {bias}, ".scaled");
    } else {
      const ValueId rounded = rewrite_.insert_before(
          node, "dequantize_linear", {rows.integers, rows.scales, rows.zeros},
          {{"axis", int64_t{-1}}, {"block_size", summed}}, graph_.value(x).type, str_cat(name, ".rounded_rows"));
      next("mat_mul", {rounded, made[0]}, "");
      if (bias != kNoValue) next("add", {bias}, ".scaled");
    }
    rewrite_.replace(node, last, std::move(operands), {}, node.source);
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
    if (graph_.value(made[0]).type.shape[1].size != length) {
      PINNACE_ASSIGN(rows[0], numbers_of_halves(node, rows[0], result.shape, name));
      if (rows.size() == 2) {
        PINNACE_ASSIGN(rows.emplace_back(), eights(node, rows[1], name));
      }
    }
    rewrite_.replace(node, "dequantize_linear", std::move(rows),
                     {{"axis", static_cast<int64_t>(result.rank() - 1)}, {"block_size", block_of(length)}},
                     node.source);
    return {};
  }

  /// half_bytes() [..., n / 2] as numbers of the shape [..., n].
  Result<ValueId> numbers_of_halves(Node& reader, ValueId bytes, const Shape& shape, const std::string& name) {
    TensorType type = graph_.value(bytes).type;
    const auto rank = static_cast<int64_t>(type.rank());
    const uint8_t mask = 15, four = 4;
    PINNACE_ASSIGN(const ValueId low_bits,
                   graph_.add_constant_of<uint8_t>(str_cat(name, ".mask"), DType::kU8, {}, std::span(&mask, 1)));
    PINNACE_ASSIGN(const ValueId by,
                   graph_.add_constant_of<uint8_t>(str_cat(name, ".half"), DType::kU8, {}, std::span(&four, 1)));
    PINNACE_ASSIGN(const ValueId behind,
                   graph_.add_constant_of<int64_t>(str_cat(name, ".behind"), DType::kI64, {1}, std::span(&rank, 1)));
    const auto insert = [&](std::string_view op, std::vector<ValueId> inputs, decltype(Node::attrs) attrs,
                            const char* suffix) {
      return rewrite_.insert_before(reader, op, std::move(inputs), std::move(attrs), type, str_cat(name, suffix));
    };
    ValueId low = insert("bitwise_and", {bytes, low_bits}, {}, ".low_halves");
    ValueId high = insert("bit_shift", {bytes, by}, {{"direction", std::string("RIGHT")}}, ".high_halves");
    type.shape.emplace_back(1);
    low = insert("unsqueeze", {low, behind}, {}, ".low_column");
    high = insert("unsqueeze", {high, behind}, {}, ".high_column");
    type.shape.back() = 2;
    const ValueId pairs = insert("concat", {low, high}, {{"axis", rank}}, ".pairs");
    std::vector<int64_t> sizes(static_cast<size_t>(rank), 0);  // as they are
    sizes.back() = shape.back().size;
    PINNACE_ASSIGN(const ValueId to,
                   graph_.add_constant_of<int64_t>(str_cat(name, ".row_shape"), DType::kI64, {rank}, sizes));
    type.shape = shape;
    return insert("reshape", {pairs, to}, {}, ".numbers");
  }

  /// The zero points of symmetric numbers of half_bytes(), of the shape of the scales.
  Result<ValueId> eights(Node& reader, ValueId scales, const std::string& name) {
    const TensorType scale_type = graph_.value(scales).type;
    const uint8_t eight = 8;
    PINNACE_ASSIGN(const ValueId one,
                   graph_.add_constant_of<uint8_t>(str_cat(name, ".eight"), DType::kU8, {}, std::span(&eight, 1)));
    const TensorType sizes{DType::kI64, {static_cast<int64_t>(scale_type.rank())}, nullptr};
    const ValueId shape = rewrite_.insert_before(reader, "shape", {scales}, {}, sizes, str_cat(name, ".scale_sizes"));
    return rewrite_.insert_before(reader, "expand", {one, shape}, {}, {DType::kU8, scale_type.shape, nullptr},
                                  str_cat(name, ".zero_points"));
  }

  struct Key {
    ValueId from;
    int axis;
    Use use;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return static_cast<size_t>(k.from) * 9 + static_cast<size_t>(k.axis) * 3 + static_cast<size_t>(k.use);
    }
  };
  Graph& graph_;
  Rewrite rewrite_;
  const WeightChoices& choices_;
  std::unordered_map<Key, std::vector<ValueId>, KeyHash> stored_;
  std::unordered_map<Key, std::vector<const GramMatrix*>, KeyHash> grams_;
  std::unordered_map<ValueId, Rows> rows_;  ///< of values that products multiply
};

}  // namespace

std::vector<WeightSite> find_weight_sites(const Graph& graph) {
  std::vector<WeightSite> sites;
  for (const auto& node : graph.nodes) {
    const std::vector<Lines> matrices = lines_of(graph, *node);
    if (matrices.empty()) continue;
    const Lines& first = matrices[0];
    const bool rows = multiplies_rows(graph, *node, first);
    int64_t weights = 0;
    for (const Lines& lines : matrices) weights += lines.lines * lines.length;
    sites.push_back({node->name, node->op, node->source.module, weights, graph.value(node->inputs[first.input]).name,
                     rows ? graph.value(node->inputs[0]).name : "", first.length,
                     first.product() ? why_not_dynamic(graph, *node, first) : ""});
  }
  return sites;
}

Status store_weights(Graph& graph, const OpTable& ops, const WeightChoices& choices) {
  const PassContext context{ops, {}};
  if (choices.dynamic) PINNACE_TRY(split_activations(graph, ops, true));
  return Storing(graph, context, choices).run();
}

}  // namespace pinnace
