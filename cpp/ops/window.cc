// Sizes and pads of windows.
#include "ops/window.h"

namespace pinnace {
namespace {
constexpr int64_t kLimit = int64_t{1} << 31;  // products of two such numbers stay within int64

/// Operators without an attribute behave as if it were left out.
bool takes(const NodeView& node, std::string_view name) {
  const auto& attrs = node.op().attrs;
  return std::any_of(attrs.begin(), attrs.end(), [&](const AttrDef& def) { return def.name == name; });
}

std::string_view auto_pad_of(const NodeView& node) {
  return takes(node, "auto_pad") ? node.attr_string("auto_pad") : std::string_view("notset");
}

Status read_list(const NodeView& node, std::string_view name, size_t count, int64_t least, int64_t* to) {
  if (!takes(node, name)) return {};
  const auto list = node.attr_ints(name);
  if (list.empty()) return {};
  if (list.size() != count) return node.error(name, " ", list_text(list), " must have ", count, " entries");
  for (size_t i = 0; i < count; ++i) {
    if (list[i] < least || list[i] >= kLimit)
      return node.error(name, " ", list_text(list), " has ", list[i], ", must be in [", least, ", 2^31)");
    to[i] = list[i];
  }
  return {};
}

bool is_same(std::string_view auto_pad) {
  return auto_pad == "same_upper" || auto_pad == "same_lower";
}
}  // namespace

Result<Window> window_attributes(const NodeView& node, std::span<const Dim> kernel) {
  Window w;
  w.rank = static_cast<int>(kernel.size());
  if (w.rank < 1 || w.rank > 3) return node.error("has ", w.rank, " spatial dimensions, takes 1 to 3");
  const int lead = 3 - w.rank;
  for (int i = 0; i < w.rank; ++i) {
    const Dim k = kernel[static_cast<size_t>(i)];
    if (k.known() && (k.size < 1 || k.size >= kLimit))
      return node.error("kernel size ", k.size, " is outside [1, 2^31)");
    w.kernel[lead + i] = k.size;
  }
  const auto count = static_cast<size_t>(w.rank);
  PINNACE_TRY(read_list(node, "strides", count, 1, w.stride.data() + lead));
  PINNACE_TRY(read_list(node, "dilations", count, 1, w.dilation.data() + lead));
  std::array<int64_t, 6> pads{};
  PINNACE_TRY(read_list(node, "pads", 2 * count, 0, pads.data()));
  const std::string_view auto_pad = auto_pad_of(node);
  if (auto_pad != "notset" && auto_pad != "valid" && !is_same(auto_pad)) {
    return node.error("auto_pad '", auto_pad, "' is not one of notset, same_upper, same_lower, valid");
  }
  if (auto_pad != "notset" && std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; })) {
    return node.error("pads ", list_text(node.attr_ints("pads")), " stand beside auto_pad '", auto_pad, "'");
  }
  for (int i = 0; i < w.rank; ++i) {
    w.before[lead + i] = pads[static_cast<size_t>(i)];
    w.after[lead + i] = pads[count + static_cast<size_t>(i)];
  }
  return w;
}

Result<Window> window_of(const NodeView& node, const Shape& x, std::span<const Dim> kernel, bool ceil_mode) {
  PINNACE_ASSIGN(Window w, window_attributes(node, kernel));
  const std::string_view auto_pad = auto_pad_of(node);
  for (int d = 3 - w.rank; d < 3; ++d) {
    const int64_t in = x[static_cast<size_t>(2 + d - (3 - w.rank))].size, stride = w.stride[d];
    w.in[d] = in;
    w.out[d] = Dim::kUnknown;
    if (in < 0) continue;
    const int64_t extent = w.kernel[d] < 0 ? Dim::kUnknown : (w.kernel[d] - 1) * w.dilation[d] + 1;
    if (is_same(auto_pad)) {
      w.out[d] = in / stride + (in % stride != 0);
      if (extent < 0) continue;
      const int64_t pads = w.out[d] == 0 ? 0 : std::max<int64_t>(0, (w.out[d] - 1) * stride + extent - in);
      w.before[d] = auto_pad == "same_upper" ? pads / 2 : pads - pads / 2;
      w.after[d] = pads - w.before[d];
    }
    if (extent < 0) continue;
    // A stride beyond the padded input is never taken; kernels multiply strides with sizes.
    w.stride[d] = std::min(stride, std::max<int64_t>(1, in + w.before[d] + w.after[d]));
    const int64_t room = in + w.before[d] + w.after[d] - extent;
    if (is_same(auto_pad)) continue;
    if (room < 0) {
      return node.error("a window of ", extent, " does not fit into size ", in, " padded by ", w.before[d], " and ",
                        w.after[d]);
    }
    w.out[d] = room / stride + 1;
    if (ceil_mode && room % stride != 0 && w.out[d] * stride < in + w.before[d]) ++w.out[d];
  }
  return w;
}

Result<Shape> kernel_shape_of(const NodeView& node, const TensorType& x) {
  const auto list = node.attr_ints("kernel_shape");
  if (x.rank() < 3 || x.rank() > 5) return node.error("x is ", x, ", must have rank 3 to 5");
  if (list.size() + 2 != x.shape.size()) {
    return node.error("kernel_shape ", list_text(list), " must have ", x.rank() - 2, " entries for x ", x);
  }
  for (int64_t k : list) {
    if (k < 1) return node.error("kernel_shape ", list_text(list), " has ", k, ", must be 1 or more");
  }
  return Shape(list.begin(), list.end());
}

Dim window_dim(const Window& w, const NodeView& node, const Shape& x, int spatial) {
  const int d = spatial + 3 - w.rank;
  if (w.out[d] >= 0) return w.out[d];
  const bool same = is_same(auto_pad_of(node));
  const bool keeps =
      w.stride[d] == 1 && (same || (w.kernel[d] >= 0 && w.before[d] + w.after[d] == (w.kernel[d] - 1) * w.dilation[d]));
  return keeps ? x[static_cast<size_t>(spatial) + 2] : Dim();
}

}  // namespace pinnace
