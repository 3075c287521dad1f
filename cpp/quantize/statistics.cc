// Statistics of one value. Everything is a sum of integers, so that order does not matter: counts of a histogram whose
// steps are powers of two and double when larger elements come, and means in fixed point.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <pinnace/quantize.h>

#include "base/exception_boundary.h"
#include "base/status.h"
#include "base/text.h"

namespace pinnace {
namespace {

/// Bins on either side of 0.
constexpr int64_t kSide = 4096;
/// Elements of a sample that go into the histogram, at most.
constexpr int64_t kSampled = 16384;
/// Steps of 256 integers.
constexpr int kLevels = 256;
/// The smallest and the largest exponent of a bin's width that a float32 can ask for.
constexpr int kLeastExponent = -161, kMostExponent = 128 - 12;
constexpr uint32_t kMagic = 0x53544e50;

__extension__ using Wide = __int128;  // NOLINT: sums of 2^20 means of up to 2^40, in units of 2^-60
constexpr double kUnit = 0x1p-60, kLargestMean = 0x1p40;

/// The exponent of the narrowest bins that have `magnitude` inside.
int exponent_for(double magnitude) {
  if (!(magnitude > 0)) return kLeastExponent;
  // magnitude < kSide * 2^e, also where it is a power of two.
  return std::max(kLeastExponent, std::ilogb(magnitude) + 1 - std::countr_zero(static_cast<uint64_t>(kSide)));
}

/// As a divisor of the number of elements would always meet the same channels, an odd distance.
int64_t distance(int64_t elements) {
  return elements <= kSampled ? 1 : (elements + kSampled - 1) / kSampled | 1;
}

/// The least and the greatest of at least one element; not finite if one of them is not.
struct Extremes {
  float least, greatest;
  bool finite;
};
Extremes extremes_of(const float* x, int64_t count) {
  // Four lanes in turn: the compiler must not reorder comparisons of floats by itself.
  typedef float Floats __attribute__((vector_size(16)));
  typedef int32_t Ints __attribute__((vector_size(16)));
  constexpr int32_t kExponent = 0x7f800000;
  float least = x[0], greatest = x[0];
  bool finite = true;
  int64_t i = 0;
  if (count >= 4) {
    Floats low, high;
    std::memcpy(&low, x, sizeof low);
    high = low;
    Ints wrong = {};
    for (; i + 4 <= count; i += 4) {
      Floats v;
      Ints bits;
      std::memcpy(&v, x + i, sizeof v);
      std::memcpy(&bits, x + i, sizeof bits);
      low = v < low ? v : low;
      high = v > high ? v : high;
      wrong |= (bits & kExponent) == kExponent;
    }
    for (int k = 0; k < 4; ++k) {
      least = std::min(least, low[k]);
      greatest = std::max(greatest, high[k]);
      finite = finite && wrong[k] == 0;
    }
  }
  for (; i < count; ++i) {
    least = std::min(least, x[i]);
    greatest = std::max(greatest, x[i]);
    finite = finite && std::isfinite(x[i]);
  }
  return {least, greatest, finite};
}

}  // namespace

struct ValueStatistics::Data {
  int64_t samples = 0;
  float least = 0, greatest = 0;
  int exponent = kLeastExponent;
  std::vector<uint64_t> counts;  ///< 2 * kSide, or none before the first element
  std::vector<Wide> sums;        ///< of each channel's mean, one for each sample

  double step() const { return std::ldexp(1.0, exponent); }

  /// Bins of twice the width until `wanted` is reached.
  void widen(int wanted) {
    if (wanted <= exponent) return;
    const int by = std::min(wanted - exponent, 14);  // all are in the two middle ones by then
    std::vector<uint64_t> wider(counts.size());
    for (int64_t i = 0; i < static_cast<int64_t>(counts.size()); ++i) {
      wider[static_cast<size_t>(((i - kSide) >> by) + kSide)] += counts[static_cast<size_t>(i)];
    }
    counts = std::move(wider);
    exponent = wanted;
  }

