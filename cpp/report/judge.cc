// The definition is that of python/pinnace/agreement.py, without what needs the source model: sentinels, decades and
// the arbiter. tests/python/sessions/device_report_test.py holds the two against each other.
#include "report/judge.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace pinnace::report {
namespace {

constexpr double kSliceFactor = 10, kSliceMost = 0.1;
constexpr size_t kSliceElements = 8, kFewElements = 64;

bool is_float(pnc_dtype dtype) {
  return dtype == PNC_F32 || dtype == PNC_F16 || dtype == PNC_BF16 || dtype == PNC_F64;
}

template <class T>
T load(const pnc_tensor& tensor, size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(tensor.data) + i * sizeof(T), sizeof(T));
  return value;
}

double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 0    ? std::ldexp(fraction, -24)
                 : exponent != 31 ? std::ldexp(fraction + 1024, exponent - 25)
                 : fraction       ? std::numeric_limits<double>::quiet_NaN()
                                  : std::numeric_limits<double>::infinity();
  return bits & 0x8000 ? -value : value;
}

/// Element i as a double: of 64-bit integers rounded, for messages.
double number(const pnc_tensor& tensor, size_t i) {
  switch (tensor.dtype) {
    case PNC_F32:
      return load<float>(tensor, i);
    case PNC_F64:
      return load<double>(tensor, i);
    case PNC_F16:
      return half(load<uint16_t>(tensor, i));
    case PNC_BF16:
      return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(tensor, i)) << 16);
    case PNC_I8:
      return load<int8_t>(tensor, i);
    case PNC_I16:
      return load<int16_t>(tensor, i);
    case PNC_U16:
      return load<uint16_t>(tensor, i);
    case PNC_I32:
      return load<int32_t>(tensor, i);
    case PNC_U32:
      return load<uint32_t>(tensor, i);
    case PNC_I64:
      return static_cast<double>(load<int64_t>(tensor, i));
    case PNC_U64:
      return static_cast<double>(load<uint64_t>(tensor, i));
    default:
      return load<uint8_t>(tensor, i);
  }
}

/// The type's smallest normal number, float16's smallest step: processors may flush what is below to 0.
double least(pnc_dtype dtype) {
  if (dtype == PNC_F64) return std::numeric_limits<double>::min();
  if (dtype == PNC_F16) return 0x1p-24;
  return std::numeric_limits<float>::min();
}

std::string text(double value) {
  char written[40];
  std::snprintf(written, sizeof written, "%.3g", value);
  std::string all = written;
  std::replace(all.begin(), all.end(), ',', '.');  // of a locale
  return all;
}

/// One way to cut an array: element i is in slice i / inner % size / width. The map of channels is i / inner.
struct Cut {
  std::string name;
  size_t inner, size, width, count;
};

std::vector<Cut> cuts_of(const pnc_tensor& tensor, size_t elements) {
  std::vector<Cut> cuts;
  if (elements <= kFewElements) {
    if (elements > 1) cuts.push_back({"element", 1, elements, 1, elements});
    return cuts;
  }
  const auto rank = static_cast<size_t>(tensor.rank);
  size_t axes = 0, inner = elements;
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto size = static_cast<size_t>(tensor.shape[axis]);
    inner /= size;
    if (size == 1) continue;
    ++axes;
    const size_t each = elements / size, width = each >= kSliceElements ? 1 : (kSliceElements + each - 1) / each;
    if (width < size) {
      cuts.push_back({"axis " + std::to_string(axis) + " index", inner, size, width, (size + width - 1) / width});
    }
  }
  const auto last = static_cast<size_t>(tensor.shape[rank - 1]);
  if (axes > 1 && last >= kSliceElements) cuts.push_back({"row", last, elements / last, 1, elements / last});
  if (rank > 3 && axes > 2 && tensor.shape[0] > 1) {
    const auto maps = static_cast<size_t>(tensor.shape[0] * tensor.shape[1]);
    if (elements / maps >= kSliceElements) cuts.push_back({"channel", elements / maps, maps, 1, maps});
  }
  return cuts;
}

void place(const pnc_tensor& got, const pnc_tensor& wanted, size_t i, Difference* found) {
  found->got = number(got, i);
  found->wanted = number(wanted, i);
  found->element.assign(static_cast<size_t>(wanted.rank), 0);
  for (size_t d = found->element.size(); d-- > 0; i /= static_cast<size_t>(wanted.shape[d])) {
    found->element[d] = static_cast<int64_t>(i % static_cast<size_t>(wanted.shape[d]));
  }
}

