// What functions that lower one node share: operands of its inputs and outputs, constants, fused activations.
#include <cmath>

#include "backends/nnapi/lowering.h"
#include "base/half.h"
#include "base/sorted_table.h"
#include "ops/linear_quantization.h"

namespace pinnace::nnapi_client {

using enum OperandCode;

#define LOWERING(op, function) Status function(NodeLowering& n);
#include "backends/nnapi/lowerings.inc"
#undef LOWERING

LowerFn find_lowering(std::string_view op) {
  static constexpr SortedTable kLowerings({
#define LOWERING(op, function) TableLine<std::string_view, LowerFn>{#op, function},
#include "backends/nnapi/lowerings.inc"
#undef LOWERING
  });
  return kLowerings.find(op);
}

Status NodeLowering::refuse(Rule rule, std::string value) {
  std::string rewrite = std::move(verdict_.rewrite);
  verdict_ = refusal(rule, std::move(value));
  verdict_.rewrite = std::move(rewrite);
  return Status(Code::kUnsupported, verdict_.text);
}

void NodeLowering::rewritten(std::string_view text) {
  if (!verdict_.rewrite.empty()) verdict_.rewrite += "; ";
  verdict_.rewrite += text;
}

OperandId NodeLowering::real(double v, const TensorType& like) {
  return lowering_.add_scalar(static_cast<float>(v), like.dtype == DType::kF16 ? kFloat16 : kFloat32);
}

OperandId NodeLowering::ints(std::span<const int32_t> values, std::vector<uint32_t> dims) {
  return lowering_.add_constant({kTensorInt32, std::move(dims)}, values.data(), values.size_bytes());
}

OperandId NodeLowering::number(double v, OperandId like) {
  const auto f = static_cast<float>(v);
  if (operand(like).type == kTensorFloat16) {
    const uint16_t half = float_to_half(f);
    return lowering_.add_constant({kTensorFloat16, {1}}, &half, sizeof half);
  }
  return lowering_.add_constant({kTensorFloat32, {1}}, &f, sizeof f);
}

OperandId NodeLowering::temp(OperandId like) {
  return temp(like, operand(like).dims);
}
OperandId NodeLowering::temp(OperandId like, std::vector<uint32_t> dims) {
  const nnapi::Operand& o = operand(like);
  return temp(OperandSpec{o.type, std::move(dims), o.scale, o.zero_point});
}

Result<OperandSpec> NodeLowering::spec(const TensorType& type) {
  OperandSpec made;
  if (!lowering_.specify(type, made, verdict_)) return Status(Code::kUnsupported, verdict_.text);
  return made;
}

Layout NodeLowering::elementwise_layout() const {
  const auto stays = [](DType dtype) { return dtype == DType::kBool || dtype == DType::kI64 || dtype == DType::kU16; };
  if (out_type().rank() != 4 || stays(out_type().dtype)) return Layout::kPlain;
  bool wanted = false;
  for (int i = 0; i < view_.input_count(); ++i) {
    if (!has(i)) continue;
    const LoweredValue& v = lowering_.value(in_id(i));
    wanted |= lowering_.stands_channels_last(in_id(i));
    if (in_type(i).rank() != 4 && in_type(i).elements() != 1 && !v.constant) return Layout::kPlain;
    if (stays(in_type(i).dtype)) return Layout::kPlain;
  }
  return wanted ? Layout::kChannelsLast : Layout::kPlain;
}

namespace {

/// NNAPI's fuse code for an activation of floats, or -1.
int fuse_code_f32(const Activation& a) {
  if (a.none()) return 0;
  if (a.kind == UnaryKind::kRelu) return 1;
  if (a.kind != UnaryKind::kClip) return -1;
  if (a.p == -1 && a.q == 1) return 2;
  if (a.p == 0 && a.q == 6) return 3;
  if (a.p == 0 && std::isinf(a.q)) return 1;
  return std::isinf(a.p) && std::isinf(a.q) ? 0 : -1;
}

/// The bounds that a fuse code sets to stored integers of type y.
IntRange fused_range(int code, const TensorType& y) {
  const bool is_signed = y.dtype == DType::kI8;
  IntRange range{is_signed ? -128 : 0, is_signed ? 127 : 255};
  const float scale = y.quantization->scales[0];
  const int32_t zero = y.quantization->zero_points[0];
  const auto at = [&](float x) { return zero + static_cast<int32_t>(std::round(x / scale)); };
  if (code == 1 || code == 3) range.min = std::max(range.min, zero);
  if (code == 2) range.min = std::max(range.min, at(-1));
  if (code == 2 || code == 3) range.max = std::min(range.max, at(code == 2 ? 1 : 6));
  return range;
}

int fuse_code(const Activation& a, const TensorType& y) {
  if (!y.quantized()) return fuse_code_f32(a);
  if (!a.is_clamp()) return -1;
  const IntRange wanted = activation_range(a, y);
  for (int code : {0, 1, 3, 2}) {
    const IntRange is = fused_range(code, y);
    if (is.min == wanted.min && is.max == wanted.max) return code;
  }
  return -1;
}

}  // namespace

Status NodeLowering::add_activated(Op op, std::vector<OperandId> inputs, const Activation& activation, OperandId output,
                                   std::vector<OperandId> after) {
  const int code = fuse_code(activation, out_type());
  const OperandId made = code >= 0 ? output : temp(output);
  inputs.push_back(scalar(std::max(code, 0)));
  inputs.insert(inputs.end(), after.begin(), after.end());
  PINNACE_TRY(add(op, std::move(inputs), made));
  return code >= 0 ? Status() : add_unary(*this, activation, made, output);
}

}  // namespace pinnace::nnapi_client