  /// Elements of one sample.
  void count(const float* x, int64_t elements) {
    const double inverse = std::ldexp(1.0, -exponent);
    for (int64_t i = 0, by = distance(elements); i < elements; i += by) {
      const auto bin = static_cast<int64_t>(std::floor(static_cast<double>(x[i]) * inverse));
      ++counts[static_cast<size_t>(std::clamp(bin, -kSide, kSide - 1) + kSide)];
    }
  }
};

ValueStatistics::ValueStatistics() : data_(std::make_unique<Data>()) {}
ValueStatistics::~ValueStatistics() = default;
ValueStatistics::ValueStatistics(ValueStatistics&&) noexcept = default;
ValueStatistics& ValueStatistics::operator=(ValueStatistics&&) noexcept = default;

Status ValueStatistics::add(const Tensor& value, int channel_axis) {
  return exception_boundary([&]() -> Status {
    const TensorType& type = value.type;
    if (type.dtype != DType::kF32 || type.quantized() || !type.concrete()) {
      return invalid("statistics are of float32, not of ", to_string(type));
    }
    if (value.memory.bytes < static_cast<size_t>(type.bytes()) || (type.bytes() > 0 && !value.memory.host)) {
      return invalid("a value of ", to_string(type), " has ", value.memory.bytes, " bytes");
    }
    if (channel_axis >= type.rank()) return invalid("there is no axis ", channel_axis, " in ", to_string(type));
    const int64_t samples = type.rank() > 1 ? type.shape[0].size : 1;
    const int64_t elements = type.elements();
    if (elements == 0) return {};
    const int64_t each = elements / samples;
    const auto* x = static_cast<const float*>(value.memory.host);
    float least = std::numeric_limits<float>::infinity(), greatest = -least;
    for (int64_t n = 0; n < samples; ++n) {
      const Extremes found = extremes_of(x + n * each, each);
      if (!found.finite) return invalid("sample ", n, " has an element that is NaN or infinite");
      least = std::min(least, found.least);
      greatest = std::max(greatest, found.greatest);
    }
    int64_t outer = 1, channels = 0, inner = 1;
    if (channel_axis >= 0) {
      channels = type.shape[static_cast<size_t>(channel_axis)].size;
      for (int d = type.rank() > 1 ? 1 : 0; d < type.rank(); ++d) {
        if (d != channel_axis) (d < channel_axis ? outer : inner) *= type.shape[static_cast<size_t>(d)].size;
      }
      if (type.rank() > 1 && channel_axis == 0) return invalid("axis 0 counts samples, it cannot be that of channels");
    }
    if (data_->samples > 0 && static_cast<int64_t>(data_->sums.size()) != channels) {
      return invalid("a value has ", channels, " channels, it had ", data_->sums.size());
    }
    if (data_->samples == 0) {
      data_->counts.resize(2 * kSide);
      data_->sums.resize(static_cast<size_t>(channels));
      data_->least = least;
      data_->greatest = greatest;
    }
    // Of two zeros either could be the least: + 0 makes 0 of -0, so that order does not matter.
    data_->least = std::min(data_->least, least) + 0.0f;
    data_->greatest = std::max(data_->greatest, greatest) + 0.0f;
    data_->widen(
        exponent_for(std::max(std::fabs(static_cast<double>(least)), std::fabs(static_cast<double>(greatest)))));
    for (int64_t n = 0; n < samples; ++n) {
      data_->count(x + n * each, each);
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t o = 0; o < outer; ++o) {
          const float* plane = x + n * each + (o * channels + c) * inner;
          for (int64_t i = 0; i < inner; ++i) sum += static_cast<double>(plane[i]);
        }
        const double mean = std::clamp(sum / static_cast<double>(outer * inner), -kLargestMean, kLargestMean);
        data_->sums[static_cast<size_t>(c)] += static_cast<Wide>(mean / kUnit);
      }
    }
    data_->samples += samples;
    return {};
  });
}

