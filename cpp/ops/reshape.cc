// reshape: y has the elements of x in the same order and another shape.
//   x           [...]  any type
//   shape       [rank of y]  i64: sizes; 0 copies x's size at that place unless allowzero; one -1 takes what is left
//   allowzero  int, default 0
//   y           as x; quantised per tensor only
// Source: ONNX Reshape, opset 21.
#include <cstring>

#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> reshape_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const Dim rank, vector_length(node, 1, true));
  PINNACE_ASSIGN(auto quantization, moved_quantization(node, 0));
  const auto wanted = node.input_known(1);
  TensorType y{x.dtype, Shape(static_cast<size_t>(rank.size)), std::move(quantization)};
  if (!wanted) return y;
  // Sizes that are symbols or unknown cancel where they appear on both sides in the same place; the rest is arithmetic.
  int64_t known_out = 1;
  int inferred = -1;
  std::vector<bool> x_used(x.shape.size(), false);
  bool unknown = false;  // some size of y is not known
  for (size_t i = 0; i < y.shape.size(); ++i) {
    const KnownInt k = (*wanted)[i];
    if (k.known && k.value == 0 && !node.attr_int("allowzero")) {
      if (i >= x.shape.size()) return node.error("size 0 at place ", i, " copies a dimension that ", x, " lacks");
      y.shape[i] = x.shape[i];
    } else if (k.known && k.value == -1) {
      if (inferred >= 0) return node.error("shape has more than one -1, at ", inferred, " and ", i);
      inferred = static_cast<int>(i);
      continue;
    } else if (k.known && k.value < 0) {
      return node.error("size ", k.value, " at place ", i, " of the shape is negative");
    } else {
      y.shape[i] = k.dim();
    }
    const Dim d = y.shape[i];
    if (d.known()) {
      if (d.size > 0 && known_out > INT64_MAX / d.size) return node.error("the wanted shape overflows");
      known_out *= d.size;
    } else {
      bool cancelled = false;
      for (size_t j = 0; d.symbol >= 0 && j < x.shape.size() && !cancelled; ++j) {
        if (!x_used[j] && x.shape[j] == d) cancelled = x_used[j] = true;
      }
      unknown |= !cancelled;
    }
  }
  int64_t known_in = 1;
  Dim left(1);
  int lefts = 0;
  for (size_t j = 0; j < x.shape.size(); ++j) {
    if (x_used[j]) continue;
    if (x.shape[j].known()) {
      known_in *= x.shape[j].size;
    } else {
      left = x.shape[j];
      ++lefts;
    }
  }
  if (unknown) return y;
  if (inferred >= 0) {
    if (lefts == 0) {
      if (known_out == 0) return node.error("-1 cannot be found beside a size of 0");
      if (known_in % known_out)
        return node.error(x, " does not divide into a shape with ", known_out, " elements before -1");
      y.shape[inferred] = known_in / known_out;
    } else if (lefts == 1 && known_in == known_out) {
      y.shape[inferred] = left;
    }
  } else if (lefts == 0 && known_in != known_out) {
    return node.error(x, " does not have the elements of ", y);
  }
  return y;
}

Status reshape_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  const auto bytes = static_cast<size_t>(out[0].type->bytes());
  if (bytes && out[0].bytes != in[0].bytes) std::memcpy(out[0].bytes, in[0].bytes, bytes);
  return {};
}
}  // namespace

PINNACE_OP(reshape){
    .name = "reshape",
    .inputs = {{"x", kEvery}, {"shape", kI64}},
    .attrs = {int_attr("allowzero", 0)},
    .type = reshape_type,
    .reference = reshape_reference,
    .traits = Trait::kView | Trait::kReshapes | Trait::kMoves | Trait::kKeepsSameType | Trait::kFoldsQuantization,
    .work = Work::kCopied,
};
}  // namespace pinnace
