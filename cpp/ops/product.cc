// Types of product operands and the rounding of quantised sums.
#include "ops/product.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pinnace {
namespace {
/// Largest magnitude of q - zero for any stored q.
int64_t largest(DType dtype, std::span<const int32_t> zeros) {
  const IntRange range = int_range(dtype);
  int64_t most = 0;
  for (int64_t zero : zeros) most = std::max({most, zero - range.min, range.max - zero});
  return most;
}
}  // namespace

Status check_sum_length(const NodeView& node, int64_t length, int64_t largest_x, int64_t largest_w) {
  const int64_t product = largest_x * largest_w;
  if (product > 0 && length > INT32_MAX / product) {
    return node.error("sums of ", length, " products of magnitude up to ", product, " could leave int32");
  }
  return {};
}

Status check_product(const NodeView& node, int x_at, int w_at, int bias_at, int w_axis, Dim length) {
  const TensorType &x = node.input(x_at), &w = node.input(w_at);
  const auto name = [&](int i) { return node.input_name(i); };
  if (kFloats >> static_cast<int>(x.dtype) & 1) {
    if (w.dtype != x.dtype)
      return node.error(name(w_at), " is ", w, ", must be ", dtype_name(x.dtype), " as ", name(x_at));
    if (bias_at >= 0 && node.has_input(bias_at) && node.input(bias_at).dtype != x.dtype) {
      return node.error(name(bias_at), " is ", node.input(bias_at), ", must be ", dtype_name(x.dtype), " as ",
                        name(x_at));
    }
    return {};
  }
  PINNACE_TRY(check_quantized(node, x_at));
  if (w.dtype != DType::kI8 && w.dtype != DType::kU8) {
    return node.error(name(w_at), " is ", w, ", must be int8 or uint8 beside a quantised ", name(x_at));
  }
  if (!w.quantized()) return node.error(name(w_at), " is ", w, "; integers must be quantised");
  const Quantization& q = *w.quantization;
  if (q.scales.empty()) return node.error(name(w_at), " is ", w, ", without a scale");
  if (q.axis < 0) {
    PINNACE_TRY(check_per_tensor(node, q, w.dtype, name(w_at)));
  } else {
    const Dim channels = q.axis < w.rank() ? w.shape[static_cast<size_t>(q.axis)] : Dim(0);
    if (q.axis != w_axis || q.block != 0 || q.scales.size() != q.zero_points.size() ||
        (channels.known() && static_cast<size_t>(channels.size) != q.scales.size())) {
      return node.error(name(w_at), " may have one scale, or one per index of axis ", w_axis, "; it has ",
                        q.scales.size(), " on axis ", q.axis, " of ", w);
    }
    for (size_t i = 0; i < q.scales.size(); ++i) {
      PINNACE_TRY(check_scale(node, q.scales[i], q.zero_points[i], w.dtype, name(w_at)));
    }
  }
  if (bias_at >= 0 && node.has_input(bias_at) && node.input(bias_at).dtype != DType::kI32) {
    return node.error(name(bias_at), " is ", node.input(bias_at), ", must be int32 beside a quantised ", name(x_at));
  }
  const double most = *std::max_element(q.scales.begin(), q.scales.end());
  const double m = static_cast<double>(scale_zero(x).scale) * most / node.output_quantization(0)->scales[0];
  if (m > std::numeric_limits<float>::max()) {
    return node.error("scales give a multiplier of ", m, ", more than float32 holds");
  }
  if (!length.known()) return {};
  return check_sum_length(node, length.size, largest(x.dtype, x.quantization->zero_points),
                          largest(w.dtype, q.zero_points));
}

Matrices matrices_of(const TensorType& a, const TensorType& b) {
  Matrices s;
  s.K = a.shape.back();
  s.b_rows = b.rank() == 1 ? b.shape[0] : b.shape[b.shape.size() - 2];
  if (a.rank() > 1) {
    s.M = a.shape[a.shape.size() - 2];
    s.a_batch.assign(a.shape.begin(), a.shape.end() - 2);
  }
  if (b.rank() > 1) {
    s.N = b.shape.back();
    s.b_batch.assign(b.shape.begin(), b.shape.end() - 2);
  }
  return s;
}

Result<Shape> product_shape(const NodeView& node, const TensorType& a, const TensorType& b) {
  if (a.rank() == 0 || b.rank() == 0) return node.error("takes no scalars: a is ", a, ", b is ", b);
  const Matrices s = matrices_of(a, b);
  if (differ(s.K, s.b_rows)) {
    return node.error("a ", a, " has rows of ", s.K.size, ", b ", b, " columns of ", s.b_rows.size);
  }
  PINNACE_ASSIGN(Shape shape, broadcast_shapes(node, s.a_batch, s.b_batch));
  if (a.rank() > 1) shape.push_back(s.M);
  if (b.rank() > 1) shape.push_back(s.N);
  return shape;
}

Requantize::Requantize(const TensorType& x, const TensorType& w, const TensorType& y, const Activation& activation)
    : w_zeros(w.quantization->zero_points),
      x_zero(scale_zero(x).zero),
      y_zero(scale_zero(y).zero),
      range(activation_range(activation, y)) {
  for (float scale : w.quantization->scales) {
    m.push_back(static_cast<float>(static_cast<double>(scale_zero(x).scale) * static_cast<double>(scale) /
                                   static_cast<double>(scale_zero(y).scale)));
  }
}

int32_t Requantize::operator()(uint32_t sum, int64_t channel) const {
  const float real = static_cast<float>(static_cast<int32_t>(sum)) * m[m.size() > 1 ? static_cast<size_t>(channel) : 0];
  const double q = std::nearbyint(static_cast<double>(real)) + y_zero;  // the default mode is half to even
  const double above = q < range.min ? range.min : q;  // not std::clamp: a clip may have min > max, where max wins
  return static_cast<int32_t>(above > range.max ? range.max : above);
}

double matrix_product_multiply_adds(std::span<const TensorType* const> inputs, const TensorType& y) {
  return elements_if_known(y) * last_if_known(*inputs[0]);
}

}  // namespace pinnace