Status ValueStatistics::merge(const ValueStatistics& other) {
  return exception_boundary([&]() -> Status {
    const Data& from = *other.data_;
    if (from.samples == 0) return {};
    Data& to = *data_;
    if (to.samples > 0 && to.sums.size() != from.sums.size()) {
      return invalid("statistics of ", from.sums.size(), " channels cannot be added to those of ", to.sums.size());
    }
    if (to.samples == 0) {
      to = from;
      return {};
    }
    // Bytes of another process may claim any number of them.
    int64_t samples = 0;
    Wide sum = 0;
    bool fits = !__builtin_add_overflow(to.samples, from.samples, &samples);
    for (size_t c = 0; c < to.sums.size(); ++c) fits = fits && !__builtin_add_overflow(to.sums[c], from.sums[c], &sum);
    if (!fits) return invalid("statistics of ", from.samples, " samples are too many beside ", to.samples);
    to.samples = samples;
    to.least = std::min(to.least, from.least);
    to.greatest = std::max(to.greatest, from.greatest);
    to.widen(from.exponent);
    const int by = std::min(to.exponent - from.exponent, 14);
    for (int64_t i = 0; i < 2 * kSide; ++i) {
      to.counts[static_cast<size_t>(((i - kSide) >> by) + kSide)] += from.counts[static_cast<size_t>(i)];
    }
    for (size_t c = 0; c < to.sums.size(); ++c) to.sums[c] += from.sums[c];
    return {};
  });
}

int64_t ValueStatistics::samples() const {
  return data_->samples;
}

ValueRange ValueStatistics::extremes() const {
  return {data_->least, data_->greatest};
}

std::vector<double> ValueStatistics::channel_means() const {
  std::vector<double> means;
  means.reserve(data_->sums.size());
  for (const Wide sum : data_->sums) {
    means.push_back(static_cast<double>(sum) * kUnit / static_cast<double>(data_->samples));
  }
  return means;
}

ValueStatistics::Histogram ValueStatistics::histogram() const {
  if (data_->samples == 0) return {};
  const auto& counts = data_->counts;
  const auto filled = [](uint64_t n) { return n > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), filled);
  const auto last = std::find_if(counts.rbegin(), counts.rend(), filled).base();
  const auto low = static_cast<double>(first - counts.begin() - kSide);
  return {low * data_->step(), data_->step(), {first, last}};
}

namespace {

/// The mean square of what 256 steps over [low, high] make of a histogram's elements: a twelfth of a step's square
/// inside, the distance to the nearer end outside.
double square_error(const ValueStatistics::Histogram& h, double low, double high) {
  const double step = (high - low) / (kLevels - 1), inside = step * step / 12;
  double error = 0;
  for (size_t i = 0; i < h.counts.size(); ++i) {
    if (h.counts[i] == 0) continue;
    const double x = h.low + (static_cast<double>(i) + 0.5) * h.step, off = x < low ? low - x : x > high ? x - high : 0;
    error += static_cast<double>(h.counts[i]) * (off > 0 ? off * off + inside : inside);
  }
  return error;
}

ValueRange least_square_error(const ValueStatistics::Histogram& h, const ValueRange& all) {
  ValueRange best = all;
  double least = square_error(h, best.low, best.high);
  const auto attempt = [&](double low, double high) {
    const double error = high > low ? square_error(h, low, high) : least;
    if (error < least) best = {low, high}, least = error;
  };
  for (int i = 99; i >= 10; --i) attempt(all.low * i / 100, all.high * i / 100);
  const ValueRange both = best;
  for (int i = 99; i >= 10; --i) attempt(both.low * i / 100, both.high);
  const double low = best.low;
  for (int i = 99; i >= 10; --i) attempt(low, both.high * i / 100);
  return best;
}

/// How much a histogram p, what lies outside of [first, last) added to its ends, says that 256 equal parts of it do
/// not: sum of p log(p / q), q being each part's count spread evenly over those of its bins that are not empty.
double divergence(const std::vector<uint64_t>& counts, size_t first, size_t last) {
  const size_t n = last - first;
  std::vector<double> p(n), q(n, 0);
  double total = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto x = static_cast<double>(counts[i]);
    p[std::clamp(i, first, last - 1) - first] += x;
    total += x;
  }
  double inside = 0;
  for (size_t part = 0; part < kLevels; ++part) {
    const size_t begin = part * n / kLevels, end = (part + 1) * n / kLevels;
    double sum = 0;
    size_t filled = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += static_cast<double>(counts[first + i]);
      filled += p[i] > 0;
    }
    for (size_t i = begin; filled && i < end; ++i) {
      if (p[i] > 0) q[i] = sum / static_cast<double>(filled);
    }
    inside += sum;
  }
  double found = 0;
  // A bin at an end that only what was cut off fills: its part has next to nothing.
  const double least = 1e-9 * total;
  for (size_t i = 0; i < n; ++i) {
    if (p[i] > 0) found += p[i] / total * std::log((p[i] / total) / (std::max(q[i], least) / std::max(inside, least)));
  }
  return found;
}

