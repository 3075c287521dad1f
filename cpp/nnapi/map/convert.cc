// Between element types, and values made of nothing: quantise, dequantise, cast, fill, rank.
#include "base/dtype_code.h"
#include "nnapi/mapping.h"

namespace pinnace::nnapi {

Status map_dequantize(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(ValueId y, call.dequantize(x, tensor_type(call.result(0), {}).dtype));
  return call.finish(0, y);
}

Status map_quantize(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(ValueId y, call.requantize(x, tensor_type(call.result(0), {}).dtype, call.declared()));
  return call.finish(0, y);
}

// Stored integers count, not what they stand for. Whatever becomes q8 is first cut to [0, 255].
Status map_cast(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  const DType to = tensor_type(call.result(0), {}).dtype;
  if (call.quantized(x)) {
    PINNACE_ASSIGN(x, call.reinterpret(x, nullptr));
  }
  const DType from = call.type(x).dtype;
  if (to == DType::kU8 && from != DType::kU8) {
    PINNACE_ASSIGN(ValueId least, call.constant_scalar(from, 0));
    PINNACE_ASSIGN(ValueId most, call.constant_scalar(from, 255));
    PINNACE_ASSIGN(x, call.emit("clip", {x, least, most}));
  }
  PINNACE_ASSIGN(ValueId y, call.emit("cast", {x}, {{"to", std::string(dtype_code(to))}}, call.declared()));
  return call.finish(0, y);
}

Status map_fill(Call& call) {
  PINNACE_ASSIGN(std::vector<int64_t> dims, call.ints(0));
  PINNACE_ASSIGN(ValueId value, call.in(1));
  for (int64_t d : dims) {
    if (d < 0) return call.error("size ", d, " is negative");
  }
  PINNACE_ASSIGN(ValueId shape, call.constant_ints(dims));
  PINNACE_ASSIGN(ValueId y, call.emit("expand", {value, shape}));
  return call.finish(0, y);
}

Status map_rank(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(ValueId y, call.constant_scalar(DType::kI32, call.rank(x)));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
