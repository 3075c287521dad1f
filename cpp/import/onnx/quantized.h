// Dequantise and quantise as nodes, for operators on quantised tensors that are written as what they mean.
#pragma once

#include "import/onnx/mapping.h"

namespace pinnace::onnx {

/// real = (q - zero) * scale. Scales with one dimension belong to `axis`.
Result<ValueId> dequantize(SourceNode& node, ValueId q, ValueId scale, ValueId zero, int64_t axis);
/// The node's result: y quantised, per tensor.
Status quantize(SourceNode& node, ValueId y, ValueId scale, ValueId zero);

}  // namespace pinnace::onnx
