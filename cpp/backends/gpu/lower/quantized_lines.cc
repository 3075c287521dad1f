// Quantised operators whose sums the reference makes in 64-bit floats: softmax, norms, reductions of rows,
// interpolation. Kernels do the same arithmetic by integers (shaders/double.glsl) and compare results with the numbers
// at which the reference stores another byte.
#include <cmath>

#include "backends/gpu/lower/quantized_numbers.h"
#include "backends/gpu/lower/reduction.h"
#include "backends/gpu/lower/resize.h"
#include "ops/move.h"

namespace pinnace::gpu {
namespace {

/// exp(-600) times or through anything that is summed is a normal number.
constexpr float kMostExponent = 600;
/// Of one output of a resize, which one invocation makes: a dispatch must end.
constexpr int64_t kMostTaps = 1 << 16;

/// Differences of elements that exp() takes to normal numbers.
Status check_exponents(NodeLowering& n) {
  const float scale = scale_zero(n.in(0)).scale;
  return 255 * scale > kMostExponent ? n.refuse(Rule::kAttribute, str_cat("a scale of ", scale)) : Status();
}
/// [256][256]: exp(x - m) by the bytes of m, the largest of a row, and x.
void put_exponents(std::span<float> to, const TensorType& x) {
  for (int64_t m = 0; m < 256; ++m) {
    for (int64_t i = 0; i < 256; ++i) {
      // No row has an element above its largest.
      put(to, static_cast<size_t>(m * 256 + i), i > m ? 0.0 : std::exp(real_of(x, i) - real_of(x, m)));
    }
  }
}

double itself(double v) {
  return v;
}

/// The rows of a reduction whose elements are numbers of two types with scales that kernels take.
Status describe_row(NodeLowering& n, Reduction& r) {
  PINNACE_TRY(describe_reduction(n, r));
  PINNACE_TRY(check_scales(n));
  if (r.size == 0) return n.refuse(Rule::kAttribute, "a row without elements");
  if (r.size > kMostSummands) return n.refuse(Rule::kAttribute, str_cat(r.size, " summands"));
  return {};
}

/// Output 0 = made(sum of summand(element), how many there are), which rises with the sum, or with `below` where sums
/// are not negative: that is then what negative ones become. Sums are exact in 64-bit floats.
Status exact_sums(NodeLowering& n, double (*summand)(double),
                  const std::function<double(double sum, double size)>& made, std::optional<double> below = {}) {
  Reduction r;
  PINNACE_TRY(describe_row(n, r));
  const TensorType x = n.in(0), y = n.out();
  const auto size = static_cast<double>(r.size);
  const TensorId numbers = n.words(str_cat("sums of ", r.size), 512 * 2, [=](std::span<float> to) {
    for (int64_t i = 0; i < 256; ++i) put(to, static_cast<size_t>(i), summand(real_of(x, i)));
    const auto stored = [&](double sum) { return static_cast<float>(made(sum, size)); };
    put_thresholds(to, 256, y, stored, below ? 0 : -1e300);
    const IntRange range = int_range(y.dtype);
    const auto negative = below ? quantize(static_cast<float>(*below), scale_zero(y), range) - range.min : 256;
    put(to, 511, static_cast<uint64_t>(negative));
    return Status();
  });
  const TensorId from = n.rows(0), to = n.make_rows();
  n.step(KernelId::bytes_reduce, {}, r.push.i(byte_offset(x.dtype)), {from, to, numbers}, row_groups(r.rows),
         static_cast<double>(r.rows * r.size));
  return {};
}

/// KIND of bytes_reduce.comp where one invocation goes along a row.
enum Ordered : int32_t { kOrderedSum, kOrderedProduct, kOrderedExponents };

void ordered_step(NodeLowering& n, Ordered kind, Reduction& r, TensorId numbers) {
  const TensorId from = n.rows(0), to = n.make_rows();
  n.step(KernelId::bytes_reduce_ordered, {kind}, r.push.i(byte_offset(n.in(0).dtype)), {from, to, numbers},
         line_groups(r.rows, 64), 64 * static_cast<double>(r.rows * r.size));
}

/// Output 0 = made(sum of squares), which rises.
Status sums_of_squares(NodeLowering& n, double (*made)(double)) {
  Reduction r;
  PINNACE_TRY(describe_row(n, r));
  const TensorType x = n.in(0), y = n.out();
  const TensorId numbers = n.words("squares", (256 + 255) * 2, [=](std::span<float> to) {
    for (int64_t i = 0; i < 256; ++i) put(to, static_cast<size_t>(i), real_of(x, i) * real_of(x, i));
    put_thresholds(to, 256, y, [&](double sum) { return static_cast<float>(made(sum)); }, 0);
    return Status();
  });
  ordered_step(n, kOrderedSum, r, numbers);
  return {};
}

/// Doubles of bytes_log_softmax: of softmax, the bytes' numbers, and what makes logarithms.
constexpr int64_t kLogTable = 65792 + 256 + 128 + 21 * 128 + 8 + 2;

/// Output 0 by a kernel of bytes_softmax.comp whose table of `count` doubles begins as that of softmax; `rest` writes
/// what is there beside it.
Status exponent_lanes(NodeLowering& n, KernelId kernel, int64_t count,
                      void (*rest)(std::span<float> to, const TensorType& x)) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  PINNACE_TRY(check_scales(n));
  PINNACE_TRY(check_exponents(n));
  const TensorType x = n.in(0), y = n.out();
  const AxisView v = view_axis(x.shape, axis);
  // One invocation adds up a lane, in the reference's order, and a dispatch must end.
  if (v.size > kMostSummands) return n.refuse(Rule::kAttribute, str_cat("lanes of ", v.size));
  const TensorId numbers = n.words("exponents", count * 2, [=](std::span<float> to) {
    put_exponents(to, x);
    put_thresholds(to, 65536, y, [](double value) { return static_cast<float>(value); });
    rest(to, x);
    return Status();
  });
  const int64_t lanes = v.outer * v.inner;
  const TensorId from = n.rows(0), to = n.make_rows();
  std::vector<TensorId> bindings = {from, numbers, to};
  if (kernel == KernelId::bytes_log_softmax) bindings.push_back(n.problem());
  n.step(kernel, {}, Push().i(lanes).i(v.size).i(v.inner).i(byte_offset(x.dtype)), std::move(bindings),
         row_groups(lanes), static_cast<double>(lanes * v.size * 64));
  return {};
}

/// Integers are compared as they are, and what is found changes its scale.
Status extreme(NodeLowering& n, int kind) {
  Reduction r;
  PINNACE_TRY(describe_reduction(n, r));
  if (r.size == 0) return n.refuse(Rule::kAttribute, "a row without elements");
  const bool same = keeps_bytes(n.in(0), n.out());
  const TensorId x = n.rows(0);
  const TensorId found = same ? n.make_rows() : n.make_scratch(r.rows, n.in(0).dtype);
  n.step(KernelId::reduce_words, {kind, held_as(n.in(0).dtype)}, r.push, {x, found, found}, row_groups(r.rows),
         static_cast<double>(r.rows * r.size));
  if (!same) rescale_rows(n, found, n.in(0), r.rows, n.make_rows());
  return {};
}

}  // namespace

