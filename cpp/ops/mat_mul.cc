// mat_mul: y = activation(a b + bias), numpy's matmul: the last two dimensions are matrices, those before broadcast.
//   a     [..., M, K] or [K]  floats, i32, i64, u32, u64; quantised i8 | u8 per tensor
//   b     [..., K, N] or [K]  as a; quantised i8 | u8 per tensor or per column (axis: the last one)
//   bias  [N], [1] or [], optional  as a; quantised: i32, plain integers at scale s_a * s_b; N is 1 where b is a vector
//   activation, activation_params: see activation.h; floats, and relu and clip on quantised types
//   y     [..., M, N] without the dimension of an operand that is a vector; quantised: declared scale and zero point
// Floats: sums in double over ascending k, plus bias, activation, one rounding. Integers wrap. Quantised: int32 sum of
// (a - zero_a) (b - zero_b), plus bias modulo 2^32, then Requantize of product.h. K = 0 gives the activation of the
// bias. NaN and infinities go through products and sums as IEEE 754 has them. Source: ONNX MatMul, opset 13; bias and
// activation are additions.
#include "ops/product.h"

namespace pinnace {
namespace {
Result<TensorType> mat_mul_type(const NodeView& node) {
  const TensorType &a = node.input(0), &b = node.input(1);
  PINNACE_ASSIGN(Shape shape, product_shape(node, a, b));
  const Matrices s = matrices_of(a, b);
  const bool wrapping = !(kProductTypes >> static_cast<int>(a.dtype) & 1);
  if (wrapping) {
    PINNACE_TRY(refuse_quantized(node));
    if (b.dtype != a.dtype) return node.error("b is ", b, ", must be ", dtype_name(a.dtype), " as a");
    if (node.has_input(2) && node.input(2).dtype != a.dtype) {
      return node.error("bias is ", node.input(2), ", must be ", dtype_name(a.dtype), " as a");
    }
  } else {
    PINNACE_TRY(check_product(node, 0, 1, 2, b.rank() - 1, s.K.known() ? s.K : s.b_rows));
    if (b.rank() == 1 && b.quantized() && b.quantization->axis >= 0)
      return node.error("b is a vector and takes one scale");
  }
  if (node.has_input(2)) {
    const TensorType& bias = node.input(2);
    const Dim size = bias.rank() == 0 ? Dim(1) : bias.shape[0];
    if (bias.rank() > 1 || (differ(size, s.N) && size.size != 1)) {
      return node.error("bias ", bias, " must have one element or one per column of b ", b);
    }
  }
  TensorType y{a.dtype, std::move(shape), wrapping ? nullptr : node.output_quantization(0)};
  PINNACE_TRY(check_activation(node, y));
  return y;
}

template <class T>
Status wrapping_product(const Threads& threads, const Matrices& s, std::span<const TensorView> in,
                        const TensorView& y) {
  const TensorView &a = in[0], &b = in[1];
  const int64_t M = s.M.size, N = s.N.size, K = s.K.size;
  const T* bias = in.size() > 2 && in[2].present() ? in[2].data<T>() : nullptr;
  const int64_t bias_step = bias && in[2].elements() != 1 ? 1 : 0;
  const auto run = [&](const Threads& inner, int64_t a0, int64_t b0, int64_t y0) {
    return matrix_product<T>(
        inner, M, N, K, false, [&](int64_t row, T* to) { std::copy_n(a.data<T>() + a0 + row * K, K, to); },
        [&](int64_t k, int64_t first, int64_t count, T* to) {
          std::copy_n(b.data<T>() + b0 + k * N + first, count, to);
        },
        [&](int64_t row, int64_t first, int64_t count, const T* sums) {
          T* to = y.data<T>() + y0 + row * N + first;
          for (int64_t n = 0; n < count; ++n) to[n] = sums[n] + (bias ? bias[(first + n) * bias_step] : T{});
        });
  };
  return for_each_matrix(threads, s, y.type->shape, a.rank() == 1, b.rank() == 1, run);
}

Status mat_mul_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView &a = in[0], &b = in[1], &y = out[0];
  const Matrices s = matrices_of(*a.type, *b.type);
  const int64_t M = s.M.size, N = s.N.size, K = s.K.size;
  const bool has_bias = in.size() > 2 && in[2].present();
  PINNACE_ASSIGN(const Activation activation, parse_activation(node));
  const auto batches = [&](auto run) {
    return for_each_matrix(node.threads(), s, y.type->shape, a.rank() == 1, b.rank() == 1, run);
  };
  if (y.type->quantized()) {
    const Requantize requantize(*a.type, *b.type, *y.type, activation);
    const int32_t* bias = has_bias ? in[2].data<int32_t>() : nullptr;
    const bool one_bias = has_bias && in[2].elements() == 1;
    return batches([&](const Threads& inner, int64_t a0, int64_t b0, int64_t y0) {
      return matrix_product<uint32_t>(
          inner, M, N, K, false,
          [&](int64_t row, uint32_t* to) { load_centered(a, a0 + row * K, 1, K, requantize.x_zero, to); },
          [&](int64_t k, int64_t first, int64_t count, uint32_t* to) {
            load_centered(b, b0 + k * N + first, 1, count, 0, to);
            for (int64_t n = 0; n < count; ++n) to[n] -= static_cast<uint32_t>(requantize.w_zero(first + n));
          },
          [&](int64_t row, int64_t first, int64_t count, const uint32_t* sums) {
            for (int64_t n = first; n < first + count; ++n) {
              const uint32_t sum = sums[n - first] + (bias ? static_cast<uint32_t>(bias[one_bias ? 0 : n]) : 0);
              store_int(y, y0 + row * N + n, requantize(sum, n));
            }
          });
    });
  }
  if (kFloats >> static_cast<int>(y.dtype()) & 1) {
    PINNACE_ASSIGN(auto bias, Scratch<double>::allocate(N, "mat_mul's bias"));
    std::fill_n(bias.data(), N, 0.0);
    if (has_bias) load_line(in[2], 0, in[2].elements() == 1 ? 0 : 1, N, bias.data());
    return batches([&](const Threads& inner, int64_t a0, int64_t b0, int64_t y0) {
      return matrix_product<double>(
          inner, M, N, K, false, [&](int64_t row, double* to) { load_line(a, a0 + row * K, 1, K, to); },
          [&](int64_t k, int64_t first, int64_t count, double* to) { load_line(b, b0 + k * N + first, 1, count, to); },
          [&](int64_t row, int64_t first, int64_t count, double* sums) {
            for (int64_t n = 0; n < count; ++n) sums[n] = activation(sums[n] + bias[first + n]);
            store_line(y, y0 + row * N + first, 1, count, sums);
          });
    });
  }
  // Sums that wrap are the same for signed and unsigned integers.
  return dtype_bits(y.dtype()) == 32 ? wrapping_product<uint32_t>(node.threads(), s, in, y)
                                     : wrapping_product<uint64_t>(node.threads(), s, in, y);
}

constexpr DTypes kWrapping = kI32 | kI64 | dtypes(DType::kU32, DType::kU64);
}  // namespace

PINNACE_OP(mat_mul){
    .name = "mat_mul",
    .inputs = {{"a", kProductTypes | kWrapping},
               {"b", kProductTypes | kWrapping},
               {"bias", kProductBias | kWrapping, 0, Arity::kOptional}},
    .attrs = {kActivationAttr, kActivationParamsAttr},
    .type = mat_mul_type,
    .reference = mat_mul_reference,
    .traits = Trait::kProduct | Trait::kFoldsQuantization,
    .work = Work::kMatrix,
    .multiply_adds = matrix_product_multiply_adds,
};
}  // namespace pinnace
