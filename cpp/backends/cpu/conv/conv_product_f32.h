// A convolution of NHWC-packed tensors, in float32 or on halves, as matrix products whose rows are read where they lie:
// what conv and conv_transpose share. A fused residual and the activation are applied before a tile leaves the
// registers.
#pragma once

#include "backends/cpu/conv/conv_nhwc.h"
#include "backends/cpu/conv/conv_tasks.h"
#include "base/cancel.h"

namespace pinnace::cpu {

/// Elements that panels of `columns` columns (padded) and K rows take, with their biases.
inline int64_t panel_elements(const GemmTilesF32& tiles, int64_t columns, int64_t K) {
  return panel_floats(tiles, columns, K);
}
inline int64_t panel_elements(const GemmTiles<uint16_t>&, int64_t columns, int64_t K) {
  return columns * (1 + K);
}

/// gemm.rows() of one run, which looks whether to stop where that is long.
template <class T>
__attribute__((noinline)) void product_rows(const GemmTiles<T>& gemm, const GemmRows<T>& all, int32_t width) {
  const int64_t each = rows_between_looks(all.block_count * all.k * width);
  if (all.M <= each) return gemm.rows(all, width);
  GemmRows<T> g = all;
  for (int64_t left = all.M; left > 0 && !loop_stops(); left -= each) {
    g.M = std::min(left, each);
    gemm.rows(g, width);
    g.a += each * g.a_row;
    g.c += each * g.c_row;
    if (g.residual) g.residual += each * g.residual_row;
  }
}

/// Outputs that the same taps reach: from (y, x) on, every step-th of ConvPlan, up to (end_y, end_x). conv has one
/// phase of all outputs, or rectangles of outputs that the same taps reach within the image.
struct ConvPhase {
  int64_t y, x, end_y, end_x;
  int64_t first_block, block_count;  ///< of ConvPlan::blocks(); no blocks: the outputs are the bias
  int64_t block;                     ///< elements of a block
  int64_t K;                         ///< rows of its panels; 1, of zeros, where there are no blocks
  int64_t packed;                    ///< elements before its panels: [group][panel]
};

/// What a run needs of types and layouts. ConvPhase[phase_count] and GemmRowsF32::blocks of all of them follow it, then
/// GemmRowsF32::weight_rows of all where there are any.
struct ConvPlan {
  int64_t groups, in_channels, out_channels;  ///< channels per group
  int64_t stride_y, stride_x;                 ///< pixels of the input from output to output of a phase
  int64_t step_y, step_x;                     ///< of the output from output to output of a phase: as many as phases
  int64_t phase_count;
  int64_t weight_rows_at;  ///< blocks in front of weight_rows(); 0: there are none
  UnaryF32 map;
  ConvPhase* phases() { return reinterpret_cast<ConvPhase*>(this + 1); }
  const ConvPhase* phases() const { return reinterpret_cast<const ConvPhase*>(this + 1); }
  ptrdiff_t* blocks() { return reinterpret_cast<ptrdiff_t*>(phases() + phase_count); }
  const ptrdiff_t* blocks() const { return reinterpret_cast<const ptrdiff_t*>(phases() + phase_count); }
  const ptrdiff_t* weight_rows() const { return weight_rows_at == 0 ? nullptr : blocks() + weight_rows_at; }
  static int64_t bytes(int64_t phases, int64_t blocks) {
    return static_cast<int64_t>(sizeof(ConvPlan) + static_cast<size_t>(phases) * sizeof(ConvPhase) +
                                static_cast<size_t>(blocks) * sizeof(ptrdiff_t));
  }
};

/// One call's operands, and how its output divides into units: pixels where all of them stand at one distance, in the
/// input too, else rows.
template <const auto& isa>
class ConvRun {
  using T = ElementOf<isa>;

 public:
  ConvRun(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out)
      : plan_(*reinterpret_cast<const ConvPlan*>(context.plan)),
        packed_(reinterpret_cast<const T*>(context.packed)),
        x_(nhwc_of<T>(in[0], context.layouts[0])),
        y_(nhwc_of<T>(out[0], context.layouts[in.size()])),
        adds_(context.fusion->residual.has_value()),
        r_(residual_of<T>(*context.fusion)) {
    const auto flat = [](const NhwcOf<T>& i) { return i.row == i.size.w * i.pitch && i.step == i.size.h * i.row; };
    const ConvPhase& only = *plan_.phases();
    one_ = plan_.phase_count == 1 && only.block_count == 1 && only.block == plan_.in_channels && plan_.stride_y == 1 &&
           plan_.stride_x == 1 && x_.size.h == y_.size.h && x_.size.w == y_.size.w && flat(x_) && flat(y_) &&
           (!adds_ || flat(r_));
    group_panels_ = (plan_.out_channels + isa.gemm->nr - 1) / isa.gemm->nr;
  }
  int64_t units_per_row() const { return one_ ? y_.size.w : 1; }
  int64_t units() const { return y_.size.n * y_.size.h * units_per_row(); }
  int64_t panels() const { return group_panels_ * plan_.groups; }
  bool pixels() const { return one_; }
  int64_t unit_elements() const {
    if (one_) return x_.pitch;
    const int64_t pixels = y_.size.w * plan_.stride_y * plan_.stride_x / (plan_.step_y * plan_.step_x);
    return x_.pitch * std::max<int64_t>(1, pixels);
  }

