// The 256-entry table of functions on 8-bit quantised tensors, and the element-by-element path of functions of several
// inputs.
#include "ops/quantized_map.h"

#include <array>

namespace pinnace {

Status refuse_plain_int8(const NodeView& node, int i) {
  const TensorType& type = node.input(i);
  if (type.quantized() || !(dtypes(type.dtype) & (kI8 | kU8))) return {};
  return node.error("input ", i, " is ", type, " without quantisation; takes floats or quantised int8 uint8");
}

Result<TensorType> real_function_type(const NodeView& node) {
  PINNACE_TRY(refuse_plain_int8(node, 0));
  return same_type(node);
}

void map_quantized(const Threads& threads, const TensorView& x, const TensorView& y, double (*f)(const void*, double),
                   const void* context) {
  const ScaleZero from = scale_zero(*x.type), to = scale_zero(*y.type);
  const IntRange range = int_range(y.dtype());
  const auto value = [&](int32_t q) {
    return quantize(static_cast<float>(f(context, static_cast<double>(dequantize(q, from)))), to, range);
  };
  const int64_t count = y.elements();
  if (dtype_bits(x.dtype()) != 8) {
    constexpr double kNanoseconds = 20;
    const auto run = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) store_int(y, i, value(load_int(x, i)));
    };
    threads.ranges(count, kNanoseconds, run, kMapGrain);
    return;
  }
  std::array<uint8_t, 256> table;
  const IntRange domain = int_range(x.dtype());
  for (int32_t q = domain.min; q <= domain.max; ++q) table[static_cast<uint8_t>(q)] = static_cast<uint8_t>(value(q));
  const uint8_t* in = x.data<uint8_t>();
  uint8_t* out = y.data<uint8_t>();
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) out[i] = table[in[i]];
  };
  threads.ranges(count, kMapNanoseconds, run, kMapGrain);
}

void fold_quantized(const Threads& threads, std::span<const TensorView> in, const TensorView& y,
                    float (*f)(float, float)) {
  const ScaleZero to = scale_zero(*y.type);
  const IntRange range = int_range(y.dtype());
  BroadcastRows(y.type->shape, in)
      .run(threads, [&](int64_t first, int64_t count, const int64_t* at, const int64_t* step) {
        for (int64_t j = 0; j < count; ++j) {
          const auto real = [&](size_t k) {
            return dequantize(load_int(in[k], at[k] + j * step[k]), scale_zero(*in[k].type));
          };
          float all = real(0);
          for (size_t k = 1; k < in.size(); ++k) all = f(all, real(k));
          store_int(y, first + j, quantize(all, to, range));
        }
      });
}

void compare_quantized(const Threads& threads, const TensorView& a, const TensorView& b, const TensorView& z,
                       bool (*f)(float, float)) {
  const ScaleZero from_a = scale_zero(*a.type), from_b = scale_zero(*b.type);
  const TensorView operands[] = {a, b};
  BroadcastRows(z.type->shape, operands)
      .run(threads, [&](int64_t first, int64_t count, const int64_t* at, const int64_t* step) {
        for (int64_t j = 0; j < count; ++j) {
          const float x = dequantize(load_int(a, at[0] + j * step[0]), from_a);
          const float y = dequantize(load_int(b, at[1] + j * step[1]), from_b);
          z.data<bool>()[first + j] = f(x, y);
        }
      });
}

}  // namespace pinnace
