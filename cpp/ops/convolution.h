// The loops of a convolution for reference code: plain sums over channels and taps, any accumulator.
#pragma once

#include "ops/product.h"
#include "ops/window.h"

namespace pinnace {

/// Checks x [N, C, spatial...], w [M, C / group, kernel...] and an optional bias [M] (input `bias`, -1: the operator
/// has none) and gives the window; `y` receives the shape [N, M, out...]. Input 0 is x, input 1 is w.
Result<Window> check_convolution(const NodeView& node, int bias, Shape& y);

/// Number of products in one sum, or unknown.
Dim convolution_length(const TensorType& w);

/// For every image n and output channel m: sums[out] = sum over c, taps of x[n, c, o * stride + tap] * w[m, c, tap], c
/// and taps ascending; taps outside x add nothing. load_x(n, c, to) gives plane c of image n, load_w(m, to) the weights
/// of output channel m, finish(n, m, sums) gets one output plane. Scratch: the planes of one group and one output
/// plane.
template <class Acc, class LoadX, class LoadW, class Finish>
Status convolve(const Window& w, int64_t batch, int64_t groups, int64_t group_in, int64_t group_out, LoadX load_x,
                LoadW load_w, Finish finish) {
  const int64_t in_size = w.in_size(), out_size = w.out_size();
  PINNACE_ASSIGN(auto x, Scratch<Acc>::allocate(group_in * in_size, "a convolution's input"));
  PINNACE_ASSIGN(auto weights, Scratch<Acc>::allocate(group_in * w.taps(), "a convolution's weights"));
  PINNACE_ASSIGN(auto sums, Scratch<Acc>::allocate(out_size, "a convolution's plane"));
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t c = 0; c < group_in; ++c) load_x(n, g * group_in + c, x.data() + c * in_size);
      for (int64_t m = g * group_out; m < (g + 1) * group_out; ++m) {
        load_w(m, weights.data());
        std::fill_n(sums.data(), out_size, Acc{});
        const Acc* weight = weights.data();
        for (int64_t c = 0; c < group_in; ++c) {
          const Acc* plane = x.data() + c * in_size;
          for (int64_t kz = 0; kz < w.kernel[0]; ++kz) {
            const auto z = w.span(0, kz);
            for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
              const auto y = w.span(1, ky);
              for (int64_t kx = 0; kx < w.kernel[2]; ++kx, ++weight) {
                const auto span = w.span(2, kx);
                const Acc value = *weight;
                const int64_t stride = w.stride[2], count = span.last - span.first;
                for (int64_t oz = z.first; oz < z.last; ++oz) {
                  for (int64_t oy = y.first; oy < y.last; ++oy) {
                    Acc* to = sums.data() + (oz * w.out[1] + oy) * w.out[2] + span.first;
                    const Acc* from =
                        plane + ((oz * w.stride[0] + z.offset) * w.in[1] + oy * w.stride[1] + y.offset) * w.in[2] +
                        span.first * stride + span.offset;
                    if (stride == 1) {  // apart, so that the compiler vectorises it
                      for (int64_t i = 0; i < count; ++i) to[i] += value * from[i];
                    } else {
                      for (int64_t i = 0; i < count; ++i) to[i] += value * from[i * stride];
                    }
                  }
                }
              }
            }
          }
        }
        finish(n, m, static_cast<const Acc*>(sums.data()));
      }
    }
  }
  return {};
}

}  // namespace pinnace
