// space_to_depth: blocks of pixels become blocks of channels; the inverse of depth_to_space of the same mode.
//   x          [N, C, H, W]  any type; H and W divisible by b = blocksize
//   blocksize  int, required
//   mode       string, default "DCR": channel of y = (row in block, column in block, channel of x); "CRD": (channel of
//              x, row, column), which is PyTorch's pixel_unshuffle
//   y          [N, b * b * C, H / b, W / b]  as x
// Source: ONNX SpaceToDepth, opset 28.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> space_to_depth_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const int64_t b = node.attr_int("blocksize");
  const std::string_view mode = node.attr_string("mode");
  if (mode != "DCR" && mode != "CRD") return node.error("mode is '", mode, "', must be DCR or CRD");
  if (x.rank() != 4) return node.error("x must be [N,C,H,W], is ", x);
  if (b < 1 || b > INT32_MAX) return node.error("blocksize ", b, " is not a positive 32-bit number");
  TensorType y{x.dtype, {x.shape[0], dim_mul(x.shape[1], b * b), x.shape[2], x.shape[3]}, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  for (size_t i = 2; i < 4 && b > 1; ++i) {
    const Dim d = x.shape[i];
    if (d.known() && d.size % b) return node.error("height and width of ", x, " do not divide by blocksize ", b);
    y.shape[i] = d.known() ? Dim(d.size / b) : d.max >= 0 ? Dim::unknown(d.max / b) : Dim();
  }
  return y;
}

Status space_to_depth_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  const int64_t b = node.attr_int("blocksize");
  const Shape split = {x.dim(0), x.dim(1), y.dim(2), b, y.dim(3), b};
  const int perm_dcr[] = {0, 3, 5, 1, 2, 4}, perm_crd[] = {0, 1, 3, 5, 2, 4};
  copy_transposed(node.threads(), split, node.attr_string("mode") == "DCR" ? perm_dcr : perm_crd, x.bytes, y.bytes,
                  element_bytes(x.dtype()));
  return {};
}
}  // namespace

PINNACE_OP(space_to_depth){
    .name = "space_to_depth",
    .inputs = {{"x", kAny}},
    .attrs = {required_attr("blocksize", AttrKind::kInt), string_attr("mode", "DCR")},
    .type = space_to_depth_type,
    .reference = space_to_depth_reference,
    .traits = Trait::kMoves,
    .work = Work::kCopied,
};
}  // namespace pinnace
