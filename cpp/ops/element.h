// Loops over elements for reference code: by element type, with broadcasting, through index arithmetic.
#pragma once

#include <type_traits>

#include "ops/op.h"

namespace pinnace {

/// Calls f with a value-initialised element of the C++ type of `dtype` and returns what it returns:
/// visit(t.dtype(), [&](auto zero) { using T = decltype(zero); … }). Half and BFloat16 stand for f16 and bf16, bool for
/// bool. The caller's `types` say which can occur; i4 and u4 cannot.
template <class F>
auto visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF64: return f(double{});
    case DType::kF16: return f(Half{});
    case DType::kBF16: return f(BFloat16{});
    case DType::kI8: return f(int8_t{});
    case DType::kU8: return f(uint8_t{});
    case DType::kI16: return f(int16_t{});
    case DType::kU16: return f(uint16_t{});
    case DType::kI32: return f(int32_t{});
    case DType::kU32: return f(uint32_t{});
    case DType::kI64: return f(int64_t{});
    case DType::kU64: return f(uint64_t{});
    case DType::kBool: return f(bool{});
    default: assert(dtype == DType::kF32); return f(float{});
  }
}

/// The same for f32, f16, bf16 and f64 only, which keeps code small where a schema takes only floats.
template <class F>
auto visit_float(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF64: return f(double{});
    case DType::kF16: return f(Half{});
    case DType::kBF16: return f(BFloat16{});
    default: assert(dtype == DType::kF32); return f(float{});
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

/// out[i] = f(in[i]) for float types, in double. `out` may be `in`.
template <class F>
Status map_floats(const TensorView& in, const TensorView& out, F f) {
  return visit_float(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t count = out.elements();
    const T* x = in.data<T>();
    T* y = out.data<T>();
    for (int64_t i = 0; i < count; ++i) y[i] = narrow<T>(f(widen(x[i])));
    return Status();
  });
}

/// Row-major counter over a shape that moves several tensors' offsets at once by their own strides (in elements; 0 where
/// a dimension is broadcast).
class StridedLoop {
 public:
  explicit StridedLoop(const Shape& shape) : shape_(shape) {}
  /// Offsets of a tensor of `type` that is broadcast to the loop's shape; returns its index for offset().
  int add_broadcast(const Shape& from);
  /// Offsets by given strides, one per dimension of the loop.
  int add_strides(std::vector<int64_t> strides);

  /// Calls f(i, offsets) for each of the loop's elements in order; offsets[k] belongs to the k-th add.
  template <class F>
  void run(F f) const {
    int64_t total = 1;
    for (const Dim& d : shape_) total *= d.size;
    std::vector<int64_t> index(shape_.size(), 0), offsets = bases_;
    for (int64_t i = 0; i < total; ++i) {
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
  Shape shape_;
  std::vector<std::vector<int64_t>> strides_;
  std::vector<int64_t> bases_;
};

/// Row-major strides of a concrete shape, in elements.
std::vector<int64_t> row_major_strides(const Shape& shape);

/// out = f(a, b) with broadcasting; A is the inputs' element type, R the output's. f takes and gives Wide values.
template <class A, class R, class F>
void map_broadcast(const TensorView& a, const TensorView& b, const TensorView& out, F f) {
  const A* x = a.data<A>();
  const A* y = b.data<A>();
  R* z = out.data<R>();
  StridedLoop loop(out.type->shape);
  loop.add_broadcast(a.type->shape);
  loop.add_broadcast(b.type->shape);
  loop.run([&](int64_t i, const int64_t* at) { z[i] = static_cast<R>(f(widen(x[at[0]]), widen(y[at[1]]))); });
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
/// Smallest and largest value of an integer type of at most 32 bits (4-bit types included).
struct IntRange {
  int32_t min, max;
};
IntRange int_range(DType dtype);
/// The stored integer of a quantised tensor of i8, u8, i16, u16, i32.
int32_t load_int(const TensorView& t, int64_t i);
void store_int(const TensorView& t, int64_t i, int32_t value);
/// float32(q - zero) * scale
inline float dequantize(int32_t q, ScaleZero p) { return static_cast<float>(q - p.zero) * p.scale; }
/// clamp(round_half_even(x / scale) + zero); NaN gives the zero point.
int32_t quantize(float x, ScaleZero p, IntRange range);

}  // namespace pinnace
