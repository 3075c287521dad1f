// Pools: the mean, the largest, or the root of the mean square of the cells of a window that lie inside.
#include "nnapi/map/window.h"

namespace pinnace::nnapi {
namespace {

/// sqrt(mean(x^2)); float16 squares leave their range from 256 on, so float32 is between.
Result<ValueId> root_mean_square(Call& call, ValueId x, const Attrs& attrs) {
  const DType dtype = call.type(x).dtype;
  PINNACE_ASSIGN(ValueId wide, call.cast(x, DType::kF32));
  PINNACE_ASSIGN(ValueId square, call.emit("mul", {wide, wide}));
  PINNACE_ASSIGN(ValueId mean, call.emit("average_pool", {square}, attrs));
  PINNACE_ASSIGN(ValueId root, call.emit("sqrt", {mean}));
  return call.cast(root, dtype);
}

}  // namespace

Status map_pool(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  const bool implicit = call.inputs() < 10;
  const WindowInputs where{1, !implicit};
  const size_t filter_at = where.strides() + 2, code_at = filter_at + 2;
  PINNACE_ASSIGN(bool nchw, call.flag(code_at + 1));
  PINNACE_ASSIGN(int64_t code, call.integer(code_at));
  if (call.rank(x) != 4) return call.error("takes an image, was given ", call.type(x));
  WindowAxis axes[2];
  for (int a : {0, 1}) {
    PINNACE_ASSIGN(axes[a].in, call.size(x, (nchw ? 2 : 1) + a));
    PINNACE_ASSIGN(axes[a].filter, call.integer(filter_at + (a == 1 ? 0 : 1)));
  }
  PINNACE_TRY(read_window(call, where, 0, axes));
  Attrs attrs = window_attrs(axes);
  attrs.emplace_back("kernel_shape", std::vector<int64_t>{axes[0].filter, axes[1].filter});
  PINNACE_ASSIGN(ValueId image, call.to_nchw(x, nchw));
  ValueId y = kNoValue;
  if (call.op() == Op::L2_POOL_2D) {
    PINNACE_ASSIGN(y, root_mean_square(call, image, attrs));
  } else {
    const std::string_view op = call.op() == Op::MAX_POOL_2D ? "max_pool" : "average_pool";
    PINNACE_ASSIGN(y, call.emit(op, {image}, attrs, call.type(x).quantization));
  }
  PINNACE_ASSIGN(y, call.activate(y, code));
  PINNACE_ASSIGN(y, call.from_nchw(y, nchw));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
