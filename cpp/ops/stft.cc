// stft: the discrete Fourier transforms of short pieces of a signal.
//   signal        [B, L], [B, L, 1] or [B, L, 2]  floats; the last dimension holds the real part, or both parts
//   frame_step    []  i32 | i64, at least 1: from the start of one piece to the next
//   window        [n]  as signal, optional: factors of each piece's elements; left out: 1
//   frame_length  []  i32 | i64, optional: n, the elements of a piece; left out: the window's length, else L
//   y             [B, frames, bins, 2]  as signal; frames = (L - n) / frame_step + 1, 0 where L < n
//   onesided      int, default 1: bins = n/2 + 1, for real signals; 0: bins = n
// Computed in double, rounded once. Where a piece has NaN or infinity, any element of its transform may be NaN. Source:
// ONNX STFT, opset 17.
#include <algorithm>

#include "ops/fourier.h"
#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> stft_type(const NodeView& node) {
  const TensorType& signal = node.input(0);
  const bool onesided = node.attr_int("onesided") != 0;
  const Dim parts = signal.rank() == 3 ? signal.shape[2] : Dim(1);
  if (signal.rank() < 2 || signal.rank() > 3 || (parts.known() && parts.size != 1 && parts.size != 2)) {
    return node.error("signal must be [B,L], [B,L,1] or [B,L,2], is ", signal);
  }
  if (onesided && parts == Dim(2)) {
    return node.error("onesided is for real signals, must be 0 for ", signal);
  }
  PINNACE_ASSIGN(const KnownInt step, known_scalar(node, 1));
  if (step.known && step.value < 1) return node.error("frame_step ", step.value, " is not positive");
  Dim n = signal.shape[1];
  if (node.has_input(2)) {
    PINNACE_ASSIGN(n, vector_length(node, 2, false));
  }
  if (node.has_input(3)) {
    PINNACE_ASSIGN(const KnownInt length, known_scalar(node, 3));
    if (length.known && length.value < 1) return node.error("frame_length ", length.value, " is not positive");
    if (node.has_input(2) && differ(n, length.dim())) {
      return node.error("frame_length ", length.value, " differs from the window's length ", n.size);
    }
    n = node.has_input(2) && n.known() ? n : length.dim();
  }
  if (n.known() && n.size < 1) return node.error("a piece of ", n.size, " elements has nothing to transform");
  Dim frames;
  if (const Dim all = signal.shape[1]; all.known() && n.known() && step.known) {
    frames = all.size < n.size ? 0 : (all.size - n.size) / step.value + 1;
  }
  const Dim bins = !onesided ? n : n.known() ? Dim(n.size / 2 + 1) : Dim();
  return TensorType{signal.dtype, {signal.shape[0], frames, bins, 2}, nullptr};
}

Status stft_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView signal = in[0], y = out[0];
  if (y.elements() == 0) return {};
  const auto given = [&](size_t i) { return in.size() > i && in[i].present(); };
  const int64_t all = signal.dim(1), parts = signal.rank() == 3 ? signal.dim(2) : 1, step = load_index(in[1], 0);
  const int64_t n = given(3) ? load_index(in[3], 0) : given(2) ? in[2].dim(0) : all;
  PINNACE_ASSIGN(const Fourier fourier, Fourier::make(n, node.label()));
  PINNACE_ASSIGN(auto window, Scratch<double>::allocate(n, node.label()));
  std::fill_n(window.data(), n, 1.0);
  if (given(2)) load_line(in[2], 0, 1, n, window.data());
  const int64_t frames = y.dim(1), bins = y.dim(2);
  return node.threads().ranges(y.dim(0) * frames, fourier.nanoseconds(), [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto line, Scratch<double>::allocate(2 * n + fourier.work_size(), node.label()));
    double *re = line.data(), *im = re + n, *work = im + n;
    for (int64_t f = begin; f < end; ++f) {
      const int64_t first = (f / frames * all + f % frames * step) * parts;
      std::fill_n(im, n, 0.0);
      load_line(signal, first, parts, n, re);
      if (parts == 2) load_line(signal, first + 1, parts, n, im);
      for (int64_t k = 0; k < n; ++k) {
        re[k] *= window[k];
        im[k] *= window[k];
      }
      fourier.forward(re, im, work);
      store_line(y, f * bins * 2, 2, bins, re);
      store_line(y, f * bins * 2 + 1, 2, bins, im);
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(stft){
    .name = "stft",
    .inputs = {{"signal", kFloats, 'T'},
               {"frame_step", kIndices},
               {"window", kFloats, 'T', Arity::kOptional},
               {"frame_length", kIndices, 0, Arity::kOptional}},
    .attrs = {int_attr("onesided", 1)},
    .type = stft_type,
    .reference = stft_reference,
    .work = Work::kSorted,
};
}  // namespace pinnace
