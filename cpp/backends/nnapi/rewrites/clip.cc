// Clamps. From feature level 3 on MAXIMUM and MINIMUM, exact. Below, floats:
//   max(x, low) = low + relu(x - low),  min(x, high) = high - relu(high - x)
// Each rounds twice: within 2^-23 (|x| + |bound|) of the exact result, and bounds beyond kMostTakenOff are refused.
// FLT_MAX, which exporters write for no bound, is none: infinities pass it. [0, 1] is relu, then relu1: exact.
#include <cfloat>
#include <cmath>

#include "backends/nnapi/rewrites/rewrites.h"

namespace pinnace::nnapi_client {
namespace {
Status bounded_below(NodeLowering& n, double low, OperandId x, OperandId y) {
  if (n.feature_level() >= 3) return n.add(Op::MAXIMUM, {x, n.number(low, x)}, y);
  if (low == 0) return n.add(Op::RELU, {x}, y);
  const OperandId part = n.temp(x);
  PINNACE_TRY(n.add(Op::ADD, {x, n.number(-low, x), n.scalar(1)}, part));  // and relu
  return n.add(Op::ADD, {part, n.number(low, x), n.scalar(0)}, y);
}
Status bounded_above(NodeLowering& n, double high, OperandId x, OperandId y) {
  if (n.feature_level() >= 3) return n.add(Op::MINIMUM, {x, n.number(high, x)}, y);
  const OperandId turned = n.temp(x), part = n.temp(x), back = n.temp(x);
  PINNACE_TRY(n.add(Op::MUL, {x, n.number(-1, x), n.scalar(0)}, turned));
  PINNACE_TRY(n.add(Op::ADD, {turned, n.number(high, x), n.scalar(1)}, part));  // relu(high - x)
  PINNACE_TRY(n.add(Op::MUL, {part, n.number(-1, x), n.scalar(0)}, back));
  return n.add(Op::ADD, {back, n.number(high, x), n.scalar(0)}, y);
}
}  // namespace

Status clip_float(NodeLowering& n, double low, double high, OperandId x, OperandId y) {
  if (low == 0 && high == 6) return n.add(Op::RELU6, {x}, y);
  if (low == -1 && high == 1) return n.add(Op::RELU1, {x}, y);
  if (n.feature_level() < 3) n.rewritten("clip by relu");
  if (low == 0 && high == 1 && n.feature_level() < 3) {
    const OperandId positive = n.temp(x);
    PINNACE_TRY(n.add(Op::RELU, {x}, positive));
    return n.add(Op::RELU1, {positive}, y);
  }
  const double most = n.feature_level() < 3 ? FLT_MAX : HUGE_VAL;
  const bool below = low > -most, above = high < most;
  for (double bound : {low, high}) {
    if (n.feature_level() < 3 && bound != 0 && std::fabs(bound) < most && std::fabs(bound) > kMostTakenOff) {
      return n.refuse(Rule::kFeatureLevel, str_cat("a bound of ", bound));
    }
  }
  if (below && above) {
    const OperandId bounded = n.temp(x);
    PINNACE_TRY(bounded_below(n, low, x, bounded));
    return bounded_above(n, high, bounded, y);
  }
  if (below) return bounded_below(n, low, x, y);
  if (above) return bounded_above(n, high, x, y);
  return n.add(Op::ADD, {x, n.number(0, x), n.scalar(0)}, y);
}

Status clamp_quantized(NodeLowering& n, const Activation& activation, OperandId x, OperandId y) {
  const TensorType& type = n.out_type();
  const IntRange range = activation_range(activation, type);
  const nnapi::Operand& o = n.operand(x);
  const OperandSpec one{o.type, {1}, o.scale, o.zero_point};
  const int32_t shift = o.zero_point - type.quantization->zero_points[0];  // 128 where i8 stands unsigned
  const auto bound = [&](int32_t q) {
    const auto stored = static_cast<uint8_t>(q + shift);
    return n.lowering().add_constant(one, &stored, 1);
  };
  const OperandId bounded = n.temp(x);
  PINNACE_TRY(n.add(Op::MAXIMUM, {x, bound(range.min)}, bounded));
  return n.add(Op::MINIMUM, {bounded, bound(range.max)}, y);
}

}  // namespace pinnace::nnapi_client
