// hamming_window: y[n] = 25/46 - 21/46 cos(a) for the angle a of element n.
// Inputs, attributes and types: see signal_window.h.
// Source: ONNX HammingWindow, opset 17.
#include <cmath>

#include "ops/signal_window.h"

namespace pinnace {
namespace {
Status hamming_window_reference(const NodeView& node, std::span<const TensorView>, std::span<const TensorView> out) {
  return fill_signal_window(node, out[0], [](double a) { return (25 - 21 * std::cos(a)) / 46; });
}
}  // namespace

PINNACE_OP(hamming_window){
    .name = "hamming_window",
    .inputs = {{"size", kIndices}},
    .attrs = {kOutputDatatypeAttr, kPeriodicAttr},
    .type = signal_window_type,
    .reference = hamming_window_reference,
};
}  // namespace pinnace
