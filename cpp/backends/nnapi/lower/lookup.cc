// Operators with positions or hashes as results, or positions as inputs: gather, arg_max, arg_min, top_k,
// lsh_projection.
#include "backends/nnapi/steps/shape.h"

namespace pinnace::nnapi_client {

using enum nnapi::OperandCode;

namespace {
/// Indices that may be negative, counted from the begin, at feature level 3, which adds floats only: exact up to 2^24.
Result<OperandId> counted_as_floats(NodeLowering& n, OperandId indices, int32_t size) {
  if (size > 1 << 24) return n.refuse(Rule::kFeatureLevel, str_cat("an axis of ", size, " needs feature level 4"));
  n.rewritten("indices counted in floats");
  const std::vector<uint32_t> dims = n.operand(indices).dims;
  const OperandId floats = n.temp(OperandSpec{kTensorFloat32, dims}), moved = n.temp(floats), chosen = n.temp(floats);
  const OperandId sign = n.temp(OperandSpec{kTensorBool8, dims}), counted = n.temp(indices);
  PINNACE_TRY(n.add(Op::CAST, {indices}, floats));
  PINNACE_TRY(n.add(Op::LESS, {floats, n.number(0, floats)}, sign));
  PINNACE_TRY(n.add(Op::ADD, {floats, n.number(size, floats), n.scalar(0)}, moved));
  PINNACE_TRY(n.add(Op::SELECT, {sign, moved, floats}, chosen));
  PINNACE_TRY(n.add(Op::CAST, {chosen}, counted));
  return counted;
}
}  // namespace

namespace {
/// Of ranks above 4: one constant index, which is a slice of [outer, size, inner].
Status gather_parts(NodeLowering& n, int axis, OperandId x, OperandId y) {
  const auto given = n.view().input_ints(1);
  if (!n.constant(1) || !given || given->size() != 1) return n.refuse(Rule::kRank, to_string(n.in_type(0)));
  uint32_t outer = 1, inner = 1;
  const Shape& shape = n.in_type(0).shape;
  for (int i = 0; i < n.in_type(0).rank(); ++i) {
    if (i != axis) (i < axis ? outer : inner) *= static_cast<uint32_t>(shape[static_cast<size_t>(i)].size);
  }
  const auto size = static_cast<int32_t>(shape[static_cast<size_t>(axis)].size);
  const auto at = static_cast<int32_t>(given->at(0) < 0 ? given->at(0) + size : given->at(0));
  if (at < 0 || at >= size) return n.refuse(Rule::kAttribute, str_cat("index ", at));
  PINNACE_ASSIGN(const OperandId parts, reshaped(n, x, {outer, static_cast<uint32_t>(size), inner}));
  const int32_t begin[] = {0, at, 0}, end[] = {static_cast<int32_t>(outer), at + 1, static_cast<int32_t>(inner)};
  const int32_t ones[] = {1, 1, 1};
  const OperandId slice = n.temp(y, {outer, 1, inner});
  PINNACE_TRY(n.add(Op::STRIDED_SLICE,
                    {parts, n.ints(begin), n.ints(end), n.ints(ones), n.scalar(0), n.scalar(0), n.scalar(0)}, slice));
  return reshape_into(n, slice, y);
}
}  // namespace

/// NNAPI's indices count from the begin only. Constant ones are rewritten so, others by operations.
Status lower_gather(NodeLowering& n) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in_type(0).rank()));
  const auto size = static_cast<int32_t>(n.in_type(0).shape[static_cast<size_t>(axis)].size);
  PINNACE_ASSIGN(OperandId x, n.in(0));
  PINNACE_ASSIGN(const OperandId y, n.out());
  if (n.in_type(0).rank() > 4 || n.out_type().rank() > 4) return gather_parts(n, axis, x, y);
  OperandId indices = kNoOperand;
  if (n.constant(1)) {
    const auto given = n.view().input_ints(1);
    if (!given) return n.refuse(Rule::kConstant, "indices");
    std::vector<int32_t> counted;
    for (int64_t i : *given) {
      if (i < -size || i >= size) return n.refuse(Rule::kAttribute, str_cat("index ", i));
      counted.push_back(static_cast<int32_t>(i < 0 ? i + size : i));
    }
    OperandSpec spec{kTensorInt32, {}};
    for (const Dim& d : n.in_type(1).shape) spec.dims.push_back(static_cast<uint32_t>(d.size));
    if (spec.dims.empty()) spec.dims = {1};
    indices = n.lowering().add_weight(spec, str_cat("indices of ", size), [counted](std::byte* to) {
      std::copy_n(reinterpret_cast<const std::byte*>(counted.data()), counted.size() * sizeof(int32_t), to);
    });
  } else {
    PINNACE_ASSIGN(indices, n.in_positions(1));
    if (n.feature_level() == 3) {
      PINNACE_ASSIGN(indices, counted_as_floats(n, indices, size));
    } else if (n.feature_level() >= 4) {
      const int32_t zero = 0;
      const OperandId sign = n.temp(OperandSpec{kTensorBool8, n.operand(indices).dims}), moved = n.temp(indices);
      const OperandId counted = n.temp(indices);
      PINNACE_TRY(n.add(Op::LESS, {indices, n.ints({&zero, 1})}, sign));
      PINNACE_TRY(n.add(Op::ADD, {indices, n.ints({&size, 1}), n.scalar(0)}, moved));
      PINNACE_TRY(n.add(Op::SELECT, {sign, moved, indices}, counted));
      indices = counted;
    }
  }
  // One index without a dimension of its own is an operand [1].
  if (n.in_type(1).rank() > 0) return n.add(Op::GATHER, {x, n.scalar(axis), indices}, y);
  std::vector<uint32_t> dims = n.operand(x).dims;
  dims[static_cast<size_t>(axis)] = 1;
  const OperandId slice = n.temp(y, dims);
  PINNACE_TRY(n.add(Op::GATHER, {x, n.scalar(axis), indices}, slice));
  return reshape_into(n, slice, y);
}

