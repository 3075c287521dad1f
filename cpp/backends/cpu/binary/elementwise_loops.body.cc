// Loops over integers, truth values and comparisons (elementwise_loops.h), by the compiler's own vectors.
#include "backends/cpu/binary/elementwise_loops.h"
#include "backends/cpu/simd/isa.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

template <class T, class R, auto F>
void each(const void* a, const void* b, void* y, int64_t count) {
  const T* const p = static_cast<const T*>(a);
  const T* const q = static_cast<const T*>(b);
  R* const r = static_cast<R*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) r[i] = static_cast<R>(F(p[i], q[i]));
}

template <class T>
PlainLoop comparison(PlainKind kind) {
  switch (kind) {
    case PlainKind::kEqual:
      return each<T, uint8_t, [](T p, T q) { return p == q; }>;
    case PlainKind::kLess:
      return each<T, uint8_t, [](T p, T q) { return p < q; }>;
    case PlainKind::kLessOrEqual:
      return each<T, uint8_t, [](T p, T q) { return p <= q; }>;
    default:
      return nullptr;
  }
}

template <class T>
struct UnsignedOf;
template <>
struct UnsignedOf<int32_t> {
  using U = uint32_t;
};
template <>
struct UnsignedOf<int64_t> {
  using U = uint64_t;
};

/// Quotients of 32 bits are exact in double: where p / q is no whole number, it is further from one than double rounds.
inline int32_t quotient(int32_t p, int32_t q) {
  const double real = static_cast<double>(p) / static_cast<double>(q);
  return static_cast<int32_t>(real < 0x1p31 ? real : -0x1p31);  // the smallest number by -1
}
inline int64_t quotient(int64_t p, int64_t q) {
  return q == -1 ? static_cast<int64_t>(0u - static_cast<uint64_t>(p)) : p / q;
}
template <class T>
inline T rest(T p, T q) {
  using U = typename UnsignedOf<T>::U;
  return static_cast<T>(static_cast<U>(p) - static_cast<U>(quotient(p, q)) * static_cast<U>(q));
}

template <class T>
PlainLoop arithmetic(PlainKind kind) {
  using U = typename UnsignedOf<T>::U;
  constexpr U kBits = sizeof(T) * 8;
  switch (kind) {
    case PlainKind::kAdd:
      return each<U, U, [](U p, U q) { return p + q; }>;
    case PlainKind::kSub:
      return each<U, U, [](U p, U q) { return p - q; }>;
    case PlainKind::kMul:
      return each<U, U, [](U p, U q) { return p * q; }>;
    case PlainKind::kDiv:
      return each<T, T, [](T p, T q) { return quotient(p, q); }>;
    case PlainKind::kTruncMod:
      return each<T, T, [](T p, T q) { return rest(p, q); }>;
    case PlainKind::kFloorMod:
      return each<T, T, [](T p, T q) {
        const T r = rest(p, q);
        return static_cast<T>(r + (((r ^ q) < 0) & (r != 0) ? q : 0));
      }>;
    case PlainKind::kMin:
      return each<T, T, [](T p, T q) { return q < p ? q : p; }>;
    case PlainKind::kMax:
      return each<T, T, [](T p, T q) { return p < q ? q : p; }>;
    case PlainKind::kShiftLeft:
      return each<U, U, [](U p, U q) { return q < kBits ? p << (q & (kBits - 1)) : 0; }>;
    case PlainKind::kShiftRight:
      return each<T, T, ([](T p, T q) { return p >> (static_cast<U>(q) < kBits ? q : static_cast<T>(kBits - 1)); })>;
    default:
      return comparison<T>(kind);
  }
}

PlainLoop bytes(PlainKind kind) {
  using T = uint8_t;
  switch (kind) {
    case PlainKind::kAnd:
      return each<T, T, [](T p, T q) { return p & q; }>;
    case PlainKind::kOr:
      return each<T, T, [](T p, T q) { return p | q; }>;
    case PlainKind::kXor:
      return each<T, T, [](T p, T q) { return p ^ q; }>;
    case PlainKind::kEqual:
      return each<T, T, [](T p, T q) { return p == q; }>;
    default:
      return nullptr;
  }
}

PlainLoop find(PlainKind kind, PlainType type) {
  switch (type) {
    case PlainType::kU8:
      return bytes(kind);
    case PlainType::kI32:
      return arithmetic<int32_t>(kind);
    case PlainType::kI64:
      return arithmetic<int64_t>(kind);
    case PlainType::kF32:
      break;
  }
  if (kind == PlainKind::kUnequal) return each<float, uint8_t, [](float p, float q) { return p != q; }>;
  if (kind == PlainKind::kSizeEqual) {
    return each<float, uint8_t, [](float p, float q) { return __builtin_fabsf(p) == q; }>;
  }
  return comparison<float>(kind);
}

}  // namespace
}  // namespace PINNACE_ISA

const ElementwiseLoops PINNACE_FOR_ISA(elementwise_loops) = {PINNACE_ISA::find};

}  // namespace pinnace::cpu
