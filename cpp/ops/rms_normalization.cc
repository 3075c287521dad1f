// rms_normalization: y = x / sqrt(mean of x * x + epsilon) * scale; the mean over dimensions [axis, rank) of x.
//   x      [...]  floats, rank 1 or more
//   scale  broadcasts to x, usually x's dimensions from axis on; floats, not necessarily x's type
//   axis int, default -1; epsilon float, default 1e-5; stash_type string, default "f32": has no effect
//   y      x's shape, scale's element type
// In double, one rounding. A NaN makes all it is normalised with NaN; beside an infinity, itself NaN, finite elements
// become 0. Source: ONNX RMSNormalization, opset 23.
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
Result<TensorType> rms_normalization_type(const NodeView& node) {
  const TensorType &x = node.input(0), &scale = node.input(1);
  PINNACE_TRY(node.axis(node.attr_int("axis"), x.rank()).status());
  if (!broadcasts_to(scale.shape, x.shape)) return node.error("scale ", scale, " does not broadcast to x ", x);
  return TensorType{scale.dtype, x.shape, nullptr};
}

Status rms_normalization_reference(const NodeView& node, std::span<const TensorView> in,
                                   std::span<const TensorView> out) {
  const TensorView &x = in[0], &scale = in[1];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  const double epsilon = node.attr_float("epsilon");
  const Slices slices(x.type->shape, axis, x.rank() - axis);
  PINNACE_ASSIGN(auto factors, Scratch<double>::allocate(scale.elements(), "rms_normalization's scale"));
  load_line(scale, 0, 1, scale.elements(), factors.data());
  StridedLoop loop(x.type->shape);
  loop.add_broadcast(scale.type->shape);
  const double cost = 6 * static_cast<double>(slices.size);
  return node.threads().ranges(slices.outer, cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto slice, Scratch<double>::allocate(slices.size, "rms_normalization's slice"));
    double inverse = 0;
    loop.run(begin * slices.size, end * slices.size, [&](int64_t i, const int64_t* at) {
      const int64_t within = i % slices.size;
      if (within == 0) {
        load_line(x, i, 1, slices.size, slice.data());
        double squares = 0;
        for (double v : slice.span()) squares += v * v;
        inverse = 1 / std::sqrt(squares / static_cast<double>(slices.size) + epsilon);
      }
      slice[within] *= inverse * factors[at[0]];
      if (within == slices.size - 1) store_line(out[0], i - within, 1, slices.size, slice.data());
    });
    return {};
  });
}
}  // namespace

PINNACE_OP(rms_normalization){
    .name = "rms_normalization",
    .inputs = {{"x", kFloats}, {"scale", kFloats}},
    .attrs = {int_attr("axis", -1), float_attr("epsilon", 1e-5), string_attr("stash_type", "f32")},
    .type = rms_normalization_type,
    .reference = rms_normalization_reference,
    .in_place = 1,
};
}  // namespace pinnace
