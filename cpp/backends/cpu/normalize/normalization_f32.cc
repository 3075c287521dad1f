// Normalisations in float32: layer and RMS over trailing dimensions; mean and variance; batch, instance and group over
// the pixels of dense tensors and of NHWC-packed tensors. Means and variances are summed in double, see
// NormalizationLoops::moments.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "backends/cpu/f32_isa.h"
#include "backends/cpu/normalize/normalization_f32.h"
#include "ops/lines.h"

namespace pinnace::cpu {
namespace {

constexpr int64_t kChunk = 16384;  ///< elements of a task, about

int64_t rows_per_task(int64_t columns) {
  return std::max<int64_t>(1, kChunk / std::max<int64_t>(1, columns));
}

// ------------------------------------------------------------------------------------------------- layer and RMS

/// Rows of all dimensions from the node's axis on.
bool row_norm_takes(const KernelNode& node) {
  const TensorType& x = node.input(0);
  const auto axis = node.axis(node.attr_int("axis"), x.rank());
  if (!axis.ok() || x.elements() == 0 || node.output_count() > 1 || node.input(1).dtype != x.dtype) return false;
  return is_row_of(node.input(1).shape, x.shape, *axis) &&
         (!node.has_input(2) || is_row_of(node.input(2).shape, x.shape, *axis));
}

template <const F32Isa& isa>
Status row_norm_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const int axis = *node.axis(node.attr_int("axis"), in[0].rank());
  const int64_t columns = Slices(in[0].type->shape, axis, in[0].rank() - axis).size;
  const int64_t rows = in[0].elements() / columns, each = rows_per_task(columns);
  const auto epsilon = static_cast<float>(node.attr_float("epsilon"));
  const bool centred = node.node().op == "layer_normalization";
  const float* bias = in.size() > 2 && in[2].present() ? in[2].data<float>() : nullptr;
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    for (int64_t r = t * each; r < std::min(rows, (t + 1) * each); ++r) {
      normalization_loops_f32<isa.loops>.normalize(in[0].data<float>() + r * columns,
                                                   out[0].data<float>() + r * columns, columns, epsilon, centred,
                                                   in[1].data<float>(), bias);
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_row_norm() {
  return {.takes = row_norm_takes, .run = row_norm_run<isa>};
}

// ----------------------------------------------------------------------------------------------------- per channel

/// What each channel is changed by, (x - centre) * factor + bias: three rows of `pitch` floats, which are whole
/// registers like the pixels of images, and zeros behind the channels.
struct PerChannel {
  float *centre, *factor, *bias;
  int64_t pitch;
  static int64_t pitch_of(int64_t channels) { return (channels + 7) / 8 * 8; }
  static int64_t bytes(int64_t channels) { return 12 * pitch_of(channels); }
  PerChannel(std::byte* at, int64_t channels) : pitch(pitch_of(channels)) {
    std::memset(at, 0, static_cast<size_t>(bytes(channels)));
    centre = reinterpret_cast<float*>(at);
    factor = centre + pitch;
    bias = factor + pitch;
  }
};

/// Rows [first, last) of the images, counted through all of them.
template <const F32Isa& isa>
void affine_rows(const NhwcF32& x, const NhwcF32& y, const PerChannel& by, int64_t first, int64_t last) {
  const int64_t channels = std::min({x.pitch, y.pitch, by.pitch});
  for (int64_t u = first; u < last; ++u) {
    const int64_t n = u / y.size.h, row = u % y.size.h;
    normalization_loops_f32<isa.loops>.affine_pixels(x.at + n * x.step + row * x.row, x.pitch,
                                                     y.at + n * y.step + row * y.row, y.pitch, y.size.w, channels,
                                                     by.centre, by.factor, by.bias);
  }
}

/// All inputs but x have one float for each channel.
bool channels_are_f32(const KernelNode& node) {
  for (int i = 1; i < node.input_count(); ++i) {
    if (node.input(i).dtype != DType::kF32) return false;
  }
  return node.input(0).elements() > 0;
}
bool channels_nhwc_takes(const KernelNode& node) {
  return has_nhwc_sizes(node.input(0)) && channels_are_f32(node);
}
int64_t channels_of(const KernelNode& node) {
  return node.input(0).rank() == 1 ? 1 : node.input(0).shape[1].size;
}

// ------------------------------------------------------------------------------------------------------------ batch

int64_t batch_scratch(const KernelNode& node, int) {
  return PerChannel::bytes(channels_of(node));
}

PerChannel batch_factors(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in) {
  const int64_t channels = channels_of(node);
  const double epsilon = node.attr_float("epsilon");
  PerChannel by(context.scratch, channels);
  for (int64_t c = 0; c < channels; ++c) {
    const double inverse = 1 / std::sqrt(static_cast<double>(in[4].data<float>()[c]) + epsilon);
    by.centre[c] = in[3].data<float>()[c];
    by.factor[c] = static_cast<float>(static_cast<double>(in[1].data<float>()[c]) * inverse);
    by.bias[c] = in[2].data<float>()[c];
  }
  return by;
}

template <const F32Isa& isa>
Status batch_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  const PerChannel by = batch_factors(node, context, in);
  const float* x = in[0].data<float>();
  float* y = out[0].data<float>();
  const int64_t channels = channels_of(node), batch = in[0].rank() == 1 ? 1 : in[0].dim(0);
  const int64_t size = in[0].elements() / (batch * channels);
  if (size == 1) {
    const int64_t each = rows_per_task(channels);
    context.parallel((batch + each - 1) / each, [&](int64_t t) {
      const int64_t first = t * each * channels;
      normalization_loops_f32<isa.loops>.affine_pixels(x + first, channels, y + first, channels,
                                                       std::min(each, batch - t * each), channels, by.centre, by.factor,
                                                       by.bias);
    });
    return {};
  }
  const int64_t planes = batch * channels, each = rows_per_task(size);
  context.parallel((planes + each - 1) / each, [&](int64_t t) {
    for (int64_t p = t * each; p < std::min(planes, (t + 1) * each); ++p) {
      const int64_t c = p % channels;
      normalization_loops_f32<isa.loops>.affine(x + p * size, y + p * size, size, by.centre[c], by.factor[c],
                                                by.bias[c]);
    }
  });
  return {};
}

template <const F32Isa& isa>
Status batch_nhwc_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                      std::span<const TensorView> out) {
  const PerChannel by = batch_factors(node, context, in);
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const int64_t rows = y.size.n * y.size.h, each = rows_per_task(y.size.w * y.pitch);
  context.parallel((rows + each - 1) / each,
                   [&](int64_t t) { affine_rows<isa>(x, y, by, t * each, std::min(rows, (t + 1) * each)); });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_batch() {
  return {.takes = channels_are_f32, .scratch_bytes = batch_scratch, .run = batch_run<isa>};
}
template <const F32Isa& isa>
constexpr CpuKernel make_batch_nhwc() {
  return {.takes = channels_nhwc_takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .scratch_bytes = batch_scratch,
          .run = batch_nhwc_run<isa>};
}

// ---------------------------------------------------------------------------------------------- instance and group

/// An instance normalisation has as many groups as channels.
int64_t groups_of(const KernelNode& node) {
  return node.node().op == "group_normalization" ? node.attr_int("num_groups") : channels_of(node);
}

template <const F32Isa& isa>
Status group_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  const int64_t groups = groups_of(node), channels = channels_of(node) / groups, all = in[0].dim(0) * groups;
  const int64_t size = in[0].elements() / (all * channels), each = rows_per_task(channels * size);
  const double epsilon = node.attr_float("epsilon");
  context.parallel((all + each - 1) / each, [&](int64_t t) {
    for (int64_t g = t * each; g < std::min(all, (t + 1) * each); ++g) {
      const float* x = in[0].data<float>() + g * channels * size;
      float* y = out[0].data<float>() + g * channels * size;
      const MomentsF32 m = normalization_loops_f32<isa.loops>.moments(x, channels * size);
      const double inverse = 1 / std::sqrt(m.variance + epsilon);
      for (int64_t i = 0; i < channels; ++i) {
        const int64_t c = g % groups * channels + i;
        const double factor = static_cast<double>(in[1].data<float>()[c]) * inverse;
        const double bias = static_cast<double>(in[2].data<float>()[c]) - m.rest * factor;
        normalization_loops_f32<isa.loops>.affine(x + i * size, y + i * size, size, m.centre,
                                                  static_cast<float>(factor), static_cast<float>(bias));
      }
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_group() {
  return {.takes = channels_are_f32, .run = group_run<isa>};
}

/// An image's rows are summed in this many parts, then the parts' sums in their order.
int64_t parts_of(const NhwcSizes& x) {
  return std::min<int64_t>(x.h, 8);
}

/// Of one image at a time: sums of parts and channels, means of groups, and what channels are changed by.
int64_t group_nhwc_scratch(const KernelNode& node, int) {
  const NhwcSizes x = nhwc_sizes(node.input(0));
  return 8 * (parts_of(x) * x.c + groups_of(node)) + PerChannel::bytes(x.c);
}

/// sums[c] = the sum over some rows of x[c], or of its squares about centre[c].
template <const F32Isa& isa>
void sum_rows(const NhwcF32& x, int64_t n, int64_t first, int64_t last, const float* centre, double* sums) {
  constexpr int64_t kColumns = 64, kPixels = 64;  // as many floats are added before the sum goes to double
  std::fill_n(sums, x.size.c, 0.0);
  for (int64_t row = first; row < last; ++row) {
    for (int64_t i = 0; i < x.size.w; i += kPixels) {
      const float* at = x.at + n * x.step + row * x.row + i * x.pitch;
      const int64_t pixels = std::min(kPixels, x.size.w - i);
      for (int64_t c = 0; c < x.size.c; c += kColumns) {
        const int64_t count = std::min(kColumns, x.size.c - c);
        float part[kColumns] = {};
        if (centre) {
          isa.columns->sum_squares(at + c, x.pitch, pixels, count, centre + c, part);
        } else {
          isa.columns->sum(at + c, x.pitch, pixels, count, part);
        }
        for (int64_t j = 0; j < count; ++j) sums[c + j] += static_cast<double>(part[j]);
      }
    }
  }
}

/// A group's sums of x - centre and of its squares in double.
struct GroupSums {
  double first = 0, squares = 0;
};
GroupSums exact_sums(const NhwcF32& x, int64_t n, int64_t first, int64_t last, float centre) {
  GroupSums sums;
  for (int64_t i = 0; i < x.size.h * x.size.w; ++i) {
    const float* at = x.at + n * x.step + i / x.size.w * x.row + i % x.size.w * x.pitch;
    for (int64_t c = first; c < last; ++c) {
      const double v = static_cast<double>(at[c]) - static_cast<double>(centre);
      sums.first += v;
      sums.squares += v * v;
    }
  }
  return sums;
}

template <const F32Isa& isa>
Status group_nhwc_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                      std::span<const TensorView> out) {
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const int64_t C = x.size.c, groups = groups_of(node), channels = C / groups, parts = parts_of(x.size);
  const int64_t each = rows_per_task(y.size.w * y.pitch);
  const auto count = static_cast<double>(channels * x.size.h * x.size.w);
  const double epsilon = node.attr_float("epsilon");
  auto* sums = reinterpret_cast<double*>(context.scratch);
  double* means = sums + parts * C;
  PerChannel by(context.scratch + 8 * (parts * C + groups), C);
  const auto group_sum = [&](int64_t g) {
    double sum = 0;
    for (int64_t p = 0; p < parts; ++p) {
      for (int64_t i = 0; i < channels; ++i) sum += sums[p * C + g * channels + i];
    }
    return sum;
  };
  for (int64_t n = 0; n < x.size.n; ++n) {
    const auto sum_parts = [&](const float* centre) {
      context.parallel(parts, [&](int64_t p) {
        sum_rows<isa>(x, n, x.size.h * p / parts, x.size.h * (p + 1) / parts, centre, sums + p * C);
      });
    };
    sum_parts(nullptr);
    for (int64_t g = 0; g < groups; ++g) {
      const double sum = group_sum(g);
      const bool holds = std::fabs(sum) < INFINITY;
      means[g] = (holds ? sum : exact_sums(x, n, g * channels, (g + 1) * channels, 0).first) / count;
      std::fill_n(by.centre + g * channels, channels, static_cast<float>(means[g]));
    }
    sum_parts(by.centre);
    for (int64_t g = 0; g < groups; ++g) {
      const float centre = by.centre[g * channels];
      const double squares = group_sum(g), part = static_cast<double>(centre) * 0x1p-12;
      double rest = means[g] - static_cast<double>(centre), variance = squares / count - rest * rest;
      // Of numbers that are nearly equal, what their sum has lost may be more than what they differ by.
      if (!(squares < INFINITY) || variance < part * part) {
        const GroupSums exact = exact_sums(x, n, g * channels, (g + 1) * channels, centre);
        rest = exact.first / count;
        variance = exact.squares / count - rest * rest;
      }
      const double inverse = 1 / std::sqrt((variance < 0 ? 0 : variance) + epsilon);
      for (int64_t c = g * channels; c < (g + 1) * channels; ++c) {
        const double factor = static_cast<double>(in[1].data<float>()[c]) * inverse;
        by.factor[c] = static_cast<float>(factor);
        by.bias[c] = static_cast<float>(static_cast<double>(in[2].data<float>()[c]) - rest * factor);
      }
    }
    const int64_t rows = y.size.h;
    context.parallel((rows + each - 1) / each, [&](int64_t t) {
      affine_rows<isa>(x, y, by, n * rows + t * each, n * rows + std::min(rows, (t + 1) * each));
    });
  }
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_group_nhwc() {
  return {.takes = channels_nhwc_takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .scratch_bytes = group_nhwc_scratch,
          .run = group_nhwc_run<isa>};
}

// ------------------------------------------------------------------------------------------------- mean and variance

/// Axes of x as it is normalised: [before, kept, behind], where `kept` is what has a mean of its own. False where other
/// dimensions stand between, or rows are single numbers.
struct MeanAxes {
  int64_t before = 1, kept = 1, behind = 1;
  bool set(const KernelNode& node) {
    constexpr int64_t kPerChannel[] = {0, 2, 3};
    const Shape& shape = node.input(0).shape;
    const auto given = node.attr_ints("axes");
    const auto axes = node.axes(node.has_attr("axes") ? given : std::span<const int64_t>(kPerChannel),
                                static_cast<int>(shape.size()));
    if (!axes.ok()) return false;
    int stage = 0;  // before, kept, behind
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].size == 1) continue;
      const bool reduced = std::find(axes->begin(), axes->end(), static_cast<int>(d)) != axes->end();
      if (reduced ? stage == 1 : stage == 0) ++stage;
      if (stage == 2 && !reduced) return false;
      (stage == 0 ? before : stage == 1 ? kept : behind) *= shape[d].size;
    }
    if (kept == 1) std::swap(before, behind);  // all of x, in one row
    return behind > 1;
  }
};

bool mean_variance_takes(const KernelNode& node) {
  MeanAxes axes;
  return node.input(0).elements() > 0 && axes.set(node);
}

int64_t mean_variance_plan_bytes(const KernelNode&) {
  return sizeof(MeanAxes);
}
void mean_variance_plan(const KernelNode& node, const Layout*, std::byte* to) {
  (new (to) MeanAxes)->set(node);
}

/// The sum of f(x - centre) in double, eight sums side by side: nothing but 1e-9 is added to the deviation, so that
/// what float32 would lose of the mean of equal numbers would be all of the result.
template <class F>
double sum_about(const float* x, int64_t count, double centre, F f) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int64_t j = 0; j < 8; ++j) sums[j] += f(static_cast<double>(x[i + j]) - centre);
  }
  for (; i < count; ++i) sums[0] += f(static_cast<double>(x[i]) - centre);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <const F32Isa& isa>
