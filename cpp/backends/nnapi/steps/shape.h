// Reshaping inside a lowering.
#pragma once

#include "backends/nnapi/lowering.h"

namespace pinnace::nnapi_client {

/// x with other dims in the same order of elements; x itself if they are its own.
Result<OperandId> reshaped(NodeLowering& n, OperandId x, std::vector<uint32_t> dims);
/// y, an operand that is there already, from x.
Status reshape_into(NodeLowering& n, OperandId x, OperandId y);
/// x with its dimensions in another order: TRANSPOSE, from feature level 2 on.
Result<OperandId> transposed(NodeLowering& n, OperandId x, std::span<const int32_t> perm);
Status transpose_into(NodeLowering& n, OperandId x, std::span<const int32_t> perm, OperandId y);

/// Dimension `axis` of the graph's order where the layout has it; ranks below 4 have only the plain layout.
int32_t axis_in(Layout layout, int axis);
/// Channels last where input `i` stands so, else the graph's order: for operators that work along axes.
Layout axis_layout(NodeLowering& n, int i = 0);

}  // namespace pinnace::nnapi_client
