// What the reduce_* operators share: attributes, shape rule, and the loop that hands each operator the elements that
// one output element is made of.
//   x                     [...]
//   axes                  [n]  i64, optional; empty or left out: all axes, or none if noop_with_empty_axes
//   keepdims              int, default 1: reduced axes stay, with size 1
//   noop_with_empty_axes  int, default 0
// Arithmetic: float types in double, rounded once; signed integers and bool in i64, unsigned ones in u64, then cut to
// the output's type. Quantised: float32(q - zero) * scale each, the reduction in double, rounded to float32, quantised
// with the declared parameters or, without any, the input's. (A double holds sums of 2^20 such values of an 8-bit type
// exactly, so kernels may sum in any order.)
#pragma once

#include <cmath>

#include "ops/move.h"

namespace pinnace {

inline constexpr std::initializer_list<AttrDef> kReduceAttrs = {int_attr("keepdims", 1),
                                                                int_attr("noop_with_empty_axes", 0)};
template <DTypes types>
inline constexpr std::initializer_list<InputDef> kReduceInputs = {{"x", types},
                                                                  {"axes", kIndices, 0, Arity::kOptional}};

/// The input's element type; sizes 1 for (or without) the reduced axes. Unknown axes give unknown sizes.
Result<TensorType> reduce_type(const NodeView& node);

/// The elements that one output element is made of, in row-major order, and the range of the input's type (infinities
/// for floats).
template <class A>
struct ReducedRow {
  std::span<const A> values;
  A lowest, highest;
};

/// Reads rows of x. A is double for float and quantised types, uint64_t for unsigned integers, else int64_t.
class RowReader {
 public:
  static Result<RowReader> create(const NodeView& node, std::span<const TensorView> inputs);
  int64_t rows() const { return rows_; }
  int64_t row_size() const { return row_size_; }
  template <class A>
  void read(int64_t row, A* values) const;
  template <class A>
  ReducedRow<A> limits() const;

 private:
  TensorView x_;
  int64_t rows_ = 0, row_size_ = 0;
  std::vector<int64_t> kept_sizes_, kept_strides_;
  mutable std::optional<Scratch<int64_t>> offsets_;  ///< of a row's elements from its first
};

/// Stores a reduced value: quantises, rounds, or cuts to y's type.
template <class A>
void store_reduced(const TensorView& y, int64_t i, A value);

/// y[i] = f(row i) for every output element; f takes a ReducedRow<A> and returns A, for the three types A. Several
/// threads call it at once.
template <class F>
Status reduce(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out, F f) {
  PINNACE_ASSIGN(const RowReader reader, RowReader::create(node, in));
  const auto run = [&](auto zero) -> Status {
    using A = decltype(zero);
    const double cost = 3 * static_cast<double>(reader.row_size() + 4);
    return node.threads().ranges(reader.rows(), cost, [&](int64_t begin, int64_t end) -> Status {
      PINNACE_ASSIGN(auto values, Scratch<A>::allocate(reader.row_size(), node.label()));
      ReducedRow<A> row = reader.limits<A>();
      row.values = values.span();
      for (int64_t i = begin; i < end; ++i) {
        reader.read(i, values.data());
        store_reduced<A>(out[0], i, f(row));
      }
      return {};
    });
  };
  const DTypes type = 1u << static_cast<int>(in[0].dtype());
  if ((type & kFloats) || in[0].type->quantized()) return run(double{});
  constexpr DTypes kUnsigned = kU8 | dtypes(DType::kU16, DType::kU32, DType::kU64);
  return type & kUnsigned ? run(uint64_t{}) : run(int64_t{});
}

/// a + b and a * b; integers wrap.
template <class A>
A wrapping_add(A a, A b) {
  if constexpr (std::is_integral_v<A>) return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return a + b;
}
template <class A>
A wrapping_mul(A a, A b) {
  if constexpr (std::is_integral_v<A>) return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  return a * b;
}
}  // namespace pinnace
