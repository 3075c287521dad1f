// mel_weight_matrix: the matrix that turns the bins of a spectrum into bands that are evenly spaced on the mel scale,
// 2595 log10(1 + hertz / 700).
//   num_mel_bins      []  i32 | i64: bands, M
//   dft_length        []  i32 | i64: length of the transform that the spectrum comes from
//   sample_rate       []  i32 | i64: samples per second
//   lower_edge_hertz  []  floats: where the lowest band begins
//   upper_edge_hertz  []  floats: where the highest band ends
//   y                 [dft_length / 2 + 1, M]  of element type output_datatype
//   output_datatype   string, default "f32": name of a type of numbers; integers cut fractions off
// Band i rises from 0 at point i to 1 at point i + 1 and falls to 0 at point i + 2; the points are the M + 2 first of
// M + 3 evenly spaced ones between the edges, as bins of the spectrum, rounded down. Computed in double, rounded once.
// Edges that are no frequencies, NaN among them, and points beyond the spectrum are errors. Source: ONNX
// MelWeightMatrix, opset 17.
#include <cmath>

#include "ops/signal_window.h"

namespace pinnace {
namespace {
Result<TensorType> mel_weight_matrix_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  PINNACE_ASSIGN(const DType dtype, output_datatype(node));
  PINNACE_ASSIGN(const KnownInt bands, known_scalar(node, 0));
  PINNACE_ASSIGN(const KnownInt length, known_scalar(node, 1));
  PINNACE_ASSIGN(const KnownInt rate, known_scalar(node, 2));
  if (bands.known && bands.value < 0) return node.error("num_mel_bins ", bands.value, " is negative");
  if (length.known && length.value < 1) return node.error("dft_length ", length.value, " is not positive");
  if (rate.known && rate.value < 1) return node.error("sample_rate ", rate.value, " is not positive");
  for (const int i : {3, 4}) {
    const TensorType& edge = node.input(i);
    if (edge.rank() > 1 || (edge.rank() == 1 && edge.shape[0].known() && edge.shape[0].size != 1)) {
      return node.error(node.input_name(i), " must be a scalar, is ", edge);
    }
  }
  return TensorType{dtype, {length.known ? Dim(length.value / 2 + 1) : Dim(), bands.dim()}, nullptr};
}

double edge_of(const TensorView& t) {
  return visit_float(t.dtype(), [&](auto zero) { return widen(*t.data<decltype(zero)>()); });
}

Status mel_weight_matrix_reference(const NodeView& node, std::span<const TensorView> in,
                                   std::span<const TensorView> out) {
  const TensorView y = out[0];
  if (y.elements() == 0) return {};
  const int64_t bins = y.dim(0), bands = y.dim(1);
  const auto length = static_cast<double>(load_index(in[1], 0)), rate = static_cast<double>(load_index(in[2], 0));
  const double lower = edge_of(in[3]), upper = edge_of(in[4]);
  if (!(lower >= 0 && upper >= lower && std::isfinite(upper))) {
    return node.error("edges ", lower, " and ", upper, " must be frequencies in ascending order");
  }
  const auto mel = [](double hertz) { return 2595 * std::log1p(hertz / 700) / std::log(10.0); };
  const double low = mel(lower), step = (mel(upper) - low) / static_cast<double>(bands + 2);
  const auto point = [&](int64_t i) {
    const double hertz = 700 * std::expm1((static_cast<double>(i) * step + low) / 2595 * std::log(10.0));
    return std::floor((length + 1) * hertz / rate);
  };
  if (!(point(bands + 1) <= static_cast<double>(bins) && point(bands) < static_cast<double>(bins))) {
    return node.error("band ", bands - 1, " ends at bin ", point(bands + 1), " of ", bins);
  }
  return visit(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < bands; ++i) {
      const double first = point(i), centre = point(i + 1), last = point(i + 2);
      for (int64_t j = 0; j < bins; ++j) {
        if (j % 256 == 0 && loop_stops()) return Status();
        const auto at = static_cast<double>(j);
        double weight = 0;
        if (at >= centre && at < last) {
          weight = (last - at) / (last - centre);
        } else if (at == centre) {
          weight = 1;
        } else if (at >= first && at < centre) {
          weight = (at - first) / (centre - first);
        }
        y.data<T>()[j * bands + i] = convert<T>(weight);
      }
    }
    return Status();
  });
}
}  // namespace

PINNACE_OP(mel_weight_matrix){
    .name = "mel_weight_matrix",
    .inputs = {{"num_mel_bins", kIndices},
               {"dft_length", kIndices},
               {"sample_rate", kIndices},
               {"lower_edge_hertz", kFloats},
               {"upper_edge_hertz", kFloats}},
    .attrs = {kOutputDatatypeAttr},
    .type = mel_weight_matrix_type,
    .reference = mel_weight_matrix_reference,
};
}  // namespace pinnace
