// How a range is cut, and whose error counts. Apart from the header, so that it is compiled once and not per loop.
#include "ops/threads.h"

#include <vector>

namespace pinnace {
namespace {
/// Some more ranges than threads, because ranges do not all take equally long.
constexpr int64_t kRangesPerThread = 4;
/// Between two ranges a thread looks whether its work is to end. Costs are estimates, off by a factor of up to 20.
constexpr double kLongestRange = 2e6;
constexpr double kMostRanges = 1 << 16;
}  // namespace

/// `parts` ranges of nearly the same number of blocks of `grain` items.
struct Threads::Division {
  int64_t total, grain, blocks, parts;
  int64_t start(int64_t i) const {
    return i == parts ? total : (blocks / parts * i + std::min(i, blocks % parts)) * grain;
  }
};

Threads::Division Threads::division(int64_t total, double cost, int64_t grain) const {
  Division d{total, grain, (total - 1) / grain + 1, 1};
  const double all = cost * static_cast<double>(total);
  int64_t most = static_cast<int64_t>(std::min(kMostRanges, all / kLongestRange));
  if (count_ > 1) {
    const double worth = all / least_;
    const int64_t even = kRangesPerThread * count_;
    most = std::max(most, worth < static_cast<double>(even) ? static_cast<int64_t>(worth) : even);
  }
  d.parts = std::clamp<int64_t>(most, 1, d.blocks);
  return d;
}

void Threads::divide(int64_t total, double cost, int64_t grain, void* context,
                     void (*f)(void*, int64_t, int64_t)) const {
  if (total <= 0) return;
  const Division d = division(total, cost, grain);
  if (d.parts == 1) return f(context, 0, total);
  const auto part = [&](int64_t i) { f(context, d.start(i), d.start(i + 1)); };
  if (pool_) return pool_->run(d.parts, count_, part);
  for (int64_t i = 0; i < d.parts && !loop_stops(); ++i) part(i);
}

Status Threads::divide_checked(int64_t total, double cost, int64_t grain, void* context,
                               Status (*f)(void*, int64_t, int64_t)) const {
  if (total <= 0) return {};
  const Division d = division(total, cost, grain);
  if (d.parts == 1) return f(context, 0, total);
  if (count_ == 1) {
    for (int64_t i = 0; i < d.parts && !loop_stops(); ++i) PINNACE_TRY(f(context, d.start(i), d.start(i + 1)));
    return {};
  }
  std::vector<Status> answers(static_cast<size_t>(d.parts));
  pool_->run(d.parts, count_,
             [&](int64_t i) { answers[static_cast<size_t>(i)] = f(context, d.start(i), d.start(i + 1)); });
  for (Status& answer : answers) {
    if (!answer.ok()) return std::move(answer);
  }
  return {};
}

Threads::Nested Threads::nest(int64_t outer_count, double outer_cost, int64_t inner_count) const {
  constexpr double kLong = 1e6;  // steps of a millisecond: dividing them balances better than dividing the outer loop
  const bool inside = inner_count > 1 && (outer_count < kRangesPerThread * count_ || outer_cost > kLong);
  return inside ? Nested{Threads(), *this} : Nested{*this, Threads()};
}

}  // namespace pinnace