Status lower_quantized_reduce_sum(NodeLowering& n) {
  return exact_sums(n, itself, [](double sum, double) { return sum; });
}
Status lower_quantized_reduce_mean(NodeLowering& n) {
  return exact_sums(n, itself, [](double sum, double size) { return sum / size; });
}
Status lower_quantized_reduce_l1(NodeLowering& n) {
  return exact_sums(n, [](double v) { return std::fabs(v); }, [](double sum, double) { return sum; });
}
Status lower_quantized_reduce_log_sum(NodeLowering& n) {
  return exact_sums(n, itself, [](double sum, double) { return std::log(sum); }, std::nan(""));
}
Status lower_quantized_reduce_l2(NodeLowering& n) {
  return sums_of_squares(n, [](double sum) { return std::sqrt(sum); });
}
Status lower_quantized_reduce_sum_square(NodeLowering& n) {
  return sums_of_squares(n, itself);
}

Status lower_quantized_reduce_prod(NodeLowering& n) {
  Reduction r;
  PINNACE_TRY(describe_row(n, r));
  const TensorType x = n.in(0), y = n.out();
  if (digits_of(x) * static_cast<double>(r.size) > kMostDigits) {
    return n.refuse(Rule::kAttribute, str_cat(r.size, " factors of ", to_string(x)));
  }
  const TensorId numbers = n.words("factors", (256 + 255) * 2, [=](std::span<float> to) {
    for (int64_t i = 0; i < 256; ++i) put(to, static_cast<size_t>(i), real_of(x, i));
    put_thresholds(to, 256, y, [](double product) { return static_cast<float>(product); });
    return Status();
  });
  ordered_step(n, kOrderedProduct, r, numbers);
  return {};
}

/// The largest and log(sum of exp(x - largest)): results rise with the sum, for each largest in its own way.
Status lower_quantized_reduce_log_sum_exp(NodeLowering& n) {
  Reduction r;
  PINNACE_TRY(describe_row(n, r));
  PINNACE_TRY(check_exponents(n));
  const TensorType x = n.in(0), y = n.out();
  const auto size = static_cast<double>(r.size);
  const TensorId numbers = n.words(str_cat("exponents of ", r.size), 256 * 511 * 2, [=](std::span<float> to) {
    put_exponents(to, x);
    for (int64_t m = 0; m < 256; ++m) {
      const double largest = real_of(x, m);
      put_thresholds(
          to, static_cast<size_t>(65536 + m * 255), y,
          [&](double sum) { return static_cast<float>(largest + std::log(sum)); }, 1, 2 * size);
    }
    return Status();
  });
  ordered_step(n, kOrderedExponents, r, numbers);
  return {};
}

Status lower_quantized_reduce_max(NodeLowering& n) {
  return extreme(n, 2);
}
Status lower_quantized_reduce_min(NodeLowering& n) {
  return extreme(n, 3);
}

