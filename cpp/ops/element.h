// Loops over elements for reference code: by element type, with broadcasting, through index arithmetic.
#pragma once

#include <type_traits>

#include "base/int_range.h"
#include "base/packed.h"
#include "base/small_float.h"
#include "ops/op.h"

// Bits of the element types that reference code is made for: all, or those of the models that a build is for, always
// with f32 and i64. check_node and infer_node_types refuse the others.
#if !defined(PINNACE_DTYPES)
#define PINNACE_DTYPES 0xffffffff
#endif

namespace pinnace {

constexpr bool built_for(DType dtype) {
  return PINNACE_DTYPES >> static_cast<int>(dtype) & 1;
}
template <DType dtype, class T, class Other>
using BuiltFor = std::conditional_t<built_for(dtype), T, Other>;

/// Calls f with a value-initialised element of the C++ type of `dtype` and returns what it returns:
/// visit(t.dtype(), [&](auto zero) { using T = decltype(zero); … }). Half and BFloat16 stand for f16 and bf16, bool for
/// bool. The caller's `types` say which can occur; types that are only stored cannot.
template <class F>
auto visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF64:
      return f(BuiltFor<DType::kF64, double, float>{});
    case DType::kF16:
      return f(BuiltFor<DType::kF16, Half, float>{});
    case DType::kBF16:
      return f(BuiltFor<DType::kBF16, BFloat16, float>{});
    case DType::kI8:
      return f(BuiltFor<DType::kI8, int8_t, float>{});
    case DType::kU8:
      return f(BuiltFor<DType::kU8, uint8_t, float>{});
    case DType::kI16:
      return f(BuiltFor<DType::kI16, int16_t, float>{});
    case DType::kU16:
      return f(BuiltFor<DType::kU16, uint16_t, float>{});
    case DType::kI32:
      return f(BuiltFor<DType::kI32, int32_t, float>{});
    case DType::kU32:
      return f(BuiltFor<DType::kU32, uint32_t, float>{});
    case DType::kI64:
      return f(BuiltFor<DType::kI64, int64_t, float>{});
    case DType::kU64:
      return f(BuiltFor<DType::kU64, uint64_t, float>{});
    case DType::kBool:
      return f(BuiltFor<DType::kBool, bool, float>{});
    default:
      assert(dtype == DType::kF32);
      return f(float{});
  }
}

/// The same for f32, f16, bf16 and f64 only, which keeps code small where a schema takes only floats.
template <class F>
auto visit_float(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF64:
      return f(BuiltFor<DType::kF64, double, float>{});
    case DType::kF16:
      return f(BuiltFor<DType::kF16, Half, float>{});
    case DType::kBF16:
      return f(BuiltFor<DType::kBF16, BFloat16, float>{});
    default:
      assert(dtype == DType::kF32);
      return f(float{});
  }
}

/// The same for integers of 8 to 64 bits only.
template <class F>
auto visit_int(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kI8:
      return f(BuiltFor<DType::kI8, int8_t, int64_t>{});
    case DType::kU8:
      return f(BuiltFor<DType::kU8, uint8_t, int64_t>{});
    case DType::kI16:
      return f(BuiltFor<DType::kI16, int16_t, int64_t>{});
    case DType::kU16:
      return f(BuiltFor<DType::kU16, uint16_t, int64_t>{});
    case DType::kI32:
      return f(BuiltFor<DType::kI32, int32_t, int64_t>{});
    case DType::kU32:
      return f(BuiltFor<DType::kU32, uint32_t, int64_t>{});
    case DType::kU64:
      return f(BuiltFor<DType::kU64, uint64_t, int64_t>{});
    default:
      assert(dtype == DType::kI64);
      return f(int64_t{});
  }
}

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// What arithmetic on T is done in: double for every float type, T itself for integers and bool.
template <class T>
using Wide = std::conditional_t<is_float<T>, double, T>;

template <class T>
Wide<T> widen(T x) {
  if constexpr (is_float<T>) {
    return static_cast<double>(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(x));
  } else {
    return x;
  }
}
/// Rounds once, half to even.
template <class T>
T narrow(Wide<T> x) {
  return static_cast<T>(x);
}

/// The low bits of the result of unsigned arithmetic, which wraps where signed arithmetic would be undefined.
template <class T>
T wrap(uint64_t x) {
  return static_cast<T>(x);
}

