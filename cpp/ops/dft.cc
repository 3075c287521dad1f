// dft: the discrete Fourier transform along one axis: y[k] = sum over t of x[t] e^(-2 pi i t k / n).
//   x           [..., 1 | 2]  floats; the last dimension holds the real part, or real and imaginary part
//   dft_length  []  i32 | i64, optional: n; x is cut to that length or continued with zeros; left out: the axis' size
//   axis        []  i32 | i64, optional, default -2; not the last dimension
//   y           as x with n elements along the axis and 2 in the last dimension
//   inverse   int, default 0; 1: y[t] = 1/n sum over k of x[k] e^(2 pi i t k / n)
//   onesided  int, default 0; 1: of real x only y[0..n/2], n/2 + 1 elements, the rest being their conjugates. With
//             inverse: x is such a half, dft_length is 2 (size - 1) where left out, and y is real: [..., 1]
// Computed in double, rounded once. Where x has NaN or infinity along a line, any element of that line may be NaN.
// Source: ONNX DFT, opset 20.
#include <algorithm>

#include "ops/fourier.h"
#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> dft_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const bool inverse = node.attr_int("inverse") != 0, onesided = node.attr_int("onesided") != 0;
  if (x.rank() < 2) return node.error("x must be [..., 1 or 2] with rank 2 or more, is ", x);
  const Dim parts = x.shape.back();
  if (parts.known() && parts.size != 1 && parts.size != 2) {
    return node.error("the last dimension of x ", x, " must be 1 or 2");
  }
  if (onesided && !inverse && parts == Dim(2)) {
    return node.error("onesided is for real x, its last dimension must be 1, is ", x);
  }
  KnownInt axis{true, -2, -1}, length;
  if (node.has_input(2)) {
    PINNACE_ASSIGN(axis, known_scalar(node, 2));
  }
  if (node.has_input(1)) {
    PINNACE_ASSIGN(length, known_scalar(node, 1));
  }
  TensorType y{x.dtype, x.shape, nullptr};
  y.shape.back() = inverse && onesided ? 1 : 2;
  if (!axis.known) {
    std::fill(y.shape.begin(), y.shape.end() - 1, Dim());
    return y;
  }
  PINNACE_ASSIGN(const int at, node.axis(axis.value, x.rank()));
  if (at == x.rank() - 1) return node.error("axis ", axis.value, " is the last one, of real and imaginary parts");
  const Dim size = x.shape[static_cast<size_t>(at)];
  Dim n = node.has_input(1) ? length.dim() : size;
  if (length.known && length.value < 1) return node.error("dft_length ", length.value, " is not positive");
  if (!node.has_input(1) && inverse && onesided) {
    if (size.known() && size.size < 2) {
      return node.error("axis ", at, " of x ", x, " is half of nothing to transform");
    }
    n = size.known() ? Dim(2 * (size.size - 1)) : Dim();
  }
  if (n.known() && n.size < 1) return node.error("axis ", at, " of x ", x, " has nothing to transform");
  if (onesided && !inverse) n = n.known() ? Dim(n.size / 2 + 1) : Dim();
  y.shape[static_cast<size_t>(at)] = n;
  return y;
}

Status dft_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  const bool inverse = node.attr_int("inverse") != 0, onesided = node.attr_int("onesided") != 0;
  const auto given = [&](size_t i) { return in.size() > i && in[i].present(); };
  if (y.elements() == 0) return {};
  PINNACE_ASSIGN(const int axis, node.axis(given(2) ? load_index(in[2], 0) : -2, x.rank()));
  const AxisView from = view_axis(x.type->shape, axis), to = view_axis(y.type->shape, axis);
  const int64_t n = given(1) ? load_index(in[1], 0) : inverse && onesided ? 2 * (from.size - 1) : from.size;
  const int64_t parts = x.dim(-1), out_parts = y.dim(-1);
  PINNACE_ASSIGN(const Fourier fourier, Fourier::make(n, node.label()));
  const int64_t read = std::min(from.size, inverse && onesided ? n / 2 + 1 : n);
  const int64_t inner = from.inner / parts;
  return node.threads().ranges(from.outer * inner, fourier.nanoseconds(), [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto line, Scratch<double>::allocate(2 * n + fourier.work_size(), node.label()));
    double *re = line.data(), *im = re + n, *work = im + n;
    for (int64_t l = begin; l < end; ++l) {
      const int64_t o = l / inner, i = l % inner;
      const int64_t first = o * from.size * from.inner + i * parts, into = o * to.size * to.inner + i * out_parts;
      std::fill_n(re, 2 * n, 0.0);
      load_line(x, first, from.inner, read, re);
      if (parts == 2) load_line(x, first + 1, from.inner, read, im);
      if (inverse && onesided) {
        for (int64_t k = 1; k < n - k; ++k) {
          re[n - k] = re[k];
          im[n - k] = -im[k];
        }
      }
      inverse ? fourier.inverse(re, im, work) : fourier.forward(re, im, work);
      store_line(y, into, to.inner, to.size, re);
      if (out_parts == 2) store_line(y, into + 1, to.inner, to.size, im);
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(dft){
    .name = "dft",
    .inputs = {{"x", kFloats}, {"dft_length", kIndices, 0, Arity::kOptional}, {"axis", kIndices, 0, Arity::kOptional}},
    .attrs = {int_attr("inverse", 0), int_attr("onesided", 0)},
    .type = dft_type,
    .reference = dft_reference,
    .work = Work::kSorted,
};
}  // namespace pinnace
