// Arithmetic on two tensors and more: in either layout where sizes agree, one element per invocation where operands
// broadcast.
#include "backends/gpu/binary/params.h"
#include "backends/gpu/conv/residual.h"
#include "backends/gpu/strided.h"
#include "backends/gpu/unary/chain.h"

namespace pinnace::gpu {
namespace {

Function reversed(Function f) {
  switch (f) {
    case Function::k_sub:
      return Function::k_rsub;
    case Function::k_div:
      return Function::k_rdiv;
    case Function::k_pow:
      return Function::k_rpow;
    case Function::k_prelu:
      return Function::k_rprelu;
    default:
      return f;
  }
}

bool same_sizes(const TensorType& a, const TensorType& b) {
  return six_sizes(a.shape) == six_sizes(b.shape);
}

/// Whether `other` is one number per channel of x: [1 or N, C, 1, ...], perhaps without leading 1s.
bool per_channel(const TensorType& other, const TensorType& x) {
  if (x.rank() < 3 || other.rank() > x.rank()) return false;
  const auto o = six_sizes(other.shape), s = six_sizes(x.shape);
  const size_t first = 6 - x.shape.size();
  for (size_t i = 0; i < 6; ++i) {
    const bool ok = i == first ? o[i] == 1 || o[i] == s[i] : i == first + 1 ? o[i] == s[i] : o[i] == 1;
    if (!ok) return false;
  }
  return true;
}

Status strided(NodeLowering& n, Function function, const Activation& activation) {
  PINNACE_ASSIGN(const MergedDims dims, merge_operands(n, 0, 1));
  const Operand a{n.dense(0), dims.a}, b{n.dense(1), dims.b};
  float_step(n, function, a, b, dims.shape(), n.make_dense(), epilogue_of(activation));
  return {};
}

Status binary(NodeLowering& n, Function function, const Activation& activation = {}) {
  if (!is_device_float(n.in(0).dtype) && activation.none() && function != Function::k_prelu) {
    return int32_binary(n, function);
  }
  PINNACE_TRY(n.require_float(0));
  PINNACE_TRY(n.require_float(1));
  if (n.out().rank() > 6) return strided(n, function, activation);
  const bool whole[2] = {same_sizes(n.in(0), n.out()), same_sizes(n.in(1), n.out())};
  if (whole[0] && whole[1] && n.in(0).rank() == n.in(1).rank() && n.in(0).rank() >= 3 && function == Function::k_add &&
      (n.held_as_nc4hw4(0) || n.held_as_nc4hw4(1)) && add_to_convolution(n, activation)) {
    return {};
  }
  // The operand that has all elements of the result goes through; the other one is looked up.
  const int main = whole[0] ? 0 : 1, side = 1 - main;
  if (!whole[main] || n.out().rank() != n.in(main).rank()) return strided(n, function, activation);
  const TensorType &x = n.in(main), &other = n.in(side);
  const bool one = other.elements() == 1;
  const bool held = n.held_as_nc4hw4(main) || (whole[side] && n.held_as_nc4hw4(side));
  const bool channel = !whole[side] && !one && per_channel(other, x);
  const bool as_nc4hw4 = held && x.rank() >= 3 && (one || channel || (whole[side] && other.rank() == x.rank()));
  if (!whole[side] && !one && !(as_nc4hw4 && channel)) return strided(n, function, activation);
  MapStage stages[2] = {{main == 0 ? function : reversed(function)}};
  LoweredValue& v = n.in_value(main);
  const TensorId from = as_nc4hw4 ? n.nc4hw4(main) : n.dense(main);
  if (one && n.constant(side)) {
    stages[0].p = n.floats(side)[0];
  } else if (one && !whole[side]) {
    stages[0].operand = MapStage::Operand::kOne;
    stages[0].tensor = n.dense(side);
  } else if (channel && !whole[side]) {
    stages[0].operand = MapStage::Operand::kChannel;
    stages[0].items = other.rank() == x.rank() ? other.shape[0].size : 1;
    if (n.constant(side)) {
      const ImageShape s = image_shape(x);
      const std::vector<double> numbers = n.floats(side);
      const int64_t C = s.C, count = stages[0].items;
      stages[0].tensor = n.weights("channels", count * s.blocks() * 4, [numbers, C, count](std::span<float> to) {
        const int64_t lanes = (C + 3) / 4 * 4;
        for (int64_t i = 0; i < count; ++i) {
          for (int64_t c = 0; c < C; ++c) {
            to[static_cast<size_t>(i * lanes + c)] = static_cast<float>(numbers[static_cast<size_t>(i * C + c)]);
          }
        }
        return Status();
      });
    } else if (other.rank() == x.rank()) {
      stages[0].tensor = n.nc4hw4(side);
    } else {
      return strided(n, function, activation);
    }
  } else {
    stages[0].operand = MapStage::Operand::kSamePlace;
    stages[0].tensor = as_nc4hw4 ? n.nc4hw4(side) : n.dense(side);
  }
  const int32_t maker = v.one_reader ? (as_nc4hw4 ? v.nc4hw4_step : v.dense_step) : -1;
  const Epilogue after = epilogue_of(activation);
  stages[1] = {after.function, after.a, after.b};
  map_step(n, from, maker, as_nc4hw4, {stages, activation.none() ? size_t{1} : size_t{2}});
  return {};
}

/// Of any number of operands, from the first to the last; `after` is applied to the result.
Status fold(NodeLowering& n, Function function, const Epilogue& after = {}) {
  const int count = n.view().input_count();
  const bool floats = is_device_float(n.out().dtype);
  if (count == 1) return unary_step(n, Function::k_none);
  if (count == 2 && after.function == Function::k_none) return binary(n, function);
  const Shape& shape = n.out().shape;
  if (shape.size() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
  Operand sum = operand(n, 0);
  for (int i = 1; i < count; ++i) {
    const bool last = i + 1 == count;
    const Operand other = operand(n, i);
    const TensorId y = last ? n.make_dense() : n.make_scratch(n.out().elements(), n.out().dtype);
    if (floats) {
      float_step(n, function, sum, other, shape, y, last ? after : Epilogue{});
    } else {
      int32_step(n, function, sum, other, shape, y, n.out().dtype);
    }
    sum = whole_operand(y, shape);
  }
  return {};
}

}  // namespace

void float_step(NodeLowering& n, Function function, const Operand& a, const Operand& b, const Shape& shape, TensorId y,
                const Epilogue& after) {
  auto params = strided_params<ElementwiseBroadcastParams>(shape);
  params.a = push_strides(a.strides);
  params.b = push_strides(b.strides);
  params.r = after.a;
  params.s = after.b;
  const int64_t count = TensorType{DType::kF32, shape, nullptr}.elements();
  n.step(KernelId::elementwise_broadcast,
         ElementwiseBroadcastConstants{.F = static_cast<int32_t>(function), .G = static_cast<int32_t>(after.function)},
         params, {a.tensor, b.tensor, y}, line_groups(count, 64), static_cast<double>(count));
}

Status lower_add(NodeLowering& n) {
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  return binary(n, Function::k_add, activation);
}

Status lower_sub(NodeLowering& n) {
  return binary(n, Function::k_sub);
}

Status lower_mul(NodeLowering& n) {
  return binary(n, Function::k_mul);
}

Status lower_div(NodeLowering& n) {
  return binary(n, Function::k_div);
}

/// Integers to integer powers as integers; floats to one that is constant, which float32 holds.
Status lower_pow(NodeLowering& n) {
  const bool floats = is_device_float(n.in(0).dtype), float_power = is_device_float(n.in(1).dtype);
  if (floats == float_power) return binary(n, Function::k_pow);
  if (!floats) return n.refuse(Rule::kType, str_cat(to_string(n.in(0)), " to a power of ", to_string(n.in(1))));
  if (!n.constant(1) || n.in(1).elements() != 1 || n.out().elements() != n.in(0).elements() ||
      n.out().rank() != n.in(0).rank()) {
    return n.refuse(Rule::kConstant, "an integer power of floats");
  }
  const auto power = n.view().input_ints(1);
  constexpr int64_t kHeld = int64_t{1} << 24;
  if (power && (power->at(0) > kHeld || power->at(0) < -kHeld)) {
    return n.refuse(Rule::kAttribute, str_cat("power ", power->at(0)));
  }
  return unary_step(n, Function::k_pow, power ? static_cast<double>(power->at(0)) : 1.0);
}

Status lower_prelu(NodeLowering& n) {
  return binary(n, Function::k_prelu);
}

Status lower_max(NodeLowering& n) {
  return fold(n, Function::k_max);
}

Status lower_min(NodeLowering& n) {
  return fold(n, Function::k_min);
}

Status lower_sum(NodeLowering& n) {
  return fold(n, Function::k_add);
}

Status lower_mean(NodeLowering& n) {
  return fold(n, Function::k_add, {Function::k_affine, 1.0 / n.view().input_count(), 0});
}

}  // namespace pinnace::gpu
