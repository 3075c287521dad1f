// Mirrored padding: MIRROR_PAD from feature level 7 on. Feature levels 3 to 6: GATHER of computed places, axis after
// axis. Feature level 2: rows cut out by STRIDED_SLICE and put together. All exact.
#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/shape.h"

namespace pinnace::nnapi_client {
namespace {

/// Beyond this many rows at one end, feature level 2 makes too many operations.
constexpr int32_t kMostRows = 8;

Status gather_axis(NodeLowering& n, OperandId x, int32_t axis, int32_t before, OperandId y) {
  const auto at = static_cast<size_t>(axis);
  const auto size = static_cast<int32_t>(n.operand(x).dims[at]);
  std::vector<int32_t> places;
  for (uint32_t i = 0; i < n.operand(y).dims[at]; ++i) {
    int32_t p = std::abs(static_cast<int32_t>(i) - before);
    places.push_back(p < size ? p : 2 * (size - 1) - p);
  }
  const auto count = static_cast<uint32_t>(places.size());
  const OperandId list = n.lowering().add_weight(
      {nnapi::OperandCode::kTensorInt32, {count}}, str_cat("places", axis), [places](std::byte* to) {
        std::copy_n(reinterpret_cast<const std::byte*>(places.data()), places.size() * 4, to);
      });
  return n.add(Op::GATHER, {x, n.scalar(axis), list}, y);
}

Status concat_axis(NodeLowering& n, OperandId x, int32_t axis, int32_t before, int32_t after, OperandId y) {
  if (before > kMostRows || after > kMostRows)
    return n.refuse(Rule::kFeatureLevel, "long mirrored pads need feature level 3");
  const std::vector<uint32_t> dims = n.operand(x).dims;
  const auto at = static_cast<size_t>(axis);
  const auto row = [&](int32_t place) -> Result<OperandId> {
    std::vector<int32_t> begin(dims.size(), 0), end(dims.begin(), dims.end());
    const std::vector<int32_t> ones(dims.size(), 1);
    begin[at] = place;
    end[at] = place + 1;
    std::vector<uint32_t> one = dims;
    one[at] = 1;
    const OperandId part = n.temp(x, one);
    PINNACE_TRY(n.add(Op::STRIDED_SLICE,
                      {x, n.ints(begin), n.ints(end), n.ints(ones), n.scalar(0), n.scalar(0), n.scalar(0)}, part));
    return part;
  };
  std::vector<OperandId> parts;
  const auto size = static_cast<int32_t>(dims[at]);
  for (int32_t i = before; i > 0; --i) {
    PINNACE_ASSIGN(const OperandId part, row(i));
    parts.push_back(part);
  }
  parts.push_back(x);
  for (int32_t i = 1; i <= after; ++i) {
    PINNACE_ASSIGN(const OperandId part, row(size - 1 - i));
    parts.push_back(part);
  }
  parts.push_back(n.scalar(axis));
  return n.add(Op::CONCATENATION, std::move(parts), y);
}

}  // namespace

Status pad_reflect(NodeLowering& n, OperandId x, std::span<const int32_t> pads, OperandId y) {
  const auto rank = static_cast<uint32_t>(pads.size() / 2);
  if (n.feature_level() >= 7) return n.add(Op::MIRROR_PAD, {x, n.ints(pads, {rank, 2}), n.scalar(0)}, y);
  n.rewritten("mirrored pad by places");
  std::vector<int32_t> axes;
  for (uint32_t i = 0; i < rank; ++i) {
    if (pads[2 * i] || pads[2 * i + 1]) axes.push_back(static_cast<int32_t>(i));
  }
  if (axes.empty()) return reshape_into(n, x, y);
  OperandId from = x;
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto at = static_cast<size_t>(axes[k]);
    std::vector<uint32_t> dims = n.operand(from).dims;
    dims[at] += static_cast<uint32_t>(pads[2 * at] + pads[2 * at + 1]);
    const OperandId to = k + 1 == axes.size() ? y : n.temp(x, dims);
    if (n.feature_level() >= 3) {
      PINNACE_TRY(gather_axis(n, from, axes[k], pads[2 * at], to));
    } else {
      PINNACE_TRY(concat_axis(n, from, axes[k], pads[2 * at], pads[2 * at + 1], to));
    }
    from = to;
  }
  return {};
}

}  // namespace pinnace::nnapi_client
