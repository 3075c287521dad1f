// Barriers, functions across the lanes of a simdgroup, simdgroup matrices, and atomics. Lanes that have returned take
// no part; what Metal leaves undefined (the value of such a lane, one beyond the simdgroup) is all ones, a NaN.
#pragma once

#include "backends/softmetal/language/math.h"
#include "backends/softmetal/language/memory.h"

namespace metal {

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
inline mem_flags operator|(mem_flags a, mem_flags b) {
  return mem_flags(int(a) | int(b));
}
inline void threadgroup_barrier(mem_flags, SM_LINE) {
  softmetal::threadgroup_barrier(line);
}
inline void simdgroup_barrier(mem_flags flags, SM_LINE) {
  softmetal::simdgroup_barrier((int(flags) & int(mem_flags::mem_threadgroup)) != 0, line);
}

/// The value of another lane.
template <class T>
T of_lane(T v, uint from, int line) {
  static_assert(sizeof(T) <= 8, "a lane shows at most 8 bytes");
  const softmetal::Lanes lanes = softmetal::publish(&v, sizeof v, line);
  if (from < 64 && (lanes.active >> from & 1))
    __builtin_memcpy(&v, &lanes.slots[from], sizeof v);
  else
    __builtin_memset(&v, 0xff, sizeof v);
  return v;
}
/// The fold of lanes in order: all, those up to this one, or those before it.
enum class Lanes { all, inclusive, exclusive };
template <class T, class F>
T fold(T v, F f, int line, Lanes which = Lanes::all, T start = T()) {
  static_assert(sizeof(T) <= 8, "a lane shows at most 8 bytes");
  const softmetal::Lanes lanes = softmetal::publish(&v, sizeof v, line);
  const uint me = softmetal::self().lane;
  const uint end = which == Lanes::all ? 64 : which == Lanes::inclusive ? me + 1 : me;
  T sum = start;
  bool first = which != Lanes::exclusive;
  for (uint i = 0; i < end; i++) {
    if (!(lanes.active >> i & 1)) continue;
    T x;
    __builtin_memcpy(&x, &lanes.slots[i], sizeof x);
    sum = first ? x : f(sum, x);
    first = false;
  }
  return sum;
}
#define SM_FOLD(name, expression)                                   \
  template <class T>                                                \
  T name(T v, SM_LINE) {                                            \
    return fold(v, [](T a, T b) -> T { return expression; }, line); \
  }
SM_FOLD(simd_sum, a + b)
SM_FOLD(simd_product, a* b)
SM_FOLD(simd_max, max(a, b))
SM_FOLD(simd_min, min(a, b))
SM_FOLD(simd_or, a | b)
SM_FOLD(simd_and, a& b)
SM_FOLD(simd_xor, a ^ b)
template <class T>
T simd_prefix_inclusive_sum(T v, SM_LINE) {
  return fold(v, [](T a, T b) -> T { return a + b; }, line, Lanes::inclusive);
}
template <class T>
T simd_prefix_exclusive_sum(T v, SM_LINE) {
  return fold(v, [](T a, T b) -> T { return a + b; }, line, Lanes::exclusive);
}
template <class T>
T simd_prefix_inclusive_product(T v, SM_LINE) {
  return fold(v, [](T a, T b) -> T { return a * b; }, line, Lanes::inclusive);
}
template <class T>
T simd_prefix_exclusive_product(T v, SM_LINE) {
  return fold(v, [](T a, T b) -> T { return a * b; }, line, Lanes::exclusive, T(1));
}
template <class T>
T simd_broadcast(T v, uint from, SM_LINE) {
  return of_lane(v, from, line);
}
template <class T>
T simd_shuffle(T v, uint from, SM_LINE) {
  return of_lane(v, from, line);
}
template <class T>
T simd_shuffle_xor(T v, uint mask, SM_LINE) {
  return of_lane(v, softmetal::self().lane ^ mask, line);
}
template <class T>
T simd_shuffle_down(T v, uint delta, SM_LINE) {
  return of_lane(v, softmetal::self().lane + delta, line);
}
template <class T>
T simd_shuffle_up(T v, uint delta, SM_LINE) {
  return of_lane(v, softmetal::self().lane - delta, line);
}
inline ulong simd_lanes(int line) {
  const uint one = 1;
  return softmetal::publish(&one, sizeof one, line).active;
}
template <class T>
T simd_broadcast_first(T v, SM_LINE) {
  const softmetal::Lanes lanes = softmetal::publish(&v, sizeof v, line);
  __builtin_memcpy(&v, &lanes.slots[__builtin_ctzll(lanes.active)], sizeof v);
  return v;
}
inline bool simd_is_first(SM_LINE) {
  return softmetal::self().lane == uint(__builtin_ctzll(simd_lanes(line)));
}
inline bool simd_any(bool b, SM_LINE) {
  return simd_or<int>(b, line) != 0;
}
inline bool simd_all(bool b, SM_LINE) {
  return simd_and<int>(b, line) != 0;
}
struct simd_vote {
  using vote_t = ulong;
  ulong bits;
  explicit operator ulong() const { return bits; }
};
inline simd_vote simd_ballot(bool b, SM_LINE) {
  const uint mine = b;
  const softmetal::Lanes lanes = softmetal::publish(&mine, sizeof mine, line);
  ulong bits = 0;
  for (uint i = 0; i < 64; i++)
    if ((lanes.active >> i & 1) && lanes.slots[i]) bits |= 1ul << i;
  return {bits};
}

/// Every lane keeps the whole matrix, which it takes from the lane that comes first to a function of matrices: that one
/// does the loading, storing and adding for all. Which lane holds which element is not modelled. Undefined at first: a
/// NaN.
template <class T, int R, int C>
struct simdgroup_matrix {
  T m[R][C];
  simdgroup_matrix() { __builtin_memset(m, 0xff, sizeof m); }
  explicit simdgroup_matrix(T d) {
    for (int i = 0; i < R; i++)
      for (int j = 0; j < C; j++) m[i][j] = i == j ? d : T(0);
  }
};
template <class T, int R = 8, int C = 8>
simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T v) {
  simdgroup_matrix<T, R, C> r;
  for (auto& row : r.m)
    for (T& x : row) x = v;
  return r;
}
using simdgroup_float8x8 = simdgroup_matrix<float, 8, 8>;
using simdgroup_half8x8 = simdgroup_matrix<half, 8, 8>;

