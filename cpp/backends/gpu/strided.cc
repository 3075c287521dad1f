// Dimensions of strided kernels.
#include "backends/gpu/strided.h"

#include "ops/element.h"

namespace pinnace::gpu {

std::vector<int64_t> strides_in(const Shape& operand, const Shape& result) {
  const std::vector<int64_t> own = row_major_strides(operand);
  std::vector<int64_t> strides(result.size(), 0);
  for (size_t i = 0; i < operand.size(); ++i) {
    if (operand[i].size != 1) strides[result.size() - operand.size() + i] = own[i];
  }
  return strides;
}

std::optional<MergedDims> merge_dims(const Shape& result, const std::vector<int64_t>& a,
                                     const std::vector<int64_t>& b) {
  MergedDims merged;
  size_t at = 6;  // from the last dimension to the first
  for (size_t i = result.size(); i-- > 0;) {
    const int64_t size = result[i].size;
    if (size == 1) continue;
    if (at < 6 && a[i] == merged.size[at] * merged.a[at] && b[i] == merged.size[at] * merged.b[at]) {
      merged.size[at] *= size;
      continue;
    }
    if (at == 0) return std::nullopt;
    --at;
    merged.size[at] = size;
    merged.a[at] = a[i];
    merged.b[at] = b[i];
  }
  return merged;
}

Result<MergedDims> merge_operands(NodeLowering& n, int a, int b) {
  const Shape& shape = n.out().shape;
  const auto dims = merge_dims(shape, strides_in(n.in(a).shape, shape), strides_in(n.in(b).shape, shape));
  if (!dims) return n.refuse(Rule::kRank, to_string(n.out()));
  return *dims;
}

}  // namespace pinnace::gpu
