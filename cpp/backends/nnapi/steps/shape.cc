// Operators that leave the elements' order as it is: reshape, flatten, squeeze, unsqueeze, identity.
#include "backends/nnapi/steps/shape.h"

namespace pinnace::nnapi_client {

Status reshape_into(NodeLowering& n, OperandId x, OperandId y) {
  const std::vector<uint32_t>& dims = n.operand(y).dims;
  if (dims.size() > 4) return n.refuse(Rule::kRank, str_cat(dims.size()));
  const std::vector<int32_t> shape(dims.begin(), dims.end());
  return n.add(Op::RESHAPE, {x, n.ints(shape)}, y);
}

Result<OperandId> reshaped(NodeLowering& n, OperandId x, std::vector<uint32_t> dims) {
  if (n.operand(x).dims == dims) return x;
  const OperandId y = n.temp(x, std::move(dims));
  PINNACE_TRY(reshape_into(n, x, y));
  return y;
}

Status transpose_into(NodeLowering& n, OperandId x, std::span<const int32_t> perm, OperandId y) {
  return n.add(Op::TRANSPOSE, {x, n.ints(perm)}, y);
}

Result<OperandId> transposed(NodeLowering& n, OperandId x, std::span<const int32_t> perm) {
  std::vector<uint32_t> dims;
  for (int32_t p : perm) dims.push_back(n.operand(x).dims[static_cast<size_t>(p)]);
  const OperandId y = n.temp(x, std::move(dims));
  PINNACE_TRY(transpose_into(n, x, perm, y));
  return y;
}

int32_t axis_in(Layout layout, int axis) {
  constexpr int32_t last[] = {0, 3, 1, 2};
  return layout == Layout::kPlain ? axis : last[axis];
}

Layout axis_layout(NodeLowering& n, int i) {
  const bool stands_so = n.in_type(i).rank() == 4 && n.lowering().stands_channels_last(n.in_id(i));
  return stands_so ? Layout::kChannelsLast : Layout::kPlain;
}

Status lower_reshape(NodeLowering& n) {
  PINNACE_ASSIGN(const OperandId x, n.in(0));
  PINNACE_ASSIGN(const OperandId y, n.out());
  return reshape_into(n, x, y);
}

}  // namespace pinnace::nnapi_client
