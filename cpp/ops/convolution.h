// The geometry of convolutions, and their loops for reference code: plain sums over channels and taps, any accumulator.
#pragma once

#include "ops/product.h"
#include "ops/window.h"

namespace pinnace {

/// Checks x [N, C, spatial...], w [M, C / group, kernel...] and an optional bias [M] (input `bias`, -1: the operator
/// has none) and gives the window. Input 0 is x, input 1 is w. Without an error it takes no memory.
Result<Window> check_convolution(const NodeView& node, int bias);
/// [N, M, out...], of that window.
Shape convolution_shape(const NodeView& node, const Window& window);

/// The window of a conv_transpose, whose input 0 is x and input 1 is w, both of the same rank: that of the conv whose
/// transpose it is, with `in` the sizes of y and `out` those of x; `before` are the pads at y's begin.
Result<Window> check_conv_transpose(const NodeView& node);

/// Number of products in one sum, or unknown.
Dim convolution_length(const TensorType& w);
/// OpDef::multiply_adds where every output is a sum over what one output channel of input 1 has of weights.
double convolution_multiply_adds(std::span<const TensorType* const> inputs, const TensorType& y);

/// Multiplications after which the loops of one plane, which may take minutes, ask loop_stops().
inline constexpr int64_t kBetweenConvolutionLooks = 1 << 20;

/// sums[out] += over c, taps of x[c, o * stride + tap] * weights[c, tap], c and taps ascending.
template <class Acc>
void add_taps(const Window& w, int64_t group_in, const Acc* x, const Acc* weight, Acc* sums) {
  int64_t left = kBetweenConvolutionLooks;
  for (int64_t c = 0; c < group_in; ++c) {
    const Acc* plane = x + c * w.in_size();
    for (int64_t kz = 0; kz < w.kernel[0]; ++kz) {
      const auto z = w.span(0, kz);
      for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
        const auto y = w.span(1, ky);
        for (int64_t kx = 0; kx < w.kernel[2]; ++kx, ++weight) {
          const auto span = w.span(2, kx);
          if ((left -= w.out_size()) < 0) {
            left = kBetweenConvolutionLooks;
            if (loop_stops()) return;
          }
          const Acc value = *weight;
          const int64_t stride = w.stride[2], count = span.last - span.first;
          for (int64_t oz = z.first; oz < z.last; ++oz) {
            for (int64_t oy = y.first; oy < y.last; ++oy) {
              Acc* to = sums + (oz * w.out[1] + oy) * w.out[2] + span.first;
              const Acc* from = plane +
                                ((oz * w.stride[0] + z.offset) * w.in[1] + oy * w.stride[1] + y.offset) * w.in[2] +
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
}

/// For every image n and output channel m: sums[out] = sum over c, taps of x[n, c, o * stride + tap] * w[m, c, tap], c
/// and taps ascending; taps outside x add nothing. load_x(n, c, to) gives plane c of image n, load_w(m, to) the weights
/// of output channel m, finish(n, m, sums) gets one output plane and may write over it. They are called by several
/// threads at once, for different planes. Scratch of a thread: the planes of one group, its weights and one output
/// plane.
template <class Acc, class LoadX, class LoadW, class Finish>
Status convolve(const Threads& threads, const Window& w, int64_t batch, int64_t groups, int64_t group_in,
                int64_t group_out, LoadX load_x, LoadW load_w, Finish finish) {
  const int64_t in_size = w.in_size(), out_size = w.out_size();
  const double plane_cost = product_nanoseconds(out_size, group_in * w.taps());
  const double group_cost = plane_cost * static_cast<double>(group_out);
  const auto [by_group, by_channel] = threads.nest(batch * groups, group_cost, group_out);
  const auto channels = [&](int64_t n, const Acc* x, int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto weights, Scratch<Acc>::allocate(group_in * w.taps(), "a convolution's weights"));
    PINNACE_ASSIGN(auto sums, Scratch<Acc>::allocate(out_size, "a convolution's plane"));
    for (int64_t m = begin; m < end; ++m) {
      load_w(m, weights.data());
      std::fill_n(sums.data(), out_size, Acc{});
      add_taps(w, group_in, x, static_cast<const Acc*>(weights.data()), sums.data());
      finish(n, m, sums.data());
    }
    return {};
  };
  return by_group.ranges(batch * groups, group_cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto x, Scratch<Acc>::allocate(group_in * in_size, "a convolution's input"));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / groups, g = i % groups;
      by_channel.ranges(group_in, kMapNanoseconds * static_cast<double>(in_size), [&](int64_t first, int64_t last) {
        for (int64_t c = first; c < last; ++c) load_x(n, g * group_in + c, x.data() + c * in_size);
      });
      PINNACE_TRY(by_channel.ranges(group_out, plane_cost, [&](int64_t first, int64_t last) {
        return channels(n, x.data(), g * group_out + first, g * group_out + last);
      }));
    }
    return {};
  });
}

}  // namespace pinnace
