// The reduce_* operators in float32, over neighbouring dimensions of dense tensors and over all pixels of NHWC-packed
// tensors. The inner loops are those of NHWC-packed tensors: columns are channels.
#include "backends/cpu/reduce/reduce_f32.h"

#include <algorithm>
#include <cmath>

namespace pinnace::cpu {
namespace {

constexpr int64_t kColumns = kReducedColumns, kRows = kReducedRows;
constexpr int64_t kChunk = 16384;  ///< elements of a task
constexpr double kInfinity = __builtin_inf();

/// The kind of a reduce_* operator.
Reduction reduction_of(const KernelNode& node) {
  constexpr std::pair<std::string_view, Reduction> kKinds[] = {{"reduce_sum", Reduction::kSum},
                                                               {"reduce_mean", Reduction::kMean},
                                                               {"reduce_min", Reduction::kMin},
                                                               {"reduce_prod", Reduction::kProd},
                                                               {"reduce_l1", Reduction::kL1},
                                                               {"reduce_l2", Reduction::kL2},
                                                               {"reduce_log_sum", Reduction::kLogSum},
                                                               {"reduce_log_sum_exp", Reduction::kLogSumExp},
                                                               {"reduce_sum_square", Reduction::kSumSquare}};
  for (const auto& [op, kind] : kKinds) {
    if (node.node().op == op) return kind;
  }
  return Reduction::kMax;  // reduce_max and global_max_pool
}

bool is_extreme(Reduction kind) {
  return kind == Reduction::kMax || kind == Reduction::kMin;
}

constexpr float kZeros[kColumns] = {};

/// What a number by itself adds to its sum.
double term(Reduction kind, double x) {
  if (kind == Reduction::kL1) return std::fabs(x);
  return kind == Reduction::kL2 || kind == Reduction::kSumSquare ? x * x : x;
}

/// A column's sum in double.
double exact_sum(Reduction kind, const float* x, ptrdiff_t step, int64_t rows) {
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i) sum += term(kind, static_cast<double>(x[i * step]));
  return sum;
}

/// The sum of a short row, for which calls would cost more than the numbers: means over 7 x 7 pixels.
double short_sum(const float* x, int64_t size) {
  double sums[4] = {};  // four chains of additions: one alone waits for each
  int64_t i = 0;
  for (; i + 4 <= size; i += 4) {
    for (int j = 0; j < 4; ++j) sums[j] += static_cast<double>(x[i + j]);
  }
  for (; i < size; ++i) sums[0] += static_cast<double>(x[i]);
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

/// log of the sum of exp, given the largest; which it is if that is no number.
double log_of_sum(double most, double sum) {
  return most - most == 0 ? most + std::log(sum) : most;
}

}  // namespace

double joined(Reduction kind, double a, double b) {
  switch (kind) {
    case Reduction::kMax:
      return b > a || b != b ? b : a;
    case Reduction::kMin:
      return b < a || b != b ? b : a;
    case Reduction::kProd:
      return a * b;
    default:
      return a + b;
  }
}

double finished(Reduction kind, double result, int64_t size) {
  switch (kind) {
    case Reduction::kMean:
      return result / static_cast<double>(size);
    case Reduction::kL2:
      return std::sqrt(result);
    case Reduction::kLogSum:
      return std::log(result);
    default:
      return result;
  }
}

void exp_sums(const F32Isa& isa, const float* x, ptrdiff_t step, int64_t rows, int64_t count, const float* most,
              double* sums) {
  constexpr int64_t kTogether = 16;
  float part[kTogether * kColumns];
  std::fill_n(sums, count, 0.0);
  for (int64_t i = 0; i < rows; i += kTogether) {
    const int64_t some = std::min(kTogether, rows - i);
    isa.arithmetic->pixels(BinaryKind::kSub, x + i * step, step, most, 0, part, count, some, count);
    isa.activation->map({UnaryKind::kExp, 0, 0}, part, part, some * count);
    float total[kColumns] = {};
    isa.columns->sum(part, count, some, count, total);
    for (int64_t c = 0; c < count; ++c) sums[c] += static_cast<double>(total[c]);
  }
}

void reduce_columns(const F32Isa& isa, Reduction kind, const float* x, ptrdiff_t step, int64_t rows, int64_t count,
                    double* result) {
  if (is_extreme(kind)) {
    float most[kColumns];
    std::fill_n(most, count, static_cast<float>(kind == Reduction::kMin ? kInfinity : -kInfinity));
    isa.columns->extreme(kind == Reduction::kMin, x, step, rows, count, most);
    std::copy_n(most, count, result);
    return;
  }
  if (kind == Reduction::kLogSumExp) {
    float most[kColumns];
    std::fill_n(most, count, static_cast<float>(-kInfinity));
    isa.columns->extreme(false, x, step, rows, count, most);
    exp_sums(isa, x, step, rows, count, most, result);
    for (int64_t c = 0; c < count; ++c) result[c] = log_of_sum(static_cast<double>(most[c]), result[c]);
    return;
  }
  if (kind == Reduction::kProd) {  // in double throughout: single precision soon ends at 0 or infinity
    std::fill_n(result, count, 1.0);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t c = 0; c < count; ++c) result[c] *= static_cast<double>(x[i * step + c]);
    }
    return;
  }
  std::fill_n(result, count, 0.0);
  for (int64_t i = 0; i < rows; i += kRows) {
    const int64_t some = std::min(kRows, rows - i);
    const float* from = x + i * step;
    float sums[kColumns] = {};
    if (kind == Reduction::kL1) {
      isa.columns->sum_magnitudes(from, step, some, count, sums);
    } else if (kind == Reduction::kL2 || kind == Reduction::kSumSquare) {
      isa.columns->sum_squares(from, step, some, count, kZeros, sums);
    } else {
      isa.columns->sum(from, step, some, count, sums);
    }
    for (int64_t c = 0; c < count; ++c) {
      // What single precision cannot hold comes back into its range by numbers of the other sign, by the division of a
      // mean, by a root or a logarithm; the root also brings back squares that are too small.
      const bool held = std::fabs(sums[c]) < __builtin_inff() && (kind != Reduction::kL2 || sums[c] > 1e-30f);
      result[c] += held ? static_cast<double>(sums[c]) : exact_sum(kind, from + c, step, some);
    }
  }
}

