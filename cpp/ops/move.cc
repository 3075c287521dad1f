// Copies by strides and element size; arithmetic on dimensions.
#include "ops/move.h"

#include <algorithm>

namespace pinnace {
namespace {

/// The last dimension that is dense in `from`; rank - 1 where none is.
size_t dense_dimension(size_t rank, const Shape& shape, std::span<const int64_t> strides) {
  size_t found = rank - 1;
  for (size_t d = 0; d < rank; ++d) {
    if (strides[d] == 1 && shape[d].size > 1) found = d;
  }
  return found;
}

constexpr int64_t kSquare = 16;  // elements along a side

/// Elements of a square, at most kSquare along either side: rows of `y` from columns of `x`.
template <size_t kBytes>
void copy_square(const std::byte* x, int64_t x_column, std::byte* y, int64_t y_row, int64_t height, int64_t breadth) {
  constexpr auto kWidth = static_cast<int64_t>(kBytes);
  const auto copy = [&](int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        std::memcpy(y + (i * y_row + j) * kWidth, x + (i + j * x_column) * kWidth, kBytes);
      }
    }
  };
  if (height == kSquare && breadth == kSquare) {
    copy(kSquare, kSquare);  // unrolled
  } else {
    copy(height, breadth);
  }
}

/// copy_strided where `from` is dense along dimension `along` and `to` along the last one of `rank`: in squares, so
/// that every line of memory that is fetched is used whole. 340 MB of weights take a sixth of the time of rows.
void copy_squares(const Threads& threads, Shape shape, size_t along, const std::byte* from,
                  std::vector<int64_t> from_strides, std::byte* to, std::vector<int64_t> to_strides, size_t bytes) {
  const size_t last = shape.size() - 1;
  const int64_t rows = shape[along].size, columns = shape[last].size;
  const int64_t from_column = from_strides[last], to_row = to_strides[along];
  std::vector<int64_t> row(shape.size()), column(shape.size());
  for (const size_t d : {along, last}) {
    shape[d] = (shape[d].size + kSquare - 1) / kSquare;
    from_strides[d] *= kSquare;
    to_strides[d] *= kSquare;
    (d == along ? row : column)[d] = kSquare;
  }
  StridedLoop squares(shape);
  squares.add_strides(std::move(from_strides));
  squares.add_strides(std::move(to_strides));
  squares.add_strides(std::move(row));
  squares.add_strides(std::move(column));
  const auto copy = bytes == 1   ? copy_square<1>
                    : bytes == 2 ? copy_square<2>
                    : bytes == 4 ? copy_square<4>
                                 : copy_square<8>;
  const auto width = static_cast<ptrdiff_t>(bytes);
  threads.ranges(squares.size(), copy_nanoseconds(kSquare * kSquare, bytes), [&](int64_t first, int64_t end) {
    squares.run(first, end, [&](int64_t, const int64_t* at) {
      const int64_t height = std::min(kSquare, rows - at[2]), breadth = std::min(kSquare, columns - at[3]);
      copy(from + at[0] * width, from_column, to + at[1] * width, to_row, height, breadth);
    });
  });
}

}  // namespace

void copy_strided(const Threads& threads, const Shape& shape, const std::byte* from,
                  std::span<const int64_t> from_strides, std::byte* to, std::span<const int64_t> to_strides,
                  size_t bytes) {
  // Last dimensions that are dense on both sides are one run.
  size_t rank = shape.size();
  int64_t run = 1;
  while (rank > 0 && (shape[rank - 1].size == 1 || (from_strides[rank - 1] == run && to_strides[rank - 1] == run))) {
    run *= shape[--rank].size;
  }
  if (run == 0) return;
  if (run == 1 && rank > 1 && to_strides[rank - 1] == 1) {
    const size_t along = dense_dimension(rank, shape, from_strides);
    if (along != rank - 1) {
      return copy_squares(threads, Shape(shape.begin(), shape.begin() + static_cast<ptrdiff_t>(rank)), along, from,
                          {from_strides.begin(), from_strides.begin() + static_cast<ptrdiff_t>(rank)}, to,
                          {to_strides.begin(), to_strides.begin() + static_cast<ptrdiff_t>(rank)}, bytes);
    }
  }
  StridedLoop loop(Shape(shape.begin(), shape.begin() + static_cast<ptrdiff_t>(rank)));
  loop.add_strides({from_strides.begin(), from_strides.begin() + static_cast<ptrdiff_t>(rank)});
  loop.add_strides({to_strides.begin(), to_strides.begin() + static_cast<ptrdiff_t>(rank)});
  const auto width = static_cast<ptrdiff_t>(bytes);
  threads.ranges(loop.size(), copy_nanoseconds(run, bytes), [&](int64_t first, int64_t last) {
    if (run > 1) {
      loop.run(first, last, [&](int64_t, const int64_t* at) {
        std::memcpy(to + at[1] * width, from + at[0] * width, static_cast<size_t>(run) * bytes);
      });
    } else {
      loop.run(first, last,
               [&](int64_t, const int64_t* at) { copy_element(to + at[1] * width, from + at[0] * width, bytes); });
    }
  });
}

void copy_transposed(const Threads& threads, const Shape& x_shape, std::span<const int> perm, const std::byte* x,
                     std::byte* y, size_t bytes) {
  const std::vector<int64_t> x_strides = row_major_strides(x_shape);
  Shape y_shape;
  std::vector<int64_t> from;
  for (int axis : perm) {
    y_shape.push_back(x_shape[static_cast<size_t>(axis)]);
    from.push_back(x_strides[static_cast<size_t>(axis)]);
  }
  copy_strided(threads, y_shape, x, from, y, row_major_strides(y_shape), bytes);
}

