// Grouped convolution: GROUPED_CONV_2D from feature level 3 on, where taps stand side by side. Else each group is a
// CONV_2D of its part of the channels, and the results are put together: the same sums, exact. Parts are cut by SLICE
// (feature level 3) or STRIDED_SLICE (feature level 2); at feature level 1 by a 1 x 1 convolution with ones and zeros,
// which is exact for floats.
#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/window.h"

namespace pinnace::nnapi_client {

Result<OperandId> channels_of(NodeLowering& n, OperandId x, uint32_t first, uint32_t count) {
  std::vector<uint32_t> dims = n.operand(x).dims;
  const uint32_t all = dims[3];
  dims[3] = count;
  const OperandId part = n.temp(x, dims);
  const auto sizes = std::vector<int32_t>(dims.begin(), dims.end());
  if (n.feature_level() >= 2) {
    const int32_t begin[] = {0, 0, 0, static_cast<int32_t>(first)}, ones[] = {1, 1, 1, 1};
    const int32_t end[] = {sizes[0], sizes[1], sizes[2], static_cast<int32_t>(first + count)};
    PINNACE_TRY(n.add(Op::STRIDED_SLICE,
                      {x, n.ints(begin), n.ints(end), n.ints(ones), n.scalar(0), n.scalar(0), n.scalar(0)}, part));
    return part;
  }
  if (n.operand(x).scale != 0) return n.refuse(Rule::kGroups, "quantised, below feature level 2");
  const OperandId pick =
      n.lowering().add_weight({n.operand(x).type, {count, 1, 1, all}}, str_cat("pick", first), [=](std::byte* to) {
        auto* f = reinterpret_cast<float*>(to);
        std::fill_n(f, size_t{count} * all, 0.0f);
        for (uint32_t i = 0; i < count; ++i) f[size_t{i} * all + first + i] = 1;
      });
  PINNACE_ASSIGN(const OperandId zeros, bias_operand(n, -1, x, pick, count));
  const OperandId one = n.scalar(1), none = n.scalar(0), valid = n.scalar(2);
  PINNACE_TRY(n.add(Op::CONV_2D, {x, pick, zeros, valid, one, one, none}, part));
  return part;
}

Status grouped_conv(NodeLowering& n, const Convolution& c) {
  const Window& w = c.window;
  const bool dilated = w.dilation[1] > 1 || w.dilation[2] > 1;
  if (n.feature_level() >= 3 && !dilated) {
    PINNACE_ASSIGN(const OperandId filter, filter_operand(n, 1, c.x, c.filter, 0));
    PINNACE_ASSIGN(const OperandId bias, bias_operand(n, 2, c.x, filter, c.out_channels));
    std::vector<OperandId> inputs = {c.x, filter, bias};
    append_pads(n, w, inputs);
    append_strides(n, w, inputs);
    inputs.push_back(n.scalar(static_cast<int32_t>(c.groups)));
    return n.add_activated(Op::GROUPED_CONV_2D, std::move(inputs), c.activation, c.y, {n.flag(false)});
  }
  if (dilated && n.feature_level() < 3) return n.refuse(Rule::kDilation, "in groups");
  if (c.groups > kMostParts) return n.refuse(Rule::kGroups, str_cat(c.groups));
  n.rewritten("a convolution for each group");
  const uint32_t in = c.in_channels / c.groups, out = c.out_channels / c.groups;
  Gathered part = c.filter;
  part.dims[0] = out;
  std::vector<OperandId> parts;
  for (uint32_t g = 0; g < c.groups; ++g) {
    PINNACE_ASSIGN(const OperandId x, channels_of(n, c.x, g * in, in));
    PINNACE_ASSIGN(const OperandId filter, filter_operand(n, 1, x, part, 0, 1, str_cat("/group", g),
                                                          int64_t{g} * out * part.strides[0], int64_t{g} * out));
    PINNACE_ASSIGN(const OperandId bias, bias_operand(n, 2, x, filter, out, 1, int64_t{g} * out));
    std::vector<OperandId> inputs = {x, filter, bias};
    append_pads(n, w, inputs);
    append_strides(n, w, inputs);
    std::vector<OperandId> after;
    if (dilated) {
      after = {n.flag(false), n.scalar(static_cast<int32_t>(w.dilation[2])),
               n.scalar(static_cast<int32_t>(w.dilation[1]))};
    }
    std::vector<uint32_t> dims = n.operand(c.y).dims;
    dims[3] = out;
    parts.push_back(n.temp(c.y, dims));
    PINNACE_TRY(n.add_activated(Op::CONV_2D, std::move(inputs), c.activation, parts.back(), std::move(after)));
  }
  parts.push_back(n.scalar(3));
  return n.add(Op::CONCATENATION, std::move(parts), c.y);
}

}  // namespace pinnace::nnapi_client
