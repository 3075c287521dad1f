// Pools as AVERAGE_POOL_2D and MAX_POOL_2D, which leave padding out of their windows.
#include "ops/pool.h"

#include "backends/nnapi/steps/floats.h"
#include "backends/nnapi/steps/window.h"

namespace pinnace::nnapi_client {
namespace {

bool keeps_quantization(NodeLowering& n) {
  const TensorType &x = n.in_type(0), &y = n.out_type();
  return x.quantized() == y.quantized() && (!x.quantized() || *x.quantization == *y.quantization);
}

Status add_pool(NodeLowering& n, Op op, OperandId x, OperandId y, const Window& w) {
  std::vector<OperandId> inputs = {x};
  append_pads(n, w, inputs);
  append_strides(n, w, inputs);
  inputs.push_back(n.scalar(static_cast<int32_t>(w.kernel[2])));
  inputs.push_back(n.scalar(static_cast<int32_t>(w.kernel[1])));
  inputs.push_back(n.scalar(0));
  return n.add(op, std::move(inputs), y);
}

Status lower_pool(NodeLowering& n, Op op, bool count_padding) {
  Shape shape;
  PINNACE_ASSIGN(Window w, check_pool(n.view(), shape));
  if (w.rank > 2) return n.refuse(Rule::kSpatial, to_string(n.in_type(0)));
  if (w.dilation[1] > 1 || w.dilation[2] > 1)
    return n.refuse(Rule::kDilation, str_cat(w.dilation[1], ",", w.dilation[2]));
  PINNACE_ASSIGN(const Images images, images_of(n));
  OperandId x = images.x, y = images.y;
  if (!keeps_quantization(n)) {
    PINNACE_ASSIGN(x, as_floats(n, x));
    y = floats_for(n, y);
  }
  if (count_padding) {
    PINNACE_ASSIGN(x, padded(n, x, w.before[1], w.after[1], w.before[2], w.after[2]));
    for (int d : {1, 2}) w.in[d] += w.before[d] + w.after[d];
    w.before = w.after = {};
  }
  for (int d : {1, 2}) {  // the pad that gives this size, with ceil_mode more than was asked for
    w.after[d] = std::max<int64_t>(0, (w.out[d] - 1) * w.stride[d] + w.kernel[d] - w.in[d] - w.before[d]);
    if (w.before[d] >= w.kernel[d] || w.after[d] >= w.kernel[d]) return n.refuse(Rule::kPadding, str_cat(w.after[d]));
  }
  PINNACE_TRY(add_pool(n, op, x, y, w));
  PINNACE_TRY(store_floats(n, y, images.y));
  return finish_images(n, images);
}

/// One window over everything.
Status lower_global_pool(NodeLowering& n, Op op) {
  PINNACE_ASSIGN(const Images images, images_of(n));
  OperandId x = images.x, y = images.y;
  if (!keeps_quantization(n)) {
    PINNACE_ASSIGN(x, as_floats(n, x));
    y = floats_for(n, y);
  }
  const std::vector<uint32_t> dims = n.operand(images.x).dims;
  Window w;
  w.kernel = {1, dims[1], dims[2]};
  PINNACE_TRY(add_pool(n, op, x, y, w));
  PINNACE_TRY(store_floats(n, y, images.y));
  return finish_images(n, images);
}

}  // namespace

Status lower_average_pool(NodeLowering& n) {
  return lower_pool(n, Op::AVERAGE_POOL_2D, n.view().attr_int("count_include_pad") != 0);
}
Status lower_max_pool(NodeLowering& n) {
  if (n.view().output_count() > 1) return n.refuse(Rule::kAttribute, "indices");
  return lower_pool(n, Op::MAX_POOL_2D, false);
}
Status lower_global_average_pool(NodeLowering& n) {
  return lower_global_pool(n, Op::AVERAGE_POOL_2D);
}
Status lower_global_max_pool(NodeLowering& n) {
  return lower_global_pool(n, Op::MAX_POOL_2D);
}

}  // namespace pinnace::nnapi_client
