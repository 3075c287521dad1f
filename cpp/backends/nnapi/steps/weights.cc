// Filters and biases.
#include "backends/nnapi/steps/weights.h"

#include <algorithm>
#include <cstring>

#include "backends/nnapi/steps/shape.h"
#include "base/half.h"

namespace pinnace::nnapi_client {
namespace {

using enum nnapi::OperandCode;

/// Calls f(to, from) for each element of the operand, `to` ascending.
template <class F>
void for_each_element(const Gathered& g, F f) {
  std::vector<uint32_t> at(g.dims.size(), 0);
  size_t count = 1;
  for (uint32_t d : g.dims) count *= d;
  int64_t from = 0;
  for (size_t to = 0; to < count; ++to) {
    f(to, static_cast<size_t>(from));
    for (size_t i = at.size(); i-- > 0;) {
      from += g.strides[i];
      if (++at[i] < g.dims[i]) break;
      from -= g.strides[i] * g.dims[i];
      at[i] = 0;
    }
  }
}

void fill_floats(const Gathered& g, const void* data, double scale, bool is_f16, std::byte* to) {
  if (!is_f16) {
    const auto* from = static_cast<const float*>(data);
    auto* y = reinterpret_cast<float*>(to);
    const auto factor = static_cast<float>(scale);
    for_each_element(g, [&](size_t i, size_t k) { y[i] = factor == 1 ? from[k] : from[k] * factor; });
    return;
  }
  const auto* from = static_cast<const uint16_t*>(data);
  auto* y = reinterpret_cast<uint16_t*>(to);
  for_each_element(g, [&](size_t i, size_t k) {
    y[i] = scale == 1 ? from[k] : float_to_half(static_cast<float>(half_to_float(from[k]) * scale));
  });
}

size_t bytes_of(DType dtype) {
  return static_cast<size_t>(dtype_bits(dtype)) / 8;
}

/// True if operand dimensions `dims` of strides `strides` are those of `wanted`, whose strides of size 1 mean nothing.
bool is_form(const Gathered& wanted, const std::vector<uint32_t>& dims, const std::vector<int64_t>& strides) {
  if (dims != wanted.dims) return false;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1 && strides[d] != wanted.strides[d]) return false;
  }
  return true;
}

/// A filter [a, b, height, width] that only a run knows: [a, height, width, b] as it enters, or [b, height, width, a].
Result<OperandId> filter_of_run(NodeLowering& n, int input, const Gathered& from) {
  if (n.in_type(input).rank() != 4) return n.refuse(Rule::kConstant, "the weights");
  PINNACE_ASSIGN(const OperandId last, n.in(input, Layout::kChannelsLast));
  const std::vector<uint32_t> d = n.operand(last).dims;
  const int64_t width = d[2], plane = d[1] * width, all = d[3] * plane;
  if (is_form(from, d, {all, width, 1, plane})) return last;
  if (!is_form(from, {d[3], d[1], d[2], d[0]}, {plane, width, 1, all})) {
    return n.refuse(Rule::kConstant, "the weights");
  }
  const int32_t swap[] = {3, 1, 2, 0};
  return transposed(n, last, swap);
}

}  // namespace

