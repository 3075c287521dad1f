// arg_max and arg_min of float32: along the last dimension the extreme of each row and then its place; along others
// columns side by side, each with the place of the best so far.
#include <algorithm>

#include "backends/cpu/reduce/reduce_f32.h"
#include "ops/lines.h"

namespace pinnace::cpu {
namespace {

/// Columns that one task takes at a time: what is best so far stays in the first-level cache.
constexpr int64_t kColumns = 1024;
/// Numbers of a row whose extreme is taken before it is known whether the place is among them.
constexpr int64_t kPiece = 256;

bool takes(const KernelNode& node) {
  const TensorType& x = node.input(0);
  const auto axis = node.axis(node.attr_int("axis"), x.rank());
  return axis.ok() && x.elements() > 0 && x.shape[static_cast<size_t>(*axis)].size <= INT32_MAX;
}

int64_t place_in_row(const F32Isa& isa, bool least, bool last, const float* x, int64_t size) {
  const Reduction kind = least ? Reduction::kMin : Reduction::kMax;
  float best = 0;
  int64_t piece = 0;
  for (int64_t i = 0; i < size; i += kPiece) {
    const auto v = static_cast<float>(reduce_row(isa, kind, x + i, std::min(kPiece, size - i)));
    const bool better = v != v ? best == best : least ? v < best : v > best;
    const bool equal = v != v ? best != best : v == best;
    if (i > 0 && !better && !(last && equal)) continue;
    best = v;
    piece = i;
  }
  const auto is_best = [&](int64_t i) { return best != best ? x[i] != x[i] : x[i] == best; };
  int64_t i = last ? std::min(size, piece + kPiece) - 1 : piece;
  while (!is_best(i)) i += last ? -1 : 1;
  return i;
}

template <const F32Isa& isa>
Status run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  const Slices slices(in[0].type->shape, *node.axis(node.attr_int("axis"), in[0].rank()));
  const bool least = node.node().op == "arg_min", last = node.attr_int("select_last_index") != 0;
  const float* x = in[0].data<float>();
  auto* y = out[0].data<int64_t>();
  const int64_t blocks = (slices.inner + kColumns - 1) / kColumns, tasks = slices.outer * blocks;
  const int64_t each = std::max<int64_t>(1, 16384 / (slices.size * std::min(slices.inner, kColumns)));
  context.parallel((tasks + each - 1) / each, [&](int64_t t) {
    for (int64_t u = t * each; u < std::min(tasks, (t + 1) * each); ++u) {
      const int64_t o = u / blocks, first = u % blocks * kColumns, count = std::min(kColumns, slices.inner - first);
      if (slices.inner == 1) {
        y[o] = place_in_row(isa, least, last, x + o * slices.size, slices.size);
        continue;
      }
      const float* from = x + o * slices.size * slices.inner + first;
      float best[kColumns];
      int32_t at[kColumns] = {};
      std::copy_n(from, count, best);
      for (int64_t k = 1; k < slices.size; ++k) {
        isa.columns->arg_extreme(least, last, from + k * slices.inner, 0, 1, count, best, static_cast<int32_t>(k), at);
      }
      std::copy_n(at, count, y + o * slices.inner + first);
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make() {
  return {.takes = takes, .run = run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(arg_reduce_f32, make)

}  // namespace pinnace::cpu
