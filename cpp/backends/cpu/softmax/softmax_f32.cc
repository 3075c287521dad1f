// Softmax, log_softmax and lp_normalization in float32, along any dimension: along the last by rows, along others by
// columns side by side.
#include <algorithm>
#include <cmath>

#include "backends/cpu/pace.h"
#include "backends/cpu/reduce/reduce_f32.h"
#include "backends/cpu/softmax/softmax_f32.h"
#include "ops/lines.h"

namespace pinnace::cpu {
namespace {

constexpr int64_t kColumns = kReducedColumns;

bool takes(const KernelNode& node) {
  return node.axis(node.attr_int("axis"), node.input(0).rank()).ok() && node.input(0).elements() > 0;
}

bool rows_take(const KernelNode& node) {
  return takes(node) && *node.axis(node.attr_int("axis"), node.input(0).rank()) == node.input(0).rank() - 1;
}

Slices slices_of(const KernelNode& node) {
  return Slices(node.input(0).shape, *node.axis(node.attr_int("axis"), node.input(0).rank()));
}

/// f(first element, columns) for every block of columns that stand side by side; about 16,384 elements a task.
template <class F>
void for_columns(const KernelContext& context, const Slices& slices, F f) {
  const int64_t blocks = (slices.inner + kColumns - 1) / kColumns, tasks = slices.outer * blocks;
  const int64_t each = std::max<int64_t>(1, 16384 / (slices.size * std::min(slices.inner, kColumns)));
  context.parallel((tasks + each - 1) / each, [&](int64_t t) {
    for (int64_t u = t * each; u < std::min(tasks, (t + 1) * each); ++u) {
      const int64_t first = u % blocks * kColumns;
      f(u / blocks * slices.size * slices.inner + first, std::min(kColumns, slices.inner - first));
    }
  });
}

// ----------------------------------------------------------------------------------------------------------- softmax

template <const F32Isa& isa>
Status softmax_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                   std::span<const TensorView> out) {
  const int64_t columns = in[0].dim(-1), rows = in[0].elements() / columns;
  const int64_t each = std::max<int64_t>(1, 16384 / columns);
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    for (int64_t r = t * each; r < std::min(rows, (t + 1) * each); ++r) {
      softmax_loops_f32<isa.loops>.softmax(in[0].data<float>() + r * columns, out[0].data<float>() + r * columns,
                                           columns);
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_softmax() {
  return {.takes = rows_take, .run = softmax_run<isa>};
}

/// Columns side by side: their largest elements, then exp of what is left, its sum, and the quotient.
template <const F32Isa& isa>
Status softmax_columns_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                           std::span<const TensorView> out) {
  const Slices slices = slices_of(node);
  for_columns(context, slices, [&](int64_t at, int64_t count) {
    const float* x = in[0].data<float>() + at;
    float* y = out[0].data<float>() + at;
    float most[kColumns], sums[kColumns] = {};
    std::fill_n(most, count, -__builtin_inff());
    isa.columns->extreme(false, x, slices.inner, slices.size, count, most);
    Pace pace(count);
    for (int64_t i = 0; i < slices.size && !pace.stops(); ++i) {
      float* row = y + i * slices.inner;
      isa.arithmetic->dense(BinaryKind::kSub, x + i * slices.inner, 1, most, 1, row, count);
      isa.activation->map({UnaryKind::kExp, 0, 0}, row, row, count);
    }
    isa.columns->sum(y, slices.inner, slices.size, count, sums);
    for (int64_t c = 0; c < count; ++c) sums[c] = 1 / sums[c];
    isa.arithmetic->pixels(BinaryKind::kMul, y, slices.inner, sums, 0, y, slices.inner, slices.size, count);
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_softmax_columns() {
  return {.takes = takes, .run = softmax_columns_run<isa>};
}

// ------------------------------------------------------------------------- logarithm of softmax, quotient by a norm

/// y = x - most - log(sum of exp(x - most))
void log_softmax(const F32Isa& isa, const Slices& slices, const float* x, float* y, int64_t count) {
  float most[kColumns], logs[kColumns];
  if (slices.inner == 1) {
    most[0] = static_cast<float>(reduce_row(isa, Reduction::kMax, x, slices.size));
    logs[0] = static_cast<float>(std::log(exp_sum(isa, x, slices.size, most[0])));
    isa.arithmetic->dense(BinaryKind::kSub, x, 1, most, 0, y, slices.size);
    isa.arithmetic->dense(BinaryKind::kSub, y, 1, logs, 0, y, slices.size);
    return;
  }
  double sums[kColumns];
  std::fill_n(most, count, -__builtin_inff());
  isa.columns->extreme(false, x, slices.inner, slices.size, count, most);
  exp_sums(isa, x, slices.inner, slices.size, count, most, sums);
  for (int64_t c = 0; c < count; ++c) logs[c] = static_cast<float>(std::log(sums[c]));
  isa.arithmetic->pixels(BinaryKind::kSub, x, slices.inner, most, 0, y, slices.inner, slices.size, count);
  isa.arithmetic->pixels(BinaryKind::kSub, y, slices.inner, logs, 0, y, slices.inner, slices.size, count);
}

/// The same in double, of one column: a norm may be larger than single precision holds.
void exact_lp_normalization(Reduction kind, const Slices& slices, const float* x, float* y) {
  double norm = 0;
  for (int64_t i = 0; i < slices.size; ++i) {
    const auto v = static_cast<double>(x[i * slices.inner]);
    norm += kind == Reduction::kL1 ? std::fabs(v) : v * v;
  }
  if (kind == Reduction::kL2) norm = std::sqrt(norm);
  for (int64_t i = 0; i < slices.size; ++i) {
    y[i * slices.inner] = static_cast<float>(static_cast<double>(x[i * slices.inner]) / norm);
  }
}

/// y = x / norm, 0 where that is 0.
void lp_normalization(const F32Isa& isa, Reduction kind, const Slices& slices, const float* x, float* y,
                      int64_t count) {
  double sums[kColumns];
  float norms[kColumns];
  bool fits = true;
  if (slices.inner == 1) {
    sums[0] = reduce_row(isa, kind, x, slices.size);
  } else {
    reduce_columns(isa, kind, x, slices.inner, slices.size, count, sums);
  }
  for (int64_t c = 0; c < count; ++c) {
    norms[c] = sums[c] == 0 ? 1 : static_cast<float>(finished(kind, sums[c], slices.size));
    fits &= norms[c] != INFINITY;
  }
  if (!fits) {
    for (int64_t c = 0; c < count; ++c) exact_lp_normalization(kind, slices, x + c, y + c);
    return;
  }
  if (slices.inner == 1) return isa.arithmetic->dense(BinaryKind::kDiv, x, 1, norms, 0, y, slices.size);
  isa.arithmetic->pixels(BinaryKind::kDiv, x, slices.inner, norms, 0, y, slices.inner, slices.size, count);
}

template <const F32Isa& isa>
Status log_softmax_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                       std::span<const TensorView> out) {
  const Slices slices = slices_of(node);
  for_columns(context, slices, [&](int64_t at, int64_t count) {
    log_softmax(isa, slices, in[0].data<float>() + at, out[0].data<float>() + at, count);
  });
  return {};
}
/// Where the dimensions behind the axis have one element, lines are summed otherwise.
bool inner_by_shape(const KernelNode& node) {
  return !rows_take(node);
}

template <const F32Isa& isa>
constexpr CpuKernel make_log_softmax() {
  return {.takes = takes, .by_shape = inner_by_shape, .run = log_softmax_run<isa>};
}

template <const F32Isa& isa>
Status lp_normalization_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                            std::span<const TensorView> out) {
  const Slices slices = slices_of(node);
  const Reduction kind = node.attr_int("p") == 1 ? Reduction::kL1 : Reduction::kL2;
  for_columns(context, slices, [&](int64_t at, int64_t count) {
    lp_normalization(isa, kind, slices, in[0].data<float>() + at, out[0].data<float>() + at, count);
  });
  return {};
}
template <const F32Isa& isa>
constexpr CpuKernel make_lp_normalization() {
  return {.takes = takes, .by_shape = inner_by_shape, .run = lp_normalization_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(softmax_f32, make_softmax)
PINNACE_KERNELS_F32(softmax_columns_f32, make_softmax_columns)
PINNACE_KERNELS_F32(log_softmax_f32, make_log_softmax)
PINNACE_KERNELS_F32(lp_normalization_f32, make_lp_normalization)

}  // namespace pinnace::cpu
