// Transposed convolution in groups: a TRANSPOSE_CONV_2D for each, of its part of the channels, put together: the same
// sums, exact.
#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/window.h"

namespace pinnace::nnapi_client {

Status grouped_conv_transpose(NodeLowering& n, const Convolution& c) {
  if (c.groups > kMostParts) return n.refuse(Rule::kGroups, str_cat(c.groups));
  n.rewritten("a transposed convolution for each group");
  const uint32_t in = c.in_channels / c.groups, out = c.out_channels / c.groups;
  std::vector<OperandId> parts;
  for (uint32_t g = 0; g < c.groups; ++g) {
    PINNACE_ASSIGN(const OperandId x, channels_of(n, c.x, g * in, in));
    PINNACE_ASSIGN(const OperandId filter, filter_operand(n, 1, x, c.filter, 0, 1, str_cat("/group", g),
                                                          int64_t{g} * in * c.filter.strides[3]));
    PINNACE_ASSIGN(const OperandId bias, bias_operand(n, 2, x, filter, out, 1, int64_t{g} * out));
    std::vector<OperandId> inputs = {x, filter, bias};
    append_pads(n, c.window, inputs);
    append_strides(n, c.window, inputs);
    std::vector<uint32_t> dims = n.operand(c.y).dims;
    dims[3] = out;
    parts.push_back(n.temp(c.y, dims));
    PINNACE_TRY(n.add_activated(Op::TRANSPOSE_CONV_2D, std::move(inputs), c.activation, parts.back(), {n.flag(false)}));
  }
  parts.push_back(n.scalar(3));
  return n.add(Op::CONCATENATION, std::move(parts), c.y);
}

}  // namespace pinnace::nnapi_client
