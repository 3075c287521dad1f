// Operators that move elements along axes.
#include <algorithm>
#include <cmath>

#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/floats.h"
#include "backends/nnapi/steps/shape.h"

namespace pinnace::nnapi_client {

Status lower_reshape(NodeLowering& n);

Status lower_concat(NodeLowering& n) {
  const int rank = n.out_type().rank();
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), rank));
  Layout layout = Layout::kPlain;
  if (rank == 4) {
    for (int i = 0; i < n.view().input_count(); ++i) {
      if (axis_layout(n, i) == Layout::kChannelsLast) layout = Layout::kChannelsLast;
    }
  }
  std::vector<OperandId> inputs;
  for (int i = 0; i < n.view().input_count(); ++i) {
    PINNACE_ASSIGN(const OperandId x, n.in(i, layout));
    inputs.push_back(x);
  }
  inputs.push_back(n.scalar(axis_in(layout, axis)));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  return n.add(Op::CONCATENATION, std::move(inputs), y);
}

namespace {

/// A permutation of few dimensions that moves elements as one of many: without those of size 1, and with those that
/// stay together as one.
struct Merged {
  std::vector<uint32_t> dims;
  std::vector<int32_t> perm;
};
Merged merge(const std::vector<int64_t>& sizes, std::span<const int32_t> perm) {
  std::vector<std::vector<int32_t>> groups;  // of y, in its order
  int32_t before = -2;
  for (int32_t p : perm) {
    if (sizes[static_cast<size_t>(p)] == 1) continue;
    int32_t next = before + 1;
    while (next >= 0 && next < p && sizes[static_cast<size_t>(next)] == 1) ++next;
    if (groups.empty() || next != p) groups.emplace_back();
    groups.back().push_back(p);
    before = p;
  }
  Merged m;
  std::vector<size_t> order;  // groups as x has them
  for (size_t g = 0; g < groups.size(); ++g) order.push_back(g);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return groups[a][0] < groups[b][0]; });
  m.perm.resize(groups.size());
  for (size_t at = 0; at < order.size(); ++at) {
    uint32_t size = 1;
    for (int32_t d : groups[order[at]]) size *= static_cast<uint32_t>(sizes[static_cast<size_t>(d)]);
    m.dims.push_back(size);
    m.perm[order[at]] = static_cast<int32_t>(at);
  }
  return m;
}

constexpr int32_t kToFirst[] = {0, 3, 1, 2}, kToLast[] = {0, 2, 3, 1};

}  // namespace

/// The order in which x stands is part of the permutation: from channels last to what is wanted in one step. From
/// channels last to channels first changes no byte: the result stands channels last, as its readers may want it; the
/// way back is the same at feature level 1, which has no TRANSPOSE. Ranks above 4 where the permutation is one of at
/// most four parts.
Status lower_transpose(NodeLowering& n) {
  const int rank = n.in_type(0).rank();
  if (rank == 0) return lower_reshape(n);
  std::vector<int32_t> perm;
  for (int64_t p : n.view().attr_ints("perm")) perm.push_back(static_cast<int32_t>(p));
  for (int i = rank; perm.size() < static_cast<size_t>(rank);) perm.push_back(--i);
  Layout layout = axis_layout(n);
  const bool image = rank == 4 && n.in_type(0).dtype != DType::kI64;
  if (image && layout == Layout::kPlain && std::ranges::equal(perm, kToFirst)) {
    PINNACE_ASSIGN(const OperandId x, n.in(0));
    PINNACE_ASSIGN(const OperandId y, n.out(0, Layout::kChannelsLast));
    return reshape_into(n, x, y);
  }
  if (image && n.feature_level() < 2 && std::ranges::equal(perm, kToLast)) layout = Layout::kChannelsLast;
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out());
  std::vector<int64_t> sizes;
  for (const Dim& d : n.in_type(0).shape) sizes.push_back(d.size);
  if (layout == Layout::kChannelsLast) {
    for (int32_t& p : perm) p = axis_in(layout, p);
    sizes = {sizes[0], sizes[2], sizes[3], sizes[1]};
  }
  const Merged m = merge(sizes, perm);
  if (m.perm.size() <= 1) return reshape_into(n, x, y);
  if (rank <= 4) return transpose_into(n, x, perm, y);
  if (m.perm.size() > 4) return n.refuse(Rule::kRank, to_string(n.in_type(0)));
  PINNACE_ASSIGN(const OperandId parts, reshaped(n, x, m.dims));
  PINNACE_ASSIGN(const OperandId turned, transposed(n, parts, m.perm));
  return reshape_into(n, turned, y);
}

