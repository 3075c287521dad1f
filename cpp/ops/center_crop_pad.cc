// center_crop_pad: the middle of x in a given size: axes that are too long lose elements at both ends, axes that are
// too short get zeros at both ends.
//   x      [...]  any type
//   shape  [n]  i32 | i64: the new size of each of the axes
//   axes   ints, n axes in the order of shape; left out: all of x in order
//   y      as x with those sizes
// Where the difference is odd, one element more is cut or added at the end. Quantised types are padded with their zero
// point. Source: ONNX CenterCropPad, opset 18.
#include "ops/move.h"

namespace pinnace {
namespace {
/// Which axis each entry of shape is for.
Result<std::vector<int>> center_axes(const NodeView& node, int rank, size_t count) {
  const std::span<const int64_t> list = node.attr_ints("axes");
  std::vector<int> axes;
  if (list.empty()) {
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  } else {
    PINNACE_TRY(node.axes(list, rank).status());  // in range, none twice
    for (int64_t axis : list) axes.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
  }
  if (axes.size() != count) return node.error("shape has ", count, " sizes for ", axes.size(), " axes");
  return axes;
}

Result<TensorType> center_crop_pad_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  TensorType y{x.dtype, x.shape, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  PINNACE_ASSIGN(const Dim count, vector_length(node, 1, false));
  const auto axes_given = node.attr_ints("axes").size();
  const size_t length = count.known() ? static_cast<size_t>(count.size) : axes_given ? axes_given : x.shape.size();
  PINNACE_ASSIGN(const std::vector<int> axes, center_axes(node, x.rank(), length));
  const auto sizes = node.input_known(1);
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& d = y.shape[static_cast<size_t>(axes[i])];
    d = sizes ? (*sizes)[i].dim() : Dim();
    if (sizes && (*sizes)[i].known && (*sizes)[i].value < 0) {
      return node.error("size ", (*sizes)[i].value, " of axis ", axes[i], " is negative");
    }
  }
  return y;
}

Status center_crop_pad_reference(const NodeView& node, std::span<const TensorView> in,
                                 std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  if (y.elements() == 0) return {};  // one of its sizes may still be huge
  int64_t constant = 0;              // the bytes of the element
  if (x.type->quantized()) constant = x.type->quantization->zero_points[0];
  int64_t count = 0;
  for (const Dim& d : y.type->shape) count += d.size;
  PINNACE_ASSIGN(auto places, Scratch<int64_t>::allocate(count, node.label()));
  int64_t* place = places.data();
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t from = x.dim(d), to = y.dim(d);
    const int64_t first = to < from ? (from - to) / 2 : -((to - from) / 2);
    for (int64_t i = 0; i < to; ++i) *place++ = first + i >= 0 && first + i < from ? first + i : -1;
  }
  copy_by_places(node.threads(), x, y, places.span(), reinterpret_cast<const std::byte*>(&constant));
  return {};
}
}  // namespace

PINNACE_OP(center_crop_pad){
    .name = "center_crop_pad",
    .inputs = {{"x", kAny}, {"shape", kIndices}},
    .attrs = {ints_attr("axes")},
    .type = center_crop_pad_type,
    .reference = center_crop_pad_reference,
    .traits = Trait::kMoves,
};
}  // namespace pinnace