Difference judge_exactly(const pnc_tensor& got, const pnc_tensor& wanted, size_t elements) {
  Difference found;
  const size_t width = static_cast<size_t>(pnc_dtype_bits(wanted.dtype)) / 8;
  size_t places = 0, worst = 0;
  const size_t count = width ? elements : 0;
  for (size_t i = 0; i < count; ++i) {
    const auto at = [&](const pnc_tensor& tensor) { return static_cast<const char*>(tensor.data) + i * width; };
    if (std::memcmp(at(got), at(wanted), width) == 0) continue;
    const double distance = std::max(std::abs(number(got, i) - number(wanted, i)), 1.0);
    if (places++ == 0 || distance > found.largest) {
      found.largest = distance;
      worst = i;
    }
  }
  double magnitude = 0;
  for (size_t i = 0; i < count; ++i) magnitude = std::max(magnitude, std::abs(number(wanted, i)));
  if (places) {
    found.equal = false;
    found.relative = magnitude > 0 ? found.largest / magnitude : found.largest;
    found.why = "differs by " + text(found.largest) + " at most, in " + std::to_string(places) + " of " +
                std::to_string(elements) + " elements, which must be equal";
    place(got, wanted, worst, &found);
  } else if (!width && std::memcmp(got.data, wanted.data, wanted.bytes) != 0) {
    found.equal = false;
    found.why = "has other bytes";
  }
  return found;
}

Difference judge_floats(const pnc_tensor& got, const pnc_tensor& wanted, size_t elements, double bound) {
  Difference found;
  std::vector<double> distance(elements), size(elements);
  size_t worst = 0;
  double magnitude = 0;
  for (size_t i = 0; i < elements; ++i) {
    const double a = number(got, i), b = number(wanted, i);
    if (!std::isfinite(a) || !std::isfinite(b)) {
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      found.equal = false;
      found.largest = found.relative = std::numeric_limits<double>::infinity();
      found.why = "non-finite values stand in other places";
      place(got, wanted, i, &found);
      return found;
    }
    distance[i] = std::abs(a - b);
    size[i] = std::abs(b);
    if (distance[i] > distance[worst]) worst = i;
    magnitude = std::max(magnitude, size[i]);
  }
  found.largest = distance[worst];
  found.relative = magnitude > 0 ? found.largest / magnitude : found.largest > 0 ? HUGE_VAL : 0;
  place(got, wanted, worst, &found);
  const double flushed = least(wanted.dtype), slice_bound = std::max(bound, std::min(kSliceFactor * bound, kSliceMost));
  if (found.largest > bound * magnitude + flushed) {
    found.equal = false;
    found.why = "differs by " + text(found.relative) + " of its largest magnitude, bound " + text(bound);
    return found;
  }
  for (const Cut& cut : cuts_of(wanted, elements)) {
    std::vector<double> most(cut.count), largest(cut.count);
    std::vector<size_t> where(cut.count);
    for (size_t i = 0; i < elements; ++i) {
      const size_t k = i / cut.inner % cut.size / cut.width;
      if (distance[i] > most[k]) {
        most[k] = distance[i];
        where[k] = i;
      }
      largest[k] = std::max(largest[k], size[i]);
    }
    for (size_t k = 0; k < cut.count; ++k) {
      if (most[k] <= slice_bound * largest[k] + flushed) continue;
      found.equal = false;
      found.why = "differs by " + text(largest[k] > 0 ? most[k] / largest[k] : HUGE_VAL) +
                  " of its largest magnitude at " + cut.name + " " + std::to_string(k * cut.width) + ", bound " +
                  text(slice_bound);
      place(got, wanted, where[k], &found);
      return found;
    }
  }
  return found;
}

}  // namespace

Difference judge(const pnc_tensor& got, const pnc_tensor& wanted, double bound) {
  bool same = got.dtype == wanted.dtype && got.rank == wanted.rank && got.bytes >= wanted.bytes;
  size_t elements = 1;
  for (int32_t d = 0; same && d < wanted.rank; ++d) {
    same = got.shape[d] == wanted.shape[d];
    elements *= static_cast<size_t>(wanted.shape[d]);
  }
  if (!same) {
    Difference found;
    found.equal = false;
    found.largest = found.relative = std::numeric_limits<double>::infinity();
    found.why = std::string("has another type or shape than ") + pnc_dtype_name(wanted.dtype) + " of rank " +
                std::to_string(wanted.rank);
    return found;
  }
  if (elements == 0) return {};
  return is_float(wanted.dtype) ? judge_floats(got, wanted, elements, bound) : judge_exactly(got, wanted, elements);
}

}  // namespace pinnace::report
