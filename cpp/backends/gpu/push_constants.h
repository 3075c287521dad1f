// Push and specialisation constants of kernels as C++ structs, from the lists that shaders have them from:
// <family>/params.inc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace pinnace::gpu {

/// An int32 of a kernel, with which the host computes in 64 bits. What does not fit keeps its low 32 bits.
class PushInt {
 public:
  constexpr PushInt(int64_t value) : value_(static_cast<int32_t>(value)) {}
  constexpr PushInt() = default;
  constexpr operator int64_t() const { return value_; }

 private:
  int32_t value_ = 0;
};

/// A float of a kernel, rounded once.
class PushFloat {
 public:
  constexpr PushFloat(double value) : value_(static_cast<float>(value)) {}
  constexpr PushFloat() = default;
  constexpr operator double() const { return static_cast<double>(value_); }

 private:
  float value_ = 0;
};

#define PUSH_INT(name) PushInt name = 0;
#define PUSH_UINT(name) PushInt name = 0;
#define PUSH_FLOAT(name) PushFloat name = 0;
#define PUSH_FLOATS_8(name, f0, f1, f2, f3, f4, f5, f6, f7) std::array<PushFloat, 8> name{};
#define PUSH_INTS_3(name, n0, n1, n2) std::array<PushInt, 3> name{};
#define PUSH_INTS_5(name, n0, n1, n2, n3, n4) std::array<PushInt, 5> name{};
#define PUSH_INTS_6(name, n0, n1, n2, n3, n4, n5) std::array<PushInt, 6> name{};

/// struct `name` with the members of `list`, 32 bits each without gaps, as shaders have them.
#define PINNACE_PUSH_CONSTANTS(name, list)                                              \
  struct name {                                                                         \
    list                                                                                \
  };                                                                                    \
  static_assert(std::is_standard_layout_v<name> && std::is_trivially_copyable_v<name>); \
  static_assert(sizeof(name) % 4 == 0 && alignof(name) == 4 && sizeof(name) <= 128, "Vulkan has 128 bytes")

#define SPEC_INT(id, name, value) PushInt name = value;
#define SPEC_INTS_3(id, name, n0, n1, n2, value) std::array<PushInt, 3> name{value, value, value};
#define SPEC_INTS_4(id, name, n0, n1, n2, n3, value) std::array<PushInt, 4> name{value, value, value, value};

/// struct `name` with the specialisation constants of `list`, whose numbers ascend from 0; each has the shader's value
/// unless it is given one.
#define PINNACE_SPEC_CONSTANTS(name, list) \
  struct name {                            \
    using IsSpecConstants = void;          \
    list                                   \
  };                                       \
  static_assert(std::is_standard_layout_v<name> && std::is_trivially_copyable_v<name> && sizeof(name) % 4 == 0)

template <class C>
concept SpecConstants = requires { typename C::IsSpecConstants; };

/// The values of such a struct by number; none by default.
class SpecValues {
 public:
  SpecValues() = default;
  template <SpecConstants C>
  SpecValues(const C& constants) : values_(sizeof(C) / sizeof(int32_t)) {
    std::memcpy(values_.data(), &constants, sizeof(C));
  }
  std::vector<int32_t> take() && { return std::move(values_); }

 private:
  std::vector<int32_t> values_;
};

/// Which one of a kernel's: what code that serves several kernels knows of each.
struct SpecConstant {
  size_t number;
};
#define PINNACE_SPEC(constants, member) (::pinnace::gpu::SpecConstant{offsetof(constants, member) / 4})

/// The bytes of a struct of push constants, which outlives this.
class PushBytes {
 public:
  template <class P>
    requires(std::is_standard_layout_v<P> && alignof(P) == 4 && !SpecConstants<P>)
  PushBytes(const P& params) : bytes_(std::as_bytes(std::span(&params, 1))) {}
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> copy() const { return {bytes_.begin(), bytes_.end()}; }

 private:
  std::span<const std::byte> bytes_;
};

/// Where a member of such a struct lies: what code that serves several kernels knows of each.
struct Field {
  static constexpr size_t kNone = ~size_t{0};
  size_t offset = kNone;
  constexpr Field operator[](size_t i) const { return {offset + 4 * i}; }
  constexpr explicit operator bool() const { return offset != kNone; }
};
#define PINNACE_FIELD(params, member) (::pinnace::gpu::Field{offsetof(params, member)})

}  // namespace pinnace::gpu
