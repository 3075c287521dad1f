// A counter begins an iteration with its start, or with what the one before made where the condition held. Both are
// bounded: `i < n` after `i += 2` lets no iteration begin above n - 1, whatever n is.
#include "backends/nnapi/steps/counters.h"

#include <algorithm>
#include <set>

namespace pinnace::nnapi_client {

Int64Range range_of(const LoweredValue& value) {
  const int64_t count = value.type->elements();
  if (!value.constant || !value.data || count < 1 || count > kKnownElements) return {value.least, value.most};
  const auto* numbers = static_cast<const int64_t*>(value.data);
  const auto [least, most] = std::minmax_element(numbers, numbers + count);
  return {*least, *most};
}

namespace {

class Counter {
 public:
  Counter(const Graph& body, Lowering& lowering, ValueId before, ValueId after)
      : body_(body), lowering_(lowering), before_(before), after_(after) {}

  /// What an iteration adds; 0 if it is something else than a constant.
  int64_t step() const {
    const Node* node = maker(after_);
    if (!node || node->inputs.size() != 2) return 0;
    const bool adds = node->op == "add";
    if (!adds && node->op != "sub") return 0;
    const bool first = node->inputs[0] == before_;
    if (!first && !(adds && node->inputs[1] == before_)) return 0;
    const LoweredValue& by = lowering_.value(node->inputs[first ? 1 : 0]);
    if (!by.constant || !is_number(by) || !is_number(lowering_.value(before_))) return 0;
    const Int64Range step = range_of(by);
    if (step.least != step.most || std::abs(step.least) > INT32_MAX) return 0;
    return adds ? step.least : -step.least;
  }

  /// The furthest in the direction of `step` at which the condition lets another iteration begin; none if it says
  /// nothing of the counter.
  std::optional<int64_t> furthest(int64_t step) const {
    std::optional<int64_t> found;
    std::vector<ValueId> open = {body_.outputs[0]};
    std::set<ValueId> seen;
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      const Node* node = seen.insert(id).second ? maker(id) : nullptr;
      if (!node || node->inputs.size() != 2) continue;
      if (node->op == "and") {
        open.insert(open.end(), node->inputs.begin(), node->inputs.end());
      } else if (const auto limit = limit_of(*node, step)) {
        found = !found ? *limit : step > 0 ? std::min(*found, *limit) : std::max(*found, *limit);
      }
    }
    return found;
  }

 private:
  static bool is_number(const LoweredValue& value) {
    return value.type->dtype == DType::kI64 && value.type->concrete() && value.type->elements() == 1;
  }

  const Node* maker(ValueId id) const {
    for (const auto& node : body_.nodes) {
      if (std::find(node->outputs.begin(), node->outputs.end(), id) != node->outputs.end()) return node.get();
    }
    return nullptr;
  }

  /// Where a comparison with the counter, which it has to keep below (or, counting down, above) something, ends it.
  std::optional<int64_t> limit_of(const Node& node, int64_t step) const {
    const bool less = node.op == "less" || node.op == "less_or_equal";
    if (!less && node.op != "greater" && node.op != "greater_or_equal") return std::nullopt;
    const size_t lesser = less ? 0 : 1, counter = step > 0 ? lesser : 1 - lesser;
    const ValueId compared = node.inputs[counter];
    if (compared != before_ && compared != after_) return std::nullopt;
    const LoweredValue& other = lowering_.value(node.inputs[1 - counter]);
    if (!is_number(other)) return std::nullopt;
    const Int64Range range = range_of(other);
    // One beyond 32 bits tells as much as any number beyond.
    constexpr int64_t kBeyond = int64_t{INT32_MAX} + 2;
    int64_t limit = std::clamp(step > 0 ? range.most : range.least, -kBeyond, kBeyond);
    if (node.op == "less" || node.op == "greater") limit -= step > 0 ? 1 : -1;
    return compared == after_ ? limit : limit + step;
  }

  const Graph& body_;
  Lowering& lowering_;
  const ValueId before_, after_;
};

}  // namespace

std::optional<Int64Range> counter_range(const Graph& body, Lowering& lowering, ValueId before, ValueId after,
                                        Int64Range start, int64_t rounds) {
  if (start.least < INT32_MIN || start.most > INT32_MAX) return std::nullopt;
  const Counter counter(body, lowering, before, after);
  const int64_t step = counter.step();
  if (step == 0) return std::nullopt;
  std::optional<int64_t> last;  // in the direction of the step
  if (rounds < INT32_MAX) last = (step > 0 ? start.most : start.least) + step * std::max<int64_t>(0, rounds - 1);
  if (const auto limit = counter.furthest(step)) {
    const int64_t bound = step > 0 ? std::max(start.most, *limit) : std::min(start.least, *limit);
    last = !last ? bound : step > 0 ? std::min(*last, bound) : std::max(*last, bound);
  }
  if (!last) return std::nullopt;
  return step > 0 ? Int64Range{start.least, *last} : Int64Range{*last, start.most};
}

}  // namespace pinnace::nnapi_client