/// Windows that grow from the middle of the elements, which is 0 where they lie on both sides of it.
ValueRange least_divergence(const ValueStatistics::Histogram& h, const ValueRange& all) {
  const auto n = static_cast<int64_t>(h.counts.size());
  if (n <= kLevels) return all;
  const int64_t zero = std::clamp<int64_t>(std::llround(-h.low / h.step), 0, n);
  const int64_t above = n - zero, below = zero, longer = std::max(above, below);
  double least = std::numeric_limits<double>::infinity();
  ValueRange best = all;
  for (int64_t reach = std::max<int64_t>(1, longer / 64); reach <= longer;
       reach += std::max<int64_t>(1, longer / 128)) {
    const int64_t first = zero - std::min(below, reach), last = zero + std::min(above, reach);
    if (last - first < kLevels) continue;
    const double found = divergence(h.counts, static_cast<size_t>(first), static_cast<size_t>(last));
    if (found < least) {
      least = found;
      best = {h.low + static_cast<double>(first) * h.step, h.low + static_cast<double>(last) * h.step};
    }
  }
  return {std::max(best.low, all.low), std::min(best.high, all.high)};
}

/// The ends of the bins up to which a tail of that part of the elements lies.
ValueRange without_tails(const ValueStatistics::Histogram& h, const ValueRange& all, double part) {
  uint64_t total = 0;
  for (const uint64_t n : h.counts) total += n;
  const auto tail = static_cast<uint64_t>(part * static_cast<double>(total));
  uint64_t seen = 0;
  size_t first = 0, last = h.counts.size();
  while (first < last && seen + h.counts[first] <= tail) seen += h.counts[first++];
  seen = 0;
  while (last > first + 1 && seen + h.counts[last - 1] <= tail) seen += h.counts[--last];
  return {std::max(all.low, h.low + static_cast<double>(first) * h.step),
          std::min(all.high, h.low + static_cast<double>(last) * h.step)};
}

}  // namespace

ValueRange ValueStatistics::range(RangeRule rule, double percentile) const {
  const ValueRange all = extremes();
  if (data_->samples == 0 || !(all.high > all.low)) return all;
  switch (rule) {
    case RangeRule::kMinMax:
      return all;
    case RangeRule::kPercentile:
      return without_tails(histogram(), all, 1 - std::clamp(percentile, 50.0, 100.0) / 100);
    case RangeRule::kMse:
      return least_square_error(histogram(), all);
    case RangeRule::kEntropy:
      return least_divergence(histogram(), all);
  }
  return all;
}