double exp_sum(const F32Isa& isa, const float* x, int64_t size, float most) {
  const int64_t whole = size / kColumns, rest = size % kColumns;
  float every[kColumns];
  double columns[kColumns], sum = 0;
  std::fill_n(every, kColumns, most);
  exp_sums(isa, x, kColumns, whole, kColumns, every, columns);
  for (double v : columns) sum += v;
  exp_sums(isa, x + whole * kColumns, rest, 1, rest, every, columns);
  for (int64_t c = 0; c < rest; ++c) sum += columns[c];
  return sum;
}

double reduce_row(const F32Isa& isa, Reduction kind, const float* x, int64_t size) {
  if (kind == Reduction::kLogSumExp) {
    const double most = reduce_row(isa, Reduction::kMax, x, size);
    return log_of_sum(most, exp_sum(isa, x, size, static_cast<float>(most)));
  }
  if (size < 2 * kColumns && (kind == Reduction::kSum || kind == Reduction::kMean)) return short_sum(x, size);
  // Few numbers as few columns: adding the columns up would cost more than the numbers themselves.
  const int64_t width = size < 4 * kColumns ? 16 : kColumns, whole = size / width;
  double result = kind == Reduction::kMax ? -kInfinity : kind == Reduction::kMin ? kInfinity : kind == Reduction::kProd;
  if (whole > 0) {
    double columns[kColumns];
    reduce_columns(isa, kind, x, width, whole, width, columns);
    if (is_extreme(kind) || kind == Reduction::kProd) {
      for (int64_t c = 0; c < width; ++c) result = joined(kind, result, columns[c]);
    } else {
      for (int64_t c = 0; c < width; c += 4) {  // sums that do not wait for each other
        result += (columns[c] + columns[c + 1]) + (columns[c + 2] + columns[c + 3]);
      }
    }
  }
  for (int64_t i = whole * width; i < size; ++i) result = joined(kind, result, term(kind, static_cast<double>(x[i])));
  return result;
}

namespace {

/// [outer, size, inner]: all dimensions between the first reduced one and the last are reduced, or of size 1.
struct Reduced {
  int64_t outer = 1, size = 1, inner = 1;
};

/// Bits of the dimensions that are reduced; false where they are not known, or wrong.
bool axes_of(const KernelNode& node, uint32_t* mask) {
  const int rank = node.input(0).rank();
  const auto* axes = node.has_input(1) ? node.input_data(1) : nullptr;
  const int64_t count = node.has_input(1) ? node.input(1).elements() : 0;
  if (rank > 32 || (count > 0 && !axes)) return false;
  *mask = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t axis = node.input(1).dtype == DType::kI64 ? static_cast<const int64_t*>(axes)[i]
                                                      : static_cast<const int32_t*>(axes)[i];
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    *mask |= 1u << axis;
  }
  if (count == 0 && node.attr_int("noop_with_empty_axes") == 0) *mask = ~0u;
  return true;
}

bool reduced_of(const KernelNode& node, Reduced* r) {
  const TensorType& x = node.input(0);
  uint32_t mask = 0;
  if (x.elements() < 1 || x.quantized() || !axes_of(node, &mask)) return false;
  int state = 0;  // before, within and behind the reduced dimensions
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t n = x.shape[static_cast<size_t>(d)].size;
    if (n == 1) continue;
    const bool reduces = mask >> d & 1;
    if (reduces && state == 2) return false;
    if (reduces) state = 1;
    if (!reduces && state == 1) state = 2;
    (state == 0 ? r->outer : state == 1 ? r->size : r->inner) *= n;
  }
  return true;
}

bool reduce_takes(const KernelNode& node) {
  Reduced r;
  return reduced_of(node, &r);
}

