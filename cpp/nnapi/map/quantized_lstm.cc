// The two integer LSTMs. Stored integers go into operators of ours that know no scales; what scales come to is worked
// out here, in float32 as the reference has it.
#include <algorithm>
#include <cmath>

#include "nnapi/map/cell.h"
#include "nnapi/map/lstm_form.h"

namespace pinnace::nnapi {
namespace {

/// Input i as the integers that its operand's scale and zero point give a meaning to. A temporary may have others.
Result<ValueId> stored(Call& call, size_t i) {
  PINNACE_ASSIGN(const ValueId id, call.in(i));
  if (!call.quantized(id)) return id;
  PINNACE_ASSIGN(const ValueId declared, call.requantize(id, call.type(id).dtype, quantization_of(call.operand(i))));
  return call.reinterpret(declared, nullptr);
}

Status finish_stored(Call& call, size_t i, ValueId id) {
  PINNACE_ASSIGN(id, call.reinterpret(id, call.declared(i)));
  return call.finish(i, id);
}

/// Inputs that all have these dimensions, one below the other.
Result<ValueId> stacked(Call& call, std::initializer_list<size_t> inputs, std::initializer_list<int64_t> dims) {
  std::vector<ValueId> parts;
  for (size_t i : inputs) {
    PINNACE_ASSIGN(const ValueId id, stored(call, i));
    PINNACE_TRY(expect_dims(call, i, id, dims));
    parts.push_back(id);
  }
  return concat(call, std::move(parts), 0);
}

Result<ValueId> stacked_gates(Call& call, const LstmForm& form, size_t first, std::initializer_list<int64_t> dims) {
  if (form.coupled) return stacked(call, {first + 1, first + 2, first + 3}, dims);
  return stacked(call, {first, first + 1, first + 2, first + 3}, dims);
}

/// What a real bound is in stored integers of this scale, towards zero.
int64_t stored_clip(double clip, float scale, int64_t most) {
  const double units = clip / static_cast<double>(scale);
  return units >= static_cast<double>(most) ? most : static_cast<int64_t>(units);
}

/// n where `scale` is 2^n, as nearly as the reference wants it.
Result<int64_t> exponent_of(const Call& call, float scale) {
  const double log = std::log2(static_cast<double>(scale)), whole = std::round(log);
  if (std::fabs(log - whole) > 1e-3 || whole < -15 || whole > -9) {
    return call.error("the cell state has scale ", scale, ", must be a power of two, 2^-15 to 2^-9");
  }
  return static_cast<int64_t>(whole);
}

constexpr LstmPlaces kAt = {.w = 1, .r = 5, .p = 9, .b = 12, .projection = 16, .h = 18, .c = 19, .norm = 20};
constexpr size_t kIntermediateScales = 26;

/// Factors from products to gates, which all have an intermediate scale of their own.
Status add_factors(Call& call, const LstmForm& form, float cell_scale, Attrs& attrs) {
  std::vector<double> x_factors, h_factors, p_factors, norm_scales;
  size_t hole = form.first();  // of peepholes, which skip the cell's gate
  for (size_t g = form.first(); g < 4; ++g) {
    PINNACE_ASSIGN(const double scale, call.real(kIntermediateScales + g));
    const auto intermediate = static_cast<float>(scale);
    if (!(intermediate > 0)) return call.error("intermediate scale ", scale, " must be above 0");
    x_factors.push_back(call.operand(kAt.w + g).scale * call.operand(0).scale / intermediate);
    h_factors.push_back(call.operand(kAt.r + g).scale * call.operand(kAt.h).scale / intermediate);
    if (form.peephole && g != kCellGate) {
      p_factors.push_back(cell_scale * call.operand(kAt.p + hole++).scale / intermediate);
    }
    if (form.normalised) norm_scales.push_back(call.operand(kAt.norm + g).scale);
  }
  attrs.emplace_back("x_factors", std::move(x_factors));
  attrs.emplace_back("h_factors", std::move(h_factors));
  if (form.peephole) attrs.emplace_back("p_factors", std::move(p_factors));
  if (form.normalised) attrs.emplace_back("norm_scales", std::move(norm_scales));
  return {};
}

Result<Attrs> quantized_lstm_attrs(Call& call, const LstmForm& form) {
  const Operand &h = call.operand(kAt.h), &c = call.operand(kAt.c), &projection = call.operand(kAt.projection);
  Attrs attrs;
  PINNACE_ASSIGN(const int64_t exponent, exponent_of(call, c.scale));
  PINNACE_TRY(add_factors(call, form, std::ldexp(1.0f, static_cast<int>(exponent)), attrs));
  PINNACE_ASSIGN(const double cell_clip, call.real(24));
  PINNACE_ASSIGN(const double projection_clip, call.real(25));
  PINNACE_ASSIGN(const int64_t hidden_zero, call.integer(30));
  PINNACE_ASSIGN(const double real_scale, call.real(31));
  const auto hidden_scale = static_cast<float>(real_scale);
  if (!(cell_clip >= 0) || !(projection_clip >= 0)) {
    return call.error("states are cut at ", cell_clip, " and ", projection_clip, ", must be 0 or more");
  }
  if (!(hidden_scale > 0)) return call.error("the hidden state has scale ", real_scale, ", must be above 0");
  attrs.emplace_back("cell_exponent", exponent);
  attrs.emplace_back("cell_clip", stored_clip(cell_clip, c.scale, 32767));
  attrs.emplace_back("x_zero", int64_t{call.operand(0).zero_point});
  attrs.emplace_back("h_zero", int64_t{h.zero_point});
  attrs.emplace_back("hidden_zero", hidden_zero);
  attrs.emplace_back("hidden_factor", static_cast<double>(std::ldexp(1.0f, -30) / hidden_scale));
  if (form.projected) {
    attrs.emplace_back("projection_factor", static_cast<double>(projection.scale * hidden_scale / h.scale));
    attrs.emplace_back("projection_clip", stored_clip(projection_clip, projection.scale, 127));
  }
  return attrs;
}

}  // namespace

Status map_quantized_lstm(Call& call) {
  PINNACE_ASSIGN(const LstmForm form, lstm_form(call, kAt));
  std::vector<ValueId> inputs(10, kNoValue);
  enum { kX, kW, kR, kH, kC, kP, kNorm, kB, kProjection, kProjectionBias };
  PINNACE_ASSIGN(inputs[kX], stored(call, 0));
  PINNACE_ASSIGN(inputs[kH], stored(call, kAt.h));
  PINNACE_ASSIGN(inputs[kC], stored(call, kAt.c));
  PINNACE_TRY(expect_dims(call, 0, inputs[kX], {-1, -1}));
  PINNACE_TRY(expect_dims(call, kAt.h, inputs[kH], {-1, -1}));
  PINNACE_TRY(expect_dims(call, kAt.c, inputs[kC], {-1, -1}));
  PINNACE_ASSIGN(const int64_t features, call.size(inputs[kX], 1));
  PINNACE_ASSIGN(const int64_t outputs, call.size(inputs[kH], 1));
  PINNACE_ASSIGN(const int64_t units, call.size(inputs[kC], 1));
  PINNACE_ASSIGN(inputs[kW], stacked_gates(call, form, kAt.w, {units, features}));
  PINNACE_ASSIGN(inputs[kR], stacked_gates(call, form, kAt.r, {units, outputs}));
  if (form.peephole) {
    PINNACE_ASSIGN(inputs[kP], form.coupled ? stacked(call, {kAt.p + 1, kAt.p + 2}, {units})
                                            : stacked(call, {kAt.p, kAt.p + 1, kAt.p + 2}, {units}));
  }
  if (form.normalised) {
    PINNACE_ASSIGN(inputs[kNorm], stacked_gates(call, form, kAt.norm, {units}));
    PINNACE_ASSIGN(inputs[kB], stacked_gates(call, form, kAt.b, {units}));
  }
  if (form.projected) {
    PINNACE_ASSIGN(inputs[kProjection], stored(call, kAt.projection));
    if (call.has(kAt.projection + 1)) {
      PINNACE_ASSIGN(inputs[kProjectionBias], stored(call, kAt.projection + 1));
    }
  }
  while (inputs.back() == kNoValue) inputs.pop_back();
  PINNACE_ASSIGN(Attrs attrs, quantized_lstm_attrs(call, form));
  PINNACE_ASSIGN(const auto made, call.emit_many("quantized_lstm", std::move(inputs), std::move(attrs), 2));
  PINNACE_TRY(finish_stored(call, 0, made[0]));
  PINNACE_TRY(finish_stored(call, 1, made[1]));
  return finish_stored(call, 2, made[0]);
}

// The reference lays weights of the state before those of the input, and the input before the state: the two meet
// crosswise. What clients trained with it depends on that.
Status map_quantized_16bit_lstm(Call& call) {
  const Operand &x = call.operand(0), &w = call.operand(1), &b = call.operand(9);
  const Operand &c = call.operand(13), &h = call.operand(14);
  const auto is = [](const Operand& operand, float scale, int32_t zero) {
    return operand.scale == scale && operand.zero_point == zero;
  };
  constexpr float kActivationScale = 1.0f / 128, kStateScale = 1.0f / 2048;
  if (!is(x, kActivationScale, 128) || !is(h, kActivationScale, 128)) {
    return call.error("input and output state must have scale 1/128 and zero point 128");
  }
  if (!is(c, kStateScale, 0)) return call.error("the cell state must have scale 1/2048 and zero point 0");
  for (size_t i = 1; i <= 8; ++i) {
    if (!is(call.operand(i), w.scale, w.zero_point)) return call.error("inputs 1 and ", i, " differ in quantisation");
  }
  for (size_t i = 9; i <= 12; ++i) {
    if (!is(call.operand(i), b.scale, 0)) return call.error("input ", i, " must have input 9's scale and zero point 0");
  }
  PINNACE_ASSIGN(const ValueId of_x, stored(call, 0));
  PINNACE_ASSIGN(const ValueId of_c, stored(call, 13));
  PINNACE_ASSIGN(const ValueId of_h, stored(call, 14));
  PINNACE_TRY(expect_dims(call, 0, of_x, {-1, -1}));
  PINNACE_TRY(expect_dims(call, 14, of_h, {-1, -1}));
  PINNACE_ASSIGN(const int64_t features, call.size(of_x, 1));
  PINNACE_ASSIGN(const int64_t units, call.size(of_h, 1));
  PINNACE_ASSIGN(const ValueId of_input, stacked(call, {1, 2, 3, 4}, {units, features}));
  PINNACE_ASSIGN(const ValueId of_state, stacked(call, {5, 6, 7, 8}, {units, units}));
  PINNACE_ASSIGN(const ValueId biases, stacked(call, {9, 10, 11, 12}, {units}));
  PINNACE_ASSIGN(const ValueId weights, concat(call, {of_state, of_input}, 1));
  PINNACE_ASSIGN(
      const auto made,
      call.emit_many("quantized_lstm_u8", {of_x, weights, biases, of_c, of_h},
                     {{"factor", static_cast<double>(4096 * b.scale)}, {"w_zero", int64_t{w.zero_point}}}, 2));
  PINNACE_TRY(finish_stored(call, 0, made[1]));
  return finish_stored(call, 1, made[0]);
}

}  // namespace pinnace::nnapi
