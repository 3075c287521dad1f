// depth_to_space: blocks of channels become blocks of pixels.
//   x          [N, C, H, W]  any type; C divisible by b * b, b = blocksize
//   blocksize  int, required
//   mode       string, default "DCR": channel = (row in block, column in block, channel of y); "CRD": (channel of y,
//   row,
//              column), which is PyTorch's pixel_shuffle
//   y          [N, C / b / b, H * b, W * b]  as x
// Source: ONNX DepthToSpace, opset 13.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> depth_to_space_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const int64_t b = node.attr_int("blocksize");
  const std::string_view mode = node.attr_string("mode");
  if (mode != "DCR" && mode != "CRD") return node.error("mode is '", mode, "', must be DCR or CRD");
  if (x.rank() != 4) return node.error("x must be [N,C,H,W], is ", x);
  if (b < 1 || b > INT32_MAX) return node.error("blocksize ", b, " is not a positive 32-bit number");
  TensorType y{x.dtype, {x.shape[0], Dim(), dim_mul(x.shape[2], b), dim_mul(x.shape[3], b)}, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  if (x.shape[1].known()) {
    if (x.shape[1].size % (b * b)) {
      return node.error("channels of ", x, " do not divide by blocksize ", b, " squared");
    }
    y.shape[1] = x.shape[1].size / (b * b);
  } else {
    y.shape[1] = b == 1 ? x.shape[1] : x.shape[1].max >= 0 ? Dim::unknown(x.shape[1].max / (b * b)) : Dim();
  }
  return y;
}

Status depth_to_space_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  const int64_t b = node.attr_int("blocksize"), c = y.dim(1);
  const bool dcr = node.attr_string("mode") == "DCR";
  const Shape split = dcr ? Shape{x.dim(0), b, b, c, x.dim(2), x.dim(3)} : Shape{x.dim(0), c, b, b, x.dim(2), x.dim(3)};
  const int perm_dcr[] = {0, 3, 4, 1, 5, 2}, perm_crd[] = {0, 1, 4, 2, 5, 3};
  copy_transposed(node.threads(), split, dcr ? perm_dcr : perm_crd, x.bytes, y.bytes, element_bytes(x.dtype()));
  return {};
}
}  // namespace

PINNACE_OP(depth_to_space){
    .name = "depth_to_space",
    .inputs = {{"x", kAny}},
    .attrs = {required_attr("blocksize", AttrKind::kInt), string_attr("mode", "DCR")},
    .type = depth_to_space_type,
    .reference = depth_to_space_reference,
    .traits = Trait::kMoves,
    .work = Work::kCopied,
};
}  // namespace pinnace
