// Sums of products of the elements of rows.
#include <algorithm>
#include <cmath>

#include <pinnace/quantize.h>

#include "base/exception_boundary.h"
#include "base/text.h"
#include "graph/graph.h"

namespace pinnace {
namespace {
/// Rows that are added together, and columns of which sums are kept in registers.
constexpr int64_t kRows = 64, kColumns = 8;
}  // namespace

struct GramMatrix::Data {
  int64_t rows = 0, length = 0, stride = 0;
  std::vector<double> sums;  ///< [length][stride]; i, j with j >= i - i % kColumns

  /// Some rows, as [rows][stride], zeros behind their ends. Of one element after another, row by row.
  void add(const double* x, int64_t count) {
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t j = i - i % kColumns; j < stride; j += kColumns) {
        double* to = sums.data() + i * stride + j;
        double sum[kColumns];
        std::copy_n(to, kColumns, sum);
        for (int64_t r = 0; r < count; ++r) {
          const double by = x[r * stride + i];
          const double* row = x + r * stride + j;
          for (int64_t c = 0; c < kColumns; ++c) sum[c] += by * row[c];
        }
        std::copy_n(sum, kColumns, to);
      }
    }
  }
};

GramMatrix::GramMatrix() : data_(std::make_unique<Data>()) {}
GramMatrix::~GramMatrix() = default;
GramMatrix::GramMatrix(GramMatrix&&) noexcept = default;
GramMatrix& GramMatrix::operator=(GramMatrix&&) noexcept = default;

int64_t GramMatrix::rows() const {
  return data_->rows;
}
int64_t GramMatrix::length() const {
  return data_->length;
}
double GramMatrix::at(int64_t i, int64_t j) const {
  const auto [least, most] = std::minmax(i, j);
  return data_->sums[static_cast<size_t>(least * data_->stride + most)];
}

Status GramMatrix::add(const Tensor& value) {
  return exception_boundary([&]() -> Status {
    const TensorType& type = value.type;
    if (type.dtype != DType::kF32 || type.quantized() || !type.concrete() || type.rank() < 1) {
      return invalid("rows are of float32, not of ", to_string(type));
    }
    if (value.memory.bytes < static_cast<size_t>(type.bytes()) || (type.bytes() > 0 && !value.memory.host)) {
      return invalid("a value of ", to_string(type), " has ", value.memory.bytes, " bytes");
    }
    const int64_t length = type.shape.back().size;
    if (data_->length && data_->length != length)
      return invalid("rows of ", length, " elements, they had ", data_->length);
    if (type.elements() == 0) return {};
    const auto* x = static_cast<const float*>(value.memory.host);
    const int64_t rows = type.elements() / length;
    for (int64_t i = 0; i < rows * length; ++i) {
      if (!std::isfinite(x[i])) return invalid("row ", i / length, " has an element that is NaN or infinite");
    }
    const int64_t stride = (length + kColumns - 1) / kColumns * kColumns;
    std::vector<double> some(static_cast<size_t>(std::min(rows, kRows) * stride));
    if (!data_->length) {
      data_->sums.resize(static_cast<size_t>(length) * static_cast<size_t>(stride));
      data_->length = length, data_->stride = stride;
    }
    for (int64_t first = 0; first < rows; first += kRows) {
      const int64_t count = std::min(kRows, rows - first);
      for (int64_t r = 0; r < count; ++r) {
        std::copy_n(x + (first + r) * length, length, some.data() + r * stride);
      }
      data_->add(some.data(), count);
    }
    data_->rows += rows;
    return {};
  });
}

}  // namespace pinnace
