// share_weights: mat_mul(x, transpose(w)) becomes gemm(x, w) with trans_b, between reshapes where x is no matrix, if
// the bytes of the constant w are also read as they are: those of an embedding by the output layer that is tied to it.
// constant_folding, which comes after, would store w a second time, transposed. Bound: products with a transposed
// operand may be summed in another order. Conditions: floats; w has at least 64 KiB; the transpose is read by such
// products alone and leaves the graph nowhere.
#include <algorithm>
#include <unordered_set>

#include "passes/rewrite.h"

namespace pinnace {
namespace {

/// Smaller weights are not worth two more nodes.
constexpr size_t kWorthwhile = 64 << 10;

/// A transpose of a large constant matrix of floats, dimension for dimension.
bool turns_weights(const Rewrite& rewrite, const Node& node) {
  if (node.op != "transpose" || node.inputs.empty() || rewrite.leaves(node.outputs[0])) return false;
  const Value& w = rewrite.graph().value(node.inputs[0]);
  if (!w.constant || w.constant->bytes() < kWorthwhile) return false;
  if (!is_float_type(w.type.dtype) || w.type.quantized() || w.type.rank() != 2) return false;
  const auto perm = ints_or_empty(node, "perm");
  return perm.empty() || perm[0] == 1;
}

bool multiplies_by(const Rewrite& rewrite, const Node& node, ValueId b) {
  return node.op == "mat_mul" && node.inputs[1] == b && node.inputs[0] != b && rewrite.type(node.inputs[0]).rank() >= 2;
}

/// The bytes of constants that some node reads otherwise than to turn them, or that leave the graph.
std::unordered_set<const std::byte*> read_as_they_are(const Rewrite& rewrite) {
  std::unordered_set<const std::byte*> found;
  const auto& values = rewrite.graph().values;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (!values[i].constant || values[i].constant->bytes() < kWorthwhile) continue;
    const auto& readers = rewrite.readers(id);
    const auto other = [&](const Node* reader) { return !turns_weights(rewrite, *reader); };
    if (rewrite.leaves(id) || std::any_of(readers.begin(), readers.end(), other)) {
      found.insert(values[i].constant->data());
    }
  }
  return found;
}

/// The product of the sizes, as far as it is known.
Dim product(std::span<const Dim> dims) {
  int64_t known = 1;
  Dim open = 1;
  int unknown = 0;
  for (const Dim& d : dims) {
    unknown += !d.known();
    if (!d.known()) open = d;
    if (d.known() && __builtin_mul_overflow(known, d.size, &known)) return Dim::unknown();
  }
  if (unknown == 0) return known;
  return unknown == 1 && known == 1 ? open : Dim::unknown();
}

/// The shape input that gives the product's rows their dimensions back.
Result<ValueId> shape_of_result(Rewrite& rewrite, Node& node, int64_t columns) {
  const Shape& shape = rewrite.type(node.outputs[0]).shape;
  const std::string name = rewrite.graph().value(node.outputs[0]).name + ".shape";
  if (std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.known(); })) {
    std::vector<double> sizes;
    for (const Dim& d : shape) sizes.push_back(static_cast<double>(d.size));
    return rewrite.add_constant(name, DType::kI64, {static_cast<int64_t>(sizes.size())}, sizes);
  }
  const auto rank = static_cast<int64_t>(shape.size());
  const ValueId rows = rewrite.insert_before(node, "shape", {node.inputs[0]}, {{"end", Attr(int64_t{-1})}},
                                             TensorType{DType::kI64, {rank - 1}, nullptr}, name + ".rows");
  const double last[] = {static_cast<double>(columns)};
  PINNACE_ASSIGN(const ValueId width, rewrite.add_constant(name + ".columns", DType::kI64, {1}, last));
  return rewrite.insert_before(node, "concat", {rows, width}, {{"axis", Attr(int64_t{0})}},
                               TensorType{DType::kI64, {rank}, nullptr}, name);
}

Status rewrite_product(Rewrite& rewrite, Node& node, ValueId w) {
  const TensorType x = rewrite.type(node.inputs[0]);
  const Dim columns = rewrite.type(w).shape[0], depth = rewrite.type(w).shape[1];
  std::vector<ValueId> inputs = {node.inputs[0], w};
  if (node.inputs.size() > 2) inputs.push_back(node.inputs[2]);
  auto attrs = node.attrs;  // of the activation
  attrs.emplace_back("trans_b", Attr(int64_t{1}));
  const SourceLocation source = node.source;
  if (x.rank() == 2) {
    rewrite.replace(node, "gemm", std::move(inputs), std::move(attrs), source);
    return {};
  }
  const std::string name = rewrite.graph().value(node.outputs[0]).name;
  const Dim rows = product(std::span(x.shape).first(x.shape.size() - 1));
  const double flat[] = {-1, static_cast<double>(depth.size)};
  PINNACE_ASSIGN(const ValueId matrix, rewrite.add_constant(name + ".matrix", DType::kI64, {2}, flat));
  PINNACE_ASSIGN(const ValueId shape, shape_of_result(rewrite, node, columns.size));
  inputs[0] = rewrite.insert_before(node, "reshape", {node.inputs[0], matrix}, {},
                                    TensorType{x.dtype, {rows, depth}, nullptr}, name + ".rows");
  const ValueId y = rewrite.insert_before(node, "gemm", std::move(inputs), std::move(attrs),
                                          TensorType{x.dtype, {rows, columns}, nullptr}, name + ".product");
  rewrite.replace(node, "reshape", {y, shape}, {{"allowzero", Attr(int64_t{1})}}, source);
  return {};
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  const std::unordered_set<const std::byte*> kept = read_as_they_are(rewrite);
  for (Node* node : rewrite.nodes()) {
    if (!rewrite.alive(node) || !turns_weights(rewrite, *node)) continue;
    const ValueId w = node->inputs[0], turned = node->outputs[0];
    const Value& weights = rewrite.graph().value(w);
    if (!kept.contains(weights.constant->data()) || weights.type.shape[1].size == 0) continue;
    const std::vector<Node*> readers = rewrite.readers(turned);
    const auto fits = [&](const Node* reader) { return multiplies_by(rewrite, *reader, turned); };
    if (!std::all_of(readers.begin(), readers.end(), fits)) continue;
    for (Node* reader : readers) PINNACE_TRY(rewrite_product(rewrite, *reader, w));
    rewrite.remove(*node);
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef share_weights_pass;
const PassDef share_weights_pass{"share_weights", "multiplies by tied weights as they are stored", 1e-5, run};

}  // namespace pinnace
