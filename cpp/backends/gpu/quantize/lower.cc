// quantize_linear and dequantize_linear between floats and integers of 8 and 16 bits; stored weights of any width as
// constants.
#include <cmath>

#include "backends/gpu/quantize/int8.h"
#include "backends/gpu/quantize/params.h"
#include "base/dtype_code.h"
#include "ops/linear_quantization.h"

namespace pinnace::gpu {
namespace {

/// Scales and zero points, and which of them an element takes: i / inner % count.
struct Scales {
  std::vector<double> scales;
  std::vector<int64_t> zeros;
  int64_t inner = 1, count = 1;
  int axis = -1;  ///< -1: per tensor
};

Status read_scales(NodeLowering& n, Scales& to) {
  const TensorType &x = n.in(0), &scale = n.in(1);
  if (n.view().attr_int("block_size") != 0) return n.refuse(Rule::kAttribute, "scales by block");
  for (int i : {1, 2}) {
    if (n.has(i) && !n.constant(i)) return n.refuse(Rule::kConstant, i == 1 ? "scale" : "zero_point");
  }
  PINNACE_TRY(n.require_float(1));
  to.count = scale.elements();
  if (scale.rank() == 1 && to.count > 1) {
    PINNACE_ASSIGN(to.axis, n.view().axis(n.view().attr_int("axis"), x.rank()));
    for (size_t i = static_cast<size_t>(to.axis) + 1; i < x.shape.size(); ++i) to.inner *= x.shape[i].size;
  }
  to.scales = n.floats(1);
  to.zeros.assign(static_cast<size_t>(to.count), 0);
  if (n.has(2) && !n.all().dry()) to.zeros = n.view().input_ints(2).value_or(to.zeros);
  return {};
}

bool is_short(DType t) {
  return t == DType::kI16 || t == DType::kU16;
}

/// The smallest float that is stored as the k-th integer of the type or more, by its place among floats in order: its
/// bits, of a negative one less its magnitude's bits. INT32_MAX if there is none. The scale is not negative.
int32_t threshold(const ScaleZero& p, IntRange range, int32_t k) {
  const auto number = [](int64_t at) {
    const float magnitude = std::bit_cast<float>(static_cast<int32_t>(std::abs(at)));
    return at < 0 ? -magnitude : magnitude;
  };
  int64_t low = -0x7f800000, high = 0x7f800000;  // places of the infinities among floats in order
  if (quantize(number(high), p, range) - range.min < k) return INT32_MAX;
  if (quantize(number(low), p, range) - range.min >= k) return static_cast<int32_t>(low);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (quantize(number(middle), p, range) - range.min >= k ? high : low) = middle;
  }
  return static_cast<int32_t>(high);
}

/// Stored weights become floats by the reference code, once; what reads them has them as any constant.
Status known_floats(NodeLowering& n) {
  for (int i : {1, 2}) {
    if (n.has(i) && !n.constant(i)) return n.refuse(Rule::kConstant, i == 1 ? "scale" : "zero_point");
  }
  if (n.all().dry()) return {};
  std::vector<TensorView> in(static_cast<size_t>(n.view().input_count()));
  for (int i = 0; i < n.view().input_count(); ++i) {
    if (!n.has(i)) continue;
    in[static_cast<size_t>(i)] = {&n.in(i), static_cast<std::byte*>(const_cast<void*>(n.view().input_data(i)))};
  }
  PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(n.out().bytes()), "dequantised weights"));
  const TensorView out{&n.out(), bytes.data()};
  PINNACE_TRY(n.view().op().reference(n.view(), in, {&out, 1}));
  n.all().know(n.out_id(), Constant::of(std::move(bytes)));
  for (int i = 0; i < n.view().input_count(); ++i) {
    if (n.has(i)) n.all().value(n.out_id()).contents += n.in_value(i).contents;
  }
  return {};
}

/// Of quantize_linear to 16 bits. Each is a table of 256 KiB, which takes 2 million roundings to make.
constexpr int64_t kMostShortScales = 16;

}  // namespace

