// Operations that give the same elements another shape.
#include <algorithm>

#include "nnapi/lowering.h"

namespace pinnace::nnapi {

Status lower_reshape(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(std::vector<int64_t> dims, call.ints(1));
  if (std::count(dims.begin(), dims.end(), -1) > 1) return call.error("more than one -1 among the sizes");
  PINNACE_ASSIGN(ValueId y, call.reshape(x, std::move(dims)));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