namespace {

/// Elements [begin, end) of each dimension, every stride-th.
struct Cut {
  std::vector<int32_t> begin, end, stride;
};

/// STRIDED_SLICE (feature level 2), or SLICE (feature level 3) for ranks above 4 and integers, where strides are 1.
Status cut_into(NodeLowering& n, OperandId x, const Cut& cut, OperandId y) {
  const nnapi::Operand o = n.operand(x);
  const bool plain = std::all_of(cut.stride.begin(), cut.stride.end(), [](int32_t s) { return s == 1; });
  if (plain && (o.dims.size() > 4 || o.type == nnapi::OperandCode::kTensorInt32)) {
    const std::vector<int32_t> sizes(n.operand(y).dims.begin(), n.operand(y).dims.end());
    return n.add(Op::SLICE, {x, n.ints(cut.begin), n.ints(sizes)}, y);
  }
  return n.add(Op::STRIDED_SLICE,
               {x, n.ints(cut.begin), n.ints(cut.end), n.ints(cut.stride), n.scalar(0), n.scalar(0), n.scalar(0)}, y);
}

Cut whole(const std::vector<uint32_t>& dims) {
  return {std::vector<int32_t>(dims.size(), 0), std::vector<int32_t>(dims.begin(), dims.end()),
          std::vector<int32_t>(dims.size(), 1)};
}

}  // namespace

Status lower_slice(NodeLowering& n) {
  const NodeView& view = n.view();
  std::optional<std::vector<int64_t>> lists[5];
  for (int i = 1; i < 5; ++i) {
    if (!n.has(i)) continue;
    lists[i] = view.input_ints(i);
    if (!lists[i]) return n.refuse(Rule::kConstant, "places");
  }
  const Layout layout = axis_layout(n);
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  const int rank = n.in_type(0).rank();
  Cut cut = whole(n.operand(x).dims);
  for (size_t i = 0; i < lists[1]->size(); ++i) {
    PINNACE_ASSIGN(const int axis, view.axis(lists[3] ? lists[3]->at(i) : static_cast<int64_t>(i), rank));
    const auto at = static_cast<size_t>(axis_in(layout, axis));
    const int64_t size = n.operand(x).dims[at];
    // A longer step leaves the axis as well.
    const int64_t step = std::clamp<int64_t>(lists[4] ? lists[4]->at(i) : 1, -size, size);
    int64_t begin = lists[1]->at(i), end = lists[2]->at(i);
    begin += begin < 0 ? size : 0;
    end += end < 0 ? size : 0;
    begin = std::clamp<int64_t>(begin, 0, step > 0 ? size : size - 1);
    end = std::clamp<int64_t>(end, step > 0 ? 0 : -1, size);
    cut.begin[at] = static_cast<int32_t>(begin);
    // Before the first element is written as NNAPI counts from the end.
    cut.end[at] = static_cast<int32_t>(end < 0 ? -size - 1 : end);
    cut.stride[at] = static_cast<int32_t>(step);
  }
  return cut_into(n, x, cut, y);
}

Status lower_split(NodeLowering& n) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in_type(0).rank()));
  const Layout layout = axis_layout(n);
  const auto at = static_cast<size_t>(axis_in(layout, axis));
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  Cut cut = whole(n.operand(x).dims);
  int32_t begin = 0;
  for (int i = 0; i < n.view().output_count(); ++i) {
    PINNACE_ASSIGN(const OperandId y, n.out(i, layout));
    cut.begin[at] = begin;
    cut.end[at] = begin += static_cast<int32_t>(n.operand(y).dims[at]);
    PINNACE_TRY(cut_into(n, x, cut, y));
  }
  return {};
}

