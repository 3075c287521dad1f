// Softmax and normalisations.
#include <algorithm>

#include "nnapi/mapping.h"
#include "ops/move.h"

namespace pinnace::nnapi {
namespace {

/// The axis of input i, by default the last one.
Result<int64_t> optional_axis(Call& call, size_t i, ValueId x) {
  if (call.rank(x) < 1) return call.error("a scalar has no axis");
  if (i < call.inputs()) return call.axis(i, call.rank(x));
  return int64_t{call.rank(x) - 1};
}

std::vector<int64_t> sizes_of(const TensorType& type) {
  std::vector<int64_t> sizes;
  for (const Dim& d : type.shape) sizes.push_back(d.size);
  return sizes;
}

/// (x - max(x)) * beta in float32: a product before the largest is taken off would overflow. x itself where beta is 1.
Result<ValueId> scaled(Call& call, ValueId x, double beta, int64_t axis) {
  if (beta == 1) return x;
  PINNACE_ASSIGN(x, call.cast(x, DType::kF32));
  PINNACE_ASSIGN(const ValueId axes, call.constant_ints({axis}));
  PINNACE_ASSIGN(const ValueId largest, call.emit("reduce_max", {x, axes}));
  PINNACE_ASSIGN(const ValueId less, call.emit("sub", {x, largest}));
  PINNACE_ASSIGN(const ValueId factor, call.constant_scalar(DType::kF32, beta));
  return call.emit("mul", {less, factor});
}

/// A scale times beta. From 1e30 on every difference of quantised values is as good as infinite.
float scale_of(float scale, double beta) {
  return static_cast<float>(std::min(double{scale} * beta, 1e30));
}

/// A fixed quantisation of the output where x is quantised, else null.
QuantizationPtr fixed(Call& call, ValueId x, float scale, int32_t unsigned_zero) {
  if (!call.quantized(x)) return nullptr;
  return per_tensor(scale, unsigned_zero - (call.type(x).dtype == DType::kI8 ? 128 : 0));
}

}  // namespace

Status map_softmax(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(double beta, call.real(1));
  if (!(beta > 0)) return call.error("beta ", beta, " is not above 0");
  PINNACE_ASSIGN(int64_t axis, optional_axis(call, 2, x));
  const QuantizationPtr q = call.type(x).quantization;
  const DType dtype = call.type(x).dtype;
  if (!q) {
    PINNACE_ASSIGN(x, scaled(call, x, beta, axis));
  } else if (beta != 1) {  // a scale times beta is all that beta does
    PINNACE_ASSIGN(x, call.reinterpret(x, per_tensor(scale_of(q->scales[0], beta), q->zero_points[0])));
  }
  PINNACE_ASSIGN(ValueId y, call.emit("softmax", {x}, {{"axis", axis}}, fixed(call, x, 1.0f / 256, 0)));
  if (!q) {
    PINNACE_ASSIGN(y, call.cast(y, dtype));
  }
  return call.finish(0, y);
}

Status map_log_softmax(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(double beta, call.real(1));
  PINNACE_ASSIGN(int64_t axis, optional_axis(call, 2, x));
  const TensorType type = call.type(x);
  // The steps of the scaling are operations of their own on NNAPI, which take four dimensions.
  const bool flat = beta != 1 && type.rank() > 4 && type.concrete();
  if (flat) {
    const AxisView v = view_axis(type.shape, static_cast<int>(axis));
    PINNACE_ASSIGN(x, call.reshape(x, {v.outer, v.size, v.inner}));
    axis = 1;
  }
  PINNACE_ASSIGN(x, scaled(call, x, beta, axis));
  PINNACE_ASSIGN(ValueId y, call.emit("log_softmax", {x}, {{"axis", axis}}));
  if (flat) {
    PINNACE_ASSIGN(y, call.reshape(y, sizes_of(type)));
  }
  PINNACE_ASSIGN(y, call.cast(y, type.dtype));
  return call.finish(0, y);
}

Status map_l2_normalization(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(int64_t axis, optional_axis(call, 1, x));
  PINNACE_ASSIGN(ValueId y, call.emit("lp_normalization", {x}, {{"axis", axis}, {"p", int64_t{2}}},
                                      fixed(call, x, 1.0f / 128, 128)));
  return call.finish(0, y);
}

// Our lrn works along dimension 1 and divides alpha by the size of the window.
Status map_local_response_normalization(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(int64_t radius, call.integer(1));
  PINNACE_ASSIGN(double bias, call.real(2));
  PINNACE_ASSIGN(double alpha, call.real(3));
  PINNACE_ASSIGN(double beta, call.real(4));
  PINNACE_ASSIGN(int64_t axis, optional_axis(call, 5, x));
  PINNACE_ASSIGN(TensorType type, call.concrete(x));
  if (radius < 0) return call.error("radius ", radius, " is negative");
  const AxisView v = view_axis(type.shape, static_cast<int>(axis));
  const int64_t size = 2 * std::min(radius, v.size) + 1;
  Attrs attrs = {{"alpha", alpha * static_cast<double>(size)}, {"beta", beta}, {"bias", bias}, {"size", size}};
  PINNACE_ASSIGN(ValueId y, call.reshape(x, {v.outer, v.size, v.inner}));
  PINNACE_ASSIGN(y, call.emit("lrn", {y}, std::move(attrs)));
  PINNACE_ASSIGN(y, call.reshape(y, sizes_of(type)));
  return call.finish(0, y);
}

Status map_instance_normalization(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(ValueId gamma, call.in(1));
  PINNACE_ASSIGN(ValueId beta, call.in(2));
  PINNACE_ASSIGN(double epsilon, call.real(3));
  PINNACE_ASSIGN(bool nchw, call.flag(4));
  PINNACE_ASSIGN(int64_t channels, call.size(x, nchw ? 1 : 3));
  PINNACE_ASSIGN(ValueId shape, call.constant_ints({channels}));
  PINNACE_ASSIGN(ValueId scale, call.emit("expand", {gamma, shape}));
  PINNACE_ASSIGN(ValueId offset, call.emit("expand", {beta, shape}));
  PINNACE_ASSIGN(ValueId y, call.to_nchw(x, nchw));
  PINNACE_ASSIGN(y, call.emit("instance_normalization", {y, scale, offset}, {{"epsilon", epsilon}}));
  PINNACE_ASSIGN(y, call.from_nchw(y, nchw));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
