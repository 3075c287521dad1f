// Matrix products as the kernels of floats and of quantised integers take them.
#pragma once

#include "backends/gpu/lowering.h"

namespace pinnace::gpu {

/// A product as gemm.comp takes it; strides in elements.
struct Product {
  int64_t M = 1, N = 1, K = 1;
  int64_t a_row = 0, a_col = 1, b_row = 0, b_col = 1, c_row = 0, c_col = 0;
  int64_t outer = 1, inner = 1;
  int64_t a_outer = 0, a_inner = 0, b_outer = 0, b_inner = 0;
  double alpha = 1, beta = 1;
  bool bias = false;
};

/// What a workgroup makes of a result.
struct ProductTile {
  int64_t rows, columns;
};
constexpr ProductTile product_tile(KernelId kernel) {
  switch (kernel) {
    case KernelId::gemm_split:
      return {4, 32};
    case KernelId::gemm_matrices:
      return {32, 64};
    default:
      return {16, 64};
  }
}

/// What a node of that operator multiplies; refuses what no kernel takes. Types are the caller's to check.
Status gemm_product(NodeLowering& n, Product& p);
Status mat_mul_product(NodeLowering& n, Product& p);

/// Input 1, a constant of 8 bits without batches, as bytes [ceil(N / 4)][K][4]: of four columns a row side by side.
TensorId packed_byte_columns(NodeLowering& n, const Product& p);

}  // namespace pinnace::gpu
