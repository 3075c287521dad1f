// Two operands and a result with broadcasting, as runs along which each operand goes on element by element or stays.
#pragma once

#include "backends/cpu/move/strided_copy.h"

namespace pinnace::cpu {

/// Two operands, broadcast to the shape of the third, which is concrete.
using PairLoops = BroadcastLoops<3>;

/// True if inputs 0 and 1 (0 twice, where it is alone), then the result and each further one, are broadcast in few
/// enough loops.
bool pairs_fit(const KernelNode& node);

/// f(a, b, y, count): elements from a, b and y on of the operands and the result; an operand whose innermost step is 0
/// stays. Runs have at most about 16,384 elements, and tasks as many.
template <class F>
void for_each_run(const KernelContext& context, const PairLoops& l, int64_t elements, F f) {
  constexpr int64_t kChunk = 16384;
  if (elements == 0) return;
  const int64_t run = l.rank ? l.size[0] : 1, runs = elements / run;
  const bool a_moves = l.rank && l.step[0][0], b_moves = l.rank && l.step[1][0];
  const int64_t pieces = (run + kChunk - 1) / kChunk;           // a long run is split,
  const int64_t together = std::max<int64_t>(1, kChunk / run);  // short ones are taken together
  context.parallel((runs + together - 1) / together * pieces, [&](int64_t t) {
    const int64_t first = t % pieces * kChunk, count = std::min(kChunk, run - first);
    for (int64_t r = t / pieces * together; r < std::min(runs, (t / pieces + 1) * together); ++r) {
      int64_t left = r, a = a_moves ? first : 0, b = b_moves ? first : 0;
      for (int d = 1; d < l.rank; ++d) {
        a += left % l.size[d] * l.step[0][d];
        b += left % l.size[d] * l.step[1][d];
        left /= l.size[d];
      }
      f(a, b, r * run + first, count);
    }
  });
}

}  // namespace pinnace::cpu
