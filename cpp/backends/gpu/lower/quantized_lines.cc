// Quantised operators whose sums the reference makes in 64-bit floats: softmax, sums and means of rows, interpolation.
// Kernels do the same arithmetic by integers (shaders/double.glsl) and compare results with the numbers at which the
// reference stores another byte.
#include <cmath>

#include "backends/gpu/lower/quantized.h"
#include "backends/gpu/lower/reduction.h"
#include "backends/gpu/lower/resize.h"
#include "ops/move.h"

namespace pinnace::gpu {
namespace {

/// Scales between these keep every number of a kernel's arithmetic far from where 64-bit floats end.
constexpr float kLeastScale = 1e-30f, kMostScale = 1e30f;
/// exp(-600) times or through anything that is summed is a normal number.
constexpr float kMostExponent = 600;
/// Of so many summands of 33 bits every sum has at most 53.
constexpr int64_t kMostSummands = int64_t{1} << 20;
/// Of one output of a resize, which one invocation makes: a dispatch must end.
constexpr int64_t kMostTaps = 1 << 16;

Status check_scales(NodeLowering& n) {
  for (const TensorType* type : {&n.in(0), &n.out()}) {
    const float scale = scale_zero(*type).scale;
    if (!(scale >= kLeastScale && scale <= kMostScale))
      return n.refuse(Rule::kAttribute, str_cat("a scale of ", scale));
  }
  return {};
}

void put(std::span<float> to, size_t at, uint64_t bits) {
  to[at * 2] = std::bit_cast<float>(static_cast<uint32_t>(bits));
  to[at * 2 + 1] = std::bit_cast<float>(static_cast<uint32_t>(bits >> 32));
}
void put(std::span<float> to, size_t at, double value) {
  put(to, at, std::bit_cast<uint64_t>(value + 0.0));  // -0 becomes +0
}

/// order_of() of double.glsl, and its inverse.
constexpr uint64_t kSign = uint64_t{1} << 63;
uint64_t order_of(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  return bits & kSign ? ~bits : bits | kSign;
}
double number_at(uint64_t place) {
  return std::bit_cast<double>(place & kSign ? place & ~kSign : ~place);
}

/// Entries [at, at + 255): the places of the numbers from which on `stored` gives bytes 1, 2, ...; it rises.
void put_thresholds(std::span<float> to, size_t at, const TensorType& y, const std::function<float(double)>& stored) {
  const IntRange range = int_range(y.dtype);
  const auto byte = [&](uint64_t place) {
    return quantize(stored(number_at(place)), scale_zero(y), range) - range.min;
  };
  const uint64_t least = order_of(-1e300), most = order_of(1e300);
  for (int32_t k = 1; k < 256; ++k) {
    uint64_t low = least, high = most;
    if (byte(high) < k) {
      put(to, at++, ~uint64_t{0});
      continue;
    }
    if (byte(low) >= k) {
      put(to, at++, uint64_t{0});
      continue;
    }
    while (high - low > 1) {
      const uint64_t middle = low + (high - low) / 2;
      (byte(middle) >= k ? high : low) = middle;
    }
    put(to, at++, high);
  }
}

/// The real number of unsigned byte i.
double real_of(const TensorType& type, int64_t i) {
  return static_cast<double>(dequantize(static_cast<int32_t>(i) - byte_offset(type.dtype), scale_zero(type)));
}

/// What a sum of real numbers becomes: of `kind` 0 itself, of 1 the mean, of 5 (of magnitudes) itself.
Status sums(NodeLowering& n, int kind) {
  Reduction r;
  PINNACE_TRY(describe_reduction(n, r));
  PINNACE_TRY(check_scales(n));
  if (r.size == 0) return n.refuse(Rule::kAttribute, "a row without elements");
  if (r.size > kMostSummands) return n.refuse(Rule::kAttribute, str_cat(r.size, " summands"));
  const TensorType x = n.in(0), y = n.out();
  const auto size = static_cast<double>(r.size);
  const TensorId numbers = n.words(str_cat("sums of ", r.size), (256 + 255) * 2, [=](std::span<float> to) {
    for (int64_t i = 0; i < 256; ++i) {
      const double real = real_of(x, i);
      put(to, static_cast<size_t>(i), kind == 5 ? std::fabs(real) : real);
    }
    put_thresholds(to, 256, y, [&](double sum) { return static_cast<float>(kind == 1 ? sum / size : sum); });
    return Status();
  });
  const TensorId from = n.rows(0), to = n.make_rows();
  n.step(KernelId::bytes_reduce, {}, r.push.i(byte_offset(x.dtype)), {from, to, numbers}, row_groups(r.rows),
         static_cast<double>(r.rows * r.size));
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
  return sums(n, 0);
}
Status lower_quantized_reduce_mean(NodeLowering& n) {
  return sums(n, 1);
}
Status lower_quantized_reduce_l1(NodeLowering& n) {
  return sums(n, 5);
}
Status lower_quantized_reduce_max(NodeLowering& n) {
  return extreme(n, 2);
}
Status lower_quantized_reduce_min(NodeLowering& n) {
  return extreme(n, 3);
}

Status lower_quantized_softmax(NodeLowering& n) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  PINNACE_TRY(check_scales(n));
  const TensorType x = n.in(0), y = n.out();
  if (255 * scale_zero(x).scale > kMostExponent) {
    return n.refuse(Rule::kAttribute, str_cat("a scale of ", scale_zero(x).scale));
  }
  const AxisView v = view_axis(x.shape, axis);
  // One invocation adds up a lane, in the reference's order, and a dispatch must end.
  if (v.size > kMostSummands) return n.refuse(Rule::kAttribute, str_cat("lanes of ", v.size));
  const TensorId numbers = n.words("softmax", (65536 + 255) * 2, [=](std::span<float> to) {
    for (int64_t m = 0; m < 256; ++m) {
      for (int64_t i = 0; i < 256; ++i) {
        // No lane has an element above its largest.
        put(to, static_cast<size_t>(m * 256 + i), i > m ? 0.0 : std::exp(real_of(x, i) - real_of(x, m)));
      }
    }
    put_thresholds(to, 65536, y, [](double value) { return static_cast<float>(value); });
    return Status();
  });
  const int64_t lanes = v.outer * v.inner;
  const TensorId from = n.rows(0), to = n.make_rows();
  n.step(KernelId::bytes_softmax, {}, Push().i(lanes).i(v.size).i(v.inner).i(byte_offset(x.dtype)), {from, numbers, to},
         row_groups(lanes), static_cast<double>(lanes * v.size * 64));
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
