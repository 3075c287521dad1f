// Quantised convolution with a scale per output channel below feature level 3, which has one scale for all weights:
// neighbours with the same scale are a convolution of their own, and the results are put together. The same sums with
// the same multipliers: exact.
#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/window.h"

namespace pinnace::nnapi_client {

Status per_channel_conv(NodeLowering& n, const Convolution& c) {
  const std::vector<float>& scales = n.in_type(1).quantization->scales;
  const bool depthwise = c.groups > 1;
  const uint32_t multiplier = c.out_channels / c.in_channels;
  struct Run {
    uint32_t first = 0, count = 0;
  };
  std::vector<Run> runs = {{0, 1}};
  for (uint32_t m = 1; m < c.out_channels; ++m) {
    // A depthwise part begins with a channel of x.
    if (scales[m] == scales[runs.back().first] || (depthwise && m % multiplier != 0)) {
      ++runs.back().count;
    } else {
      runs.push_back({m, 1});
    }
    if (scales[m] != scales[runs.back().first])
      return n.refuse(Rule::kFeatureLevel, "scales per channel need feature level 3");
  }
  if (runs.size() > kMostParts) {
    return n.refuse(Rule::kFeatureLevel,
                    str_cat(runs.size(), " scales per channel need feature level 3, at most ", kMostParts));
  }
  n.rewritten("a convolution for each scale");
  std::vector<OperandId> parts;
  for (const Run& run : runs) {
    const uint32_t first = run.first, count = run.count;
    OperandId x = c.x;
    Gathered g = c.filter;
    g.dims[0] = count;
    if (depthwise) {
      PINNACE_ASSIGN(x, channels_of(n, c.x, first / multiplier, count / multiplier));
      g = {{1, g.dims[1], g.dims[2], count}, {0, g.strides[1], g.strides[2], g.strides[0]}};
    }
    PINNACE_ASSIGN(const OperandId filter, filter_operand(n, 1, x, g, depthwise ? 3 : 0, 1, str_cat("/scale", first),
                                                          int64_t{first} * c.filter.strides[0], first));
    PINNACE_ASSIGN(const OperandId bias, bias_operand(n, 2, x, filter, count, 1, first));
    std::vector<OperandId> inputs = {x, filter, bias};
    append_pads(n, c.window, inputs);
    append_strides(n, c.window, inputs);
    if (depthwise) inputs.push_back(n.scalar(static_cast<int32_t>(multiplier)));
    std::vector<uint32_t> dims = n.operand(c.y).dims;
    dims[3] = count;
    const OperandId part = runs.size() == 1 ? c.y : n.temp(c.y, dims);
    parts.push_back(part);
    PINNACE_TRY(
        n.add_activated(depthwise ? Op::DEPTHWISE_CONV_2D : Op::CONV_2D, std::move(inputs), c.activation, part));
  }
  if (parts.size() == 1) return {};
  parts.push_back(n.scalar(3));
  return n.add(Op::CONCATENATION, std::move(parts), c.y);
}

}  // namespace pinnace::nnapi_client
