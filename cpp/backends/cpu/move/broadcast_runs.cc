// What is decided about broadcast operands when a kernel is chosen.
#include "backends/cpu/move/broadcast_runs.h"

namespace pinnace::cpu {

bool pairs_fit(const KernelNode& node) {
  Result<Shape> y = node.input(0).shape;
  for (int i = 1; i < node.input_count() && y.ok(); ++i) y = broadcast_shapes(node, *y, node.input(i).shape);
  for (int i = 0; i < node.input_count() && y.ok(); ++i) {
    const Shape& other = i > 1 ? *y : node.input(i == 0 && node.input_count() > 1 ? 1 : 0).shape;
    if (PairLoops l; !l.set({&node.input(i).shape, &other, &*y})) return false;
  }
  return y.ok();
}

}  // namespace pinnace::cpu
