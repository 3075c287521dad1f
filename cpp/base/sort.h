// Sorting that ends with the call it is made for: std::sort of 100 million elements takes some ten seconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/cancel.h"

namespace pinnace {

namespace sort_detail {

// The standard library sorts so many in about two milliseconds, without a look.
constexpr int64_t kAtOnce = 32768;

/// The one of nine elements spread over the range that four of the others come before.
template <class T, class Before>
T pivot_of(const T* first, int64_t count, const Before& before) {
  T nine[9];
  for (int64_t i = 0; i < 9; ++i) nine[i] = first[i * (count - 1) / 8];
  std::nth_element(nine, nine + 4, nine + 9, before);
  return nine[4];
}

/// Hoare's partition: swaps elements until none of [first, result) comes after one of [result, last), with neither part
/// empty. Looks after every `between` comparisons. Null: the call is to end.
template <class T, class Before>
T* partition(T* first, T* last, const Before& before, int64_t between) {
  const T pivot = pivot_of(first, last - first, before);
  T *low = first, *high = last - 1;
  int64_t left = between;
  const auto ends = [&left, between] {
    if (--left > 0) return false;
    left = between;
    return loop_stops();
  };
  while (true) {
    // The pivot is an element, so neither scan leaves the range before the two meet.
    while (before(*low, pivot)) {
      if (ends()) return nullptr;
      ++low;
    }
    while (before(pivot, *high)) {
      if (ends()) return nullptr;
      --high;
    }
    if (low >= high) break;
    std::swap(*low++, *high--);
    if (ends()) return nullptr;
  }
  return low == first ? first + 1 : low;
}

}  // namespace sort_detail

/// std::nth_element: puts the element that belongs at `nth` there, and none that comes after it before it. `before` is
/// a strict order in which no two elements are equal. For a call that is to end the elements may stay in any order:
/// callers look at stopped() before they use it.
template <class T, class Before>
void select_nth(T* first, T* nth, T* last, const Before& before) {
  if (nth == last) return;
  while (last - first > sort_detail::kAtOnce) {
    T* const cut = sort_detail::partition(first, last, before, sort_detail::kAtOnce / 2);
    if (!cut) return;
    (nth < cut ? last : first) = cut;
  }
  std::nth_element(first, nth, last, before);
}

/// std::sort; `before` and calls that are to end as for select_nth(). cost: about how many times as long as one of two
/// numbers a comparison takes.
template <class T, class Before>
void sort_all(T* first, T* last, const Before& before, int64_t cost = 1) {
  const int64_t at_once = std::max<int64_t>(sort_detail::kAtOnce / cost, 8);
  while (last - first > at_once) {
    T* const cut = sort_detail::partition(first, last, before, at_once / 2);
    if (!cut) return;
    // The shorter part by a call, the longer one by this loop: calls are nested at most log2 of the elements deep.
    if (cut - first < last - cut) {
      sort_all(first, cut, before, cost);
      first = cut;
    } else {
      sort_all(cut, last, before, cost);
      last = cut;
    }
    if (loop_stops()) return;
  }
  std::sort(first, last, before);
}

/// std::partial_sort; `before` and calls that are to end as for select_nth().
template <class T, class Before>
void sort_first(T* first, T* middle, T* last, const Before& before) {
  select_nth(first, middle, last, before);
  if (!loop_stops()) sort_all(first, middle, before);
}

}  // namespace pinnace
