// gemm and mat_mul as FULLY_CONNECTED, whose weights are [outputs, inputs].
#include "ops/product.h"

#include <algorithm>

#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/shape.h"
#include "backends/nnapi/steps/weights.h"

namespace pinnace::nnapi_client {
namespace {

constexpr int32_t kTurn[] = {1, 0};

/// [rows, K] of an operand [.., K].
Result<OperandId> as_matrix(NodeLowering& n, OperandId x) {
  const auto& dims = n.operand(x).dims;
  uint32_t rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
  return reshaped(n, x, {rows, dims.back()});
}

/// The product of [M, 1, 1, K] and [N, 1, 1, K] as y [M, N].
Status product_as_image(NodeLowering& n, OperandId image, OperandId filter, OperandId bias,
                        const Activation& activation, OperandId y) {
  n.rewritten("a product as a convolution of single pixels");
  const std::vector<uint32_t> dims = n.operand(y).dims;
  const OperandId made = n.temp(y, {dims[0], 1, 1, dims[1]});
  const OperandId one = n.scalar(1), valid = n.scalar(2);
  PINNACE_TRY(n.add_activated(Op::CONV_2D, {image, filter, bias, valid, one, one}, activation, made));
  return reshape_into(n, made, y);
}

/// Matrices on both sides; the same number of them, one by one.
Status lower_batch(NodeLowering& n, const Activation& activation) {
  const TensorType &a_type = n.in_type(0), &b_type = n.in_type(1);
  if (n.out_type().quantized()) return n.refuse(Rule::kQuantization, to_string(n.out_type()));
  if (a_type.rank() != b_type.rank() ||
      !std::equal(a_type.shape.begin(), a_type.shape.end() - 2, b_type.shape.begin())) {
    return n.refuse(Rule::kBroadcast, str_cat(to_string(a_type), " by ", to_string(b_type)));
  }
  PINNACE_ASSIGN(const OperandId a, n.in(0));
  PINNACE_ASSIGN(const OperandId b, n.in(1));
  PINNACE_ASSIGN(const OperandId y, n.out());
  if (!n.has(2) && activation.none()) return batch_mat_mul(n, a, b, y);
  const OperandId product = n.temp(y);
  PINNACE_TRY(batch_mat_mul(n, a, b, product));
  if (!n.has(2)) return add_unary(n, activation, product, y);
  PINNACE_ASSIGN(const OperandId bias, n.in(2));
  return n.add_activated(Op::ADD, {product, bias}, activation, y);
}

}  // namespace

Status lower_gemm(NodeLowering& n) {
  const NodeView& view = n.view();
  PINNACE_ASSIGN(const Activation activation, parse_activation(view));
  const double alpha = view.attr_float("alpha"), beta = view.attr_float("beta");
  const bool turn_a = view.attr_int("trans_a") != 0, turn_b = view.attr_int("trans_b") != 0;
  const Shape &b = n.in_type(1).shape, &out = n.out_type().shape;
  const auto N = static_cast<uint32_t>(out[1].size), K = static_cast<uint32_t>(b[turn_b ? 1 : 0].size);
  PINNACE_ASSIGN(OperandId a, n.in(0));
  if (turn_a) {
    PINNACE_ASSIGN(a, transposed(n, a, kTurn));
  }
  // FULLY_CONNECTED takes one scale for all weights; a convolution of images of one pixel takes one per channel.
  const bool per_channel = n.in_type(1).quantized() && n.in_type(1).quantization->scales.size() > 1;
  OperandId filter = kNoOperand, image = kNoOperand;
  if (n.constant(1)) {
    Gathered g{{N, K}, {turn_b ? K : 1, turn_b ? 1 : int64_t{N}}};
    if (per_channel) {
      g = {{N, 1, 1, K}, {g.strides[0], 0, 0, g.strides[1]}};
      PINNACE_ASSIGN(image, reshaped(n, a, {n.operand(a).dims[0], 1, 1, K}));
    }
    PINNACE_ASSIGN(filter, filter_operand(n, 1, a, g, 0, alpha));
  } else {
    if (alpha != 1) return n.refuse(Rule::kConstant, str_cat("weights, alpha ", alpha));
    PINNACE_ASSIGN(filter, n.in(1));
    if (!turn_b) {
      PINNACE_ASSIGN(filter, transposed(n, filter, kTurn));
    }
  }
  const bool has_c = n.has(2) && beta != 0;
  // What is one number per column is a bias; what differs between rows is added.
  const bool is_bias = has_c && (n.constant(2) ? (n.in_type(2).elements() == 1 || n.in_type(2).elements() == N) &&
                                                     (n.in_type(2).rank() < 2 || n.in_type(2).shape[0].size == 1)
                                               : n.in_type(2).rank() == 1 && n.in_type(2).elements() == N && beta == 1);
  if (has_c && !is_bias && n.out_type().quantized()) return n.refuse(Rule::kConstant, "the bias");
  PINNACE_ASSIGN(const OperandId bias, bias_operand(n, is_bias ? 2 : -1, a, filter, N, beta));
  PINNACE_ASSIGN(const OperandId y, n.out());
  if (per_channel) return product_as_image(n, image, filter, bias, activation, y);
  if (!has_c || is_bias) return n.add_activated(Op::FULLY_CONNECTED, {a, filter, bias}, activation, y);
  PINNACE_ASSIGN(OperandId c, n.in(2));
  if (beta != 1) {
    const OperandId scaled = n.temp(c);
    PINNACE_TRY(n.add(Op::MUL, {c, n.number(beta, c), n.scalar(0)}, scaled));
    c = scaled;
  }
  const OperandId product = n.temp(y);
  PINNACE_TRY(n.add(Op::FULLY_CONNECTED, {a, filter, bias, n.scalar(0)}, product));
  return n.add_activated(Op::ADD, {product, c}, activation, y);
}

Status lower_mat_mul(NodeLowering& n) {
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  const TensorType &a_type = n.in_type(0), &b_type = n.in_type(1);
  if (a_type.rank() < 1 || b_type.rank() < 2) return n.refuse(Rule::kRank, to_string(b_type));
  if (b_type.rank() > 2) return lower_batch(n, activation);
  const auto K = static_cast<uint32_t>(b_type.shape[0].size), N = static_cast<uint32_t>(b_type.shape[1].size);
  PINNACE_ASSIGN(const OperandId a_operand, n.in(0));
  PINNACE_ASSIGN(const OperandId a, as_matrix(n, a_operand));
  OperandId filter = kNoOperand;
  if (n.constant(1)) {
    PINNACE_ASSIGN(filter, filter_operand(n, 1, a, {{N, K}, {1, int64_t{N}}}, 0));
  } else {
    PINNACE_ASSIGN(filter, n.in(1));
    PINNACE_ASSIGN(filter, transposed(n, filter, kTurn));
  }
  PINNACE_ASSIGN(const OperandId bias, bias_operand(n, 2, a, filter, N));
  PINNACE_ASSIGN(const OperandId y, n.out());
  const uint32_t rows = n.operand(a).dims[0];
  if (n.operand(y).dims == std::vector<uint32_t>{rows, N}) {
    return n.add_activated(Op::FULLY_CONNECTED, {a, filter, bias}, activation, y);
  }
  const OperandId product = n.temp(y, {rows, N});
  PINNACE_TRY(n.add_activated(Op::FULLY_CONNECTED, {a, filter, bias}, activation, product));
  return reshape_into(n, product, y);
}

}  // namespace pinnace::nnapi_client
