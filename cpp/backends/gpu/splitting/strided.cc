// Splits of kernels whose operands lie in up to six dimensions with strides of their own.
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

std::array<int64_t, 6> sizes_of(const Step& s, const StridedFields& fields) {
  std::array<int64_t, 6> size{get(s, fields.count)};
  for (size_t d = 1; d < 6; ++d) {
    size[d] = get(s, fields.sizes[d - 1]);
    size[0] /= std::max<int64_t>(1, size[d]);
  }
  return size;
}

/// Neighbours that every operand walks through as one become one, so that splits need not follow them.
void join_dimensions(Step& s, const StridedFields& fields, std::span<const StridedOperand> operands) {
  std::array<int64_t, 6> size = sizes_of(s, fields);
  const auto stride = [&](const StridedOperand& o, size_t d) { return get(s, o.strides[d]); };
  for (size_t d = 5; d > 0; --d) {
    for (size_t outer = d; outer-- > 0;) {
      if (size[outer] == 1) continue;
      const bool joins = size[d] == 1 || std::all_of(operands.begin(), operands.end(), [&](const StridedOperand& o) {
                           return stride(o, outer) == size[d] * stride(o, d);
                         });
      if (!joins) break;
      for (const StridedOperand& o : operands) {
        if (size[d] == 1) set(s, o.strides[d], stride(o, outer));
        set(s, o.strides[outer], 0);
      }
      size[d] *= size[outer];
      size[outer] = 1;
    }
  }
  for (size_t d = 1; d < 6; ++d) set(s, fields.sizes[d - 1], size[d]);
}

}  // namespace

void split_strided(Splitter& c, const StridedFields& fields, const std::vector<StridedOperand>& operands,
                   std::optional<DenseResult> dense) {
  Step joined = c.step();
  join_dimensions(joined, fields, operands);
  const std::array<int64_t, 6> size = sizes_of(joined, fields);
  for (size_t d = 0; d < 6; ++d) {
    if (size[d] < 2) continue;
    int64_t inner = 1, outer = 1;
    for (size_t i = d + 1; i < 6; ++i) inner *= size[i];
    for (size_t i = 0; i < d; ++i) outer *= size[i];
    std::vector<UnitWindow> windows;
    if (dense) {
      windows.resize(dense->binding + 1);
      windows[dense->binding] = run(inner * dense->bytes);
      // A step that has nothing to report has its result in the place of the error record.
      const auto& bound = c.step().bindings;
      if (bound.size() > windows.size() && bound[windows.size()] == bound[dense->binding]) windows.push_back(kUnread);
    }
    c.add(size[d], std::move(windows), [=](Step& s, int64_t first, int64_t n) {
      s.push = joined.push;
      if (d > 0) set(s, fields.sizes[d - 1], n);
      set_line(s, fields.count, outer * n * inner);
      for (const StridedOperand& o : operands) {
        int64_t low = first * get(s, o.strides[d]), high = 0;  // what the elements of the sub-dispatch reach
        if (o.from) low += get(s, o.from);
        const int64_t start = low;
        for (size_t i = 0; i < 6; ++i) {
          const int64_t extent = ((i == d ? n : size[i]) - 1) * get(s, o.strides[i]);
          (extent < 0 ? low : high) += extent;
        }
        if (!o.from) {
          narrow(s, o.binding, start * o.bytes, (high + 1) * o.bytes);
          continue;
        }
        begin_at(s, o.binding, o.from, low, start + high - low + 1, o.bytes);
        set(s, o.from, get(s, o.from) + start - low);
      }
    });
    if (dense) return;  // only outermost dimensions leave a dense result whole
  }
}

}  // namespace pinnace::gpu::splitting
