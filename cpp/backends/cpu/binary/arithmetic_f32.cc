// add, sub, mul, div, min, max, sum and prelu in float32 and fp16: over dense tensors with broadcasting reduced to
// runs in which each operand is contiguous or one number, more operands than two by pairs; over NHWC-packed tensors
// where an operand is one already.
#include <algorithm>

#include "backends/cpu/f32_isa.h"
#include "backends/cpu/move/broadcast_runs.h"
#include "backends/cpu/nhwc_rows.h"

namespace pinnace::cpu {
namespace {

/// add or sum, sub, mul, div, min, max, prelu
BinaryKind binary_kind(const std::string& op) {
  return op == "add" || op == "sum" ? BinaryKind::kAdd
         : op == "sub"              ? BinaryKind::kSub
         : op == "mul"              ? BinaryKind::kMul
         : op == "min"              ? BinaryKind::kMin
         : op == "max"              ? BinaryKind::kMax
         : op == "prelu"            ? BinaryKind::kPrelu
                                    : BinaryKind::kDiv;
}

template <const auto& isa>
Status binary_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  using T = ElementOf<isa>;
  const BinaryKind kind = binary_kind(node.node().op);
  const UnaryF32 map = node.node().op == "add" ? fused_unary(node) : UnaryF32{};
  T* y = out[0].data<T>();
  const auto pair = [&](const TensorView& a, const TensorView& b) {
    PairLoops l;
    l.set({&a.type->shape, &b.type->shape, &out[0].type->shape});
    const int a_step = l.rank && l.step[0][0], b_step = l.rank && l.step[1][0];
    for_each_run(context, l, out[0].elements(), [&](int64_t at_a, int64_t at_b, int64_t at, int64_t count) {
      isa.arithmetic->dense(kind, a.data<T>() + at_a, a_step, b.data<T>() + at_b, b_step, y + at, count);
      if (map.kind != UnaryKind::kNone) isa.activation->map(map, y + at, y + at, count);
    });
  };
  pair(in[0], in[1]);
  for (size_t k = 2; k < in.size(); ++k) pair(out[0], in[k]);
  return {};
}

bool binary_takes(const KernelNode& node) {
  return node.input_count() > 1 && pairs_fit(node);
}

template <const auto& isa>
constexpr CpuKernel make_binary() {
  return {.takes = binary_takes, .precision = isa.precision, .run = binary_run<isa>};
}

// --------------------------------------------------------------------------------------------------------------
// NHWC-packed

/// How an operand meets the output: element by element, one pixel for all of an image, or one number.
enum class Meets : uint8_t { kNot, kWhole, kPixel, kNumber };

/// Constants stay dense: one number, or one for each channel. Others are NHWC-packed.
Meets meets(const TensorType& x, const Shape& y, bool constant) {
  if (constant && x.elements() == 1) return Meets::kNumber;
  if (!constant && x.shape == y) return x.elements() > 0 ? Meets::kWhole : Meets::kNot;
  const size_t spatial = y.size() - 2;
  if (x.shape.size() < spatial + 1 || x.shape.size() > y.size()) return Meets::kNot;
  for (size_t d = 0; d < spatial; ++d) {
    if (x.shape[x.shape.size() - 1 - d] != Dim(1)) return Meets::kNot;
  }
  if (x.shape[x.shape.size() - 1 - spatial] != y[1]) return Meets::kNot;
  const bool batch = x.shape.size() == y.size();
  if (constant) return !batch || x.shape[0] == Dim(1) ? Meets::kPixel : Meets::kNot;
  return batch && (x.shape[0] == y[0] || x.shape[0] == Dim(1)) ? Meets::kPixel : Meets::kNot;
}

bool nhwc_binary_takes(const KernelNode& node) {
  if (!node.has_input(1) || node.input_count() != 2) return false;
  const auto y = broadcast_shapes(node, node.input(0).shape, node.input(1).shape);
  if (!y || (y->size() != 3 && y->size() != 4)) return false;
  const Meets a = meets(node.input(0), *y, node.input_data(0)), b = meets(node.input(1), *y, node.input_data(1));
  return a != Meets::kNot && b != Meets::kNot && (a == Meets::kWhole || b == Meets::kWhole);
}

/// Where an operand's elements for a row of pixels begin, and how far from pixel to pixel.
template <class T>
struct Operand {
  const T* at;
  ptrdiff_t pixel, row, step;
  int64_t readable;  ///< channels that may be read
};
template <class T>
Operand<T> operand(const TensorView& view, const Layout& layout, Meets how) {
  if (!layout.nhwc) return {view.data<T>(), 0, 0, 0, view.elements()};
  const NhwcOf<T> i = nhwc_of<T>(view, layout);
  if (how == Meets::kWhole) return {i.at, i.pitch, i.row, i.step, i.pitch};
  return {i.at, 0, 0, i.size.n == 1 ? 0 : i.step, i.pitch};
}

template <const auto& isa>
Status nhwc_binary_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                       std::span<const TensorView> out) {
  using T = ElementOf<isa>;
  const BinaryKind kind = binary_kind(node.node().op);
  const UnaryF32 map = node.node().op == "add" ? fused_unary(node) : UnaryF32{};
  const auto y = nhwc_of<T>(out[0], context.layouts[in.size()]);
  const Shape& shape = out[0].type->shape;
  const Meets how[2] = {meets(*in[0].type, shape, !context.layouts[0].nhwc),
                        meets(*in[1].type, shape, !context.layouts[1].nhwc)};
  const auto a = operand<T>(in[0], context.layouts[0], how[0]), b = operand<T>(in[1], context.layouts[1], how[1]);
  const bool number = how[0] == Meets::kNumber || how[1] == Meets::kNumber;
  // Pixels are padded to whole registers, which are faster; what is computed there is of no value.
  const int64_t channels = number ? y.pitch : std::min({y.pitch, a.readable, b.readable});
  for_rows(context, y, [&](int64_t n, int64_t row) {
    const T *from_a = a.at + n * a.step + row * a.row, *from_b = b.at + n * b.step + row * b.row;
    T* to = y.at + n * y.step + row * y.row;
    if (number) {
      isa.arithmetic->dense(kind, from_a, how[0] == Meets::kWhole, from_b, how[1] == Meets::kWhole, to,
                            y.size.w * y.pitch);
    } else {
      isa.arithmetic->pixels(kind, from_a, a.pixel, from_b, b.pixel, to, y.pitch, y.size.w, channels);
    }
    if (map.kind != UnaryKind::kNone) isa.activation->map(map, to, to, y.size.w * y.pitch);
  });
  return {};
}

template <const auto& isa>
constexpr CpuKernel make_nhwc_binary() {
  return {.takes = nhwc_binary_takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b11,
          .precision = isa.precision,
          .run = nhwc_binary_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(binary_f32, make_binary)
PINNACE_KERNELS_F32(binary_nhwc_f32, make_nhwc_binary)
PINNACE_KERNELS_F16(binary_f16, make_binary)
PINNACE_KERNELS_F16(binary_nhwc_f16, make_nhwc_binary)

}  // namespace pinnace::cpu
