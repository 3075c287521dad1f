// Changes of element type: cast, quantize_linear, dequantize_linear. A plain 8-bit integer is a quantised one of scale
// 1, so that CAST, which looks at stored bytes alone, goes between it and any other scale. 16 bits without a sign,
// which nothing in NNAPI makes floats of, stand as int32: what their scale says is arithmetic of floats, exact.
#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/floats.h"
#include "backends/nnapi/steps/shape.h"

namespace pinnace::nnapi_client {
namespace {

using enum nnapi::OperandCode;

/// Scale and zero point of the inputs of quantize_linear and dequantize_linear, put into `spec`, whose type stands for
/// `stored`.
Status read_scale(NodeLowering& n, DType stored, OperandSpec& spec) {
  const auto scale = n.view().input_floats(1);
  if (!scale) return n.refuse(Rule::kConstant, "the scale");
  if (scale->size() != 1) return n.refuse(Rule::kQuantization, str_cat(scale->size(), " scales"));
  int64_t zero = 0;
  if (n.has(2)) {
    const auto given = n.view().input_ints(2);
    if (!given) return n.refuse(Rule::kConstant, "the zero point");
    zero = given->at(0);
  }
  spec.scale = static_cast<float>(scale->at(0));
  spec.zero_point = static_cast<int32_t>(zero) + (stored == DType::kI8 && spec.type == kTensorQuant8Asymm ? 128 : 0);
  if (!(spec.scale > 0)) return n.refuse(Rule::kQuantization, str_cat("scale ", spec.scale));
  return {};
}

/// (x - zero) * scale of u16, as i32.
Status dequantize_wide(NodeLowering& n, OperandId x, const OperandSpec& scale, OperandId y) {
  if (n.operand(y).type != kTensorFloat32) return n.refuse(Rule::kType, "16 bits as float16");
  Chain c{n, y};
  const OperandId floats = c.op(Op::CAST, {x});
  c.mul(c.sub(floats, c.num(scale.zero_point)), c.num(static_cast<double>(scale.scale)), y);
  return c.status;
}

/// clamp(round_half_even(x / scale) + zero) as u16, as i32. NNAPI has no such rounding: to floor f of v belongs another
/// 1 where v - f, which is exact, is above 1/2, or 1/2 and f odd. 2^-24 is the least step of v - f there.
Status quantize_wide(NodeLowering& n, OperandId x, const OperandSpec& scale, OperandId y) {
  if (n.operand(x).type != kTensorFloat32) return n.refuse(Rule::kType, "16 bits of float16");
  Chain c{n, x};
  const double zero = scale.zero_point, step = 0x1p-24;
  const OperandId v = c.div(x, c.num(static_cast<double>(scale.scale))), cut = n.temp(x);
  if (c.status.ok()) c.status = clip_float(n, -zero, 65535 - zero, v, cut);
  const OperandId f = c.op(Op::FLOOR, {cut});
  const OperandId odd = c.sub(f, c.mul(c.num(2), c.op(Op::FLOOR, {c.mul(f, c.num(0.5))})));
  const OperandId half = c.add(c.mul(odd, c.num(step)), c.num(0.5 - step));
  const OperandId up = c.op(Op::FLOOR, {c.add(c.sub(cut, f), half)});
  c.op(Op::CAST, {c.add(c.add(f, up), c.num(zero))}, y);
  return c.status;
}

}  // namespace

Status lower_cast(NodeLowering& n) {
  const TensorType &from = n.in_type(0), &to = n.out_type();
  const Layout layout = n.elementwise_layout();
  if (from.dtype == DType::kF64 || to.dtype == DType::kF64) return n.refuse(Rule::kType, "float64");
  if (from.dtype == DType::kU16 || to.dtype == DType::kU16) {
    const bool fits = to.dtype == DType::kU16 || to.dtype == DType::kF32 || to.dtype == DType::kI32;
    if (from.dtype != DType::kU16 || !fits) return n.refuse(Rule::kAttribute, "to or from 16 bits");
  }
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  const nnapi::Operand a = n.operand(x), b = n.operand(y);
  if (to.dtype == DType::kBool) {
    if (from.dtype == DType::kBool) return n.refuse(Rule::kAttribute, "bool to bool");
    if (quantized_type(a.type)) return n.refuse(Rule::kAttribute, "8 bits to bool");
    const int32_t zero = 0;
    return n.add(Op::NOT_EQUAL, {x, a.type == kTensorInt32 ? n.ints({&zero, 1}) : n.number(0, x)}, y);
  }
  if (from.dtype == DType::kBool) {
    if (quantized_type(b.type)) return n.refuse(Rule::kAttribute, "bool to 8 bits");
    size_t count = 1;
    for (uint32_t d : b.dims) count *= d;
    const auto filled = [&](int32_t value) {
      const auto type = b.type;
      return n.lowering().add_weight({type, b.dims}, str_cat("all", value), [=](std::byte* at) {
        for (size_t i = 0; i < count; ++i) {
          if (type == kTensorFloat32) reinterpret_cast<float*>(at)[i] = static_cast<float>(value);
          if (type == kTensorInt32) reinterpret_cast<int32_t*>(at)[i] = value;
          if (type == kTensorFloat16) reinterpret_cast<uint16_t*>(at)[i] = value ? 0x3c00 : 0;
        }
      });
    };
    return n.add(Op::SELECT, {x, filled(1), filled(0)}, y);
  }
  // Numbers that leave the range of 8 bits wrap with us and stop at its ends there.
  const bool narrows = quantized_type(b.type) && !quantized_type(a.type);
  if (narrows) return n.refuse(Rule::kAttribute, "numbers to 8 bits");
  if (quantized_type(a.type) && !quantized_type(b.type)) {
    if (from.dtype == DType::kI8) {  // CAST reads unsigned bytes: through a scale of 1
      const OperandSpec plain{a.type, a.dims, 1, a.type == kTensorQuant8Asymm ? 128 : 0};
      OperandId raw = x;
      if (a.scale != 1 || a.zero_point != plain.zero_point) {
        raw = n.temp(plain);
        PINNACE_TRY(n.add(Op::CAST, {x}, raw));
      }
      if (b.type == kTensorFloat32 || b.type == kTensorFloat16) return n.add(Op::DEQUANTIZE, {raw}, y);
      const OperandId floats = n.temp(OperandSpec{kTensorFloat32, a.dims});
      PINNACE_TRY(n.add(Op::DEQUANTIZE, {raw}, floats));
      return n.add(Op::CAST, {floats}, y);
    }
    return n.add(Op::CAST, {x}, y);
  }
  if (a.type == b.type && a.scale == b.scale && a.zero_point == b.zero_point && a.dims.size() <= 4 &&
      b.type != kTensorInt32) {
    return reshape_into(n, x, y);
  }
  if (quantized_type(a.type) && from.dtype != to.dtype) return n.refuse(Rule::kAttribute, "a change of sign");
  return n.add(Op::CAST, {x}, y);
}

Status lower_quantize_linear(NodeLowering& n) {
  const TensorType& to = n.out_type();
  if (n.in_type(0).dtype != DType::kF32 && n.in_type(0).dtype != DType::kF16)
    return n.refuse(Rule::kType, to_string(n.in_type(0)));
  const bool wide = to.dtype == DType::kU16;
  if (to.dtype != DType::kU8 && to.dtype != DType::kI8 && !wide) return n.refuse(Rule::kType, to_string(to));
  const Layout layout = n.in_type(0).rank() == 4 && !wide ? axis_layout(n) : Layout::kPlain;
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  OperandSpec spec{n.operand(y).type, n.operand(y).dims};
  PINNACE_TRY(read_scale(n, to.dtype, spec));
  if (wide) return quantize_wide(n, x, spec, y);
  const OperandId made = n.temp(spec);
  PINNACE_TRY(n.add(Op::QUANTIZE, {x}, made));
  return n.add(Op::CAST, {made}, y);
}

Status lower_dequantize_linear(NodeLowering& n) {
  const TensorType& from = n.in_type(0);
  const bool wide = from.dtype == DType::kU16;
  if (from.dtype != DType::kU8 && from.dtype != DType::kI8 && !wide) return n.refuse(Rule::kType, to_string(from));
  const Layout layout = from.rank() == 4 && !wide ? axis_layout(n) : Layout::kPlain;
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  OperandSpec spec{n.operand(x).type, n.operand(x).dims};
  PINNACE_TRY(read_scale(n, from.dtype, spec));
  if (wide) return dequantize_wide(n, x, spec, y);
  const OperandId scaled = n.temp(spec);
  PINNACE_TRY(n.add(Op::CAST, {x}, scaled));
  return n.add(Op::DEQUANTIZE, {scaled}, y);
}

}  // namespace pinnace::nnapi_client
