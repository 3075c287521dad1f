// What networks with dynamic quantisation are made of: products of plain 8-bit integers, and bytes with a scale that a
// run finds.
#include "backends/gpu/lower/product.h"
#include "backends/gpu/lower/quantized.h"
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

/// Groups of 64 invocations that look for the least and the greatest element.
constexpr int64_t kMostParts = 64;

}  // namespace

Status lower_mat_mul_integer(NodeLowering& n) {
  Product p;
  PINNACE_TRY(mat_mul_product(n, p));
  const Zeros za = zeros_of(n, 2, p.M, p.a_outer, p.a_inner, p.K);
  const Zeros zb = zeros_of(n, 3, p.N, p.b_outer, p.b_inner, p.K);
  const bool packed = n.constant(1) && p.b_outer == 0 && p.b_inner == 0 && p.K > 0;
  const int32_t flip = packed ? byte_offset(n.in(1).dtype) : 0;
  const TensorId b = packed ? packed_byte_columns(n, p) : n.rows(1);
  const TensorId a = n.rows(0), a_zero = za.given ? n.rows(2) : a, b_zero = zb.given ? n.rows(3) : a;
  const int64_t batch = p.outer * p.inner;
  Push push;
  push.i(p.M).i(p.N).i(p.K).i(p.a_row).i(p.a_col).i(p.b_row).i(p.b_col);
  push.i(p.inner).i(p.a_outer).i(p.a_inner).i(p.b_outer).i(p.b_inner);
  push.i(za.line).i(za.outer).i(za.inner).i(zb.line).i(zb.outer).i(zb.inner).i(za.lines).i(flip);
  n.step(KernelId::gemm_words, {packed ? 1 : 0, (za.given ? 1 : 0) + (zb.given ? 2 : 0)}, push,
         {a, b, a_zero, b_zero, n.make_rows()}, {groups_of(p.N, 64), groups_of(p.M, 16), static_cast<uint32_t>(batch)},
         static_cast<double>(batch * p.M * p.N) * static_cast<double>(p.K));
  return {};
}

Status lower_dynamic_quantize_linear(NodeLowering& n) {
  const int64_t count = n.in(0).elements();
  const int64_t groups = std::clamp<int64_t>((count + 63) / 64, 1, kMostParts);
  const TensorId x = n.rows(0), parts = n.all().add_tensor(DeviceTensor::Place::kActivation, 0, kMostParts * 8);
  const TensorId y = n.make_rows(0), scale = n.make_rows(1), zero = n.make_rows(2);
  const auto stage = [&](int32_t which, std::array<uint32_t, 3> grid, double work) {
    n.step(KernelId::dynamic_quantize, {which}, Push().i(count).i(groups), {x, parts, y, scale, zero}, grid, work);
  };
  stage(0, row_groups(groups), static_cast<double>(count));
  stage(1, row_groups(1), 64);
  if (count > 0) stage(2, line_groups(count, 64), static_cast<double>(count * 8));
  return {};
}

}  // namespace pinnace::gpu
