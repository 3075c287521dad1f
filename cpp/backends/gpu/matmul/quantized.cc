// Matrix products of quantised tensors: sums of integers, requantised as ops/product.h defines it.
#include "backends/gpu/matmul/params.h"
#include "backends/gpu/matmul/product.h"
#include "backends/gpu/quantize/int8.h"
#include "backends/gpu/quantize/requantize.h"

namespace pinnace::gpu {
namespace {

Status multiply(NodeLowering& n, Status (*describe)(NodeLowering&, Product&)) {
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  Product p;
  PINNACE_TRY(describe(n, p));
  const Requantize r(n.in(0), n.in(1), n.out(), activation);
  const bool packed = n.constant(1) && p.b_outer == 0 && p.b_inner == 0;
  const int32_t flip = packed ? byte_offset(n.in(1).dtype) : 0;
  const int64_t N4 = (p.N + 3) / 4;
  const TensorId b = packed ? packed_byte_columns(n, p) : n.dense(1);
  const TensorId numbers =
      n.wide_weights(packed ? "columns' numbers" : "numbers", N4 * 8, [=](std::span<float> to) -> Status {
        std::fill(to.begin(), to.end(), 0.0f);
        for (int64_t j = 0; j < p.N; ++j) {
          write_channel(to, j / 4 * 2, j % 4, multiplier_bits(r, j));
          write_channel(to, j / 4 * 2 + 1, j % 4, r.w_zero(j) + flip);
        }
        return {};
      });
  const TensorId a = n.dense(0), c = p.bias ? n.dense(2) : a, y = n.make_dense();
  const int64_t batch = p.outer * p.inner;
  const Int8GemmParams params{.M = p.M,
                              .N = p.N,
                              .K = p.K,
                              .a_row = p.a_row,
                              .a_col = p.a_col,
                              .b_row = p.b_row,
                              .b_col = p.b_col,
                              .c_row = p.c_row,
                              .c_col = p.c_col,
                              .inner = p.inner,
                              .a_outer = p.a_outer,
                              .a_inner = p.a_inner,
                              .b_outer = p.b_outer,
                              .b_inner = p.b_inner,
                              .a_zero = r.x_zero,
                              .y_zero = r.y_zero,
                              .low = r.range.min,
                              .high = r.range.max};
  n.loops(loop_turns(p.K));
  n.step(KernelId::int8_gemm, Int8GemmConstants{.PACKED = packed, .BIAS = p.bias ? 1 : 0}, params,
         {a, b, c, numbers, y}, {groups_of(p.N, 64), groups_of(p.M, 16), static_cast<uint32_t>(batch)},
         static_cast<double>(batch * p.M * p.N) * static_cast<double>(p.K));
  return {};
}

}  // namespace

TensorId packed_byte_columns(NodeLowering& n, const Product& p) {
  const NodeView view = n.view();
  return byte_constant(n, "columns", (p.N + 3) / 4 * p.K * 4, [view, p](std::span<uint8_t> to) -> Status {
    for (int64_t j = 0; j < p.N; ++j) {
      for (int64_t k = 0; k < p.K; ++k) {
        to[static_cast<size_t>((j / 4 * p.K + k) * 4 + j % 4)] =
            unsigned_byte(view.input(1), view.input_data(1), k * p.b_row + j * p.b_col);
      }
    }
    return {};
  });
}

Status lower_quantized_gemm(NodeLowering& n) {
  return multiply(n, gemm_product);
}

Status lower_quantized_mat_mul(NodeLowering& n) {
  return multiply(n, mat_mul_product);
}

}  // namespace pinnace::gpu