template <class T>
struct without_const {
  using type = T;
};
template <class T>
struct without_const<const T> {
  using type = T;
};
template <class T>
softmetal::pointer<T> checked(T* p) {
  return softmetal::pointer<T>(p);
}
template <class T>
softmetal::pointer<T> checked(softmetal::pointer<T> p) {
  return p;
}
template <class T, size_t N>
softmetal::pointer<T> checked(const softmetal::group_variable<T, N>& v) {
  return v;
}
// The element of an 8 x 8 tile in memory.
template <class P>
auto& tile_element(P p, ulong ld, ulong2 origin, bool transposed, int i, int j, int line) {
  const ulong row = origin.y + ulong(transposed ? j : i), column = origin.x + ulong(transposed ? i : j);
  return p[int64_t(row * ld + column), line];
}
template <class T, int R, int C, class P>
void simdgroup_load(simdgroup_matrix<T, R, C>& d, P from, ulong ld = C, ulong2 origin = 0, bool transposed = false,
                    SM_LINE) {
  auto p = checked(from);
  const softmetal::Together all = softmetal::together(reinterpret_cast<uint64_t>(p.p), sizeof d.m, line);
  if (all.first) {
    auto* to = static_cast<T*>(all.room);
    for (int i = 0; i < R; i++) {
      for (int j = 0; j < C; j++) {
        const auto& x = tile_element(p, ld, origin, transposed, i, j, line);
        static_assert(sizeof x == sizeof(T), "a matrix is loaded from elements of its own type");
        softmetal::note_read(&x, line);
        to[i * C + j] = x;
      }
    }
  }
  __builtin_memcpy(d.m, all.room, sizeof d.m);
}
template <class T, int R, int C, class P>
void simdgroup_store(const simdgroup_matrix<T, R, C>& s, P to, ulong ld = C, ulong2 origin = 0, bool transposed = false,
                     SM_LINE) {
  auto p = checked(to);
  const softmetal::Together all = softmetal::together(reinterpret_cast<uint64_t>(p.p), 0, line);
  for (int i = 0; all.first && i < R; i++) {
    for (int j = 0; j < C; j++) {
      auto& x = tile_element(p, ld, origin, transposed, i, j, line);
      static_assert(sizeof x == sizeof(T), "a matrix is stored to elements of its own type");
      softmetal::note_write(&x, line);
      x = s.m[i][j];
    }
  }
}
// Rows as vectors: kernels are compiled without a vectoriser.
template <int C>
using Row = float __attribute__((ext_vector_type(C)));
template <int C, class T>
Row<C> row_of(const T* from) {
  Row<C> row;
  if constexpr (__is_same(T, float))
    __builtin_memcpy(&row, from, sizeof row);
  else
    for (int j = 0; j < C; j++) row[j] = static_cast<float>(from[j]);
  return row;
}
template <class T, class A, class B, class D, int R, int K, int C>
void simdgroup_multiply_accumulate(simdgroup_matrix<T, R, C>& d, const simdgroup_matrix<A, R, K>& a,
                                   const simdgroup_matrix<B, K, C>& b, const simdgroup_matrix<D, R, C>& c, SM_LINE) {
  const softmetal::Together all = softmetal::together(0, sizeof d.m, line);
  if (all.first) {
    auto* to = static_cast<T*>(all.room);
    Row<C> rows[K];
    for (int k = 0; k < K; k++) rows[k] = row_of<C>(b.m[k]);
    for (int i = 0; i < R; i++) {
      Row<C> sum = row_of<C>(c.m[i]);
      for (int k = 0; k < K; k++) sum += static_cast<float>(a.m[i][k]) * rows[k];
      if constexpr (__is_same(T, float))
        __builtin_memcpy(to + i * C, &sum, sizeof sum);
      else
        for (int j = 0; j < C; j++) to[i * C + j] = static_cast<T>(sum[j]);
    }
  }
  __builtin_memcpy(d.m, all.room, sizeof d.m);
}
template <class T, class A, class B, int R, int K, int C>
void simdgroup_multiply(simdgroup_matrix<T, R, C>& d, const simdgroup_matrix<A, R, K>& a,
                        const simdgroup_matrix<B, K, C>& b, SM_LINE) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<T, R, C>(T(0)), line);
}