/// x as R. Float to integer truncates; what R cannot hold, NaN included, gives what x86-64 and with it numpy and
/// PyTorch give: types of up to 32 bits take the low bits of the int32 result, u32 those of the int64 result, where a
/// result outside int32 (int64) is that type's smallest value; u64 holds [2^63, 2^64) too. Integer to integer takes the
/// low bits. To bool: false for 0 and -0, else true. To floats: rounded once, half to even, also from 64-bit integers.
template <class R, class T>
R convert(T x) {
  if constexpr (std::is_same_v<R, bool>) {
    return widen(x) != Wide<T>{};
  } else if constexpr (std::is_same_v<R, T>) {
    return x;
  } else if constexpr (is_float<T> && is_float<R>) {
    return narrow<R>(widen(x));
  } else if constexpr (is_float<T>) {
    const double v = widen(x);
    if constexpr (sizeof(R) <= 4 && !std::is_same_v<R, uint32_t>) {
      return static_cast<R>(v > -0x1p31 - 1 && v < 0x1p31 ? static_cast<int32_t>(v) : INT32_MIN);
    } else {
      if (std::is_same_v<R, uint64_t> && v >= 0x1p63 && v < 0x1p64) return static_cast<R>(static_cast<uint64_t>(v));
      return static_cast<R>(v >= -0x1p63 && v < 0x1p63 ? static_cast<int64_t>(v) : INT64_MIN);
    }
  } else if constexpr (std::is_same_v<R, Half> || std::is_same_v<R, BFloat16>) {
    bool negative = false;
    if constexpr (std::is_signed_v<T>) negative = x < 0;
    uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
    // Beyond 53 bits double would round first: the low 11 bits are gathered in one that keeps the direction.
    if (magnitude >> 53) magnitude = (magnitude & ~uint64_t{0x7ff}) | ((magnitude & 0x7ff) ? 0x800 : 0);
    const auto real = static_cast<double>(magnitude);
    return R(negative ? -real : real);
  } else {
    return static_cast<R>(x);
  }
}

/// x limited to [low, high]; NaN passes through.
inline double limit(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

/// The larger and the smaller of two; the first where they are equal, NaN where either is NaN.
template <class T>
T larger(T a, T b) {
  return a != a || b != b ? (a != a ? a : b) : a < b ? b : a;
}
template <class T>
T smaller(T a, T b) {
  return a != a || b != b ? (a != a ? a : b) : b < a ? b : a;
}

/// Loops over elements that Threads divide: what a cheap one takes, and where ranges may start. A multiple of 64 keeps
/// threads out of each other's cache lines, and out of each other's bytes where elements have fewer than 8 bits.
inline constexpr double kMapNanoseconds = 2;
inline constexpr int64_t kMapGrain = 64;

/// out[i] = f(in[i]) for elements of type A in and R out; f takes a Wide<A> and gives what converts to R. `out` may be
/// `in`.
template <class A, class R, class F>
void map_elements(const Threads& threads, const TensorView& in, const TensorView& out, F f) {
  const A* x = in.data<A>();
  R* y = out.data<R>();
  threads.ranges(
      out.elements(), kMapNanoseconds,
      [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) y[i] = static_cast<R>(f(widen(x[i])));
      },
      kMapGrain);
}

/// out[i] = f(in[i]) for float types, in double. `out` may be `in`.
template <class F>
Status map_floats(const Threads& threads, const TensorView& in, const TensorView& out, F f) {
  return visit_float(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_elements<T, T>(threads, in, out, f);
    return Status();
  });
}

/// Row-major counter over a shape that moves several tensors' offsets at once by their own strides (in elements; 0
/// where a dimension is broadcast).
class StridedLoop {
 public:
  explicit StridedLoop(const Shape& shape) : shape_(shape) {}
  /// Offsets of a tensor of `type` that is broadcast to the loop's shape; returns its index for offset().
  int add_broadcast(const Shape& from);
  /// Offsets by given strides, one per dimension of the loop.
  int add_strides(std::vector<int64_t> strides);
  /// How many elements it has.
  int64_t size() const;

  /// Calls f(i, offsets) for each of the loop's elements in order; offsets[k] belongs to the k-th add.
  template <class F>
  void run(F f) const {
    run(0, size(), f);
  }
  /// The same for elements [first, last) of it. Where the caller's work is to end (base/cancel.h), the rest is left
  /// out.
  template <class F>
  void run(int64_t first, int64_t last, F f) const {
    if (first >= last) return;
    std::vector<int64_t> index(shape_.size(), 0), offsets = bases_;
    start(first, index, offsets);
    for (int64_t i = first; i < last; ++i) {
      if ((i - first) % kLookEvery == kLookEvery - 1 && loop_stops()) return;
      f(i, offsets.data());
      for (size_t d = shape_.size(); d-- > 0;) {
        if (++index[d] < shape_[d].size) {
          for (size_t k = 0; k < strides_.size(); ++k) offsets[k] += strides_[k][d];
          break;
        }
        for (size_t k = 0; k < strides_.size(); ++k) offsets[k] -= strides_[k][d] * (shape_[d].size - 1);
        index[d] = 0;
      }
    }
  }

 private:
  static constexpr int64_t kLookEvery = 1 << 14;  ///< elements, of some nanoseconds each
  void start(int64_t first, std::vector<int64_t>& index, std::vector<int64_t>& offsets) const;
  Shape shape_;
  std::vector<std::vector<int64_t>> strides_;
  std::vector<int64_t> bases_;
};

/// Row-major strides of a concrete shape, in elements.
std::vector<int64_t> row_major_strides(const Shape& shape);

