// Concatenation of quantised tensors, whose scales may differ.
#include "backends/gpu/quantize/int8.h"
#include "backends/gpu/unary/int8_table.h"
#include "ops/move.h"

namespace pinnace::gpu {

Status lower_quantized_concat(NodeLowering& n) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.out().rank()));
  const int inputs = n.view().input_count();
  bool as_nc4hw4 = axis == 1 && n.out().rank() >= 3, held = false;
  for (int i = 0; i < inputs; ++i) {
    as_nc4hw4 = as_nc4hw4 && (i + 1 == inputs || n.in(i).shape[1].size % 4 == 0);
    held |= n.held_as_nc4hw4(i);
  }
  as_nc4hw4 = as_nc4hw4 && held;
  std::vector<TensorId> from;
  for (int i = 0; i < inputs; ++i) from.push_back(as_nc4hw4 ? n.nc4hw4(i) : n.dense(i));
  const TensorId y = as_nc4hw4 ? n.make_nc4hw4() : n.make_dense();
  const AxisView whole = view_axis(n.out().shape, axis);
  Runs r;
  r.rows = !as_nc4hw4;
  r.to_image = as_nc4hw4 ? image_shape(n.out()).blocks() * image_shape(n.out()).pixels : whole.size * whole.inner;
  for (int i = 0; i < inputs; ++i) {
    const TensorType from_type = n.in(i), to_type = n.out();
    r.table = !same_quantization(from_type, to_type);
    r.run = as_nc4hw4 ? image_shape(from_type).blocks() * image_shape(from_type).pixels
                      : from_type.shape[static_cast<size_t>(axis)].size * whole.inner;
    r.from_image = r.run;
    r.count = r.run * (as_nc4hw4 ? image_shape(n.out()).N : whole.outer);
    TensorId table = from[static_cast<size_t>(i)];
    if (r.table) {
      table = rescaling_table(n, str_cat("scale ", i), from_type, to_type);
    }
    runs(n, r, from[static_cast<size_t>(i)], table, y);
    r.to += r.run;
  }
  return {};
}

}  // namespace pinnace::gpu