namespace {
Status lower_arg(NodeLowering& n, Op op) {
  if (n.view().attr_int("select_last_index") != 0) return n.refuse(Rule::kAttribute, "select_last_index");
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in_type(0).rank()));
  PINNACE_ASSIGN(const OperandId x, n.in(0));
  PINNACE_ASSIGN(const OperandId y, n.out_positions());
  if (n.view().attr_int("keepdims") == 0 || n.in_type(0).rank() == 1) return n.add(op, {x, n.scalar(axis)}, y);
  std::vector<uint32_t> dims = n.operand(y).dims;
  dims.erase(dims.begin() + axis);
  const OperandId less = n.temp(y, dims);
  PINNACE_TRY(n.add(op, {x, n.scalar(axis)}, less));
  return n.add(Op::EXPAND_DIMS, {less, n.scalar(axis)}, y);
}
}  // namespace

Status lower_arg_max(NodeLowering& n) {
  return lower_arg(n, Op::ARGMAX);
}
Status lower_arg_min(NodeLowering& n) {
  return lower_arg(n, Op::ARGMIN);
}

/// TOPK_V2 has the larger index first among equals, top_k the lower: it is given the row from its end to its begin, and
/// places are counted back.
Status lower_top_k(NodeLowering& n) {
  if (n.view().attr_int("largest") == 0) return n.refuse(Rule::kAttribute, "the smallest");
  const int rank = n.in_type(0).rank();
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), rank));
  if (axis != rank - 1) return n.refuse(Rule::kAttribute, str_cat("axis ", axis, " of ", rank));
  const auto k = n.view().input_ints(1);
  if (!k || k->size() != 1) return n.refuse(Rule::kConstant, "k");
  if (k->at(0) < 1) return n.refuse(Rule::kEmpty, "k 0");
  PINNACE_ASSIGN(const OperandId x, n.in(0));
  PINNACE_ASSIGN(const OperandId values, n.out(0));
  const auto size = static_cast<int32_t>(n.operand(x).dims.back());
  const OperandId turned = n.temp(x), order = n.lowering().add_weight(
                                          {kTensorInt32, {static_cast<uint32_t>(size)}}, "back", [size](std::byte* to) {
                                            for (int32_t i = 0; i < size; ++i)
                                              reinterpret_cast<int32_t*>(to)[i] = size - 1 - i;
                                          });
  PINNACE_TRY(n.add(Op::GATHER, {x, n.scalar(axis), order}, turned));
  const OperandId places = n.temp(OperandSpec{kTensorInt32, n.operand(values).dims});
  PINNACE_TRY(
      n.add(Op::TOPK_V2, {turned, n.scalar(static_cast<int32_t>(k->at(0)))}, std::vector<OperandId>{values, places}));
  if (n.view().output_count() < 2) return {};
  PINNACE_ASSIGN(const OperandId indices, n.out_positions(1));
  // order[place] is size - 1 - place.
  return n.add(Op::GATHER, {order, n.scalar(0), places}, indices);
}

/// Bits as numbers have no weights in NNAPI, bits by themselves must have some.
Status lower_lsh_projection(NodeLowering& n) {
  const bool dense = n.view().attr_int("dense") != 0;
  if (n.has(2) && !dense) return n.refuse(Rule::kAttribute, "weights of bits that become one number");
  PINNACE_ASSIGN(const OperandId hash, n.in(0));
  PINNACE_ASSIGN(const OperandId x, n.in(1));
  PINNACE_ASSIGN(const OperandId y, n.out());
  OperandId weight = kNoOperand;
  if (n.has(2)) {
    PINNACE_ASSIGN(weight, n.in(2));
  } else if (dense) {
    const uint32_t rows = n.operand(x).dims[0];
    weight = n.lowering().add_weight({kTensorFloat32, {rows}}, "ones",
                                     [rows](std::byte* to) { std::fill_n(reinterpret_cast<float*>(to), rows, 1.0f); });
  } else {
    weight = n.lowering().add_operand({kTensorFloat32, {0}}, nnapi::Lifetime::kOmitted);
  }
  const int32_t type = dense ? 2 : n.view().attr_int("apart") != 0 ? 3 : 1;
  return n.add(Op::LSH_PROJECTION, {hash, x, weight, n.scalar(type)}, y);
}

}  // namespace pinnace::nnapi_client
