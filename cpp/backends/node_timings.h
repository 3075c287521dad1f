// How long each node took in one run.
#pragma once

#include <chrono>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pinnace {

struct Node;

/// Rows of one run, in the order in which nodes ended. Has texts of its own: in a loop whose rounds differ in size,
/// nodes and executables of earlier rounds are gone before the run ends.
class NodeTimings {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Row {
    std::string_view node, op, module, backend, kernel;  ///< point into the object
    Time start, end;
  };

  void add(const Node& node, std::string_view backend, std::string_view kernel, Time start, Time end);
  std::span<const Row> rows() const { return rows_; }
  void clear() { rows_.clear(); }

 private:
  std::string_view own(std::string_view text);

  std::set<std::string, std::less<>> texts_;  // few, as names return in each round
  std::vector<Row> rows_;
};

}  // namespace pinnace
