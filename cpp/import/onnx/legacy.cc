// Opset 6, the last before numpy's broadcasting: binary operators name the axis at which the second shape is aligned.
// Of older opsets only those operators are read that did not change until then.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "import/onnx/mapping.h"

namespace pinnace::onnx {
namespace {
/// `id` with dimensions of 1 appended, `count` of them.
Result<ValueId> append_dimensions(SourceNode& node, ValueId id, int count) {
  if (count <= 0) return id;
  const int rank = node.type(id).rank();
  std::vector<int64_t> axes;
  for (int i = 0; i < count; ++i) axes.push_back(rank + i);
  PINNACE_ASSIGN(const ValueId list, node.constant_ints(axes));
  return node.emit("unsqueeze", {id, list});
}

// Operators whose form of opset 6 is that of opset 1.
constexpr std::string_view kUnchanged =
    " "
    "And ArgMax ArgMin AveragePool Constant Conv ConvTranspose DepthToSpace Equal Flatten Gather "
    "GlobalAveragePool GlobalMaxPool Greater Hardmax Identity If LRN LSTM Less LogSoftmax Loop "
    "LpNormalization MatMul MaxPool MaxRoiPool Not Or Pow RNN ReduceL1 ReduceL2 ReduceLogSum "
    "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Shape Size Slice "
    "Softmax Softplus Softsign SpaceToDepth Squeeze TopK Transpose Unsqueeze Xor ";
struct Changed {
  std::string_view op_type;
  int64_t opset;
};
// Those whose form of opset 6 came after 1.
constexpr Changed kChanged[] = {{"Concat", 4}, {"GRU", 3},     {"GlobalLpPool", 2}, {"LpPool", 2},
                                {"Pad", 2},    {"Reshape", 5}, {"Split", 2}};
}  // namespace

bool unchanged_since(std::string_view op_type, int64_t opset) {
  if (kUnchanged.find(str_cat(" ", op_type, " ")) != std::string_view::npos) return true;
  return std::any_of(std::begin(kChanged), std::end(kChanged),
                     [&](const Changed& c) { return c.op_type == op_type && c.opset <= opset; });
}

/// Opset 6: `broadcast` 1 lays b's dimensions over a's from `axis` on, or over the last ones.
Status map_binary(SourceNode& node) {
  if (node.opset() >= 7) return map_generic(node);
  PINNACE_TRY(node.need_inputs(2));
  const int rank_a = node.in_type(0).rank(), rank_b = node.in_type(1).rank();
  PINNACE_ASSIGN(int64_t axis, node.int_attr("axis", rank_a - rank_b));
  if (axis < 0) axis += rank_a;
  if (axis < 0 || axis + rank_b > rank_a) {
    return refuse(str_cat("axis must leave room for ", rank_b, " of ", rank_a, " dimensions"), str_cat(axis));
  }
  PINNACE_ASSIGN(const ValueId b, append_dimensions(node, node.in(1), static_cast<int>(rank_a - rank_b - axis)));
  return map_as(node, snake_case(node.proto().op_type()), {node.in(0), b}, {}, {"axis", "broadcast"});
}

/// Opset 6: a slope of more than one element belongs to dimension 1.
Status map_prelu(SourceNode& node) {
  if (node.opset() >= 7) return map_generic(node);
  PINNACE_TRY(node.need_inputs(2));
  const bool per_channel = node.in_type(1).rank() == 1 && node.in_type(1).elements() != 1;
  PINNACE_ASSIGN(const ValueId slope,
                 append_dimensions(node, node.in(1), per_channel ? node.in_type(0).rank() - 2 : 0));
  return map_as(node, "prelu", {node.in(0), slope});
}

namespace {

/// alpha * a * b + beta * c of integers, for which there is no operator of that name.
Status map_integer_gemm(SourceNode& node, DType dtype) {
  PINNACE_ASSIGN(const double alpha, node.float_attr("alpha", 1));
  PINNACE_ASSIGN(const double beta, node.float_attr("beta", 1));
  for (const double factor : {alpha, beta}) {
    const bool whole = std::fabs(factor) < 0x1p31 && std::nearbyint(factor) == factor;
    if (!whole) return refuse("factors of integers are whole numbers below 2^31", str_cat(factor));
  }
  ValueId sides[2] = {node.in(0), node.in(1)};
  const std::string_view turns[2] = {"transA", "transB"};
  for (int i = 0; i < 2; ++i) {
    PINNACE_ASSIGN(const int64_t turned, node.int_attr(turns[i], 0));
    if (!turned) continue;
    PINNACE_ASSIGN(sides[i], node.emit("transpose", {sides[i]}, {{"perm", std::vector<int64_t>{1, 0}}}));
  }
  const auto scaled = [&](ValueId x, double factor) -> Result<ValueId> {
    if (factor == 1) return x;
    PINNACE_ASSIGN(const ValueId by, node.constant_scalar(dtype, factor));
    return node.emit("mul", {x, by});
  };
  PINNACE_ASSIGN(const ValueId product, node.emit("mat_mul", {sides[0], sides[1]}));
  PINNACE_ASSIGN(const ValueId y, scaled(product, alpha));
  if (!node.has(2)) return node.set_output(0, y);
  PINNACE_ASSIGN(const ValueId c, scaled(node.in(2), beta));
  return node.finish("add", {y, c});
}

}  // namespace

/// Opset 6: `broadcast` says that c broadcasts, which it always may.
Status map_gemm(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(2));
  const DType dtype = node.in_type(0).dtype;
  if (dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kU32 || dtype == DType::kU64) {
    return map_integer_gemm(node, dtype);
  }
  return map_as(node, "gemm", node.inputs(), {}, {"broadcast"});
}

}  // namespace pinnace::onnx
