// What nodes of quantize_linear and dequantize_linear ask for.
#pragma once

#include "backends/cpu/kernel.h"
#include "base/dtype_code.h"

namespace pinnace::cpu {

/// One float32 scale for the whole tensor.
inline bool one_scale(const KernelNode& node) {
  const TensorType& scale = node.input(1);
  return scale.dtype == DType::kF32 && scale.rank() <= 1 && scale.elements() == 1 && node.attr_int("block_size") == 0;
}

/// Element type of the result of quantize_linear.
inline DType stored_type(const KernelNode& node) {
  const auto named = dtype_from_code(node.attr_string("output_dtype"));
  return named ? *named : node.has_input(2) ? node.input(2).dtype : DType::kU8;
}

/// True if quantize_linear divides in float32.
inline bool divides_in_f32(const KernelNode& node) {
  const std::string_view precision = node.attr_string("precision");
  return precision.empty() || precision == "f32";
}

/// True if the result of dequantize_linear is float32.
inline bool gives_f32(const KernelNode& node) {
  const std::string_view wanted = node.attr_string("output_dtype");
  return wanted.empty() || wanted == "f32";
}

}  // namespace pinnace::cpu