Result<OperandId> filter_operand(NodeLowering& n, int input, OperandId x, const Gathered& from, uint32_t channel_dim,
                                 double scale, std::string_view distinct, int64_t first, int64_t first_channel) {
  if (!n.constant(input)) {
    if (scale != 1 || !distinct.empty()) return n.refuse(Rule::kConstant, "the weights");
    return filter_of_run(n, input, from);
  }
  const TensorType& type = n.in_type(input);
  const auto* data = static_cast<const std::byte*>(n.data(input)) + static_cast<size_t>(first) * bytes_of(type.dtype);
  const std::string role = str_cat("filter", input, distinct);
  OperandSpec spec{n.operand(x).type, from.dims};
  if (!type.quantized()) {
    const bool is_f16 = type.dtype == DType::kF16;
    return n.lowering().add_weight(
        spec, scale == 1 ? role : str_cat(role, "*", scale),
        [=](std::byte* to) { fill_floats(from, data, scale, is_f16, to); }, true);
  }
  const Quantization& q = *type.quantization;
  if (q.block > 0) return n.refuse(Rule::kQuantization, to_string(type));
  // Below feature level 3 there is one scale: rewrites/per_channel_conv.cc takes channels that share it.
  const auto own = std::span(q.scales).subspan(q.scales.size() > 1 ? static_cast<size_t>(first_channel) : 0);
  const size_t count = std::min<size_t>(own.size(), from.dims[channel_dim]);
  const bool one_scale = n.feature_level() < 3 && std::all_of(
                                                      own.begin(), own.begin() + static_cast<ptrdiff_t>(count),
                                                      [&](float scale) { return scale == own[0]; });
  const bool per_channel = q.scales.size() > 1 && !one_scale;
  // The type that stands beside x; the same constant may be wanted signed and unsigned.
  if (per_channel) spec.type = kTensorQuant8SymmPerChannel;
  const bool wants_signed = spec.type != kTensorQuant8Asymm, is_signed = type.dtype == DType::kI8;
  const int32_t shift = wants_signed == is_signed ? 0 : wants_signed ? -128 : 128;
  if (per_channel) {
    for (int32_t zero : q.zero_points) {
      if (zero + shift != 0) return n.refuse(Rule::kQuantization, str_cat("zero point ", zero));
    }
    if (n.feature_level() < 3) return n.refuse(Rule::kFeatureLevel, "scales per channel need feature level 3");
  } else {
    const size_t channel = q.scales.size() > 1 ? static_cast<size_t>(first_channel) : 0;
    spec.scale = q.scales[channel];
    spec.zero_point = q.zero_points[channel] + shift;
  }
  const auto fill = [=](std::byte* to) {
    const auto flip = static_cast<std::byte>(shift ? 0x80 : 0);
    for_each_element(from, [&](size_t i, size_t k) { to[i] = data[k] ^ flip; });
  };
  const OperandId made = n.lowering().add_weight(spec, str_cat(role, shift ? "^" : ""), fill, true);
  if (per_channel) {
    nnapi::Operand& o = n.lowering().model().operands[made];
    o.channel_dim = channel_dim;
    const auto begin = q.scales.begin() + first_channel;
    o.channel_scales.assign(begin, begin + o.dims[channel_dim]);
  }
  return made;
}

Result<OperandId> bias_operand(NodeLowering& n, int input, OperandId x, OperandId filter, uint32_t count, double scale,
                               int64_t first) {
  OperandSpec spec{n.operand(x).type, {count}};
  const bool there = input >= 0 && n.has(input);
  const bool quantized = n.in_type(0).quantized();
  if (quantized) {
    spec.type = kTensorInt32;
    spec.scale = n.operand(x).scale * n.operand(filter).scale;  // 0 beside scales per channel
  }
  if (!there)
    return n.lowering().add_weight(spec, "zeros", [count, size = nnapi::info(spec.type).bytes](std::byte* to) {
      std::memset(to, 0, size_t{count} * size);
    });
  if (!n.constant(input)) {
    const bool one_each = n.in_type(input).rank() == 1 && n.in_type(input).elements() == count;
    if (scale != 1 || first != 0 || !one_each) return n.refuse(Rule::kConstant, "the bias");
    return quantized ? n.lowering().scaled_int32(n.in_id(input), spec.scale, n.verdict()) : n.in(input);
  }
  const bool is_f16 = spec.type == kTensorFloat16;
  // One number for all channels is repeated.
  const Gathered from{{count}, {n.in_type(input).elements() == 1 ? 0 : 1}};
  const auto* data = static_cast<const std::byte*>(n.data(input)) +
                     static_cast<size_t>(from.strides[0] ? first : 0) * bytes_of(n.in_type(input).dtype);
  const auto fill = [=](std::byte* to) {
    if (!quantized) return fill_floats(from, data, scale, is_f16, to);
    const auto* q = reinterpret_cast<const int32_t*>(data);
    for_each_element(from, [&](size_t i, size_t k) { reinterpret_cast<int32_t*>(to)[i] = q[k]; });
  };
  return n.lowering().add_weight(spec, str_cat("bias", input, "*", scale, "@", first), fill, true);
}

}  // namespace pinnace::nnapi_client
