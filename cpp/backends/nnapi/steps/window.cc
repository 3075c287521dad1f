// Operands that all windows share.
#include "backends/nnapi/steps/window.h"

namespace pinnace::nnapi_client {

Result<Images> images_of(NodeLowering& n) {
  const TensorType& x = n.in_type(0);
  if (x.rank() != 4 && x.rank() != 3) return n.refuse(Rule::kSpatial, to_string(x));
  Images images;
  PINNACE_ASSIGN(const OperandSpec out, n.spec(n.out_type()));
  if (x.rank() == 4) {
    images.y_dims = channels_last(out.dims);
    PINNACE_ASSIGN(images.x, n.in(0, Layout::kChannelsLast));
    PINNACE_ASSIGN(images.y, n.out(0, Layout::kChannelsLast));
    return images;
  }
  images.line = true;
  PINNACE_ASSIGN(const OperandId x_line, n.in(0));
  const std::vector<uint32_t> d = n.operand(x_line).dims;
  const OperandId turned = n.temp(x_line, {d[0], d[2], d[1]});
  const int32_t perm[] = {0, 2, 1};
  PINNACE_TRY(n.add(Op::TRANSPOSE, {x_line, n.ints(perm)}, turned));
  images.x = n.temp(x_line, {d[0], 1, d[2], d[1]});
  const int32_t shape[] = {static_cast<int32_t>(d[0]), 1, static_cast<int32_t>(d[2]), static_cast<int32_t>(d[1])};
  PINNACE_TRY(n.add(Op::RESHAPE, {turned, n.ints(shape)}, images.x));
  images.y_dims = {out.dims[0], 1, out.dims[2], out.dims[1]};
  OperandSpec image = out;
  image.dims = images.y_dims;
  images.y = n.temp(image);
  return images;
}

Status finish_images(NodeLowering& n, const Images& images) {
  if (!images.line) return {};
  PINNACE_ASSIGN(const OperandId y, n.out());
  const std::vector<uint32_t>& d = images.y_dims;
  const OperandId line = n.temp(images.y, {d[0], d[2], d[3]});
  const int32_t shape[] = {static_cast<int32_t>(d[0]), static_cast<int32_t>(d[2]), static_cast<int32_t>(d[3])};
  PINNACE_TRY(n.add(Op::RESHAPE, {images.y, n.ints(shape)}, line));
  const int32_t perm[] = {0, 2, 1};
  return n.add(Op::TRANSPOSE, {line, n.ints(perm)}, y);
}

Result<OperandId> padded(NodeLowering& n, OperandId x, int64_t top, int64_t bottom, int64_t left, int64_t right) {
  if (top == 0 && bottom == 0 && left == 0 && right == 0) return x;
  const int64_t most = INT32_MAX;
  std::vector<uint32_t> dims = n.operand(x).dims;
  if (top + bottom + dims[1] > most || left + right + dims[2] > most) return n.refuse(Rule::kPadding, "2^31 and more");
  dims[1] += static_cast<uint32_t>(top + bottom);
  dims[2] += static_cast<uint32_t>(left + right);
  const OperandId y = n.temp(x, dims);
  const int32_t pads[] = {0,
                          0,
                          static_cast<int32_t>(top),
                          static_cast<int32_t>(bottom),
                          static_cast<int32_t>(left),
                          static_cast<int32_t>(right),
                          0,
                          0};
  PINNACE_TRY(n.add(Op::PAD, {x, n.ints(pads, {4, 2})}, y));
  return y;
}

void append_pads(NodeLowering& n, const Window& w, std::vector<OperandId>& inputs) {
  for (int64_t pad : {w.before[2], w.after[2], w.before[1], w.after[1]}) {
    inputs.push_back(n.scalar(static_cast<int32_t>(pad)));
  }
}
void append_strides(NodeLowering& n, const Window& w, std::vector<OperandId>& inputs) {
  inputs.push_back(n.scalar(static_cast<int32_t>(w.stride[2])));
  inputs.push_back(n.scalar(static_cast<int32_t>(w.stride[1])));
}

}  // namespace pinnace::nnapi_client
