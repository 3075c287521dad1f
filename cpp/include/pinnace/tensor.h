// Types of values: element type, shape with symbolic dimensions, quantisation; and Tensor, a type with borrowed memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pinnace/status.h>

#pragma GCC visibility push(default)
namespace pinnace {

/// Element types. The numbers are stable: files and the C API use them.
/// Storage is little-endian; bool is one byte, 0 or 1. Types of fewer than 8 bits are packed without gaps, the first
/// element in the lowest bits. Floats of 8 bits and fewer, i2, u2, i4 and u4 are for storage: they are cast, moved,
/// quantised and dequantised, and take part in no arithmetic.
enum class DType : uint8_t {
  kF32 = 0,
  kF16 = 1,
  kBF16 = 2,
  kF64 = 3,
  kI8 = 4,
  kU8 = 5,
  kI16 = 6,
  kU16 = 7,
  kI32 = 8,
  kU32 = 9,
  kI64 = 10,
  kU64 = 11,
  kBool = 12,
  kI4 = 13,
  kU4 = 14,
  kF8E4M3FN = 15,
  kF8E4M3FNUZ = 16,
  kF8E5M2 = 17,
  kF8E5M2FNUZ = 18,
  kF8E8M0 = 19,  ///< powers of two, 2^-127 to 2^127, and NaN
  kF6E2M3 = 20,
  kF6E3M2 = 21,
  kF4E2M1 = 22,
  kI2 = 23,
  kU2 = 24,
};
inline constexpr int kDTypeCount = 25;

/// The name that numpy or ml_dtypes has for it: "float32", "bfloat16", "int8", "bool", "float8_e4m3fn", …
std::string_view dtype_name(DType dtype);
/// The inverse of dtype_name; nothing if the name is unknown.
std::optional<DType> dtype_from_name(std::string_view name);
/// Bits of one element: 2, 4, 6, or a multiple of 8.
int dtype_bits(DType dtype);

/// A named dimension that is fixed by each run's inputs. Every size must satisfy min <= size <= max and size %
/// multiple_of
/// == 0. max is kUnbounded where there is none.
struct Symbol {
  static constexpr int64_t kUnbounded = INT64_MAX;
  std::string name;
  int64_t min = 0;
  int64_t max = kUnbounded;
  int64_t multiple_of = 1;
  bool operator==(const Symbol&) const = default;
};

/// One dimension: a size, a symbol (index into the owner's list of symbols), or unknown until the model runs, then
/// perhaps with an upper bound.
struct Dim {
  static constexpr int64_t kUnknown = -1;
  int64_t size = kUnknown;
  int32_t symbol = -1;     ///< -1: none. Only where size is unknown.
  int64_t max = kUnknown;  ///< upper bound of an unknown size, kUnknown if there is none

  constexpr Dim() = default;
  constexpr Dim(int64_t n) : size(n) {}  // NOLINT: implicit on purpose, so that shapes can be written as lists
  static constexpr Dim of_symbol(int32_t index) {
    Dim d;
    d.symbol = index;
    return d;
  }
  static constexpr Dim unknown(int64_t max = kUnknown) {
    Dim d;
    d.max = max;
    return d;
  }
  constexpr bool known() const { return size >= 0; }
  bool operator==(const Dim&) const = default;
};

using Shape = std::vector<Dim>;

/// real = (q - zero_point) * scale. One pair for the tensor (axis < 0), one per index of `axis`, or, where block > 0,
/// one per block of `block` consecutive elements along `axis` (scales then have the tensor's shape with that axis
/// divided).
struct Quantization {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;  ///< as many as scales
  int32_t axis = -1;
  int64_t block = 0;
  bool operator==(const Quantization&) const = default;
};

/// Element type, shape and, for quantised tensors, the parameters. Copies share the parameters.
struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  std::shared_ptr<const Quantization> quantization;

  int rank() const { return static_cast<int>(shape.size()); }
  bool quantized() const { return quantization != nullptr; }
  /// True if every dimension has a size.
  bool concrete() const;
  /// Number of elements; Dim::kUnknown if not concrete. Shapes are checked at the API boundary so that this cannot
  /// overflow.
  int64_t elements() const;
  /// Bytes of dense storage, or Dim::kUnknown.
  int64_t bytes() const;
  /// Equal types; quantisation is compared by value.
  bool operator==(const TensorType& other) const;
};

/// "[2,3,?]"; symbols are printed by name where the list is given, else as s0, s1.
std::string to_string(const Shape& shape, std::span<const Symbol> symbols = {});
/// "float32[2,3,?]". Quantised: "int8[4]{scale 0.5, zero 3}".
std::string to_string(const TensorType& type, std::span<const Symbol> symbols = {});

/// Where the bytes of a Tensor are, in the host's memory. Borrowed: pinnace never frees it.
struct Memory {
  void* host = nullptr;  ///< first byte
  size_t bytes = 0;      ///< available from there on
};

/// A concrete type and borrowed memory, dense and row-major. As an output, a Tensor with null memory asks the session
/// to own the bytes until its next run.
struct Tensor {
  TensorType type;
  Memory memory;
};

/// An input or output of a program.
struct TensorSpec {
  std::string name;
  TensorType type;  ///< symbols index the program's symbols()
};

}  // namespace pinnace
#pragma GCC visibility pop