// ---- atomics: one host thread runs all invocations, so plain operations are atomic
enum memory_order { memory_order_relaxed };
template <class T>
struct atomic {
  T v;
};
using atomic_uint = atomic<uint>;
using atomic_int = atomic<int>;
using atomic_float = atomic<float>;
template <class A>
auto& atomic_value(A at, int line) {
  auto& v = at->v;
  softmetal::note_atomic(&v, line);
  return v;
}
#define SM_ATOMIC(name, expression)                                                      \
  template <class A, class T>                                                            \
  auto name(A at, T operand, memory_order, SM_LINE) {                                    \
    auto& v = atomic_value(at, line);                                                    \
    const auto before = v;                                                               \
    const auto x = static_cast<typename without_const<decltype(before)>::type>(operand); \
    v = expression;                                                                      \
    return before;                                                                       \
  }
SM_ATOMIC(atomic_fetch_add_explicit, before + x)
SM_ATOMIC(atomic_fetch_sub_explicit, before - x)
SM_ATOMIC(atomic_fetch_min_explicit, x < before ? x : before)
SM_ATOMIC(atomic_fetch_max_explicit, before < x ? x : before)
SM_ATOMIC(atomic_fetch_or_explicit, before | x)
SM_ATOMIC(atomic_fetch_and_explicit, before& x)
SM_ATOMIC(atomic_fetch_xor_explicit, before ^ x)
SM_ATOMIC(atomic_exchange_explicit, x)
template <class A>
auto atomic_load_explicit(A at, memory_order, SM_LINE) {
  return atomic_value(at, line);
}
template <class A, class T>
void atomic_store_explicit(A at, T x, memory_order, SM_LINE) {
  atomic_value(at, line) = x;
}
template <class A, class T>
bool atomic_compare_exchange_weak_explicit(A at, T* expected, T desired, memory_order, memory_order, SM_LINE) {
  auto& v = atomic_value(at, line);
  if (v == *expected) {
    v = desired;
    return true;
  }
  *expected = v;
  return false;
}

}  // namespace metal