Status mean_variance_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                         std::span<const TensorView> out) {
  const auto& s = *reinterpret_cast<const MeanAxes*>(context.plan);
  const int64_t each = rows_per_task(s.before * s.behind);
  const auto count = static_cast<double>(s.before * s.behind);
  context.parallel((s.kept + each - 1) / each, [&](int64_t t) {
    for (int64_t k = t * each; k < std::min(s.kept, (t + 1) * each); ++k) {
      const auto row = [&](int64_t b) { return (b * s.kept + k) * s.behind; };
      double mean = 0, squares = 0;
      for (int64_t b = 0; b < s.before; ++b) {
        mean += sum_about(in[0].data<float>() + row(b), s.behind, 0, [](double v) { return v; });
      }
      mean /= count;
      for (int64_t b = 0; b < s.before; ++b) {
        squares += sum_about(in[0].data<float>() + row(b), s.behind, mean, [](double v) { return v * v; });
      }
      const double factor = 1 / (std::sqrt(squares / count) + 1e-9);
      const auto centre = static_cast<float>(mean);
      const auto bias = static_cast<float>((static_cast<double>(centre) - mean) * factor);
      for (int64_t b = 0; b < s.before; ++b) {
        normalization_loops_f32<isa.loops>.affine(in[0].data<float>() + row(b), out[0].data<float>() + row(b), s.behind,
                                                  centre, static_cast<float>(factor), bias);
      }
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_mean_variance() {
  return {.takes = mean_variance_takes,
          .by_shape = always_by_shape,
          .plan_bytes = mean_variance_plan_bytes,
          .plan = mean_variance_plan,
          .run = mean_variance_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(layer_normalization_f32, make_row_norm)
PINNACE_KERNELS_F32(mean_variance_normalization_f32, make_mean_variance)
PINNACE_KERNELS_F32(batch_normalization_f32, make_batch)
PINNACE_KERNELS_F32(batch_normalization_nhwc_f32, make_batch_nhwc)
PINNACE_KERNELS_F32(group_normalization_f32, make_group)
PINNACE_KERNELS_F32(group_normalization_nhwc_f32, make_group_nhwc)

}  // namespace pinnace::cpu
