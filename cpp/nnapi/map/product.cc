// Matrix products, and what all products check of their bias.
#include <cmath>

#include "nnapi/map/bias.h"

namespace pinnace::nnapi {

Status check_bias_scale(const Call& call) {
  const Operand &x = call.operand(0), &filter = call.operand(1), &bias = call.operand(2);
  if (!info(x.type).quantized) return {};
  if (bias.zero_point != 0) return call.error("the bias has zero point ", bias.zero_point, ", must be 0");
  if (filter.type == OperandCode::kTensorQuant8SymmPerChannel) {
    return bias.scale == 0 ? Status() : call.error("the bias has scale ", bias.scale, ", must be 0");
  }
  const float product = x.scale * filter.scale;
  if (std::fabs(product - bias.scale) > 1e-6f * std::fmin(product, bias.scale)) {
    return call.error("the bias has scale ", bias.scale, ", must be ", product);
  }
  return {};
}

Status check_bias_shape(const Call& call, ValueId bias, int64_t channels) {
  if (call.type(bias).rank() != 1 || call.type(bias).shape[0].size != channels) {
    return call.error("the bias is ", call.type(bias), ", must have ", channels, " elements");
  }
  return {};
}

Status map_fully_connected(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(ValueId weights, call.in(1));
  PINNACE_ASSIGN(ValueId bias, call.in(2));
  PINNACE_ASSIGN(int64_t code, call.integer(3));
  PINNACE_TRY(check_bias_scale(call));
  if (call.rank(x) < 2 || call.rank(x) > 4) return call.error("takes rank 2 to 4, was given ", call.type(x));
  if (call.rank(weights) != 2) return call.error("weights must be a matrix, are ", call.type(weights));
  PINNACE_ASSIGN(int64_t units, call.size(weights, 0));
  PINNACE_ASSIGN(int64_t row, call.size(weights, 1));
  PINNACE_TRY(check_bias_shape(call, bias, units));
  if (row < 1) return call.error("weights without columns");
  if (call.rank(x) != 2 || call.type(x).shape[1].size != row) {
    int64_t batch = -1;
    if (call.type(x).concrete()) {
      const int64_t elements = call.type(x).elements();
      if (elements % row != 0) return call.error(call.type(x), " does not divide into rows of ", row);
      batch = elements / row;
    }
    PINNACE_ASSIGN(x, call.reshape(x, {batch, row}));
  }
  PINNACE_ASSIGN(Attrs attrs, call.activation(code));
  attrs.emplace_back("trans_b", int64_t{1});
  PINNACE_ASSIGN(ValueId y, call.emit("gemm", {x, weights, bias}, std::move(attrs), call.declared()));
  return call.finish(0, y);
}

Status map_batch_matmul(Call& call) {
  PINNACE_ASSIGN(ValueId a, call.in(0));
  PINNACE_ASSIGN(ValueId b, call.in(1));
  const int rank = call.rank(a);
  if (rank < 2 || rank != call.rank(b))
    return call.error("ranks of ", call.type(a), " and ", call.type(b), " must be equal, 2 or more");
  for (int d = 0; d + 2 < rank; ++d) {
    if (call.type(a).shape[static_cast<size_t>(d)] != call.type(b).shape[static_cast<size_t>(d)]) {
      return call.error("batches of ", call.type(a), " and ", call.type(b), " differ");
    }
  }
  std::vector<int64_t> perm;
  for (int d = 0; d < rank; ++d) perm.push_back(d);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  PINNACE_ASSIGN(bool flip_a, call.flag(2));
  PINNACE_ASSIGN(bool flip_b, call.flag(3));
  if (flip_a) {
    PINNACE_ASSIGN(a, call.transpose(a, perm));
  }
  if (flip_b) {
    PINNACE_ASSIGN(b, call.transpose(b, perm));
  }
  PINNACE_ASSIGN(ValueId y, call.emit("mat_mul", {a, b}, {}, call.declared()));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
