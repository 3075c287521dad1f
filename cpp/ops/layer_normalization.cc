// layer_normalization: y = (x - mean) / sqrt(variance + epsilon) * scale + b; mean and variance (of the population)
// over dimensions [axis, rank) of x.
//   x        [...]  floats, rank 1 or more
//   scale    broadcasts to x, usually x's dimensions from axis on  as x
//   b        likewise, optional                                    as x
//   axis int, default -1; epsilon float, default 1e-5; stash_type string "f32" | "bf16" | "f16" | "f64", default "f32"
//   y        as x
//   mean, inv_std_dev  optional: x's shape with 1 from axis on, element type stash_type; inv_std_dev is 1 /
//   sqrt(variance + epsilon)
// In double, two passes, one rounding; stash_type says only how the optional outputs are stored.
// A NaN or an infinity makes all it is normalised with NaN. Source: ONNX LayerNormalization, opset 17.
#include <cmath>

#include "base/dtype_code.h"
#include "ops/lines.h"

namespace pinnace {
namespace {
Status layer_normalization_types(const NodeView& node, std::span<TensorType> out) {
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  for (int i = 1; i < 3; ++i) {
    if (node.has_input(i) && !broadcasts_to(node.input(i).shape, x.shape)) {
      return node.error(i == 1 ? "scale " : "b ", node.input(i), " does not broadcast to x ", x);
    }
  }
  const auto stash = dtype_from_code(node.attr_string("stash_type"));
  if (!stash || !(kFloats >> static_cast<int>(*stash) & 1)) {
    return node.error("stash_type '", node.attr_string("stash_type"), "' is not a float type");
  }
  out[0] = {x.dtype, x.shape, nullptr};
  for (size_t i = 1; i < out.size(); ++i) {
    out[i] = {*stash, x.shape, nullptr};
    for (size_t d = static_cast<size_t>(axis); d < x.shape.size(); ++d) out[i].shape[d] = 1;
  }
  return {};
}

Status layer_normalization_reference(const NodeView& node, std::span<const TensorView> in,
                                     std::span<const TensorView> out) {
  const TensorView &x = in[0], &scale = in[1];
  const bool has_b = in.size() > 2 && in[2].present();
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  const double epsilon = node.attr_float("epsilon");
  const Slices slices(x.type->shape, axis, x.rank() - axis);
  PINNACE_ASSIGN(auto factors, Scratch<double>::allocate(scale.elements(), "layer_normalization's scale"));
  PINNACE_ASSIGN(auto terms, Scratch<double>::allocate(has_b ? in[2].elements() : 1, "layer_normalization's bias"));
  load_line(scale, 0, 1, scale.elements(), factors.data());
  terms[0] = 0;
  if (has_b) load_line(in[2], 0, 1, in[2].elements(), terms.data());
  StridedLoop loop(x.type->shape);
  loop.add_broadcast(scale.type->shape);
  loop.add_broadcast(has_b ? in[2].type->shape : Shape{});
  const double cost = 8 * static_cast<double>(slices.size);
  PINNACE_TRY(node.threads().ranges(slices.outer, cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto slice, Scratch<double>::allocate(slices.size, "layer_normalization's slice"));
    Moments m{};
    double inverse = 0;
    loop.run(begin * slices.size, end * slices.size, [&](int64_t i, const int64_t* at) {
      const int64_t within = i % slices.size;
      if (within == 0) {
        load_line(x, i, 1, slices.size, slice.data());
        m = moments(slice.data(), slices.size);
        inverse = 1 / std::sqrt(m.variance + epsilon);
        if (out.size() > 1) store_line(out[1], i / slices.size, 1, 1, &m.mean);
        if (out.size() > 2) store_line(out[2], i / slices.size, 1, 1, &inverse);
      }
      slice[within] = (slice[within] - m.mean) * inverse * factors[at[0]] + terms[at[1]];
      if (within == slices.size - 1) store_line(out[0], i - within, 1, slices.size, slice.data());
    });
    return {};
  }));
  if (slices.size == 0) {  // slices of nothing have a mean of 0 / 0
    const double nan = std::nan("");
    for (size_t k = 1; k < out.size(); ++k) {
      for (int64_t i = 0; i < slices.outer; ++i) store_line(out[k], i, 1, 1, &nan);
    }
  }
  return {};
}
}  // namespace

PINNACE_OP(layer_normalization){
    .name = "layer_normalization",
    .inputs = {{"x", kFloats, 'T'}, {"scale", kFloats, 'T'}, {"b", kFloats, 'T', Arity::kOptional}},
    .attrs = {int_attr("axis", -1), float_attr("epsilon", 1e-5), string_attr("stash_type", "f32")},
    .max_outputs = 3,
    .types = layer_normalization_types,
    .reference = layer_normalization_reference,
    .in_place = 1,
};
}  // namespace pinnace
