// Memory that kernels share: buffers and threadgroup arrays, of which every element that is touched is checked against
// the bounds of what is bound. The translator writes these types where Metal has `device T*` and `threadgroup T x[n]`.
#pragma once

#include "backends/softmetal/execution/engine.h"
#include "backends/softmetal/language/vectors.h"

#define SM_LINE int line = __builtin_LINE()

namespace softmetal {

/// Outside of what is bound.
[[noreturn]] inline __attribute__((noinline, cold)) void outside_buffer(int binding, int64_t index, uint64_t count,
                                                                        uint64_t bytes, int line) {
  fault(line, "buffer(%d): element %lld is outside of %llu elements of %llu bytes", binding,
        static_cast<long long>(index), static_cast<unsigned long long>(count), static_cast<unsigned long long>(bytes));
}
[[noreturn]] inline __attribute__((noinline, cold)) void outside_array(const char* what, int64_t index, uint64_t count,
                                                                       int line) {
  fault(line, "%s: element %lld is outside of %llu", what, static_cast<long long>(index),
        static_cast<unsigned long long>(count));
}

/// The open array of a storage buffer: struct { T data[1]; }.
template <class T>
struct buffer {
  T* data = nullptr;
  uint64_t count = 0;
  int binding = 0;
  T& operator[](int64_t i, SM_LINE) {
    if (static_cast<uint64_t>(i) >= count) [[unlikely]]
      outside_buffer(binding, i, count, sizeof(T), line);
    return data[i];
  }
  const T& operator[](int64_t i, SM_LINE) const { return const_cast<buffer&>(*this)[i, line]; }
};

template <class T>
void bind(buffer<T>& b, const Arguments& a, int n) {
  b.data = static_cast<T*>(a.buffers[n].data);
  b.count = b.data ? a.buffers[n].bytes / sizeof(T) : 0;
  b.binding = n;
  if (reinterpret_cast<uintptr_t>(b.data) % alignof(T)) [[unlikely]]
    fault(0, "buffer(%d): its address is no multiple of %d", n, static_cast<int>(alignof(T)));
}

/// A struct that is read whole: push constants.
template <class T>
T& block(const Arguments& a, int n) {
  const SoftmetalBuffer& b = a.buffers[n];
  if (!b.data || b.bytes < sizeof(T)) [[unlikely]]
    fault(0, "buffer(%d): has %d bytes, the kernel reads %d", n, static_cast<int>(b.data ? b.bytes : 0),
          static_cast<int>(sizeof(T)));
  return *static_cast<T*>(b.data);
}

/// `device T*`, `constant T*` and `threadgroup T*` of hand-written kernels.
template <class T>
struct pointer {
  T* p = nullptr;
  Range range = {};
  pointer() = default;
  pointer(T* at, Range r) : p(at), range(r) {}
  pointer(T* at) : p(at), range(range_of(at)) {}
  template <class U>
    requires(!__is_same(U, T) && __is_same(const U, T))
  pointer(const pointer<U>& o) : p(o.p), range(o.range) {}
  T& operator[](int64_t i, SM_LINE) const {
    T* at = p + i;
    check(at, 1, line);
    return *at;
  }
  T& operator*() const { return (*this)[0]; }
  T* operator->() const { return &(*this)[0]; }
  template <class U>
  explicit operator U*() const {
    return reinterpret_cast<U*>(p);
  }
  /// That `count` elements from `at` on may be touched.
  void check(const T* at, int64_t count, int line) const {
    const char *begin = reinterpret_cast<const char*>(at), *end = reinterpret_cast<const char*>(at + count);
    if (begin >= range.begin && end <= range.end && begin <= end) [[likely]]
      return;
    outside_array("pointer", at - reinterpret_cast<const T*>(range.begin),
                  static_cast<uint64_t>(range.end - range.begin) / sizeof(T), line);
  }
  pointer& operator+=(int64_t i) {
    p += i;
    return *this;
  }
  pointer& operator-=(int64_t i) {
    p -= i;
    return *this;
  }
  pointer& operator++() {
    ++p;
    return *this;
  }
  pointer operator++(int) {
    pointer before = *this;
    ++p;
    return before;
  }
  friend pointer operator+(pointer a, int64_t i) { return {a.p + i, a.range}; }
  friend pointer operator-(pointer a, int64_t i) { return {a.p - i, a.range}; }
  friend int64_t operator-(pointer a, pointer b) { return a.p - b.p; }
};
template <class T>
pointer<T> bound_pointer(const Arguments& a, int n) {
  const SoftmetalBuffer& b = a.buffers[n];
  if (reinterpret_cast<uintptr_t>(b.data) % alignof(T)) [[unlikely]]
    fault(0, "buffer(%d): its address is no multiple of %d", n, static_cast<int>(alignof(T)));
  const char* begin = static_cast<const char*>(b.data);
  return {static_cast<T*>(b.data), {begin, begin ? begin + b.bytes : begin}};
}
template <class T>
pointer<T> threadgroup_pointer(const Arguments& a, int n) {
  const SoftmetalBuffer& b = a.threadgroup[n];
  const char* begin = static_cast<const char*>(b.data);
  return {static_cast<T*>(b.data), {begin, begin + b.bytes}};
}

/// `threadgroup T x[N]...`: reads are x[i], writes x.write()[i], and what takes an address x.unordered()[i].
enum class Access { read, write, unordered };
template <class T, size_t... Ns>
struct group_array;
template <Access access, class T, size_t... Ns>
struct group_view;

template <class T, size_t N>
struct group_array<T, N> {
  T e[N];
  Range range() const { return {reinterpret_cast<const char*>(e), reinterpret_cast<const char*>(e + N)}; }
  operator pointer<T>() { return {e, range()}; }
  operator pointer<const T>() { return {e, range()}; }
  friend pointer<T> operator+(group_array& a, int64_t i) { return pointer<T>(a.e, a.range()) + i; }
};
template <class T, size_t N, size_t... Ns>
  requires(sizeof...(Ns) > 0)
struct group_array<T, N, Ns...> {
  group_array<T, Ns...> e[N];
};
template <Access access, class T, size_t N>
T& element(group_array<T, N>& a, int64_t i, int line) {
  if (static_cast<uint64_t>(i) >= N) [[unlikely]]
    outside_array("threadgroup array", i, N, line);
  if constexpr (access == Access::read) note_read(&a.e[i], line);
  if constexpr (access == Access::write) note_write(&a.e[i], line);
  return a.e[i];
}
template <Access access, class T, size_t N, size_t M, size_t... Ns>
auto element(group_array<T, N, M, Ns...>& a, int64_t i, int line) {
  if (static_cast<uint64_t>(i) >= N) [[unlikely]]
    outside_array("threadgroup array", i, N, line);
  return group_view<access, T, M, Ns...>{a.e[i]};
}
template <Access access, class T, size_t... Ns>
struct group_view {
  group_array<T, Ns...>& array;
  decltype(auto) operator[](int64_t i, SM_LINE) const { return element<access>(array, i, line); }
};

/// What a kernel calls a threadgroup array.
template <class T, size_t... Ns>
struct group_variable {
  group_array<T, Ns...>& array;
  decltype(auto) operator[](int64_t i, SM_LINE) const { return element<Access::read>(array, i, line); }
  group_view<Access::write, T, Ns...> write() const { return {array}; }
  group_view<Access::unordered, T, Ns...> unordered() const { return {array}; }
  operator pointer<T>() const { return array; }
  operator pointer<const T>() const { return array; }
  friend pointer<T> operator+(const group_variable& a, int64_t i) { return a.array + i; }
};
template <class T, size_t... Ns>
group_variable<T, Ns...> make_group_variable(uint32_t key, const char* name, SM_LINE) {
  return {*static_cast<group_array<T, Ns...>*>(threadgroup_variable(key, sizeof(group_array<T, Ns...>), name, line))};
}

template <class T>
T constant_value(uint32_t id) {
  const uint32_t* bits = function_constant(id);
  if (!bits) return T();
  if constexpr (__is_same(T, bool))
    return *bits != 0;
  else if constexpr (__is_same(T, float))
    return metal::as_type<float>(*bits);
  else
    return static_cast<T>(static_cast<int32_t>(*bits));
}

}  // namespace softmetal

/// spirv-cross's array of values, whose own text has overloads that differ by address space only.
template <typename T, size_t N>
struct spvUnsafeArray {
  T elements[N ? N : 1];
  T& operator[](int64_t i, SM_LINE) {
    if (static_cast<uint64_t>(i) >= N) [[unlikely]]
      softmetal::outside_array("array", i, N, line);
    return elements[i];
  }
  constexpr const T& operator[](int64_t i, SM_LINE) const {
    if (static_cast<uint64_t>(i) >= N) [[unlikely]]
      softmetal::outside_array("array", i, N, line);
    return elements[i];
  }
};
