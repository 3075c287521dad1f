// Operations that give the same elements another shape, and transposition.
#include <algorithm>

#include "nnapi/mapping.h"

namespace pinnace::nnapi {

Status map_reshape(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(std::vector<int64_t> dims, call.ints(1));
  if (std::count(dims.begin(), dims.end(), -1) > 1) return call.error("more than one -1 among the sizes");
  PINNACE_ASSIGN(ValueId y, call.reshape(x, std::move(dims)));
  return call.finish(0, y);
}

Status map_squeeze(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(TensorType type, call.concrete(x));
  std::vector<bool> gone(type.shape.size(), false);
  if (call.has(1)) {
    PINNACE_ASSIGN(std::vector<int64_t> axes, call.ints(1));
    for (int64_t axis : axes) {
      if (axis < -type.rank() || axis >= type.rank()) return call.error("axis ", axis, " is outside ", type);
      const auto at = static_cast<size_t>(axis < 0 ? axis + type.rank() : axis);
      if (type.shape[at].size != 1) return call.error("dimension ", axis, " of ", type, " is not 1");
      gone[at] = true;
    }
  } else {
    for (size_t i = 0; i < gone.size(); ++i) gone[i] = type.shape[i].size == 1;
  }
  std::vector<int64_t> dims;
  for (size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) dims.push_back(type.shape[i].size);
  }
  if (dims.empty()) dims.push_back(1);
  PINNACE_ASSIGN(ValueId y, call.reshape(x, std::move(dims)));
  return call.finish(0, y);
}

Status map_expand_dims(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(int64_t axis, call.axis(1, call.rank(x) + 1));
  PINNACE_ASSIGN(ValueId axes, call.constant_ints({axis}));
  PINNACE_ASSIGN(ValueId y, call.emit("unsqueeze", {x, axes}));
  return call.finish(0, y);
}

Status map_transpose(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  std::vector<int64_t> perm;
  for (int64_t d = call.rank(x) - 1; d >= 0; --d) perm.push_back(d);
  if (call.has(1)) {
    PINNACE_ASSIGN(perm, call.ints(1));
  }
  // Negative ones count from the end with us.
  if (std::any_of(perm.begin(), perm.end(), [](int64_t d) { return d < 0; })) {
    return call.error("permutation ", list_text(std::span<const int64_t>(perm)), " has a negative dimension");
  }
  if (perm.size() != static_cast<size_t>(call.rank(x))) {
    return call.error("permutation ", list_text(std::span<const int64_t>(perm)), " does not fit ", call.type(x));
  }
  PINNACE_ASSIGN(ValueId y, call.transpose(x, std::move(perm)));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
