// Convolutions. NNAPI's filters are [Co, fh, fw, Ci / groups], of depthwise ones [1, fh, fw, Co].
#include "nnapi/map/bias.h"
#include "nnapi/map/window.h"

namespace pinnace::nnapi {
namespace {

/// Inputs of a convolution, read as far as all kinds have them alike.
struct Convolution {
  ValueId x, filter, bias;
  bool nchw = false;
  int64_t channels = 0;  ///< of x
  WindowAxis axes[2];    ///< height, width
};

/// `nchw` and `dilations` are input indices; no dilations: 0. The filter has rank 4 and the window in dimensions 1, 2.
Result<Convolution> read_convolution(Call& call, const WindowInputs& where, size_t nchw, size_t dilations) {
  Convolution c{};
  PINNACE_ASSIGN(c.x, call.in(0));
  PINNACE_ASSIGN(c.filter, call.in(1));
  PINNACE_ASSIGN(c.bias, call.in(2));
  PINNACE_TRY(check_bias_scale(call));
  PINNACE_ASSIGN(c.nchw, call.flag(nchw, false));
  if (call.rank(c.x) != 4 || call.rank(c.filter) != 4) return call.error("input and filter must have rank 4");
  PINNACE_ASSIGN(c.channels, call.size(c.x, c.nchw ? 1 : 3));
  for (int a : {0, 1}) {
    PINNACE_ASSIGN(c.axes[a].in, call.size(c.x, (c.nchw ? 2 : 1) + a));
    PINNACE_ASSIGN(c.axes[a].filter, call.size(c.filter, 1 + a));
  }
  if (c.channels < 1) return call.error("an input without channels");
  PINNACE_TRY(read_window(call, where, call.inputs() > dilations ? dilations : 0, c.axes));
  return c;
}

/// conv on channels first. The filter is [Co, Ci / groups, fh, fw] by now.
Status finish_convolution(Call& call, const Convolution& c, ValueId filter, int64_t groups, int64_t code) {
  PINNACE_ASSIGN(int64_t outputs, call.size(filter, 0));
  PINNACE_ASSIGN(int64_t depth, call.size(filter, 1));
  if (groups < 1 || outputs % groups != 0 || depth * groups != c.channels) {
    return call.error("filter ", call.type(c.filter), " and ", groups, " groups do not fit ", c.channels, " channels");
  }
  PINNACE_TRY(check_bias_shape(call, c.bias, outputs));
  PINNACE_ASSIGN(Attrs attrs, call.activation(code));
  for (auto& attr : window_attrs(c.axes)) attrs.push_back(std::move(attr));
  if (groups != 1) attrs.emplace_back("group", groups);
  PINNACE_ASSIGN(ValueId x, call.to_nchw(c.x, c.nchw));
  PINNACE_ASSIGN(ValueId y, call.emit("conv", {x, filter, c.bias}, std::move(attrs), call.declared()));
  PINNACE_ASSIGN(y, call.from_nchw(y, c.nchw));
  return call.finish(0, y);
}

}  // namespace

Status map_conv_2d(Call& call) {
  const bool implicit = call.inputs() == 7 || call.operand(7).type == OperandCode::kBool;
  const WindowInputs where{3, !implicit};
  const size_t code_at = implicit ? 6 : 9;
  PINNACE_ASSIGN(Convolution c, read_convolution(call, where, code_at + 1, code_at + 2));
  PINNACE_ASSIGN(int64_t code, call.integer(code_at));
  PINNACE_ASSIGN(ValueId filter, call.transpose(c.filter, {0, 3, 1, 2}));
  return finish_convolution(call, c, filter, 1, code);
}

Status map_depthwise_conv_2d(Call& call) {
  const bool implicit = call.inputs() == 8 || call.operand(8).type == OperandCode::kBool;
  const WindowInputs where{3, !implicit};
  const size_t code_at = implicit ? 7 : 10;
  PINNACE_ASSIGN(Convolution c, read_convolution(call, where, code_at + 1, code_at + 2));
  PINNACE_ASSIGN(int64_t multiplier, call.integer(code_at - 1));
  PINNACE_ASSIGN(int64_t code, call.integer(code_at));
  PINNACE_ASSIGN(int64_t outputs, call.size(c.filter, 3));
  PINNACE_ASSIGN(int64_t first, call.size(c.filter, 0));
  if (first != 1) return call.error("dimension 0 of the filter is ", first, ", must be 1");
  if (multiplier < 1 || outputs % c.channels != 0 || outputs / c.channels != multiplier) {
    return call.error(c.channels, " channels with multiplier ", multiplier, " do not make ", outputs);
  }
  PINNACE_ASSIGN(ValueId filter, call.transpose(c.filter, {3, 0, 1, 2}));
  return finish_convolution(call, c, filter, c.channels, code);
}

Status map_grouped_conv_2d(Call& call) {
  const bool implicit = call.inputs() == 9;
  const WindowInputs where{3, !implicit};
  const size_t code_at = implicit ? 7 : 10;
  PINNACE_ASSIGN(Convolution c, read_convolution(call, where, code_at + 1, call.inputs()));
  PINNACE_ASSIGN(int64_t groups, call.integer(code_at - 1));
  PINNACE_ASSIGN(int64_t code, call.integer(code_at));
  PINNACE_ASSIGN(ValueId filter, call.transpose(c.filter, {0, 3, 1, 2}));
  return finish_convolution(call, c, filter, groups, code);
}

}  // namespace pinnace::nnapi
