// The shape rule of windows over signals.
#include "ops/signal_window.h"
#include "base/dtype_code.h"

namespace pinnace {

Result<DType> output_datatype(const NodeView& node) {
  const std::string_view name = node.attr_string("output_datatype");
  const auto dtype = dtype_from_code(name);
  if (!dtype || !(dtypes(*dtype) & kNumbers)) {
    return node.error("output_datatype is '", name, "', which is no type of numbers");
  }
  return *dtype;
}

Result<TensorType> signal_window_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  PINNACE_ASSIGN(const DType dtype, output_datatype(node));
  PINNACE_ASSIGN(const KnownInt size, known_scalar(node, 0));
  if (size.known && size.value < 0) return node.error("size ", size.value, " is negative");
  return TensorType{dtype, {size.dim()}, nullptr};
}

}  // namespace pinnace
