// gemm: y = activation(alpha * a' b' + beta * c), with a' = a or its transpose, likewise b'.
//   a  [M, K], or [K, M] with trans_a   floats; quantised i8 | u8 per tensor
//   b  [K, N], or [N, K] with trans_b   as a; quantised i8 | u8 per tensor or per column of b' (axis 1, or 0 with
//   trans_b) c  broadcasts to [M, N], optional   as a; quantised: i32, plain integers at scale s_a * s_b alpha, beta
//   float, default 1; trans_a, trans_b int, default 0 activation, activation_params: see activation.h; floats, and relu
//   and clip on quantised types y  [M, N]  quantised: declared scale and zero point; alpha and beta must then be 1
// Floats: sums in double over ascending k, one rounding. Quantised: int32 sum of (a - zero_a) (b - zero_b), plus c
// modulo 2^32, then Requantize of product.h. NaN and infinities go through products and sums as IEEE 754 has them,
// those by an alpha or beta of 0 too. Source: ONNX Gemm, opset 13, without its integer types; the activation is an
// addition.
#include "ops/product.h"

namespace pinnace {
namespace {
Result<TensorType> gemm_type(const NodeView& node) {
  const TensorType &a = node.input(0), &b = node.input(1);
  if (a.rank() != 2 || b.rank() != 2) return node.error("takes matrices: a is ", a, ", b is ", b);
  const bool trans_a = node.attr_int("trans_a") != 0, trans_b = node.attr_int("trans_b") != 0;
  const Dim M = a.shape[trans_a ? 1 : 0], K = a.shape[trans_a ? 0 : 1];
  const Dim N = b.shape[trans_b ? 0 : 1], b_rows = b.shape[trans_b ? 1 : 0];
  if (differ(K, b_rows)) {
    return node.error("a ", a, " has rows of ", K.size, ", b ", b, " columns of ", b_rows.size, " (trans_a ", trans_a,
                      ", trans_b ", trans_b, ")");
  }
  PINNACE_TRY(check_product(node, 0, 1, 2, trans_b ? 0 : 1, K.known() ? K : b_rows));
  TensorType y{a.dtype, {M, N}, node.output_quantization(0)};
  if (a.quantized() && (node.attr_float("alpha") != 1 || node.attr_float("beta") != 1)) {
    return node.error("quantised types need alpha and beta 1, have ", node.attr_float("alpha"), " and ",
                      node.attr_float("beta"));
  }
  if (node.has_input(2) && !broadcasts_to(node.input(2).shape, y.shape)) {
    return node.error("c ", node.input(2), " does not broadcast to ", y);
  }
  PINNACE_TRY(check_activation(node, y));
  return y;
}

Status gemm_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView &a = in[0], &b = in[1], &y = out[0];
  const bool trans_a = node.attr_int("trans_a") != 0, trans_b = node.attr_int("trans_b") != 0;
  const int64_t M = y.dim(0), N = y.dim(1), K = a.dim(trans_a ? 0 : 1);
  const bool has_c = in.size() > 2 && in[2].present();
  // Element (row, n) of c lies at row * c_row + n * c_col.
  const int64_t c_col = has_c && in[2].rank() > 0 && in[2].dim(-1) != 1 ? 1 : 0;
  const int64_t c_row = has_c && in[2].rank() == 2 && in[2].dim(0) != 1 ? in[2].dim(1) : 0;
  const int64_t a_row = trans_a ? 1 : K, a_col = trans_a ? M : 1;
  const int64_t b_line = trans_b ? K : N;
  PINNACE_ASSIGN(const Activation activation, parse_activation(node));
  if (y.type->quantized()) {
    const Requantize requantize(*a.type, *b.type, *y.type, activation);
    return matrix_product<uint32_t>(
        node.threads(), M, N, K, trans_b,
        [&](int64_t row, uint32_t* to) { load_centered(a, row * a_row, a_col, K, requantize.x_zero, to); },
        [&](int64_t line, int64_t first, int64_t count, uint32_t* to) {
          load_centered(b, line * b_line + first, 1, count, 0, to);
          for (int64_t i = 0; i < count; ++i) {
            to[i] -= static_cast<uint32_t>(requantize.w_zero(trans_b ? line : first + i));
          }
        },
        [&](int64_t row, int64_t first, int64_t count, const uint32_t* sums) {
          for (int64_t n = first; n < first + count; ++n) {
            const uint32_t c = has_c ? static_cast<uint32_t>(in[2].data<int32_t>()[row * c_row + n * c_col]) : 0;
            store_int(y, row * N + n, requantize(sums[n - first] + c, n));
          }
        });
  }
  const double alpha = node.attr_float("alpha"), beta = node.attr_float("beta");
  return matrix_product<double>(
      node.threads(), M, N, K, trans_b, [&](int64_t row, double* to) { load_line(a, row * a_row, a_col, K, to); },
      [&](int64_t l, int64_t first, int64_t count, double* to) { load_line(b, l * b_line + first, 1, count, to); },
      [&](int64_t row, int64_t first, int64_t count, double* sums) {
        constexpr int64_t kStep = 64;
        double c[kStep];
        for (int64_t at = 0; at < count; at += kStep) {
          const int64_t step = std::min(kStep, count - at);
          if (has_c) load_line(in[2], row * c_row + (first + at) * c_col, c_col, step, c);
          for (int64_t n = 0; n < step; ++n) {
            sums[at + n] = activation(alpha * sums[at + n] + (has_c ? beta * c[n] : 0));
          }
        }
        store_line(y, row * N + first, 1, count, sums);
      });
}

double gemm_multiply_adds(std::span<const TensorType* const> inputs, const TensorType& y) {
  return elements_if_known(y) * elements_if_known(*inputs[1]) / std::max(1.0, last_if_known(y));
}
}  // namespace

PINNACE_OP(gemm){
    .name = "gemm",
    .inputs = {{"a", kProductTypes}, {"b", kProductTypes}, {"c", kProductBias, 0, Arity::kOptional}},
    .attrs = {float_attr("alpha", 1), float_attr("beta", 1), int_attr("trans_a", 0), int_attr("trans_b", 0),
              kActivationAttr, kActivationParamsAttr},
    .type = gemm_type,
    .reference = gemm_reference,
    .traits = Trait::kProduct | Trait::kFoldsQuantization,
    .work = Work::kPair,
    .multiply_adds = gemm_multiply_adds,
};
}  // namespace pinnace
