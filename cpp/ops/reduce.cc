// Shape rule and row reader of the reduce_* operators.
#include "ops/reduce.h"

namespace pinnace {
namespace {
/// Which axes are reduced, given the elements of `axes`.
Result<std::vector<bool>> reduced_axes(const NodeView& node, int rank, std::span<const int64_t> named) {
  std::vector<bool> reduced(static_cast<size_t>(rank), named.empty() && !node.attr_int("noop_with_empty_axes"));
  PINNACE_ASSIGN(const std::vector<int> axes, node.axes(named, rank));
  for (int axis : axes) reduced[static_cast<size_t>(axis)] = true;
  return reduced;
}
}  // namespace

Result<TensorType> reduce_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const bool keep = node.attr_int("keepdims") != 0;
  TensorType y{x.dtype, {}, nullptr};
  PINNACE_ASSIGN(y.quantization, computed_quantization(node, 0));
  std::optional<std::vector<int64_t>> named = std::vector<int64_t>{};
  if (node.has_input(1)) {
    PINNACE_ASSIGN(const Dim length, vector_length(node, 1, !keep));
    named = known_ints(node, 1);
    if (length.known() && length.size == 0) named = std::vector<int64_t>{};
    if (!named && !keep) {
      if (length.size > x.rank()) return node.error("axes names ", length.size, " axes of ", x);
      y.shape.resize(x.shape.size() - static_cast<size_t>(length.size));
      return y;
    }
  }
  if (!named) {  // every axis keeps its size or becomes 1
    for (const Dim& d : x.shape) {
      const int64_t bound = dim_bound(d);
      y.shape.push_back(d == Dim(1) ? d : bound < 0 ? Dim() : Dim::unknown(std::max<int64_t>(bound, 1)));
    }
    return y;
  }
  PINNACE_ASSIGN(const std::vector<bool> reduced, reduced_axes(node, x.rank(), *named));
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (!reduced[d]) {
      y.shape.push_back(x.shape[d]);
    } else if (keep) {
      y.shape.push_back(1);
    }
  }
  return y;
}

Result<RowReader> RowReader::create(const NodeView& node, std::span<const TensorView> inputs) {
  RowReader r;
  r.x_ = inputs[0];
  const bool has_axes = inputs.size() > 1 && inputs[1].present();
  const std::vector<int64_t> named = has_axes ? load_indices(inputs[1]) : std::vector<int64_t>{};
  PINNACE_ASSIGN(const std::vector<bool> reduced, reduced_axes(node, r.x_.rank(), named));
  const std::vector<int64_t> strides = row_major_strides(r.x_.type->shape);
  Shape row_shape;
  std::vector<int64_t> row_strides;
  r.rows_ = r.row_size_ = 1;
  for (size_t d = 0; d < reduced.size(); ++d) {
    const int64_t size = r.x_.type->shape[d].size;
    if (reduced[d]) {
      r.row_size_ *= size;
      row_shape.push_back(size);
      row_strides.push_back(strides[d]);
    } else {
      r.rows_ *= size;
      r.kept_sizes_.push_back(size);
      r.kept_strides_.push_back(strides[d]);
    }
  }
  PINNACE_ASSIGN(auto offsets, Scratch<int64_t>::allocate(r.row_size_, node.label()));
  StridedLoop loop(row_shape);
  loop.add_strides(row_strides);
  loop.run([&](int64_t i, const int64_t* at) { offsets[i] = at[0]; });
  r.offsets_ = std::move(offsets);
  return r;
}

template <class A>
void RowReader::read(int64_t row, A* values) const {
  int64_t base = 0;
  for (size_t d = kept_sizes_.size(); d-- > 0;) {
    base += row % kept_sizes_[d] * kept_strides_[d];
    row /= kept_sizes_[d];
  }
  const int64_t* offsets = offsets_->data();
  if (x_.type->quantized()) {
    const ScaleZero p = scale_zero(*x_.type);
    for (int64_t i = 0; i < row_size_; ++i) values[i] = static_cast<A>(dequantize(load_int(x_, base + offsets[i]), p));
    return;
  }
  visit(x_.dtype(), [&](auto zero) {
    const auto* x = x_.data<decltype(zero)>();  // null where rows are empty
    for (int64_t i = 0; i < row_size_; ++i) values[i] = static_cast<A>(widen(x[base + offsets[i]]));
    return 0;
  });
}

template <class A>
ReducedRow<A> RowReader::limits() const {
  return visit(x_.dtype(), [&](auto zero) -> ReducedRow<A> {
    using T = decltype(zero);
    if constexpr (std::is_same_v<A, double>) {
      const double infinity = std::numeric_limits<double>::infinity();
      return {{}, -infinity, infinity};
    } else if constexpr (!is_float<T>) {
      return {{}, static_cast<A>(std::numeric_limits<T>::lowest()), static_cast<A>(std::numeric_limits<T>::max())};
    } else {
      return {};
    }
  });
}

template <class A>
void store_reduced(const TensorView& y, int64_t i, A value) {
  if (y.type->quantized()) {
    store_int(y, i, quantize(static_cast<float>(value), scale_zero(*y.type), int_range(y.dtype())));
    return;
  }
  visit(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (is_float<T>) {
      y.data<T>()[i] = narrow<T>(static_cast<double>(value));
    } else {
      y.data<T>()[i] = static_cast<T>(value);
    }
    return 0;
  });
}

template void RowReader::read(int64_t, double*) const;
template void RowReader::read(int64_t, int64_t*) const;
template void RowReader::read(int64_t, uint64_t*) const;
template ReducedRow<double> RowReader::limits() const;
template ReducedRow<int64_t> RowReader::limits() const;
template ReducedRow<uint64_t> RowReader::limits() const;
template void store_reduced(const TensorView&, int64_t, double);
template void store_reduced(const TensorView&, int64_t, int64_t);
template void store_reduced(const TensorView&, int64_t, uint64_t);

}  // namespace pinnace
