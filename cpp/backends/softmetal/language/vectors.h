// Metal's scalar and vector types as clang's own vectors, packed and boolean vectors, matrices, and the constructors
// that C++ vectors lack: make<float4>(a, b.xy, c). Part of metal.h, which translated kernels include.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace metal {

using uint = unsigned int;
using ushort = unsigned short;
using uchar = unsigned char;
using ulong = unsigned long;
using half = _Float16;

#define SM_EACH(X) X(float) X(half) X(int) X(uint) X(short) X(ushort) X(char) X(uchar) X(long) X(ulong)
#define SM_VECTORS(T)                                 \
  typedef T T##2 __attribute__((ext_vector_type(2))); \
  typedef T T##3 __attribute__((ext_vector_type(3))); \
  typedef T T##4 __attribute__((ext_vector_type(4)));
SM_EACH(SM_VECTORS)

template <class T, int N>
struct vec_of {
  typedef T type __attribute__((ext_vector_type(N)));
};
template <class T, int N>
using vec = typename vec_of<T, N>::type;

/// n: lanes, 0 for a scalar; E: element.
template <class V>
struct traits {
  static constexpr int n = 0;
  using E = V;
};
#define SM_TRAITS(T)            \
  template <>                   \
  struct traits<T##2> {         \
    static constexpr int n = 2; \
    using E = T;                \
  };                            \
  template <>                   \
  struct traits<T##3> {         \
    static constexpr int n = 3; \
    using E = T;                \
  };                            \
  template <>                   \
  struct traits<T##4> {         \
    static constexpr int n = 4; \
    using E = T;                \
  };
SM_EACH(SM_TRAITS)

template <class V>
concept Vector = traits<V>::n != 0;
template <class V>
concept Scalar = __is_arithmetic(V);

/// bool2, bool3, bool4; a comparison of vectors gives lanes of -1 and 0, which convert.
template <int N>
struct bools {
  bool v[N];
  bools() = default;
  template <class... B>
    requires(sizeof...(B) == N && N > 1)
  bools(B... b) : v{bool(b)...} {}
  bools(bool b) {
    for (bool& x : v) x = b;
  }
  template <Vector V>
    requires(traits<V>::n == N)
  bools(V a) {
    for (int i = 0; i < N; i++) v[i] = a[i] != 0;
  }
  bool& operator[](int i) { return v[i]; }
  bool operator[](int i) const { return v[i]; }
  template <class F>
  static bools each(F f) {
    bools r;
    for (int i = 0; i < N; i++) r.v[i] = f(i);
    return r;
  }
  bools operator!() const {
    return each([&](int i) { return !v[i]; });
  }
  bools operator&&(const bools& o) const {
    return each([&](int i) { return v[i] && o.v[i]; });
  }
  bools operator||(const bools& o) const {
    return each([&](int i) { return v[i] || o.v[i]; });
  }
  bools operator&(const bools& o) const { return *this && o; }
  bools operator|(const bools& o) const { return *this || o; }
  bools operator==(const bools& o) const {
    return each([&](int i) { return v[i] == o.v[i]; });
  }
  bools operator!=(const bools& o) const { return !(*this == o); }
};
using bool2 = bools<2>;
using bool3 = bools<3>;
using bool4 = bools<4>;
inline bool all(bool b) {
  return b;
}
inline bool any(bool b) {
  return b;
}
template <int N>
bool all(bools<N> b) {
  bool r = true;
  for (bool x : b.v) r &= x;
  return r;
}
template <int N>
bool any(bools<N> b) {
  bool r = false;
  for (bool x : b.v) r |= x;
  return r;
}
template <Vector V>
bool all(V b) {
  return all(bools<traits<V>::n>(b));
}
template <Vector V>
bool any(V b) {
  return any(bools<traits<V>::n>(b));
}

/// packed_float3 and the like: no padding, no alignment beyond the element's.
template <class T, int N>
struct packed {
  using V = vec<T, N>;
  T e[N];
  packed() = default;
  packed(V v) {
    for (int i = 0; i < N; i++) e[i] = v[i];
  }
  operator V() const {
    V v;
    for (int i = 0; i < N; i++) v[i] = e[i];
    return v;
  }
  T& operator[](int i) { return e[i]; }
  T operator[](int i) const { return e[i]; }
};
#define SM_PACKED(T)                  \
  using packed_##T##2 = packed<T, 2>; \
  using packed_##T##3 = packed<T, 3>; \
  using packed_##T##4 = packed<T, 4>;
SM_EACH(SM_PACKED)

