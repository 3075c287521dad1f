// Weights and biases of products as operands: laid out anew, with the element type that goes with the other operand.
#pragma once

#include "backends/nnapi/lowering.h"

namespace pinnace::nnapi_client {

/// Where element (i0, i1, ..) of the operand comes from: dims of the operand, and for each the distance in elements
/// between neighbours in the graph's constant.
struct Gathered {
  std::vector<uint32_t> dims;
  std::vector<int64_t> strides;
};

/// The filter of a product with x. Quantised: of x's signedness; scales per channel along operand dimension
/// `channel_dim` (from feature level 3 on). scale: floats are multiplied by it. `distinct` names one of several filters
/// made of one constant; `first` is the element where it starts and, with scales per channel, `first_channel` its
/// first.
Result<OperandId> filter_operand(NodeLowering& n, int input, OperandId x, const Gathered& from, uint32_t channel_dim,
                                 double scale = 1, std::string_view distinct = {}, int64_t first = 0,
                                 int64_t first_channel = 0);

/// The bias of `count` channels for a product of x and filter: input `input`, or zeros where it is left out. Quantised:
/// i32 at scale s_x * s_w. scale: floats are multiplied by it.
Result<OperandId> bias_operand(NodeLowering& n, int input, OperandId x, OperandId filter, uint32_t count,
                               double scale = 1, int64_t first = 0);

}  // namespace pinnace::nnapi_client
