// Pools of quantised images. Which byte a mean becomes is looked up: the reference says from which sum on each byte is
// reached, for every divisor that occurs, so that kernels compare integers only.
#include <cmath>

#include "backends/gpu/pool/params.h"
#include "backends/gpu/pool/pick.h"
#include "backends/gpu/quantize/thresholds.h"
#include "ops/pool.h"

namespace pinnace::gpu {
namespace {

constexpr int64_t kMostDivisors = 256;

enum class Pool { kLargest, kMean, kNorm };

/// Windows along one dimension, as int8_pool.comp lists them; `divisor` is this dimension's factor of a mean's.
struct Line {
  struct Place {
    int64_t first, end, divisor;
  };
  std::vector<Place> places;
  /// Distinct divisors in the order in which the list numbers them.
  std::vector<int64_t> divisors() const {
    std::vector<int64_t> all;
    for (const Place& p : places) {
      if (std::find(all.begin(), all.end(), p.divisor) == all.end()) all.push_back(p.divisor);
    }
    return all;
  }
};

/// The smallest sum of at most `taps` centred bytes whose mean over `count` is stored as byte k or more.
int32_t threshold(const TensorType& x, const TensorType& y, int64_t taps, int64_t count, int32_t k) {
  const TensorType one{y.dtype, {1}, y.quantization};
  const TensorView from{&x, nullptr};
  const auto byte = [&](int64_t sum) {
    std::byte stored{};
    store_mean(from, {&one, &stored}, 0, static_cast<double>(sum), static_cast<double>(count));
    return static_cast<int32_t>(unsigned_byte(one, &stored, 0));
  };
  int64_t low = -255 * taps - 1, high = 255 * taps + 1;  // results rise with the sum
  if (byte(high) < k) return INT32_MAX;
  if (byte(low) >= k) return INT32_MIN;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (byte(middle) >= k ? high : low) = middle;
  }
  return static_cast<int32_t>(high);
}

/// numbers: of kNorm, as int8_pool.comp has them.
Status pool(NodeLowering& n, Pool kind, const std::array<int64_t, 2>& dilation, const Line& rows, const Line& columns,
            int64_t taps, TensorId numbers = kNoTensor) {
  const bool mean = kind == Pool::kMean;
  const ImageShape s = image_shape(n.in(0));
  const auto H = n.in(0).rank() > 3 ? n.in(0).shape[2].size : 1, OH = static_cast<int64_t>(rows.places.size());
  const auto W = s.pixels / std::max<int64_t>(1, H), OW = static_cast<int64_t>(columns.places.size());
  const int64_t planes = s.N * s.blocks();
  if (OH > 65535 * 8 || OW > 65535 * 8) return n.refuse(Rule::kBytes, to_string(n.in(0)));
  if (taps > 1 << 20) return n.refuse(Rule::kAttribute, "a window of a million elements");
  const std::vector<int64_t> by_row = rows.divisors(), by_column = columns.divisors();
  const auto divisors = static_cast<int64_t>(by_row.size() * by_column.size());
  if (mean && divisors > kMostDivisors) return n.refuse(Rule::kAttribute, str_cat(divisors, " divisors"));
  const TensorType x = n.in(0), y = n.out();
  const TensorId lists = n.size_table(str_cat("pool of ", H, " ", W, " to ", OH, " ", OW),
                                      (OH + OW) * 3 + (mean ? divisors * 255 : 0), [=](std::span<float> to) -> Status {
                                        size_t at = 0;
                                        const auto put = [&](int64_t value) {
                                          to[at++] = std::bit_cast<float>(static_cast<int32_t>(value));
                                        };
                                        for (const Line* line : {&rows, &columns}) {
                                          const std::vector<int64_t>& known = line == &rows ? by_row : by_column;
                                          for (const Line::Place& p : line->places) {
                                            put(p.first);
                                            put(p.end);
                                            put(std::find(known.begin(), known.end(), p.divisor) - known.begin());
                                          }
                                        }
                                        if (!mean) return {};
                                        for (int64_t r : by_row) {
                                          for (int64_t c : by_column) {
                                            for (int32_t k = 1; k < 256; ++k) put(threshold(x, y, taps, r * c, k));
                                          }
                                        }
                                        return {};
                                      });
  const int32_t zero = n.in(0).quantization->zero_points[0] + byte_offset(n.in(0).dtype);
  const TensorId from = n.nc4hw4(0), to = n.make_nc4hw4();
  const Int8PoolParams params{.H = H,
                              .W = W,
                              .OH = OH,
                              .OW = OW,
                              .dil_y = dilation[0],
                              .dil_x = dilation[1],
                              .columns = static_cast<int64_t>(by_column.size()),
                              .x_zero = zero};
  const std::array<uint32_t, 3> groups = {groups_of(OW, 8), groups_of(OH, 8), static_cast<uint32_t>(planes)};
  const double work = static_cast<double>(planes * OH * OW) * static_cast<double>(taps);
  const auto longest = [](const Line& line, int64_t step) {
    int64_t most = 0;
    for (const Line::Place& p : line.places) most = std::max(most, (p.end - p.first + step - 1) / step);
    return most;
  };
  const int64_t window = loop_turns(longest(rows, dilation[0]), loop_turns(longest(columns, dilation[1])));
  n.loops(window + (kind == Pool::kNorm ? loop_turns(4, kByteSearchTurns) : kByteSearchTurns));
  if (kind == Pool::kNorm) {
    n.step(KernelId::int8_pool_norm, params, {from, lists, to, numbers}, groups, 64 * work);
  } else {
    n.step(KernelId::int8_pool, Int8PoolConstants{.MEAN = mean}, params, {from, lists, to}, groups, work);
  }
  return {};
}

Status windowed(NodeLowering& n, Pool kind, TensorId numbers = kNoTensor) {
  const bool mean = kind == Pool::kMean;
  Shape shape;
  PINNACE_ASSIGN(const Window w, check_pool(n.view(), shape));
  if (w.rank > 2) return n.refuse(Rule::kRank, to_string(n.in(0)));
  const bool with_pads = mean && n.view().attr_int("count_include_pad") != 0;
  std::array<Line, 2> lines;
  for (int d = 1; d < 3; ++d) {
    const auto at = static_cast<size_t>(d);
    if (w.dilation[at] > INT32_MAX / 2) return n.refuse(Rule::kAttribute, "dilations of a billion");
    for (int64_t o = 0; o < w.out[at]; ++o) {
      const Taps t = taps_at(w, d, o);
      const int64_t padded = std::min(w.kernel[at], (w.in[at] + w.after[at] - 1 - t.start) / w.dilation[at] + 1);
      const int64_t first = t.start + t.first * w.dilation[at], last = t.start + (t.last - 1) * w.dilation[at];
      const bool empty = t.last <= t.first;
      lines[at - 1].places.push_back({empty ? 0 : first, empty ? 0 : last + 1,
                                      !mean       ? 1
                                      : with_pads ? padded
                                                  : std::max<int64_t>(0, t.last - t.first)});
    }
  }
  return pool(n, kind, {w.dilation[1], w.dilation[2]}, lines[0], lines[1], w.taps(), numbers);
}

/// Means or the largest of parts of the image, or of all of it.
Status parts(NodeLowering& n, Pool kind, int64_t OH, int64_t OW) {
  const bool mean = kind == Pool::kMean;
  const ImageShape s = image_shape(n.in(0));
  const int64_t H = n.in(0).rank() > 3 ? n.in(0).shape[2].size : 1, W = s.pixels / std::max<int64_t>(1, H);
  const auto line = [mean](int64_t in, int64_t out) {
    Line made;
    for (int64_t o = 0; o < out; ++o) {
      const int64_t first = o * in / out, end = ((o + 1) * in + out - 1) / out;
      made.places.push_back({first, end, mean ? end - first : 1});
    }
    return made;
  };
  const int64_t taps = (H / std::max<int64_t>(1, OH) + 2) * (W / std::max<int64_t>(1, OW) + 2);
  return pool(n, kind, {1, 1}, line(H, OH), line(W, OW), taps);
}

}  // namespace