template <class E, Scalar A>
void put(E* o, int& k, A a) {
  o[k++] = static_cast<E>(a);
}
template <class E, Vector A>
void put(E* o, int& k, A a) {
  for (int i = 0; i < traits<A>::n; i++) o[k++] = static_cast<E>(a[i]);
}
template <class E, int N>
void put(E* o, int& k, bools<N> a) {
  for (bool x : a.v) o[k++] = static_cast<E>(x);
}
template <class E, class T, int N>
void put(E* o, int& k, packed<T, N> a) {
  for (T x : a.e) o[k++] = static_cast<E>(x);
}
template <class A>
constexpr int lanes_of = 1;
template <Vector A>
constexpr int lanes_of<A> = traits<A>::n;
template <int N>
constexpr int lanes_of<bools<N>> = N;
template <class T, int N>
constexpr int lanes_of<packed<T, N>> = N;

/// V(a...): one scalar for all lanes, or as many numbers as lanes, from scalars and vectors in order.
template <Vector V, Scalar A>
V make(A a) {
  return static_cast<V>(static_cast<typename traits<V>::E>(a));
}
template <Vector V, Vector A>
  requires(traits<V>::n == traits<A>::n)
V make(A a) {
  return __builtin_convertvector(a, V);
}
template <Vector V, class... A>
V make(A... a) {
  static_assert((lanes_of<A> + ...) == traits<V>::n, "as many numbers as lanes");
  typename traits<V>::E o[traits<V>::n];
  int k = 0;
  (put(o, k, a), ...);
  V r;
  for (int i = 0; i < traits<V>::n; i++) r[i] = o[i];
  return r;
}

template <class D, class S>
D as_type(S s) {
  static_assert(sizeof(D) == sizeof(S), "as_type keeps the size");
  D d;
  __builtin_memcpy(&d, &s, sizeof d);
  return d;
}

/// float4x4 and the like: C columns of R numbers.
template <class T, int C, int R>
struct matrix {
  using Column = vec<T, R>;
  using Row = vec<T, C>;
  Column c[C];
  matrix() = default;
  explicit matrix(T d) {
    for (int i = 0; i < C; i++)
      for (int j = 0; j < R; j++) c[i][j] = i == j ? d : T(0);
  }
  template <class... A>
    requires(sizeof...(A) == C)
  matrix(A... a) : c{Column(a)...} {}
  Column& operator[](int i) { return c[i]; }
  const Column& operator[](int i) const { return c[i]; }
};
template <class T, int C, int R>
auto operator*(const matrix<T, C, R>& m, typename matrix<T, C, R>::Row v) {
  typename matrix<T, C, R>::Column r = m.c[0] * v[0];
  for (int i = 1; i < C; i++) r += m.c[i] * v[i];
  return r;
}
template <class T, int C, int R>
auto operator*(typename matrix<T, C, R>::Column v, const matrix<T, C, R>& m) {
  typename matrix<T, C, R>::Row r;
  for (int i = 0; i < C; i++) {
    r[i] = 0;
    for (int j = 0; j < R; j++) r[i] += v[j] * m.c[i][j];
  }
  return r;
}
template <class T, int K, int R, int C>
matrix<T, C, R> operator*(const matrix<T, K, R>& a, const matrix<T, C, K>& b) {
  matrix<T, C, R> r;
  for (int i = 0; i < C; i++) r.c[i] = a * b.c[i];
  return r;
}
template <class T, int C, int R>
matrix<T, R, C> transpose(const matrix<T, C, R>& m) {
  matrix<T, R, C> r;
  for (int i = 0; i < C; i++)
    for (int j = 0; j < R; j++) r.c[j][i] = m.c[i][j];
  return r;
}
#define SM_MATRICES(T)            \
  using T##2x2 = matrix<T, 2, 2>; \
  using T##2x3 = matrix<T, 2, 3>; \
  using T##2x4 = matrix<T, 2, 4>; \
  using T##3x2 = matrix<T, 3, 2>; \
  using T##3x3 = matrix<T, 3, 3>; \
  using T##3x4 = matrix<T, 3, 4>; \
  using T##4x2 = matrix<T, 4, 2>; \
  using T##4x3 = matrix<T, 4, 3>; \
  using T##4x4 = matrix<T, 4, 4>;
SM_MATRICES(float)
SM_MATRICES(half)

template <class T, size_t N>
struct array {
  T e[N];
  T& operator[](size_t i) { return e[i]; }
  const T& operator[](size_t i) const { return e[i]; }
};

}  // namespace metal
