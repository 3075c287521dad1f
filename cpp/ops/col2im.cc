// col2im: an image from the columns of its blocks; where blocks overlap their elements are added up.
//   x            [N, C * product(block_shape), L]  numbers: column l holds the block at place l, places in row-major
//                order
//   image_shape  [k]  i64: sizes of the image, 1 to 3 of them
//   block_shape  [k]  i64: sizes of a block
//   y            [N, C, image_shape...]  as x
//   strides, pads, dilations  see window.h; L is the number of places of a window of block_shape on the padded image
// Elements that no block covers are 0; what falls on padding is dropped. Sums in double, rounded once; integers wrap.
// NaN and infinities go through products and sums as IEEE 754 has them. Source: ONNX Col2Im, opset 18.
#include "ops/move.h"
#include "ops/window.h"

namespace pinnace {
namespace {
constexpr int64_t kLargest = int64_t{1} << 31;  // as window.cc has it: sums of such sizes and pads stay within int64

/// Integer input i as dimensions; the length is `count`. Values outside [0, 2^31) are refused.
Result<Shape> sizes_of(const NodeView& node, int i, int64_t count) {
  Shape shape(static_cast<size_t>(count));
  if (const auto sizes = node.input_known(i)) {
    for (size_t d = 0; d < shape.size(); ++d) {
      const KnownInt& size = (*sizes)[d];
      if (size.known && (size.value < 0 || size.value >= kLargest)) {
        return node.error(node.input_name(i), " has ", size.value, ", which is outside [0, 2^31)");
      }
      shape[d] = size.dim();
    }
  }
  return shape;
}

Result<TensorType> col2im_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  const TensorType& x = node.input(0);
  if (x.rank() != 3) return node.error("x must be [N,C*block,L], is ", x);
  PINNACE_ASSIGN(const Dim image_rank, vector_length(node, 1, true));
  PINNACE_ASSIGN(const Dim block_rank, vector_length(node, 2, false));
  if (differ(image_rank, block_rank) || image_rank.size < 1 || image_rank.size > 3) {
    return node.error("image_shape ", node.input(1), " and block_shape ", node.input(2),
                      " must have one length of 1 to 3");
  }
  PINNACE_ASSIGN(const Shape image, sizes_of(node, 1, image_rank.size));
  PINNACE_ASSIGN(const Shape block, sizes_of(node, 2, image_rank.size));
  TensorType y{x.dtype, {x.shape[0], Dim()}, nullptr};
  y.shape.insert(y.shape.end(), image.begin(), image.end());
  PINNACE_ASSIGN(const Window w, window_of(node, y.shape, block, false));
  const Dim taps = dim_product(block);
  if (taps.known() && x.shape[1].known()) {
    if (x.shape[1].size % taps.size != 0) {
      return node.error("dimension 1 of x ", x, " is no multiple of the block's ", taps.size, " elements");
    }
    y.shape[1] = x.shape[1].size / taps.size;
  }
  Shape places;
  for (int d = 3 - w.rank; d < 3; ++d) places.push_back(w.out[d] >= 0 ? Dim(w.out[d]) : Dim());
  if (const Dim count = dim_product(places); differ(count, x.shape[2])) {
    return node.error("x ", x, " has ", x.shape[2].size, " columns for ", count.size, " places");
  }
  return y;
}

template <class T, class Sum>
void add_blocks(const Window& w, const T* from, Sum* sums) {
  for (int64_t kz = 0; kz < w.kernel[0]; ++kz) {
    const Window::Span sz = w.span(0, kz);
    for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
      const Window::Span sy = w.span(1, ky);
      for (int64_t kx = 0; kx < w.kernel[2]; ++kx, from += w.out_size()) {
        const Window::Span sx = w.span(2, kx);
        for (int64_t z = sz.first; z < sz.last; ++z) {
          for (int64_t y = sy.first; y < sy.last; ++y) {
            const T* row = from + (z * w.out[1] + y) * w.out[2];
            Sum* to = sums + ((z * w.stride[0] + sz.offset) * w.in[1] + y * w.stride[1] + sy.offset) * w.in[2];
            for (int64_t x = sx.first; x < sx.last; ++x) {
              to[x * w.stride[2] + sx.offset] += static_cast<Sum>(widen(row[x]));
            }
          }
        }
      }
    }
  }
}

Status col2im_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  const std::vector<int64_t> block = load_indices(in[2]);
  PINNACE_ASSIGN(const Window w, window_of(node, y.type->shape, Shape(block.begin(), block.end()), false));
  if (y.elements() == 0) return {};
  return visit(x.dtype(), [&](auto zero) -> Status {
    using T = decltype(zero);
    using Sum = std::conditional_t<is_float<T>, double, uint64_t>;  // unsigned: wraps where signed is undefined
    const double cost = 3 * static_cast<double>(w.in_size() + w.taps() * w.out_size());
    return node.threads().ranges(y.dim(0) * y.dim(1), cost, [&](int64_t begin, int64_t end) -> Status {
      PINNACE_ASSIGN(auto sums, Scratch<Sum>::allocate(w.in_size(), node.label()));
      for (int64_t plane = begin; plane < end; ++plane) {
        std::fill_n(sums.data(), w.in_size(), Sum{});
        add_blocks(w, x.data<T>() + plane * w.taps() * w.out_size(), sums.data());
        T* to = y.data<T>() + plane * w.in_size();
        for (int64_t i = 0; i < w.in_size(); ++i) to[i] = static_cast<T>(sums[i]);
      }
      return {};
    });
  });
}
}  // namespace

PINNACE_OP(col2im){
    .name = "col2im",
    .inputs = {{"x", kNumbers}, {"image_shape", kI64}, {"block_shape", kI64}},
    .attrs = {kDilationsAttr, kPadsAttr, kStridesAttr},
    .type = col2im_type,
    .reference = col2im_reference,
};
}  // namespace pinnace