Status pick_places(NodeLowering& n, std::span<const int64_t> rows, std::span<const int64_t> columns) {
  const auto line = [](std::span<const int64_t> places) {
    Line made;
    for (int64_t place : places) made.places.push_back({place, place + 1, 1});
    return made;
  };
  return pool(n, Pool::kLargest, {1, 1}, line(rows), line(columns), 1);
}

Status lower_quantized_average_pool(NodeLowering& n) {
  return windowed(n, Pool::kMean);
}
Status lower_quantized_max_pool(NodeLowering& n) {
  if (n.view().output_count() > 1) return n.refuse(Rule::kAttribute, "indices of the largest");
  return windowed(n, Pool::kLargest);
}
Status lower_quantized_lp_pool(NodeLowering& n) {
  PINNACE_TRY(check_scales(n));
  const TensorType x = n.in(0), y = n.out();
  const auto power = static_cast<double>(n.view().attr_int("p"));
  if (digits_of(x) * power > kMostDigits - 20) {  // a million of them are summed at most
    return n.refuse(Rule::kAttribute, str_cat("the power ", n.view().attr_int("p"), " of ", to_string(x)));
  }
  const TensorId numbers = n.wide_weights("norm", (256 + 255) * 2, [=](std::span<float> to) {
    for (int64_t i = 0; i < 256; ++i) {
      const double real = real_of(x, i);
      put(to, static_cast<size_t>(i), power == 2 ? real * real : std::pow(std::fabs(real), power));
    }
    const auto stored = [power](double sum) {
      return static_cast<float>(power == 2 ? std::sqrt(sum) : std::pow(sum, 1 / power));
    };
    put_thresholds(to, 256, y, stored, 0);
    return Status();
  });
  return windowed(n, Pool::kNorm, numbers);
}
Status lower_quantized_global_average_pool(NodeLowering& n) {
  if (n.in(0).rank() > 4) return n.refuse(Rule::kRank, to_string(n.in(0)));
  return parts(n, Pool::kMean, 1, 1);
}
Status lower_quantized_global_max_pool(NodeLowering& n) {
  if (n.in(0).rank() < 3 || n.in(0).rank() > 4) return n.refuse(Rule::kRank, to_string(n.in(0)));
  return parts(n, Pool::kLargest, 1, 1);
}
Status lower_quantized_adaptive_average_pool(NodeLowering& n) {
  const Shape& y = n.out().shape;
  if (y.size() > 4) return n.refuse(Rule::kRank, to_string(n.in(0)));
  return parts(n, Pool::kMean, y.size() > 3 ? y[2].size : 1, y.size() > 2 ? y.back().size : 1);
}
Status lower_quantized_adaptive_max_pool(NodeLowering& n) {
  if (n.view().output_count() > 1) return n.refuse(Rule::kAttribute, "indices of the largest");
  const Shape& y = n.out().shape;
  if (y.size() > 4) return n.refuse(Rule::kRank, to_string(n.in(0)));
  return parts(n, Pool::kLargest, y.size() > 3 ? y[2].size : 1, y.back().size);
}

}  // namespace pinnace::gpu
