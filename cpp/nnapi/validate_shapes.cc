// The rules on ranks and dimensions of operations: those of Android's runtime, and the narrower ones that NNAPI
// documents.
#include <algorithm>

#include "base/status.h"
#include "nnapi/shapes.h"

namespace pinnace::nnapi {
namespace {

using Dims = std::vector<uint32_t>;

/// One operation while its shapes are checked. An empty list of dimensions is an unknown rank.
struct Shapes {
  const Model& model;
  const Operation& operation;

  const Dims& in(size_t i) const { return model.operands[operation.inputs[i]].dims; }
  const Dims& out(size_t i) const { return model.operands[operation.outputs[i]].dims; }
  template <class... Parts>
  [[gnu::always_inline]] Status error(const Parts&... parts) const {
    return invalid(operation_info(operation.code)->name, ": ", parts...);
  }

  Status at_most(size_t i, size_t greatest) const {
    if (in(i).size() <= greatest) return {};
    return error("input ", i, " has rank ", in(i).size(), ", not ", greatest, " or less");
  }
  Status exactly(size_t i, size_t rank) const {
    if (in(i).empty() || in(i).size() == rank) return {};
    return error("input ", i, " has rank ", in(i).size(), ", must have ", rank);
  }
  /// The output's rank is that of input i, where both are known.
  Status same_rank(size_t i) const {
    if (in(i).empty() || out(0).empty() || in(i).size() == out(0).size()) return {};
    return error("input ", i, " has rank ", in(i).size(), ", the output ", out(0).size());
  }
  /// Dimension d of input i is `wanted`, or unknown.
  Status dimension(size_t i, size_t d, size_t wanted) const {
    if (in(i).empty() || in(i)[d] == 0 || in(i)[d] == wanted) return {};
    return error("dimension ", d, " of input ", i, " is ", in(i)[d], ", must be ", wanted);
  }
};

/// Ranks and sizes must go together once all three ranks are known.
Status check_fully_connected(const Shapes& s) {
  const Dims &x = s.in(0), &weights = s.in(1), &bias = s.in(2);
  if (x.empty() || weights.empty() || bias.empty()) return {};
  if (x.size() < 2) return s.error("input 0 has rank ", x.size(), ", not 2 or more");
  PINNACE_TRY(s.at_most(0, 4));
  PINNACE_TRY(s.exactly(1, 2));
  PINNACE_TRY(s.exactly(2, 1));
  uint64_t elements = 1;  // an operand has less than 2^32 bytes
  for (uint32_t d : x) elements *= d;
  if (weights[1] != 0 && elements % weights[1] != 0) {
    return s.error(elements, " elements do not divide into rows of ", weights[1]);
  }
  return weights[0] == 0 ? Status() : s.dimension(2, 0, weights[0]);
}

Status check_pack(const Shapes& s) {
  size_t wanted = s.out(0).empty() ? 0 : s.out(0).size() - 1;
  bool known = !s.out(0).empty() && wanted > 0;
  for (size_t i = 1; i < s.operation.inputs.size(); ++i) {
    if (s.in(i).empty()) continue;
    if (known && s.in(i).size() != wanted) {
      return s.error("input ", i, " has rank ", s.in(i).size(), ", must have ", wanted);
    }
    wanted = s.in(i).size();
    known = true;
  }
  return {};
}

/// Dimensions must be the same, not merely agree, where those of the output are all known.
Status check_cast(const Shapes& s) {
  const Dims &x = s.in(0), &y = s.out(0);
  const bool known = !y.empty() && std::find(y.begin(), y.end(), 0u) == y.end();
  if (x.empty() || !known || x == y) return {};
  return s.error("input and output differ in shape");
}

}  // namespace

Status validate_shapes(const Model& model, const Operation& operation) {
  const Shapes s{model, operation};
  switch (static_cast<Op>(operation.code)) {
    case Op::CHANNEL_SHUFFLE:
    case Op::DEQUANTIZE:
    case Op::FLOOR:
    case Op::L2_NORMALIZATION:
    case Op::LOCAL_RESPONSE_NORMALIZATION:
    case Op::LOGISTIC:
    case Op::MEAN:
    case Op::PAD:
    case Op::PAD_V2:
    case Op::REDUCE_ALL:
    case Op::REDUCE_ANY:
    case Op::REDUCE_MAX:
    case Op::REDUCE_MIN:
    case Op::REDUCE_PROD:
    case Op::REDUCE_SUM:
    case Op::RELU:
    case Op::RELU1:
    case Op::RELU6:
    case Op::SOFTMAX:
    case Op::SQUEEZE:
    case Op::STRIDED_SLICE:
    case Op::TANH:
    case Op::TRANSPOSE:
      return s.at_most(0, 4);
    case Op::ADD:
    case Op::DIV:
    case Op::MUL:
    case Op::SUB:
      if (s.in(0).empty() || s.in(1).empty()) return {};
      PINNACE_TRY(s.at_most(0, 4));
      return s.at_most(1, 4);
    case Op::CONCATENATION:
      for (size_t i = 0; i + 1 < operation.inputs.size(); ++i) PINNACE_TRY(s.at_most(i, 4));
      return {};
    case Op::CONV_2D:
      PINNACE_TRY(s.exactly(0, 4));
      return s.exactly(1, 4);
    case Op::FULLY_CONNECTED:
      return check_fully_connected(s);
    case Op::MIRROR_PAD:
      PINNACE_TRY(s.exactly(1, 2));
      PINNACE_TRY(s.dimension(1, 1, 2));
      if (!s.in(0).empty()) PINNACE_TRY(s.dimension(1, 0, s.in(0).size()));
      return s.same_rank(0);
    case Op::PACK:
      return check_pack(s);
    case Op::REVERSE:
      PINNACE_TRY(s.exactly(1, 1));
      PINNACE_TRY(s.dimension(1, 0, 1));
      return s.same_rank(0);
    case Op::CAST:
      return check_cast(s);
    default:
      return {};
  }
}

Status check_documented_ranks(const Model& model, const Operation& operation) {
  const Shapes s{model, operation};
  const OperationInfo& known = *operation_info(operation.code);
  const Operand* first = nullptr;
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    const Operand& o = model.operands[operation.inputs[i]];
    if (!o.tensor()) continue;
    if (!first) first = &o;
    if (known.greatest_rank == 4) PINNACE_TRY(s.at_most(i, 4));
  }
  if (!first || first->dynamic_rank()) return {};
  const int rank = static_cast<int>(first->dims.size());
  if (rank < known.least_rank || (known.greatest_rank && rank > known.greatest_rank)) {
    return s.error("the rank is ", rank, ", must be ", known.least_rank, " to ", known.greatest_rank);
  }
  return {};
}

}  // namespace pinnace::nnapi
