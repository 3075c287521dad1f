// Reductions in float32: sum, mean and largest over neighbouring dimensions of dense tensors and over all pixels of
// images; softmax along a dimension that is not the last. The inner loops are those of images: columns are channels.
#include <algorithm>

#include "backends/cpu/f32_levels.h"
#include "ops/lines.h"

namespace pinnace {
namespace {

/// Columns that are reduced at a time, and how many rows are added in float before the sum goes to double.
constexpr int64_t kColumns = 64, kRows = 64;
constexpr int64_t kChunk = 16384;  ///< elements of a task

enum class Reduction : uint8_t { kSum, kMean, kMax };
Reduction reduction_of(const NodeView& node) {
  const std::string& op = node.node().op;
  return op == "reduce_sum" ? Reduction::kSum : op == "reduce_mean" ? Reduction::kMean : Reduction::kMax;
}

/// [outer, size, inner]: all dimensions between the first reduced one and the last are reduced, or of size 1.
struct Reduced {
  int64_t outer = 1, size = 1, inner = 1;
};

bool reduced_of(const NodeView& node, Reduced* r) {
  const TensorType& x = node.input(0);
  if (x.elements() < 1 || x.rank() > 32 || x.quantized()) return false;
  uint32_t mask = 0;
  const auto* axes = node.has_input(1) ? node.input_data(1) : nullptr;
  const int64_t count = node.has_input(1) ? node.input(1).elements() : 0;
  if (count > 0 && !axes) return false;
  for (int64_t i = 0; i < count; ++i) {
    int64_t axis = node.input(1).dtype == DType::kI64 ? static_cast<const int64_t*>(axes)[i]
                                                      : static_cast<const int32_t*>(axes)[i];
    if (axis < 0) axis += x.rank();
    if (axis < 0 || axis >= x.rank()) return false;
    mask |= 1u << axis;
  }
  if (count == 0 && node.attr_int("noop_with_empty_axes") == 0) mask = ~0u;
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

bool reduce_takes(const NodeView& node) {
  Reduced r;
  return reduced_of(node, &r);
}

/// Reduces `rows` rows, `step` apart, of `count` columns, which are kColumns or fewer.
template <const F32Level& level>
void reduce_columns(Reduction kind, const float* x, ptrdiff_t step, int64_t rows, int64_t count, double* result) {
  if (kind == Reduction::kMax) {
    float most[kColumns];
    std::fill_n(most, count, -__builtin_inff());
    for (int64_t i = 0; i < rows; ++i) level.image->maximum(x + i * step, most, count);
    std::copy_n(most, count, result);
    return;
  }
  std::fill_n(result, count, 0.0);
  for (int64_t i = 0; i < rows; i += kRows) {
    float sums[kColumns] = {};
    level.image->sum(x + i * step, step, std::min(kRows, rows - i), count, sums);
    for (int64_t c = 0; c < count; ++c) result[c] += static_cast<double>(sums[c]);
  }
}

/// One row of `size` neighbours: as columns of which there are kColumns, then these.
template <const F32Level& level>
double reduce_row(Reduction kind, const float* x, int64_t size) {
  double columns[kColumns], result = kind == Reduction::kMax ? -__builtin_inf() : 0;
  const auto join = [&](double v) {
    if (kind != Reduction::kMax) {
      result += v;
    } else if (v > result || v != v) {
      result = v;
    }
  };
  const int64_t whole = size / kColumns;
  if (whole > 0) {
    reduce_columns<level>(kind, x, kColumns, whole, kColumns, columns);
    for (double v : columns) join(v);
  }
  for (int64_t i = whole * kColumns; i < size; ++i) join(static_cast<double>(x[i]));
  return result;
}

template <const F32Level& level>
void reduce(Reduction kind, const KernelContext& context, const Reduced& r, const float* x, float* y) {
  const double divisor = kind == Reduction::kMean ? static_cast<double>(r.size) : 1;
  if (r.inner == 1) {
    const int64_t each = std::max<int64_t>(1, kChunk / r.size);
    context.parallel((r.outer + each - 1) / each, [&](int64_t t) {
      for (int64_t o = t * each; o < std::min(r.outer, (t + 1) * each); ++o) {
        y[o] = static_cast<float>(reduce_row<level>(kind, x + o * r.size, r.size) / divisor);
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
      reduce_columns<level>(kind, x + o * r.size * r.inner + first, r.inner, r.size, count, result);
      float* to = y + o * r.inner + first;
      for (int64_t c = 0; c < count; ++c) to[c] = static_cast<float>(result[c] / divisor);
    }
  });
}

template <const F32Level& level>
Status reduce_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  Reduced r;
  if (!reduced_of(node, &r)) return unsupported(node.label());
  reduce<level>(reduction_of(node), context, r, in[0].data<float>(), out[0].data<float>());
  return {};
}

template <const F32Level& level>
constexpr CpuKernel make_reduce() {
  return {.takes = reduce_takes, .packs = 0b10, .run = reduce_run<level>};
}

template <const F32Level& level>
Status global_max_pool_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                           std::span<const TensorView> out) {
  const int64_t planes = in[0].dim(0) * in[0].dim(1);
  reduce<level>(Reduction::kMax, context, {planes, in[0].elements() / planes, 1}, in[0].data<float>(),
                out[0].data<float>());
  return {};
}

bool has_elements(const NodeView& node) {
  return node.input(0).elements() > 0;
}

template <const F32Level& level>
constexpr CpuKernel make_global_max_pool() {
  return {.takes = has_elements, .run = global_max_pool_run<level>};
}

// --------------------------------------------------------------------------------------------------------- images

/// Over all pixels, which leaves one pixel.
bool image_takes(const NodeView& node) {
  const TensorType& x = node.input(0);
  Reduced r;
  if (!has_image_sizes(x) || !reduced_of(node, &r) || node.attr_int("keepdims") == 0) return false;
  const ImageSizes s = image_sizes(x);
  return r.outer == s.n * s.c && r.size == s.h * s.w && r.inner == 1;
}

bool global_image_takes(const NodeView& node) {
  return has_image_sizes(node.input(0)) && has_elements(node);
}

template <const F32Level& level>
Status image_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  const Reduction kind = reduction_of(node);
  const Image x = image_of(in[0], context.layouts[0]), y = image_of(out[0], context.layouts[in.size()]);
  const int64_t blocks = (x.size.c + kColumns - 1) / kColumns;
  const double divisor = kind == Reduction::kMean ? static_cast<double>(x.size.h * x.size.w) : 1;
  context.parallel(x.size.n * blocks, [&](int64_t t) {
    const int64_t n = t / blocks, first = t % blocks * kColumns, count = std::min(kColumns, x.size.c - first);
    double total[kColumns] = {}, row[kColumns];
    for (int64_t i = 0; i < x.size.h; ++i) {
      reduce_columns<level>(kind, x.at + n * x.step + i * x.row + first, x.pitch, x.size.w, count, i ? row : total);
      if (i == 0) continue;
      for (int64_t c = 0; c < count; ++c) {
        if (kind != Reduction::kMax) {
          total[c] += row[c];
        } else if (row[c] > total[c] || row[c] != row[c]) {
          total[c] = row[c];
        }
      }
    }
    for (int64_t c = 0; c < count; ++c) y.at[n * y.step + first + c] = static_cast<float>(total[c] / divisor);
  });
  return {};
}

template <const F32Level& level>
constexpr CpuKernel make_image() {
  return {.takes = image_takes, .packs = 0b10, .layouts = Layouts::kFollows, .images = 0b1, .run = image_run<level>};
}
template <const F32Level& level>
constexpr CpuKernel make_global_max_pool_image() {
  return {.takes = global_image_takes, .layouts = Layouts::kFollows, .images = 0b1, .run = image_run<level>};
}

// -------------------------------------------------------------------------------------------------------- softmax

bool softmax_takes(const NodeView& node) {
  return node.axis(node.attr_int("axis"), node.input(0).rank()).ok() && has_elements(node);
}

/// Columns side by side: their largest elements, then exp of what is left, its sum, and the quotient.
template <const F32Level& level>
Status softmax_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                   std::span<const TensorView> out) {
  const Lanes lanes(in[0].type->shape, *node.axis(node.attr_int("axis"), in[0].rank()));
  const int64_t blocks = (lanes.inner + kColumns - 1) / kColumns, tasks = lanes.outer * blocks;
  const int64_t each = std::max<int64_t>(1, kChunk / (lanes.size * std::min(lanes.inner, kColumns)));
  context.parallel((tasks + each - 1) / each, [&](int64_t t) {
    for (int64_t u = t * each; u < std::min(tasks, (t + 1) * each); ++u) {
      const int64_t first = u % blocks * kColumns, count = std::min(kColumns, lanes.inner - first);
      const int64_t at = u / blocks * lanes.size * lanes.inner + first;
      const float* x = in[0].data<float>() + at;
      float* y = out[0].data<float>() + at;
      float most[kColumns], sums[kColumns] = {};
      std::fill_n(most, count, -__builtin_inff());
      for (int64_t i = 0; i < lanes.size; ++i) level.image->maximum(x + i * lanes.inner, most, count);
      for (int64_t i = 0; i < lanes.size; ++i) {
        float* row = y + i * lanes.inner;
        level.loops->binary(BinaryKind::kSub, x + i * lanes.inner, 1, most, 1, row, count);
        level.loops->map({MapKind::kExp, 0, 0}, row, row, count);
        level.loops->binary(BinaryKind::kAdd, sums, 1, row, 1, sums, count);
      }
      for (int64_t c = 0; c < count; ++c) sums[c] = 1 / sums[c];
      for (int64_t i = 0; i < lanes.size; ++i) {
        float* row = y + i * lanes.inner;
        level.loops->binary(BinaryKind::kMul, row, 1, sums, 1, row, count);
      }
    }
  });
  return {};
}

template <const F32Level& level>
constexpr CpuKernel make_softmax() {
  return {.takes = softmax_takes, .run = softmax_run<level>};
}

}  // namespace

PINNACE_F32_IMAGE_LEVELS(reduce_f32, make_reduce)
PINNACE_F32_IMAGE_LEVELS(reduce_image_f32, make_image)
PINNACE_F32_IMAGE_LEVELS(global_max_pool_f32, make_global_max_pool)
PINNACE_F32_IMAGE_LEVELS(global_max_pool_image_f32, make_global_max_pool_image)
PINNACE_F32_IMAGE_LEVELS(softmax_columns_f32, make_softmax)

}  // namespace pinnace