  /// Units [first, last) of panels [first_panel, last_panel).
  void part(int64_t first, int64_t last, int64_t first_panel, int64_t last_panel) const {
    for (int64_t p = first_panel; p < last_panel; ++p) {
      for (int64_t i = 0; i < plan_.phase_count; ++i) panel(p, plan_.phases()[i], first, last);
    }
  }

  /// All of it, on the run's threads.
  void run(const KernelContext& context) const {
    const ConvTasks tasks = conv_tasks({.units = units(),
                                        .unit_bytes = unit_elements() * static_cast<int64_t>(sizeof(T)),
                                        .unit_pixels = one_ ? 1 : y_.size.w,
                                        .panels = panels()},
                                       context.threads);
    context.parallel(tasks.count(), [&](int64_t t) {
      const ConvTasks::Part p = tasks.part(t);
      part(p.first, p.last, p.first_panel, p.last_panel);
    });
  }

 private:
  void panel(int64_t p, const ConvPhase& phase, int64_t first, int64_t last) const {
    static constexpr ptrdiff_t kHere = 0;
    static constexpr T kZero = 0;  // for all rows, where no tap is
    const GemmTiles<T>& gemm = *isa.gemm;
    const int64_t group = p / group_panels_, n = p % group_panels_ * gemm.nr;
    const int64_t width = panel_width(gemm, n, plan_.out_channels), columns = std::min(width, plan_.out_channels - n);
    const int64_t channel = group * plan_.out_channels + n;
    // Pixels are padded to whole registers: what is stored there is of no value.
    const int64_t store = plan_.groups == 1 ? std::min(width, y_.pitch - channel) : columns;
    const bool taps = phase.block_count > 0;
    GemmRows<T> g{};
    g.a_row = taps ? plan_.stride_x * x_.pitch : 0;
    g.blocks = taps ? plan_.blocks() + phase.first_block : &kHere;
    g.block_count = taps ? phase.block_count : 1;
    g.k = taps ? phase.block : 1;
    if (taps && plan_.weight_rows()) {
      g.weight_rows = plan_.weight_rows() + phase.first_block;
      g.panel_rows = phase.K;
    }
    g.b = packed_ + phase.packed + group * panel_elements(gemm, padded_columns(gemm, plan_.out_channels), phase.K) +
          panel_elements(gemm, n, phase.K);
    g.c_row = plan_.step_x * y_.pitch;
    g.residual_row = r_.pitch;
    // Outputs one pixel wide: the rows of an image, or images of one row, are the product's rows.
    const bool column = y_.size.w == 1, images = column && y_.size.h == 1;
    if (column) {
      if (taps) g.a_row = images ? x_.step : plan_.stride_y * x_.row;
      g.c_row = images ? y_.step : plan_.step_y * y_.row;
      g.residual_row = images ? r_.step : r_.row;
    }
    g.columns = static_cast<int32_t>(std::max(columns, adds_ ? std::min(store, r_.pitch - channel) : store));
    g.map = plan_.map;
    const T* a = x_.at + group * plan_.in_channels;
    if (one_) {
      g.a = a + first * x_.pitch;
      g.c = y_.at + channel + first * y_.pitch;
      g.residual = adds_ ? r_.at + channel + first * r_.pitch : nullptr;
      g.M = last - first;
      return product_rows(gemm, g, static_cast<int32_t>(width));
    }
    g.M = (phase.end_x - phase.x + plan_.step_x - 1) / plan_.step_x;
    const int64_t together = images ? last : column ? y_.size.h : 1;  // rows of one product, from a multiple of it on
    for (int64_t u = first, next = 0; u < last; u = next) {
      next = std::min(last, (u / together + 1) * together);
      const int64_t item = u / y_.size.h, above = u % y_.size.h;
      const int64_t past = above - phase.y, rest = past > 0 ? past % plan_.step_y : past;
      const int64_t row = rest == 0 ? above : rest > 0 ? above - rest + plan_.step_y : phase.y;
      const int64_t left = images ? next - u : std::min(above + next - u, phase.end_y) - row;
      if (left <= 0) continue;
      if (column) g.M = (left + plan_.step_y - 1) / plan_.step_y;
      g.a = taps ? a + item * x_.step + row / plan_.step_y * plan_.stride_y * x_.row : &kZero;
      g.c = y_.at + channel + item * y_.step + row * y_.row + phase.x * y_.pitch;
      g.residual = adds_ ? r_.at + channel + item * r_.step + row * r_.row + phase.x * r_.pitch : nullptr;
      product_rows(gemm, g, static_cast<int32_t>(width));
    }
  }

  const ConvPlan& plan_;
  const T* packed_;
  NhwcOf<T> x_, y_;
  bool adds_;
  NhwcOf<T> r_;
  bool one_;
  int64_t group_panels_;
};

}  // namespace pinnace::cpu
