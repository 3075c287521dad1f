// where: z = x where condition holds, else y; broadcast as numpy does.
//   condition  [...]  bool
//   x, y       [...]  any type, the same; or quantised i8 | u8
//   z          the broadcast shape of all three; quantised: declared scale and zero point
// Elements are copied bit for bit. Quantised: dequantised and quantised again, exact where the parameters are equal.
// NaN keeps its bits. Source: ONNX Where, opset 16.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Result<TensorType> where_type(const NodeView& node) {
  PINNACE_TRY(check_quantized(node, 1, 3));
  PINNACE_ASSIGN(Shape shape, broadcast_shapes(node, node.input(1).shape, node.input(2).shape));
  PINNACE_ASSIGN(shape, broadcast_shapes(node, node.input(0).shape, shape));
  return TensorType{node.input(1).dtype, std::move(shape), node.output_quantization(0)};
}

/// Calls store(i, k, at) for each element i of z: it is element `at` of input k.
template <class F>
void select(const Threads& threads, std::span<const TensorView> in, const TensorView& z, F store) {
  const uint8_t* condition = in[0].data<uint8_t>();
  BroadcastRows(z.type->shape, in)
      .run(threads, [&](int64_t first, int64_t count, const int64_t* at, const int64_t* step) {
        for (int64_t j = 0; j < count; ++j) {
          const int from = condition[at[0] + j * step[0]] ? 1 : 2;
          store(first + j, from, at[from] + j * step[from]);
        }
      });
}

Status where_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView z = out[0];
  if (z.type->quantized()) {
    const ScaleZero to = scale_zero(*z.type), from[] = {{}, scale_zero(*in[1].type), scale_zero(*in[2].type)};
    const IntRange range = int_range(z.dtype());
    select(node.threads(), in, z, [&](int64_t i, int k, int64_t at) {
      store_int(z, i, quantize(dequantize(load_int(in[static_cast<size_t>(k)], at), from[k]), to, range));
    });
    return {};
  }
  const auto copy = [&](auto zero) {
    using T = decltype(zero);
    const T* from[] = {nullptr, in[1].data<T>(), in[2].data<T>()};
    select(node.threads(), in, z, [&](int64_t i, int k, int64_t at) { z.data<T>()[i] = from[k][at]; });
    return Status();
  };
  switch (dtype_bits(z.dtype())) {
    case 8:
      return copy(uint8_t{});
    case 16:
      return copy(uint16_t{});
    case 32:
      return copy(uint32_t{});
    default:
      return copy(uint64_t{});
  }
}
}  // namespace

PINNACE_OP(where){
    .name = "where",
    .inputs = {{"condition", kBool}, {"x", kAny, 'T'}, {"y", kAny, 'T'}},
    .type = where_type,
    .reference = where_reference,
    .in_place = 0b110,
    .traits = Trait::kElementwise | Trait::kMoves,
};
}  // namespace pinnace
