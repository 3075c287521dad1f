// Functions of one tensor, in either layout.
#include <cmath>
#include <limits>

#include "backends/gpu/binary/strided.h"
#include "backends/gpu/unary/chain.h"

namespace pinnace::gpu {

#define PINNACE_UNARY(op)                   \
  Status lower_##op(NodeLowering& n) {      \
    return unary_step(n, Function::k_##op); \
  }

PINNACE_UNARY(abs)
PINNACE_UNARY(acos)
PINNACE_UNARY(acosh)
PINNACE_UNARY(asin)
PINNACE_UNARY(asinh)
PINNACE_UNARY(atan)
PINNACE_UNARY(atanh)
PINNACE_UNARY(ceil)
PINNACE_UNARY(cos)
PINNACE_UNARY(cosh)
PINNACE_UNARY(erf)
PINNACE_UNARY(exp)
PINNACE_UNARY(floor)
PINNACE_UNARY(hard_swish)
PINNACE_UNARY(log)
PINNACE_UNARY(mish)
PINNACE_UNARY(neg)
PINNACE_UNARY(reciprocal)
PINNACE_UNARY(relu)
PINNACE_UNARY(round)
PINNACE_UNARY(sigmoid)
PINNACE_UNARY(sign)
PINNACE_UNARY(silu)
PINNACE_UNARY(sin)
PINNACE_UNARY(sinh)
PINNACE_UNARY(softplus)
PINNACE_UNARY(softsign)
PINNACE_UNARY(sqrt)
PINNACE_UNARY(tan)
PINNACE_UNARY(tanh)
#undef PINNACE_UNARY

Status lower_celu(NodeLowering& n) {
  return unary_step(n, Function::k_celu, n.view().attr_float("alpha"));
}

Status lower_elu(NodeLowering& n) {
  return unary_step(n, Function::k_elu, n.view().attr_float("alpha"));
}

Status lower_leaky_relu(NodeLowering& n) {
  return unary_step(n, Function::k_leaky_relu, n.view().attr_float("alpha"));
}

Status lower_thresholded_relu(NodeLowering& n) {
  return unary_step(n, Function::k_thresholded_relu, n.view().attr_float("alpha"));
}

Status lower_selu(NodeLowering& n) {
  return unary_step(n, Function::k_selu, n.view().attr_float("alpha"), n.view().attr_float("gamma"));
}

Status lower_shrink(NodeLowering& n) {
  return unary_step(n, Function::k_shrink, n.view().attr_float("lambd"), n.view().attr_float("bias"));
}

Status lower_hard_sigmoid(NodeLowering& n) {
  return unary_step(n, Function::k_hard_sigmoid, n.view().attr_float("alpha"), n.view().attr_float("beta"));
}

Status lower_gelu(NodeLowering& n) {
  return unary_step(n, n.view().attr_string("approximate") == "tanh" ? Function::k_gelu_tanh : Function::k_gelu);
}

/// By stages where a bound is known in a run only, or a NaN; integers by one step per bound.
Status lower_clip(NodeLowering& n) {
  const Function functions[2] = {Function::k_max, Function::k_min};
  if (!is_device_float(n.in(0).dtype)) {
    if (!n.has(1) && !n.has(2)) return int32_unary(n, Function::k_none);
    const Shape& shape = n.out().shape;
    if (shape.size() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
    Operand x = operand(n, 0);
    for (int i = 1; i < 3; ++i) {
      if (!n.has(i)) continue;
      const TensorId bound = n.dense(i);
      const TensorId y = i == 2 || !n.has(2) ? n.make_dense() : n.make_scratch(n.out().elements(), n.out().dtype);
      int32_step(n, functions[i - 1], x, {bound}, shape, y);
      x = whole_operand(y, shape);
    }
    return {};
  }
  double bounds[2] = {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  bool known = true;
  for (int i = 1; i < 3; ++i) {
    if (!n.has(i)) continue;
    if (n.in(i).elements() != 1) return n.refuse(Rule::kAttribute, to_string(n.in(i)));
    known = known && n.constant(i);
    if (!n.constant(i)) continue;
    const std::vector<double> bound = n.floats(i);
    if (bound.size() != 1) return n.refuse(Rule::kConstant, i == 1 ? "min" : "max");
    known = known && !std::isnan(bound[0]);
    bounds[i - 1] = bound[0];
  }
  if (known) return unary_step(n, Function::k_clip, bounds[0], bounds[1]);
  std::vector<MapStage> stages;
  for (int i = 1; i < 3; ++i) {
    if (n.has(i)) stages.push_back({functions[i - 1], 0, 0, MapStage::Operand::kOne, n.dense(i)});
  }
  const bool image = n.held_as_nc4hw4(0) && n.in(0).rank() >= 3;
  map_step(n, image ? n.nc4hw4(0) : n.dense(0), -1, image, stages);
  return {};
}

}  // namespace pinnace::gpu