/// Whether dimensions stand behind the reduced ones: sums over rows and over columns are in another order, and where
/// those dimensions have one element, columns are rows.
bool inner_by_shape(const KernelNode& node) {
  uint32_t mask = 0;
  if (!axes_of(node, &mask)) return true;
  bool kept = false;
  for (int d = node.input(0).rank(); d-- > 0;) {
    if (!(mask >> d & 1)) {
      kept = true;
    } else if (kept) {
      return true;
    }
  }
  return false;
}

void reduce(const F32Isa& isa, Reduction kind, const KernelContext& context, const Reduced& r, const float* x,
            float* y) {
  if (r.inner == 1) {
    const int64_t each = std::max<int64_t>(1, kChunk / r.size);
    context.parallel((r.outer + each - 1) / each, [&](int64_t t) {
      for (int64_t o = t * each; o < std::min(r.outer, (t + 1) * each); ++o) {
        y[o] = static_cast<float>(finished(kind, reduce_row(isa, kind, x + o * r.size, r.size), r.size));
      }
    });
    return;
  }
  const int64_t blocks = (r.inner + kColumns - 1) / kColumns, tasks = r.outer * blocks;
  const int64_t each = std::max<int64_t>(1, kChunk / (r.size * std::min(r.inner, kColumns)));
  context.parallel((tasks + each - 1) / each, [&](int64_t t) {
    for (int64_t u = t * each; u < std::min(tasks, (t + 1) * each); ++u) {
      const int64_t o = u / blocks, first = u % blocks * kColumns, count = std::min(kColumns, r.inner - first);
      double result[kColumns];
      reduce_columns(isa, kind, x + o * r.size * r.inner + first, r.inner, r.size, count, result);
      float* to = y + o * r.inner + first;
      for (int64_t c = 0; c < count; ++c) to[c] = static_cast<float>(finished(kind, result[c], r.size));
    }
  });
}

template <const F32Isa& isa>
Status reduce_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  Reduced r;
  if (!reduced_of(node, &r)) return unsupported(node.label());
  reduce(isa, reduction_of(node), context, r, in[0].data<float>(), out[0].data<float>());
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_reduce() {
  return {.takes = reduce_takes, .packs = 0b10, .by_shape = inner_by_shape, .run = reduce_run<isa>};
}

template <const F32Isa& isa>
Status global_max_pool_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                           std::span<const TensorView> out) {
  const int64_t planes = in[0].dim(0) * in[0].dim(1);
  reduce(isa, Reduction::kMax, context, {planes, in[0].elements() / planes, 1}, in[0].data<float>(),
         out[0].data<float>());
  return {};
}

bool has_elements(const KernelNode& node) {
  return node.input(0).elements() > 0;
}

template <const F32Isa& isa>
constexpr CpuKernel make_global_max_pool() {
  return {.takes = has_elements, .run = global_max_pool_run<isa>};
}

// --------------------------------------------------------------------------------------------------------- NHWC-packed

/// Over all pixels, which leaves one pixel.
bool nhwc_takes(const KernelNode& node) {
  const TensorType& x = node.input(0);
  Reduced r;
  if (!has_nhwc_sizes(x) || !reduced_of(node, &r) || node.attr_int("keepdims") == 0) return false;
  const NhwcSizes s = nhwc_sizes(x);
  return r.outer == s.n * s.c && r.size == s.h * s.w && r.inner == 1;
}

bool global_nhwc_takes(const KernelNode& node) {
  return has_nhwc_sizes(node.input(0)) && has_elements(node);
}

template <const F32Isa& isa>
Status nhwc_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const Reduction kind = reduction_of(node);
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const int64_t blocks = (x.size.c + kColumns - 1) / kColumns;
  context.parallel(x.size.n * blocks, [&](int64_t t) {
    const int64_t n = t / blocks, first = t % blocks * kColumns, count = std::min(kColumns, x.size.c - first);
    double total[kColumns] = {}, row[kColumns];
    for (int64_t i = 0; i < x.size.h; ++i) {
      reduce_columns(isa, kind, x.at + n * x.step + i * x.row + first, x.pitch, x.size.w, count, i ? row : total);
      for (int64_t c = 0; i > 0 && c < count; ++c) total[c] = joined(kind, total[c], row[c]);
    }
    for (int64_t c = 0; c < count; ++c) {
      y.at[n * y.step + first + c] = static_cast<float>(finished(kind, total[c], x.size.h * x.size.w));
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_nhwc() {
  return {.takes = nhwc_takes, .packs = 0b10, .layouts = Layouts::kFollows, .nhwc_inputs = 0b1, .run = nhwc_run<isa>};
}
template <const F32Isa& isa>
constexpr CpuKernel make_global_max_pool_nhwc() {
  return {.takes = global_nhwc_takes, .layouts = Layouts::kFollows, .nhwc_inputs = 0b1, .run = nhwc_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(reduce_f32, make_reduce)
PINNACE_KERNELS_F32(reduce_nhwc_f32, make_nhwc)
PINNACE_KERNELS_F32(global_max_pool_f32, make_global_max_pool)
PINNACE_KERNELS_F32(global_max_pool_nhwc_f32, make_global_max_pool_nhwc)

}  // namespace pinnace::cpu