Status lower_pad(NodeLowering& n) {
  const NodeView& view = n.view();
  const std::string_view mode = view.attr_string("mode");
  const auto pads = view.input_ints(1);
  if (!pads) return n.refuse(Rule::kConstant, "pads");
  const int rank = n.in_type(0).rank();
  std::vector<int64_t> axes;
  if (n.has(3)) {
    const auto given = view.input_ints(3);
    if (!given) return n.refuse(Rule::kConstant, "axes");
    axes = *given;
  } else {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  double value = 0;
  if (n.has(2) && mode == "constant") {
    const auto floats = view.input_floats(2);
    if (!floats && (!n.constant(2) || !n.in_type(0).quantized())) return n.refuse(Rule::kConstant, "value");
    if (!floats) {
      const Quantization& q = *n.in_type(0).quantization;
      const auto byte = *static_cast<const uint8_t*>(n.data(2));
      const int32_t stored = n.in_type(0).dtype == DType::kI8 ? static_cast<int8_t>(byte) : byte;
      value = double{q.scales[0]} * (stored - q.zero_points[0]);
    } else {
      value = floats->at(0);
    }
  }
  const Layout layout = axis_layout(n);
  std::vector<int32_t> amounts(static_cast<size_t>(rank) * 2, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    PINNACE_ASSIGN(const int axis, view.axis(axes[i], rank));
    const auto at = static_cast<size_t>(axis_in(layout, axis)) * 2;
    const int64_t before = pads->at(i), after = pads->at(i + axes.size());
    if (before < 0 || after < 0) return n.refuse(Rule::kPadding, str_cat(std::min(before, after)));
    if (before > INT32_MAX || after > INT32_MAX) return n.refuse(Rule::kPadding, "2^31 and more");
    amounts[at] = static_cast<int32_t>(before);
    amounts[at + 1] = static_cast<int32_t>(after);
  }
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  if (mode == "constant") return pad_constant(n, x, amounts, value, y);
  if (mode != "reflect") return n.refuse(Rule::kAttribute, std::string(mode));
  for (size_t i = 0; i < n.operand(x).dims.size(); ++i) {
    const auto most = static_cast<int32_t>(n.operand(x).dims[i]) - 1;
    if (amounts[2 * i] > most || amounts[2 * i + 1] > most) return n.refuse(Rule::kPadding, "longer than x");
  }
  return pad_reflect(n, x, amounts, y);
}

/// DCR is NNAPI's order of channels; CRD turns two parts of the channels first (or last, on the way back).
namespace {
Status move_blocks(NodeLowering& n, bool to_space) {
  const auto block = static_cast<uint32_t>(n.view().attr_int("blocksize"));
  const bool crd = n.view().attr_string("mode") == "CRD";
  PINNACE_ASSIGN(OperandId x, n.in(0, Layout::kChannelsLast));
  PINNACE_ASSIGN(const OperandId y, n.out(0, Layout::kChannelsLast));
  const Op op = to_space ? Op::DEPTH_TO_SPACE : Op::SPACE_TO_DEPTH;
  const OperandId size = n.scalar(static_cast<int32_t>(block));
  if (!crd) return n.add(op, {x, size}, y);
  const std::vector<uint32_t> deep = n.operand(to_space ? x : y).dims;
  const uint32_t pixels = deep[0] * deep[1] * deep[2], cells = block * block, channels = deep[3] / cells;
  const int32_t turn[] = {0, 2, 1};
  const OperandId moved = to_space ? n.temp(x) : n.temp(y);
  if (!to_space) PINNACE_TRY(n.add(op, {x, size}, moved));
  const std::vector<uint32_t> parts =
      to_space ? std::vector<uint32_t>{pixels, channels, cells} : std::vector<uint32_t>{pixels, cells, channels};
  PINNACE_ASSIGN(OperandId turned, reshaped(n, to_space ? x : moved, parts));
  PINNACE_ASSIGN(turned, transposed(n, turned, turn));
  if (!to_space) return reshape_into(n, turned, y);
  PINNACE_TRY(reshape_into(n, turned, moved));
  return n.add(op, {moved, size}, y);
}
}  // namespace

Status lower_depth_to_space(NodeLowering& n) {
  return move_blocks(n, true);
}
Status lower_space_to_depth(NodeLowering& n) {
  return move_blocks(n, false);
}

}  // namespace pinnace::nnapi_client
