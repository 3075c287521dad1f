// The joining of updates of scatter_elements and scatter_nd.
#include "ops/scatter.h"

namespace pinnace {

Result<Join> scatter_join(const NodeView& node) {
  const std::string_view name = node.attr_string("reduction");
  if (name == "none") return Join::kNone;
  if (name == "add") return Join::kAdd;
  if (name == "mul") return Join::kMul;
  if (name == "max") return Join::kMax;
  if (name == "min") return Join::kMin;
  return node.error("reduction is '", name, "', must be none, add, mul, max or min");
}

Result<TensorType> scatter_type(const NodeView& node) {
  const TensorType &x = node.input(0), &updates = node.input(2);
  PINNACE_ASSIGN(const Join join, scatter_join(node));
  TensorType y{x.dtype, x.shape, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  if (!same_quantization(x, updates)) {
    return node.error("data ", x, " and updates ", updates, " are quantised differently");
  }
  if (join == Join::kNone) return y;
  if (x.dtype == DType::kBool) return node.error("reduction ", node.attr_string("reduction"), " takes no bool");
  if (x.quantized() && (join == Join::kAdd || join == Join::kMul)) {
    return node.error("reduction ", node.attr_string("reduction"), " takes no quantised data: ", x);
  }
  return y;
}

void scatter_run(const TensorView& y, int64_t at, const TensorView& updates, int64_t from, int64_t count, Join join) {
  const size_t bytes = element_bytes(y.dtype());
  if (join == Join::kNone) {
    copy_run(y.bytes + static_cast<size_t>(at) * bytes, updates.bytes + static_cast<size_t>(from) * bytes, count,
             bytes);
    return;
  }
  visit(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    // Unsigned arithmetic wraps where signed would be undefined; comparisons need the type's own order.
    using Sum = std::conditional_t<is_float<T>, double, uint64_t>;
    for (int64_t i = 0; i < count; ++i) {
      T& to = y.data<T>()[at + i];
      const auto a = widen(to), b = widen(updates.data<T>()[from + i]);
      switch (join) {
        case Join::kAdd:
          to = static_cast<T>(static_cast<Sum>(a) + static_cast<Sum>(b));
          break;
        case Join::kMul:
          to = static_cast<T>(static_cast<Sum>(a) * static_cast<Sum>(b));
          break;
        case Join::kMax:
          to = narrow<T>(a != a || a >= b ? a : b);
          break;
        default:
          to = narrow<T>(a != a || a <= b ? a : b);
          break;
      }
    }
    return 0;
  });
}

}  // namespace pinnace