namespace {
/// What to_bytes() begins with.
struct Header {
  uint32_t magic = kMagic;
  int32_t exponent = 0;
  int64_t samples = 0;
  float least = 0, greatest = 0;
  uint32_t first = 0, bins = 0;  ///< of the counts that are written
  uint64_t channels = 0;
};
}  // namespace

std::vector<std::byte> ValueStatistics::to_bytes() const {
  const Data& d = *data_;
  Header header{.exponent = d.exponent, .samples = d.samples, .least = d.least, .greatest = d.greatest};
  std::vector<uint64_t> counts;
  if (d.samples > 0) {
    counts = histogram().counts;
    const auto first = std::find_if(d.counts.begin(), d.counts.end(), [](uint64_t n) { return n > 0; });
    header.first = static_cast<uint32_t>(first - d.counts.begin());
    header.bins = static_cast<uint32_t>(counts.size());
  }
  header.channels = d.sums.size();
  std::vector<std::byte> bytes(sizeof header + counts.size() * sizeof(uint64_t) + d.sums.size() * sizeof(Wide));
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!counts.empty()) std::memcpy(bytes.data() + sizeof header, counts.data(), counts.size() * sizeof(uint64_t));
  if (!d.sums.empty()) {
    std::memcpy(bytes.data() + bytes.size() - d.sums.size() * sizeof(Wide), d.sums.data(),
                d.sums.size() * sizeof(Wide));
  }
  return bytes;
}

Result<ValueStatistics> ValueStatistics::from_bytes(std::span<const std::byte> bytes) {
  return exception_boundary([&]() -> Result<ValueStatistics> {
    const auto wrong = [&](const char* what) {
      return Status(Code::kCorruptFile, str_cat("statistics of ", bytes.size(), " bytes: ", what));
    };
    Header header;
    if (bytes.size() < sizeof header) return wrong("shorter than their header");
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.magic != kMagic) return wrong("they do not begin with PNTS");
    const bool finite =
        std::isfinite(header.least) && std::isfinite(header.greatest) && header.least <= header.greatest;
    if (header.samples < 0 || !finite || header.exponent < kLeastExponent || header.exponent > kMostExponent ||
        header.first > 2 * kSide || header.bins > 2 * kSide - header.first ||
        (header.samples > 0) != (header.bins > 0)) {
      return wrong("a number of their header is out of its range");
    }
    const size_t counts = header.bins * sizeof(uint64_t), left = bytes.size() - sizeof header;
    if (left < counts || header.channels > (left - counts) / sizeof(Wide) ||
        left != counts + header.channels * sizeof(Wide)) {
      return wrong("they are not as long as their header says");
    }
    ValueStatistics made;
    Data& d = *made.data_;
    d.samples = header.samples;
    d.least = header.least;
    d.greatest = header.greatest;
    d.exponent = header.exponent;
    if (header.samples == 0) return made;
    d.counts.resize(2 * kSide);
    std::memcpy(d.counts.data() + header.first, bytes.data() + sizeof header, counts);
    if (d.counts[header.first] == 0 || d.counts[header.first + header.bins - 1] == 0) {
      return wrong("the histogram begins or ends with an empty bin");
    }
    d.sums.resize(header.channels);
    if (header.channels) {
      std::memcpy(d.sums.data(), bytes.data() + sizeof header + counts, header.channels * sizeof(Wide));
    }
    return made;
  });
}

std::pair<float, int32_t> byte_scale(const ValueRange& range) {
  const double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  // A scale below the smallest normal number would lose its digits.
  const auto scale = static_cast<float>(std::max((high - low) / (kLevels - 1), 0x1p-126));
  if (!(high > low) || !std::isfinite(scale)) return {1.0f, 0};
  const double zero = std::nearbyint(-low / static_cast<double>(scale));
  return {scale, static_cast<int32_t>(std::clamp(zero, 0.0, kLevels - 1.0))};
}

}  // namespace pinnace