Status lower_quantized_softmax(NodeLowering& n) {
  return exponent_lanes(n, KernelId::bytes_softmax, 65536 + 255, [](std::span<float>, const TensorType&) {});
}

Status lower_quantized_log_softmax(NodeLowering& n) {
  return exponent_lanes(n, KernelId::bytes_log_softmax, kLogTable, [](std::span<float> to, const TensorType& x) {
    put(to, 65791, 0.0);
    size_t at = 65792;
    for (int64_t i = 0; i < 256; ++i) put(to, at++, real_of(x, i));
    for (int j = 0; j < 128; ++j) put(to, at++, 1 / (1 + j / 128.0));
    for (int k = 0; k <= 20; ++k) {
      for (int j = 0; j < 128; ++j) put(to, at++, std::log(std::ldexp(1 + j / 128.0, k)));
    }
    for (int i = 1; i <= 8; ++i) put(to, at++, (i % 2 ? 1.0 : -1.0) / i);
    put(to, at++, 1 + 0x1p-48);
    put(to, at++, 1 - 0x1p-48);
  });
}

Status lower_quantized_lp_normalization(NodeLowering& n) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  PINNACE_TRY(check_scales(n));
  const TensorType x = n.in(0), y = n.out();
  const bool squares = n.view().attr_int("p") == 2;
  const AxisView v = view_axis(x.shape, axis);
  if (v.size > kMostSummands) return n.refuse(Rule::kAttribute, str_cat("lanes of ", v.size));
  const TensorId numbers = n.words("norm", (512 + 255) * 2, [=](std::span<float> to) {
    for (int64_t i = 0; i < 256; ++i) {
      const double real = real_of(x, i);
      put(to, static_cast<size_t>(i), squares ? real * real : std::fabs(real));
      put(to, static_cast<size_t>(256 + i), real);
    }
    put_thresholds(to, 512, y, [](double value) { return static_cast<float>(value); });
    return Status();
  });
  const int64_t lanes = v.outer * v.inner;
  const TensorId from = n.rows(0), to = n.make_rows();
  n.step(KernelId::bytes_norm, {squares ? 1 : 0}, Push().i(lanes).i(v.size).i(v.inner).i(byte_offset(x.dtype)),
         {from, numbers, to}, row_groups(lanes), static_cast<double>(lanes * v.size * 64));
  return {};
}

Status lower_quantized_resize(NodeLowering& n) {
  ImageResize r;
  PINNACE_TRY(describe_resize(n, r));
  if (r.spec.mode == ResizeMode::kNearest) {
    std::array<std::vector<int64_t>, 2> places;
    for (size_t d = 0; d < 2; ++d) {
      for (const ResizeTap& tap : r.taps[d].all) places[d].push_back(tap.index);
    }
    return pick_places(n, places[0], places[1]);
  }
  PINNACE_TRY(check_scales(n));
  if (!r.rows_first) return n.refuse(Rule::kAttribute, "columns before rows");
  if (r.taps[0].count * r.taps[1].count > kMostTaps) {
    return n.refuse(Rule::kAttribute, str_cat(r.taps[0].count * r.taps[1].count, " taps"));
  }
  const Shape &in = n.in(0).shape, &out = n.out().shape;
  const TensorType x = n.in(0), y = n.out();
  const std::array<ResizeTapList, 2> taps = r.taps;
  const size_t count = taps[0].all.size() + taps[1].all.size();
  const std::string sizes = str_cat(" of ", to_string(x), " to ", to_string(y));
  const TensorId numbers =
      n.words(str_cat("numbers", sizes), static_cast<int64_t>(512 + count) * 2, [=](std::span<float> to) {
        for (int64_t i = 0; i < 256; ++i) put(to, static_cast<size_t>(i), real_of(x, i));
        put_thresholds(to, 256, y, [](double value) { return static_cast<float>(value); });
        put(to, 511, 0.0);
        size_t at = 512;
        for (const ResizeTapList& list : taps) {
          for (const ResizeTap& tap : list.all) put(to, at++, tap.weight);
        }
        return Status();
      });
  const TensorId places = n.words(str_cat("places", sizes), static_cast<int64_t>(count), [=](std::span<float> to) {
    size_t at = 0;
    for (const ResizeTapList& list : taps) {
      for (const ResizeTap& tap : list.all) to[at++] = std::bit_cast<float>(tap.index);
    }
    return Status();
  });
  const TensorId from = n.image(0), to = n.make_image();
  n.step(KernelId::bytes_resize, {static_cast<int32_t>(taps[0].count), static_cast<int32_t>(taps[1].count)},
         Push().i(in[2].size).i(in[3].size).i(out[2].size).i(out[3].size), {from, numbers, places, to},
         {groups_of(out[3].size, 8), groups_of(out[2].size, 8), static_cast<uint32_t>(r.planes)},
         64.0 * static_cast<double>(r.planes * out[2].size * out[3].size * taps[0].count * taps[1].count));
  return {};
}

}  // namespace pinnace::gpu
