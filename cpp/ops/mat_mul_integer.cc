// mat_mul_integer: y = (a - a_zero_point) (b - b_zero_point), numpy's matmul.
//   a             [..., M, K] or [K]  i8 | u8
//   b             [..., K, N] or [K]  i8 | u8
//   a_zero_point  [], [1], [M] or [a's batch..., M, 1], optional  as a; 0 if left out
//   b_zero_point  [], [1], [N] or [b's batch..., 1, N], optional  as b; 0 if left out
//   y             [..., M, N] without the dimension of an operand that is a vector, i32, modulo 2^32
// Scales play no part. Source: ONNX MatMulInteger, opset 10.
#include "ops/product.h"

namespace pinnace {
namespace {
/// The zero points of an operand of this type may be [size] or the operand's shape with 1 at `dropped` from the end.
Status check_zero_point(const NodeView& node, int input, const TensorType& of, Dim size, size_t dropped) {
  if (!node.has_input(input)) return {};
  const TensorType& zero = node.input(input);
  bool fits = zero.rank() == 0;
  if (zero.rank() == 1) fits = (zero.shape[0].known() && zero.shape[0].size == 1) || !differ(zero.shape[0], size);
  if (zero.rank() >= 2 && zero.rank() == of.rank()) {
    fits = true;
    for (size_t i = 0; i < zero.shape.size(); ++i) {
      fits &= !differ(zero.shape[i], i + dropped == zero.shape.size() ? Dim(1) : of.shape[i]);
    }
  }
  if (fits) return {};
  return node.error("zero point ", zero, " must have one element or one per ", dropped == 1 ? "row" : "column", " of ",
                    of);
}

Result<TensorType> mat_mul_integer_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  const TensorType &a = node.input(0), &b = node.input(1);
  PINNACE_ASSIGN(Shape shape, product_shape(node, a, b));
  const Matrices s = matrices_of(a, b);
  PINNACE_TRY(check_zero_point(node, 2, a, s.M, 1));
  PINNACE_TRY(check_zero_point(node, 3, b, s.N, 2));
  return TensorType{DType::kI32, std::move(shape), nullptr};
}

Status mat_mul_integer_reference(const NodeView& node, std::span<const TensorView> in,
                                 std::span<const TensorView> out) {
  const TensorView &a = in[0], &b = in[1], &y = out[0];
  const Matrices s = matrices_of(*a.type, *b.type);
  const int64_t M = s.M.size, N = s.N.size, K = s.K.size;
  // `line` counts the rows (columns) of the whole operand; a vector of zero points repeats for every matrix.
  const auto zero = [&](size_t input, int64_t line, int64_t size) {
    if (in.size() <= input || !in[input].present()) return 0;
    const TensorView& t = in[input];
    return load_int(t, t.elements() == 1 ? 0 : t.rank() == 1 ? line % size : line);
  };
  const auto run = [&](const Threads& inner, int64_t a0, int64_t b0, int64_t y0) {
    const int64_t a_line = K ? a0 / K : 0, b_line = K ? b0 / K : 0;
    return matrix_product<uint32_t>(
        inner, M, N, K, false,
        [&](int64_t row, uint32_t* to) { load_centered(a, a0 + row * K, 1, K, zero(2, a_line + row, M), to); },
        [&](int64_t k, int64_t first, int64_t count, uint32_t* to) {
          load_centered(b, b0 + k * N + first, 1, count, 0, to);
          for (int64_t n = 0; n < count; ++n) to[n] -= static_cast<uint32_t>(zero(3, b_line + first + n, N));
        },
        [&](int64_t row, int64_t first, int64_t count, const uint32_t* sums) {
          int32_t* to = y.data<int32_t>() + y0 + row * N + first;
          for (int64_t n = 0; n < count; ++n) to[n] = static_cast<int32_t>(sums[n]);
        });
  };
  return for_each_matrix(node.threads(), s, y.type->shape, a.rank() == 1, b.rank() == 1, run);
}
}  // namespace

PINNACE_OP(mat_mul_integer){
    .name = "mat_mul_integer",
    .inputs = {{"a", kI8 | kU8, 'A'},
               {"b", kI8 | kU8, 'B'},
               {"a_zero_point", kI8 | kU8, 'A', Arity::kOptional},
               {"b_zero_point", kI8 | kU8, 'B', Arity::kOptional}},
    .type = mat_mul_integer_type,
    .reference = mat_mul_integer_reference,
    .work = Work::kMatrix,
    .multiply_adds = matrix_product_multiply_adds,
};
}  // namespace pinnace
