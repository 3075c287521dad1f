// Dilated convolution below feature level 3. Feature level 2: SPACE_TO_BATCH_ND by the dilation, the convolution with
// taps side by side, BATCH_TO_SPACE_ND, and STRIDED_SLICE of what was padded too much: the same sums, exact. With
// strides, or at feature level 1: the filter with zeros between its taps, the same sums and zeros, exact for finite x.
#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/window.h"

namespace pinnace::nnapi_client {
namespace {

/// A filter with zeros has (d k - d + 1)^2 taps for k^2, and the device computes with all of them. Dilations of 2 and 4
/// stay far below; 12 of 960 channels, as segmentation has them, would be 600 MB for 8.
constexpr uint64_t kMostSpreadBytes = uint64_t{64} << 20;

Status convolve(NodeLowering& n, const Convolution& c, OperandId x, OperandId filter, OperandId y, const Window& w) {
  PINNACE_ASSIGN(const OperandId bias, bias_operand(n, 2, x, filter, c.out_channels));
  std::vector<OperandId> inputs = {x, filter, bias};
  append_pads(n, w, inputs);
  append_strides(n, w, inputs);
  const bool depthwise = c.groups > 1;
  if (depthwise) inputs.push_back(n.scalar(static_cast<int32_t>(c.out_channels / c.in_channels)));
  return n.add_activated(depthwise ? Op::DEPTHWISE_CONV_2D : Op::CONV_2D, std::move(inputs), c.activation, y);
}

/// Dimensions and distances as the operation wants the filter.
Gathered filter_of(const Convolution& c) {
  const Gathered& f = c.filter;
  if (c.groups == 1) return f;
  return {{1, f.dims[1], f.dims[2], c.out_channels}, {0, f.strides[1], f.strides[2], f.strides[0]}};
}

Status with_zeros(NodeLowering& n, const Convolution& c) {
  if (!n.constant(1)) return n.refuse(Rule::kConstant, "the weights of a dilated window below feature level 3");
  const Gathered g = filter_of(c);
  PINNACE_ASSIGN(const OperandId tight, filter_operand(n, 1, c.x, g, c.groups > 1 ? 3 : 0));
  const nnapi::Operand like = n.operand(tight);
  OperandSpec spec{like.type, like.dims, like.scale, like.zero_point};
  uint64_t bytes = nnapi::info(like.type).bytes;
  for (size_t d = 0; d < 4; ++d) {
    uint64_t size = g.dims[d];
    if (d == 1 || d == 2) size = (size - 1) * static_cast<uint64_t>(c.window.dilation[d]) + 1;
    if (size > kMostSpreadBytes / bytes) {
      return n.refuse(Rule::kFeatureLevel,
                      str_cat("dilation ", c.window.dilation[1], " by ", c.window.dilation[2],
                              " needs feature level 3: with zeros the filter has above ", kMostSpreadBytes, " bytes"));
    }
    spec.dims[d] = static_cast<uint32_t>(size);
    bytes *= size;
  }
  n.rewritten("dilation by zeros in the filter");
  const auto dh = static_cast<uint32_t>(c.window.dilation[1]), dw = static_cast<uint32_t>(c.window.dilation[2]);
  Lowering& l = n.lowering();
  // The filter that has just been made is not read: its bytes are spread instead.
  const auto fill = l.take_constant(tight);
  const size_t size = nnapi::info(like.type).bytes;
  const auto spread = [=, dims = like.dims, wide = spec.dims](std::byte* to) {
    std::vector<std::byte> taps(like.bytes());
    fill(taps.data());
    size_t total = size;
    for (uint32_t d : wide) total *= d;
    std::fill_n(to, total, static_cast<std::byte>(like.zero_point));  // the real number 0
    const size_t depth = dims[3] * size;
    for (size_t m = 0; m < dims[0]; ++m) {
      for (size_t y = 0; y < dims[1]; ++y) {
        for (size_t x = 0; x < dims[2]; ++x) {
          std::copy_n(taps.data() + ((m * dims[1] + y) * dims[2] + x) * depth, depth,
                      to + ((m * wide[1] + y * dh) * wide[2] + x * dw) * depth);
        }
      }
    }
  };
  const OperandId filter = l.add_weight(spec, "filter1/spread", spread, true);
  Window w = c.window;
  w.dilation = {1, 1, 1};
  return convolve(n, c, c.x, filter, c.y, w);
}

}  // namespace

Status dilated_conv(NodeLowering& n, const Convolution& c) {
  const Window& w = c.window;
  if (n.feature_level() < 2 || w.stride[1] > 1 || w.stride[2] > 1) return with_zeros(n, c);
  n.rewritten("dilation by space_to_batch");
  const auto dims = n.operand(c.x).dims;
  std::vector<uint32_t> batched = dims, made = n.operand(c.y).dims, back = made;
  int32_t blocks[2] = {}, pads[4] = {};
  for (int d : {1, 2}) {
    const int64_t block = w.dilation[d], need = w.in[d] + w.before[d] + w.after[d];
    const int64_t padded = (need + block - 1) / block * block;
    blocks[d - 1] = static_cast<int32_t>(block);
    pads[2 * d - 2] = static_cast<int32_t>(w.before[d]);
    pads[2 * d - 1] = static_cast<int32_t>(padded - w.in[d] - w.before[d]);
    batched[static_cast<size_t>(d)] = static_cast<uint32_t>(padded / block);
    made[static_cast<size_t>(d)] = static_cast<uint32_t>(padded / block - w.kernel[d] + 1);
    back[static_cast<size_t>(d)] = made[static_cast<size_t>(d)] * static_cast<uint32_t>(block);
  }
  const auto images = static_cast<uint32_t>(blocks[0] * blocks[1]);
  batched[0] *= images;
  made[0] *= images;
  const OperandId apart = n.temp(c.x, batched), result = n.temp(c.y, made), whole = n.temp(c.y, back);
  PINNACE_TRY(n.add(Op::SPACE_TO_BATCH_ND, {c.x, n.ints(blocks), n.ints(pads, {2, 2})}, apart));
  PINNACE_ASSIGN(const OperandId filter, filter_operand(n, 1, apart, filter_of(c), c.groups > 1 ? 3 : 0));
  Window tight = w;
  tight.dilation = {1, 1, 1};
  tight.before = tight.after = {};
  PINNACE_TRY(convolve(n, c, apart, filter, result, tight));
  PINNACE_TRY(n.add(Op::BATCH_TO_SPACE_ND, {result, n.ints(blocks)}, whole));
  const std::vector<uint32_t> wanted = n.operand(c.y).dims;
  const int32_t begin[] = {0, 0, 0, 0}, ones[] = {1, 1, 1, 1};
  const std::vector<int32_t> end(wanted.begin(), wanted.end());
  return n.add(Op::STRIDED_SLICE,
               {whole, n.ints(begin), n.ints(end), n.ints(ones), n.scalar(0), n.scalar(0), n.scalar(0)}, c.y);
}

}  // namespace pinnace::nnapi_client
