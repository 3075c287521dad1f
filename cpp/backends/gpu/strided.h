// Operands of dense results as the strided kernels see them: up to six dimensions, strides of 0 where one broadcasts.
#pragma once

#include "backends/gpu/lowering.h"

namespace pinnace::gpu {

using Six = std::array<int64_t, 6>;

/// A type's sizes with 1s before them, six in all.
inline Six six_sizes(const Shape& shape) {
  Six sizes;
  sizes.fill(1);
  for (size_t i = 0; i < shape.size(); ++i) sizes[6 - shape.size() + i] = shape[i].size;
  return sizes;
}

/// Strides of a dense shape at the end of six dimensions.
inline Six dense_strides(const Shape& shape) {
  Six strides{};
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[6 - shape.size() + i] = stride;
    stride *= shape[i].size;
  }
  return strides;
}

/// Strides of a dense operand that broadcasts: 0 where its size is 1.
inline Six broadcast_strides(const Shape& shape) {
  const Six sizes = six_sizes(shape);
  Six strides = dense_strides(shape);
  for (size_t i = 0; i < 6; ++i) strides[i] = sizes[i] == 1 ? 0 : strides[i];
  return strides;
}

/// Strides of a dense operand along the dimensions of the result that it broadcasts to, of which there may be any
/// number.
std::vector<int64_t> strides_in(const Shape& operand, const Shape& result);

/// Dimensions of a result, and the strides of two operands along them.
struct MergedDims {
  Six size{1, 1, 1, 1, 1, 1}, a{}, b{};
  Shape shape() const { return {size.begin(), size.end()}; }
};
/// A result of any number of dimensions in six: those of one element are left out, and neighbours that lie as one in
/// both operands are one. Nothing where more are left.
std::optional<MergedDims> merge_dims(const Shape& result, const std::vector<int64_t>& a, const std::vector<int64_t>& b);

/// Of output 0 and inputs a and b, which broadcast to it; refuses what does not fit.
Result<MergedDims> merge_operands(NodeLowering& n, int a, int b);

/// A tensor and how a result's dimensions lie in it.
struct Operand {
  TensorId tensor = kNoTensor;
  Six strides{};
  int64_t from = 0;
};

/// Input i, which broadcasts.
inline Operand operand(NodeLowering& n, int i) {
  return {n.dense(i), broadcast_strides(n.in(i).shape)};
}

/// A tensor that has all elements of a result of this shape.
inline Operand whole_operand(TensorId tensor, const Shape& shape) {
  return {tensor, dense_strides(shape)};
}

/// How the strided kernels' push constants begin: the number of elements and the sizes of all dimensions but the first.
template <class P>
P strided_params(const Shape& shape) {
  const Six all = six_sizes(shape);
  P params{.count = all[0]};
  for (size_t i = 1; i < 6; ++i) {
    params.count = params.count * all[i];
    params.sizes[i - 1] = all[i];
  }
  return params;
}
/// Strides of an operand as push constants.
inline std::array<PushInt, 6> push_strides(const Six& strides) {
  std::array<PushInt, 6> pushed;
  std::copy(strides.begin(), strides.end(), pushed.begin());
  return pushed;
}

/// y = after(function(a, b)) of floats; y is dense and of this shape.
void float_step(NodeLowering& n, Function function, const Operand& a, const Operand& b, const Shape& shape, TensorId y,
                const Epilogue& after = {});

/// y = function(a, b) of integers and bools. `type`: what a result is cut to, or, of 64 bits, held to; kI32 for results
/// that always fit. p: the parameter of k_hot.
void int32_step(NodeLowering& n, Function function, const Operand& a, const Operand& b, const Shape& shape, TensorId y,
                DType type = DType::kI32, int64_t p = 0);

/// y = function(a, b), integers or bools of floats.
void compare_step(NodeLowering& n, Function f, const Operand& a, const Operand& b, const Shape& shape, TensorId y,
                  DType type = DType::kI32, int64_t p = 0);

/// y = condition ? a : b of tensors of this type, each with its own strides and beginning.
void select_step(NodeLowering& n, DType type, const Operand& condition, const Operand& a, const Operand& b,
                 const Shape& shape, TensorId y);

/// Output 0 = function(input 0, input 1) or function(input 0) of integers and bools, cut to the output's type.
Status int32_binary(NodeLowering& n, Function function);

Status int32_unary(NodeLowering& n, Function function);

}  // namespace pinnace::gpu
