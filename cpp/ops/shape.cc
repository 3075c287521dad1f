// shape: the sizes of x.
//   x      [...]  any type; its elements are not read
//   start  int, default 0: first dimension; negative counts from the end; cut to [0, rank]
//   end    int, default INT64_MAX: one past the last dimension; likewise
//   y      [dimensions in between]  i64
// Source: ONNX Shape, opset 25.
#include <algorithm>

#include "ops/move.h"

namespace pinnace {
namespace {
constexpr int64_t kToTheEnd = INT64_MAX;

std::pair<int64_t, int64_t> chosen(const NodeView& node) {
  const int64_t rank = node.input(0).rank();
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t first = clamp(node.attr_int("start"));
  return {first, std::max(first, clamp(node.attr_int("end")))};
}

Result<TensorType> shape_type(const NodeView& node) {
  const auto [first, last] = chosen(node);
  return TensorType{DType::kI64, {Dim(last - first)}, nullptr};
}

Status shape_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const auto [first, last] = chosen(node);
  for (int64_t i = first; i < last; ++i) out[0].data<int64_t>()[i - first] = in[0].dim(static_cast<int>(i));
  return {};
}
}  // namespace

PINNACE_OP(shape){
    .name = "shape",
    .inputs = {{"x", kEvery}},
    .attrs = {int_attr("start", 0), int_attr("end", kToTheEnd)},
    .type = shape_type,
    .reference = shape_reference,
    .work = Work::kConstant,
};
}  // namespace pinnace
