// Reductions over neighbouring dimensions as one window, where a level has no operation for them: MEAN is of feature
// level 2, the others are of feature level 3, AVERAGE_POOL_2D and MAX_POOL_2D of feature level 1. x becomes an image
// [outer, size, 1, inner], the window is size x 1. A sum is the mean times its count: within 2^-22 of the sum of
// magnitudes.
#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/shape.h"

namespace pinnace::nnapi_client {

Status reduce_by_pool(NodeLowering& n, Op pool, OperandId x, size_t first, size_t last, OperandId y) {
  const std::vector<uint32_t> dims = n.operand(x).dims;
  uint32_t outer = 1, size = 1, inner = 1;
  for (size_t i = 0; i < dims.size(); ++i) (i < first ? outer : i < last ? size : inner) *= dims[i];
  n.rewritten("a reduction by a pool");
  PINNACE_ASSIGN(const OperandId image, reshaped(n, x, {outer, size, 1, inner}));
  const OperandId made = n.temp(y, {outer, 1, 1, inner});
  const OperandId none = n.scalar(0), one = n.scalar(1);
  PINNACE_TRY(
      n.add(pool, {image, none, none, none, none, one, one, one, n.scalar(static_cast<int32_t>(size)), none}, made));
  return reshape_into(n, made, y);
}

}  // namespace pinnace::nnapi_client