/// An elementwise loop with broadcasting, cut into rows along which each operand either advances element by element or
/// stays. Equal shapes and scalars give a single row, [N,C,H,W] with [C,1,1] gives N * C of them.
class BroadcastRows {
 public:
  BroadcastRows(const Shape& out, std::span<const TensorView> operands);
  /// f(first, count, at, step): elements [first, first + count) of the output; the j-th of them takes element
  /// at[k] + j * step[k] of operand k. step is 0 or 1. Every element comes up once; rows may be cut, and come in order
  /// only within one thread.
  template <class F>
  void run(const Threads& threads, F f) const {
    run_erased(threads, &f, [](void* c, int64_t first, int64_t count, const int64_t* at, const int64_t* step) {
      (*static_cast<F*>(c))(first, count, at, step);
    });
  }

 private:
  // Not a template: there are thousands of f, and rows are long.
  using Row = void (*)(void* context, int64_t first, int64_t count, const int64_t* at, const int64_t* step);
  void run_erased(const Threads& threads, void* context, Row row) const;

  StridedLoop rows_;
  int64_t count_ = 1;
  std::vector<int64_t> step_;
};

/// out = f(a, b) with broadcasting; A and B are the inputs' element types, R the output's. f takes and gives Wide
/// values.
template <class A, class B, class R, class F>
void map_broadcast_mixed(const Threads& threads, const TensorView& a, const TensorView& b, const TensorView& out, F f) {
  const TensorView operands[] = {a, b};
  BroadcastRows(out.type->shape, operands)
      .run(threads, [&](int64_t first, int64_t count, const int64_t* at, const int64_t* step) {
        const A* x = a.data<A>() + at[0];
        const B* y = b.data<B>() + at[1];
        R* z = out.data<R>() + first;
        if (step[0] && step[1]) {
          for (int64_t j = 0; j < count; ++j) z[j] = static_cast<R>(f(widen(x[j]), widen(y[j])));
        } else if (step[0]) {
          const Wide<B> constant = widen(*y);
          for (int64_t j = 0; j < count; ++j) z[j] = static_cast<R>(f(widen(x[j]), constant));
        } else if (step[1]) {
          const Wide<A> constant = widen(*x);
          for (int64_t j = 0; j < count; ++j) z[j] = static_cast<R>(f(constant, widen(y[j])));
        } else {
          for (int64_t j = 0; j < count; ++j) z[j] = static_cast<R>(f(widen(*x), widen(*y)));
        }
      });
}
/// The same with one element type for both inputs.
template <class A, class R, class F>
void map_broadcast(const Threads& threads, const TensorView& a, const TensorView& b, const TensorView& out, F f) {
  map_broadcast_mixed<A, A, R>(threads, a, b, out, f);
}

/// out = last(f(...f(f(x0, x1), x2)...)) over one or more inputs of element type T with broadcasting, in Wide<T>.
template <class T, class F, class G>
void fold_broadcast(const Threads& threads, std::span<const TensorView> in, const TensorView& out, F f, G last) {
  BroadcastRows(out.type->shape, in)
      .run(threads, [&](int64_t first, int64_t count, const int64_t* at, const int64_t* step) {
        T* y = out.data<T>() + first;
        for (int64_t j = 0; j < count; ++j) {
          Wide<T> all = widen(in[0].data<T>()[at[0] + j * step[0]]);
          for (size_t k = 1; k < in.size(); ++k) all = f(all, widen(in[k].data<T>()[at[k] + j * step[k]]));
          y[j] = static_cast<T>(last(all));
        }
      });
}

/// The error of integer division if an element of `divisor` is 0 and `out`, the result, is not empty.
template <class T>
Status refuse_zero_divisor(const NodeView& node, const TensorView& divisor, const TensorView& out) {
  const int64_t count = out.elements() ? divisor.elements() : 0;
  for (int64_t i = 0; i < count; ++i) {
    if (divisor.data<T>()[i] == T{}) return node.error("element ", i, " of the divisor is 0");
  }
  return {};
}

// ------------------------------------------------------------------------------------------------------- quantised

/// Scale and zero point of a per-tensor quantised type.
struct ScaleZero {
  float scale = 1;
  int32_t zero = 0;
};
inline ScaleZero scale_zero(const TensorType& type) {
  return {type.quantization->scales[0], type.quantization->zero_points[0]};
}
/// The stored integer of a tensor of i8, u8, i16, u16, i32, i4, u4, i2, u2. Storing into packed types keeps the
/// neighbours, and clears the unused rest of the last byte.
int32_t load_int(const TensorView& t, int64_t i);
void store_int(const TensorView& t, int64_t i, int32_t value);
/// The same for floats of 8 bits and fewer; small_from_double() makes the code.
float load_small(const TensorView& t, int64_t i);
void store_small(const TensorView& t, int64_t i, uint8_t code);
/// float32(q - zero) * scale
inline float dequantize(int32_t q, ScaleZero p) {
  return static_cast<float>(int64_t{q} - p.zero) * p.scale;  // 64 bits: 32-bit types may be quantised too
}
/// clamp(round_half_even(x / scale) + zero); NaN gives the zero point.
int32_t quantize(float x, ScaleZero p, IntRange range);

}  // namespace pinnace
