// Operations that are computed in float32 whatever their tensors are: real values in, and back into what an output is.
#pragma once

#include "nnapi/mapping.h"

namespace pinnace::nnapi {

/// The real values of input i as float32.
inline Result<ValueId> real_input(Call& call, size_t i) {
  PINNACE_ASSIGN(const ValueId x, call.in(i));
  return call.quantized(x) ? call.dequantize(x) : call.cast(x, DType::kF32);
}

/// Output i is float32 `y` as the operand's type. Quantised, it has the quantisation of input `like`.
inline Status finish_like(Call& call, size_t i, ValueId y, size_t like) {
  PINNACE_ASSIGN(const ValueId from, call.in(like));
  const DType dtype = tensor_type(call.result(i), {}).dtype;
  const QuantizationPtr quantization = call.type(from).quantization;
  PINNACE_ASSIGN(y, call.quantized(from) ? call.requantize(y, dtype, quantization) : call.cast(y, dtype));
  return call.finish(i, y);
}

/// The same with the quantisation that the operand declares.
inline Status finish_real(Call& call, size_t i, ValueId y) {
  const DType dtype = tensor_type(call.result(i), {}).dtype;
  const QuantizationPtr quantization = call.declared(i);
  PINNACE_ASSIGN(y, quantization ? call.requantize(y, dtype, quantization) : call.cast(y, dtype));
  return call.finish(i, y);
}

}  // namespace pinnace::nnapi
