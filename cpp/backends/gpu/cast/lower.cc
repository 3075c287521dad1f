// Casts between floats, integers and bools.
#include "backends/gpu/cast/params.h"
#include "backends/gpu/strided.h"
#include "backends/gpu/unary/chain.h"

namespace pinnace::gpu {
namespace {

Status cast(NodeLowering& n) {
  const DType from = n.in(0).dtype, to = n.out().dtype;
  const bool from_float = is_device_float(from), to_float = is_device_float(to);
  if (from_float && to_float) {
    if (to == DType::kF32 || to == from) {
      n.alias(0, 0);
      return {};
    }
    return unary_step(n, to == DType::kF16 ? Function::k_to_f16 : Function::k_to_bf16);
  }
  const int64_t count = n.out().elements();
  const Shape line = {count};
  if (to_float) {
    const TensorId x = n.dense(0), made = to == DType::kF32 ? n.make_dense() : n.make_scratch(count);
    n.step(KernelId::from_int32, FromInt32Params{.count = count}, {x, made}, line_groups(count, 64),
           static_cast<double>(count));
    if (to != DType::kF32) {
      const MapStage rounded{to == DType::kF16 ? Function::k_to_f16 : Function::k_to_bf16};
      map_step(n, made, -1, false, {&rounded, 1});
    }
    return {};
  }
  if (!from_float && (to == DType::kI32 || to == DType::kI64)) {
    n.alias(0, 0);
    return {};
  }
  const Operand x = whole_operand(n.dense(0), line);
  const TensorId y = n.make_dense();
  const Function f = to == DType::kBool ? Function::k_truth : from_float ? Function::k_to_int : Function::k_none;
  if (from_float) {
    compare_step(n, f, x, x, line, y, to);
  } else {
    int32_step(n, f, x, x, line, y, to);
  }
  return {};
}

}  // namespace

Status lower_cast(NodeLowering& n) {
  return cast(n);
}

Status lower_cast_like(NodeLowering& n) {
  return cast(n);
}

/// Casts between a plain type and the same with scales keep bytes, and their layouts; others are those of integers.
Status lower_quantized_cast(NodeLowering& n) {
  if (n.in(0).dtype != n.out().dtype) return lower_cast(n);
  if (n.all().dry()) return {};
  if (n.constant(0)) n.dense(0);
  const LoweredValue& from = n.in_value(0);
  LoweredValue& to = n.all().value(n.out_id());
  to.dense = from.dense;
  to.nc4hw4 = from.nc4hw4;
  return {};
}

}  // namespace pinnace::gpu
