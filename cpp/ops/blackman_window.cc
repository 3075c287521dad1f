// blackman_window: y[n] = -0.5 cos(a) + 0.08 cos(2a) + 0.42 for the angle a of element n.
// Inputs, attributes and types: see signal_window.h.
// Source: ONNX BlackmanWindow, opset 17.
#include <cmath>

#include "ops/signal_window.h"

namespace pinnace {
namespace {
Status blackman_window_reference(const NodeView& node, std::span<const TensorView>, std::span<const TensorView> out) {
  return fill_signal_window(node, out[0], [](double a) { return -0.5 * std::cos(a) + 0.08 * std::cos(2 * a) + 0.42; });
}
}  // namespace

PINNACE_OP(blackman_window){
    .name = "blackman_window",
    .inputs = {{"size", kIndices}},
    .attrs = {kOutputDatatypeAttr, kPeriodicAttr},
    .type = signal_window_type,
    .reference = blackman_window_reference,
};
}  // namespace pinnace