void copy_by_places(const Threads& threads, const TensorView& x, const TensorView& y, std::span<const int64_t> places,
                    const std::byte* fill) {
  const size_t rank = y.type->shape.size(), bytes = element_bytes(y.dtype());
  const std::vector<int64_t> strides = row_major_strides(x.type->shape);
  std::vector<const int64_t*> table(rank);
  const int64_t* next = places.data();
  for (size_t d = 0; d < rank; ++d) next = (table[d] = next) + y.type->shape[d].size;
  const int64_t row = rank ? y.dim(-1) : 1, rows = row ? y.elements() / row : 0;
  threads.ranges(rows, kMapNanoseconds * static_cast<double>(row), [&](int64_t first, int64_t last) {
    std::byte* to = y.bytes + static_cast<size_t>(first * row) * bytes;
    for (int64_t r = first; r < last; ++r) {
      int64_t base = 0, rest = r;
      bool inside = true;
      for (size_t d = rank > 0 ? rank - 1 : 0; d-- > 0;) {
        const int64_t place = table[d][rest % y.type->shape[d].size];
        rest /= y.type->shape[d].size;
        inside &= place >= 0;
        base += place * strides[d];
      }
      for (int64_t i = 0; i < row; ++i, to += bytes) {
        const int64_t place = rank ? table[rank - 1][i] : 0;
        copy_element(to, inside && place >= 0 ? x.bytes + static_cast<size_t>(base + place) * bytes : fill, bytes);
      }
    }
  });
}

std::vector<int64_t> load_indices(const TensorView& t) {
  std::vector<int64_t> all(static_cast<size_t>(t.elements()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = load_index(t, static_cast<int64_t>(i));
  return all;
}

AxisView view_axis(const Shape& shape, int axis) {
  AxisView view;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    (i < axis ? view.outer : i == axis ? view.size : view.inner) *= shape[static_cast<size_t>(i)].size;
  }
  return view;
}

namespace {
/// An unknown size; a bound that overflowed says nothing.
Dim bounded(const Dim& a, const Dim& b, int64_t (*join)(int64_t, int64_t)) {
  if (dim_bound(a) < 0 || dim_bound(b) < 0) return Dim();
  const int64_t bound = join(dim_bound(a), dim_bound(b));
  return bound == INT64_MAX ? Dim() : Dim::unknown(bound);
}
}  // namespace

Dim dim_mul(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return saturating_mul(a.size, b.size);
  if ((a.known() && a.size == 0) || (b.known() && b.size == 1)) return a;
  if ((b.known() && b.size == 0) || (a.known() && a.size == 1)) return b;
  return bounded(a, b, saturating_mul);
}

Dim dim_add(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return saturating_add(a.size, b.size);
  if (b.known() && b.size == 0) return a;
  if (a.known() && a.size == 0) return b;
  return bounded(a, b, saturating_add);
}

Dim dim_product(std::span<const Dim> dims) {
  Dim product(1);
  for (const Dim& d : dims) product = dim_mul(product, d);
  return product;
}

std::optional<Dim> dim_merge(const Dim& a, const Dim& b) {
  if (a.known() && b.known() && a.size != b.size) return std::nullopt;
  if (a.known() || b.known()) return a.known() ? a : b;
  if (a.symbol >= 0 || b.symbol >= 0) return a.symbol >= 0 ? a : b;
  return a.max >= 0 && (b.max < 0 || a.max < b.max) ? a : b;
}

std::optional<std::vector<int64_t>> known_ints(const NodeView& node, int i) {
  const auto known = node.input_known(i);
  if (!known) return std::nullopt;
  std::vector<int64_t> all;
  for (const KnownInt& k : *known) {
    if (!k.known) return std::nullopt;
    all.push_back(k.value);
  }
  return all;
}

Status check_one_number(const NodeView& node, int i) {
  const TensorType& type = node.input(i);
  if (type.rank() > 1 || (type.rank() == 1 && type.shape[0].known() && type.shape[0].size != 1)) {
    return node.error("input ", i, " must be one number, is ", type);
  }
  return {};
}

Result<KnownInt> known_scalar(const NodeView& node, int i) {
  PINNACE_TRY(check_one_number(node, i));
  const auto known = node.input_known(i);
  return known && known->size() == 1 ? (*known)[0] : KnownInt{};
}

Result<Dim> vector_length(const NodeView& node, int i, bool decides_rank) {
  const TensorType& type = node.input(i);
  if (type.rank() != 1) return node.error("input ", i, " must be a vector, is ", type);
  if (decides_rank && !type.shape[0].known()) {
    return node.error("its rank depends on the length of input ", i, ", which is not known: ", type);
  }
  if (decides_rank && type.shape[0].size > kMostDimensions) {
    return node.error("its rank follows the length of input ", i, ", ", type.shape[0].size, "; ", kMostDimensions,
                      " dimensions are the most");
  }
  return type.shape[0];
}

Result<std::shared_ptr<const Quantization>> moved_quantization(const NodeView& node, int i) {
  const auto& q = node.input(i).quantization;
  if (q && (q->axis >= 0 || q->block > 0 || q->scales.size() != 1)) {
    return node.error("input ", i, " is quantised per axis or block, which it does not take: ", node.input(i));
  }
  return q;
}

Result<std::shared_ptr<const Quantization>> computed_quantization(const NodeView& node, int i) {
  PINNACE_ASSIGN(auto own, moved_quantization(node, i));
  auto declared = node.output_quantization(0);
  return own && declared ? declared : own;
}

bool same_quantization(const TensorType& a, const TensorType& b) {
  if (!a.quantized() || !b.quantized()) return a.quantized() == b.quantized();
  return a.quantization == b.quantization || *a.quantization == *b.quantization;
}

}  // namespace pinnace
