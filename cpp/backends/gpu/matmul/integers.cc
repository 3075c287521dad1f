// mat_mul_integer: products of plain 8-bit integers with zero points that a run may bring.
#include "backends/gpu/matmul/params.h"
#include "backends/gpu/matmul/product.h"
#include "backends/gpu/quantize/int8.h"
#include "ops/product.h"

namespace pinnace::gpu {
namespace {

/// How the zero points of an operand lie: a step by row or column, and those of its matrices.
struct Zeros {
  bool given = false;
  int64_t line = 0, outer = 0, inner = 0;
  int64_t lines = 1;  ///< after which they begin anew
};

/// One number, one per line of every matrix, or one per line of each.
Zeros zeros_of(NodeLowering& n, int input, int64_t lines, int64_t outer, int64_t inner, int64_t K) {
  if (input >= n.view().input_count() || !n.has(input)) return {};
  const TensorType& zero = n.in(input);
  if (zero.elements() == 1) return {true};
  // Rows of several matrices may have become those of one.
  if (zero.rank() == 1 || lines == zero.elements()) return {true, 1, 0, 0, zero.elements()};
  return {true, 1, outer / std::max<int64_t>(1, K), inner / std::max<int64_t>(1, K), lines};
}

}  // namespace

Status lower_mat_mul_integer(NodeLowering& n) {
  Product p;
  PINNACE_TRY(mat_mul_product(n, p));
  const Zeros za = zeros_of(n, 2, p.M, p.a_outer, p.a_inner, p.K);
  const Zeros zb = zeros_of(n, 3, p.N, p.b_outer, p.b_inner, p.K);
  const bool packed = n.constant(1) && p.b_outer == 0 && p.b_inner == 0 && p.K > 0;
  const int32_t flip = packed ? byte_offset(n.in(1).dtype) : 0;
  const TensorId b = packed ? packed_byte_columns(n, p) : n.dense(1);
  const TensorId a = n.dense(0), a_zero = za.given ? n.dense(2) : a, b_zero = zb.given ? n.dense(3) : a;
  const int64_t batch = p.outer * p.inner;
  const GemmInt32Params params{.M = p.M,
                               .N = p.N,
                               .K = p.K,
                               .a_row = p.a_row,
                               .a_col = p.a_col,
                               .b_row = p.b_row,
                               .b_col = p.b_col,
                               .inner = p.inner,
                               .a_outer = p.a_outer,
                               .a_inner = p.a_inner,
                               .b_outer = p.b_outer,
                               .b_inner = p.b_inner,
                               .za_row = za.line,
                               .za_outer = za.outer,
                               .za_inner = za.inner,
                               .zb_col = zb.line,
                               .zb_outer = zb.outer,
                               .zb_inner = zb.inner,
                               .za_rows = za.lines,
                               .flip = flip};
  n.loops(loop_turns(p.K));
  n.step(KernelId::gemm_int32, GemmInt32Constants{.PACKED = packed, .ZEROS = (za.given ? 1 : 0) + (zb.given ? 2 : 0)},
         params, {a, b, a_zero, b_zero, n.make_dense()},
         {groups_of(p.N, 64), groups_of(p.M, 16), static_cast<uint32_t>(batch)},
         static_cast<double>(batch * p.M * p.N) * static_cast<double>(p.K));
  return {};
}

}  // namespace pinnace::gpu
