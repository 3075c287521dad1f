// Tables that are made of a list (`*.inc`) when compiled: a key, what belongs to it, and one way to find it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace pinnace {

template <class Key, class Value>
struct TableLine {
  Key key;
  Value value;
};

/// Sorted by key while it is compiled, whatever the order of the list. A key that is there twice does not compile.
template <class Key, class Value, size_t N>
class SortedTable {
 public:
  explicit consteval SortedTable(const TableLine<Key, Value> (&lines)[N]) {
    std::copy(lines, lines + N, lines_.begin());
    std::sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) { return a.key < b.key; });
    for (size_t i = 1; i < N; ++i) {
      if (!(lines_[i - 1].key < lines_[i].key)) a_key_stands_in_the_list_twice();
    }
  }

  /// What belongs to the key; Value(), null for functions, where the key is not in the table.
  constexpr Value find(const Key& key) const {
    const auto at =
        std::lower_bound(lines_.begin(), lines_.end(), key, [](const Line& a, const Key& b) { return a.key < b; });
    return at != lines_.end() && !(key < at->key) ? at->value : Value();
  }

 private:
  using Line = TableLine<Key, Value>;
  static void a_key_stands_in_the_list_twice();  // not constexpr: calling it ends the compilation

  std::array<Line, N> lines_{};
};

}  // namespace pinnace