Status lower_quantize_linear(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  const TensorType& y = n.out();
  if (!is_byte(y.dtype) && !is_short(y.dtype)) return n.refuse(Rule::kType, to_string(y));
  const std::string_view precision = n.view().attr_string("precision");
  if (n.in(1).dtype != DType::kF32 || (!precision.empty() && precision != "f32")) {
    return n.refuse(Rule::kAttribute,
                    str_cat("a division in ", precision.empty() ? dtype_code(n.in(1).dtype) : precision));
  }
  Scales s;
  PINNACE_TRY(read_scales(n, s));
  if (is_short(y.dtype) && s.count > kMostShortScales) return n.refuse(Rule::kAttribute, str_cat(s.count, " scales"));
  const IntRange range = int_range(y.dtype);
  const int32_t levels = range.max - range.min + 1;
  const TensorId thresholds =
      n.wide_weights("thresholds", s.count * (levels + 1), [s, range, levels](std::span<float> to) {
        for (size_t c = 0; c < s.scales.size(); ++c) {
          // x / -s is -x / s, to the bit.
          const ScaleZero p{static_cast<float>(std::fabs(s.scales[c])), static_cast<int32_t>(s.zeros[c])};
          float* own = to.data() + c * static_cast<size_t>(levels + 1);
          const auto put = [own](int32_t at, int32_t number) { own[at] = std::bit_cast<float>(number); };
          for (int32_t k = 1; k < levels; ++k) put(k - 1, threshold(p, range, k));
          put(levels - 1, p.zero - range.min);
          put(levels, s.scales[c] < 0 ? -1 : 1);
        }
        return Status();
      });
  const bool channels = is_byte(y.dtype) && (s.axis < 0 || s.axis == 1);
  const bool held = n.held_as_nc4hw4(0) && channels, as_nc4hw4 = held || (channels && y.rank() >= 4);
  const ImageShape shape = image_shape(y);
  const int64_t count = as_nc4hw4 ? shape.vectors() : y.elements();
  const TensorId x = held ? n.nc4hw4(0) : n.dense(0), to = as_nc4hw4 ? n.make_nc4hw4() : n.make_dense();
  n.step(KernelId::quantize,
         QuantizeConstants{.FORM = held        ? 2
                                   : as_nc4hw4 ? 1
                                               : 0,
                           .LEVELS = levels},
         QuantizeParams{.count = count,
                        .inner = s.inner,
                        .scales = s.count,
                        .channels = shape.C,
                        .blocks = shape.blocks(),
                        .pixels = shape.pixels,
                        .offset = -range.min},
         {x, thresholds, to}, line_groups(count, 64), static_cast<double>(y.elements()));
  return {};
}

Status lower_dequantize_linear(NodeLowering& n) {
  if (n.constant(0)) return known_floats(n);
  const TensorType& x = n.in(0);
  if (!is_byte(x.dtype) && !is_short(x.dtype) && x.dtype != DType::kI32) return n.refuse(Rule::kType, to_string(x));
  if (x.dtype == DType::kI32 && n.has(2)) return n.refuse(Rule::kAttribute, "a zero point of int32");
  PINNACE_TRY(n.require_float(1));
  Scales s;
  PINNACE_TRY(read_scales(n, s));
  const bool as_nc4hw4 = is_byte(x.dtype) && n.held_as_nc4hw4(0) && (s.axis < 0 || s.axis == 1);
  const int32_t offset = as_nc4hw4 ? byte_offset(x.dtype) : 0;
  const TensorId scales =
      n.wide_weights(as_nc4hw4 ? "scales of an image" : "scales", s.count * 2, [s, offset](std::span<float> to) {
        for (size_t c = 0; c < s.scales.size(); ++c) {
          to[c * 2] = static_cast<float>(s.scales[c]);
          to[c * 2 + 1] = static_cast<float>(s.zeros[c] + offset);
        }
        return Status();
      });
  const ImageShape shape = image_shape(x);
  const int64_t count = as_nc4hw4 ? shape.vectors() : x.elements();
  const TensorId from = as_nc4hw4 ? n.nc4hw4(0) : n.dense(0), y = as_nc4hw4 ? n.make_nc4hw4() : n.make_dense();
  n.step(KernelId::dequantize, DequantizeConstants{.FORM = as_nc4hw4 ? 2 : 0},
         DequantizeParams{
             .count = count, .inner = s.inner, .scales = s.count, .blocks = shape.blocks(), .pixels = shape.pixels},
         {from, scales, y}, line_groups(count, 64), static_cast<double>(x.elements()));
  return {};
}

}  // namespace pinnace::gpu
