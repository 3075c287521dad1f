// hann_window: y[n] = sin(a / 2)^2 for the angle a of element n.
// Inputs, attributes and types: see signal_window.h.
// Source: ONNX HannWindow, opset 17.
#include <cmath>

#include "ops/signal_window.h"

namespace pinnace {
namespace {
Status hann_window_reference(const NodeView& node, std::span<const TensorView>, std::span<const TensorView> out) {
  return fill_signal_window(node, out[0], [](double a) { return std::sin(a / 2) * std::sin(a / 2); });
}
}  // namespace

PINNACE_OP(hann_window){
    .name = "hann_window",
    .inputs = {{"size", kIndices}},
    .attrs = {kOutputDatatypeAttr, kPeriodicAttr},
    .type = signal_window_type,
    .reference = hann_window_reference,
};
}  // namespace pinnace
