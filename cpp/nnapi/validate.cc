// The rules on operands and operations that signatures cannot express: scales, channel dimensions, referenced models,
// and what they need in feature levels. Those on ranks and dimensions are in validate_shapes.cc.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "base/status.h"
#include "nnapi/shapes.h"

namespace pinnace::nnapi {
namespace {

using enum OperandCode;

/// NNAPI counts bytes of an operand in 32 bits.
constexpr uint64_t kMostBytes = UINT32_MAX;

/// One operation while it is checked.
struct Checked {
  const Model& model;
  const Operation& operation;
  const OperationInfo& known;
  int feature_level;  ///< needed so far

  const Operand& in(size_t i) const { return model.operands[operation.inputs[i]]; }
  const Operand& out(size_t i) const { return model.operands[operation.outputs[i]]; }
  size_t inputs() const { return operation.inputs.size(); }
  bool is(std::initializer_list<Op> ops) const {
    return std::find(ops.begin(), ops.end(), static_cast<Op>(operation.code)) != ops.end();
  }
  void need(int at_least) { feature_level = std::max(feature_level, at_least); }
  template <class... Parts>
  [[gnu::always_inline]] Status error(const Parts&... parts) const {
    return invalid(known.name, ": ", parts...);
  }
};

bool quant8(const Operand& o) {
  return o.type == kTensorQuant8Asymm || o.type == kTensorQuant8AsymmSigned;
}
bool same_quantization(const Operand& a, const Operand& b) {
  return a.scale == b.scale && a.zero_point == b.zero_point;
}
/// False only where both are known and differ.
bool dims_agree(const Operand& a, const Operand& b) {
  if (a.dynamic_rank() || b.dynamic_rank()) return true;
  if (a.dims.size() != b.dims.size()) return false;
  for (size_t i = 0; i < a.dims.size(); ++i) {
    if (a.dims[i] && b.dims[i] && a.dims[i] != b.dims[i]) return false;
  }
  return true;
}

/// A dynamic rank came with feature level 3.
void need_feature_level_of_dynamic_rank(Checked& c) {
  for (const auto* list : {&c.operation.inputs, &c.operation.outputs}) {
    for (uint32_t i : *list) {
      if (c.model.operands[i].dynamic_rank()) c.need(3);
    }
  }
}

Status check_scales(Checked& c) {
  if (c.is({Op::CONV_2D, Op::DEPTHWISE_CONV_2D, Op::GROUPED_CONV_2D, Op::TRANSPOSE_CONV_2D})) {
    const uint32_t wanted = c.is({Op::DEPTHWISE_CONV_2D}) ? 3 : 0;
    const Operand& filter = c.in(1);
    if (filter.type == kTensorQuant8SymmPerChannel && filter.channel_dim != wanted) {
      return c.error("scales of the filter are along dimension ", filter.channel_dim, ", must be ", wanted);
    }
  }
  if (c.is({Op::CONV_2D, Op::DEPTHWISE_CONV_2D, Op::FULLY_CONNECTED}) && quant8(c.in(0)) && quant8(c.in(1)) &&
      c.out(0).scale <= c.in(0).scale * c.in(1).scale) {
    c.need(3);
  }
  if (c.is({Op::MUL}) && quant8(c.in(0)) && !(c.out(0).scale > c.in(0).scale * c.in(1).scale)) {
    return c.error("the output's scale ", c.out(0).scale, " must be above the product of the inputs' scales");
  }
  if (c.is({Op::CONCATENATION}) && quant8(c.in(0))) {
    for (size_t i = 0; i + 1 < c.inputs(); ++i) {
      if (!same_quantization(c.in(i), c.out(0))) c.need(3);
    }
  }
  if (c.is({Op::PAD, Op::SPACE_TO_BATCH_ND}) && quant8(c.in(0)) && c.in(0).zero_point != 0) c.need(3);
  if (c.is({Op::PACK, Op::MIRROR_PAD, Op::REVERSE}) && quant8(c.out(0))) {
    const bool pack = c.is({Op::PACK});
    for (size_t i = pack ? 1 : 0; i < (pack ? c.inputs() : 1); ++i) {
      if (!same_quantization(c.in(i), c.out(0))) return c.error("input ", i, " and the output differ in quantisation");
    }
  }
  return {};
}

void need_feature_level_of_rank(Checked& c) {
  const size_t rank = c.in(0).dims.size();
  if (c.is({Op::SOFTMAX}) && rank != 2 && rank != 4) c.need(3);
  if (c.is({Op::L2_NORMALIZATION, Op::LOCAL_RESPONSE_NORMALIZATION}) && rank != 4) c.need(3);
}

Status check_same(const Checked& c, const Operand& outer, const Operand& inner, const char* what, size_t i) {
  const bool same = outer.type == inner.type && same_quantization(outer, inner) &&
                    outer.channel_scales == inner.channel_scales && outer.channel_dim == inner.channel_dim &&
                    dims_agree(outer, inner);
  return same ? Status() : c.error(what, " ", i, " of a referenced model differs from the operand that it stands for");
}

/// The operand at `i` is a referenced model.
Result<const Model*> referenced(const Checked& c, size_t i) {
  if (c.in(i).lifetime != Lifetime::kModel || !c.in(i).model) return c.error("input ", i, " has no model");
  return c.in(i).model.get();
}

Status check_condition(const Checked& c, const Operand& o) {
  if (o.type != kTensorBool8 || o.dims != std::vector<uint32_t>{1})
    return c.error("the condition must be TENSOR_BOOL8 [1]");
  return {};
}

Status check_if(const Checked& c) {
  PINNACE_TRY(check_condition(c, c.in(0)));
  for (size_t branch : {1, 2}) {
    PINNACE_ASSIGN(const Model* m, referenced(c, branch));
    if (m->inputs.size() != c.inputs() - 3 || m->outputs.size() != c.operation.outputs.size()) {
      return c.error("branch ", branch, " has ", m->inputs.size(), " inputs and ", m->outputs.size(), " outputs");
    }
    for (size_t i = 0; i < m->inputs.size(); ++i) {
      PINNACE_TRY(check_same(c, c.in(i + 3), m->operands[m->inputs[i]], "input", i));
    }
    for (size_t i = 0; i < m->outputs.size(); ++i) {
      PINNACE_TRY(check_same(c, c.out(i), m->operands[m->outputs[i]], "output", i));
    }
  }
  return {};
}

Status check_while(const Checked& c) {
  PINNACE_ASSIGN(const Model* condition, referenced(c, 0));
  PINNACE_ASSIGN(const Model* body, referenced(c, 1));
  const size_t values = c.inputs() - 2, made = c.operation.outputs.size();
  if (condition->inputs.size() != values || condition->outputs.size() != 1 || body->inputs.size() != values) {
    return c.error("condition and body must take ", values, " inputs, and the condition give 1 output");
  }
  if (body->outputs.size() < made || body->outputs.size() > values) {
    return c.error("the body has ", body->outputs.size(), " outputs, must have ", made, " to ", values);
  }
  PINNACE_TRY(check_condition(c, condition->operands[condition->outputs[0]]));
  for (size_t i = 0; i < values; ++i) {
    PINNACE_TRY(check_same(c, c.in(i + 2), condition->operands[condition->inputs[i]], "input", i));
    PINNACE_TRY(check_same(c, c.in(i + 2), body->operands[body->inputs[i]], "input", i));
  }
  for (size_t i = 0; i < body->outputs.size(); ++i) {
    PINNACE_TRY(check_same(c, c.in(i + 2), body->operands[body->outputs[i]], "output", i));
    if (i < made) PINNACE_TRY(check_same(c, c.out(i), body->operands[body->outputs[i]], "output", i));
  }
  return {};
}

/// True for an input that may be left out at the end and says what is meant without it: layout NHWC, dilation 1,
/// corners not aligned, the last axis.
bool is_default(const Checked& c, size_t i) {
  const Operand& o = c.in(i);
  if (o.lifetime != Lifetime::kConstant) return false;
  if (o.type == kBool) return o.data[0] == std::byte{0};
  if (o.type != kInt32) return false;
  int32_t value = 0;
  std::memcpy(&value, o.data.data(), sizeof value);
  if (c.is({Op::CONV_2D, Op::DEPTHWISE_CONV_2D})) {  // dilations stand behind the layout
    const auto& before = c.operation.inputs;
    const bool behind = std::any_of(before.begin(), before.begin() + static_cast<ptrdiff_t>(i),
                                    [&](uint32_t k) { return c.model.operands[k].type == kBool; });
    return behind && value == 1;
  }
  const size_t axis_at = c.is({Op::L2_NORMALIZATION})               ? 1
                         : c.is({Op::SOFTMAX})                      ? 2
                         : c.is({Op::LOCAL_RESPONSE_NORMALIZATION}) ? 5
                                                                    : SIZE_MAX;
  return i == axis_at && value == -1;
}

}  // namespace

Status validate_operand(int32_t code, uint32_t rank, const uint32_t* dims, float scale, int32_t zero_point) {
  const OperandCodeInfo* known = operand_code_info(code);
  if (!known) return invalid("operand type ", code, " does not exist");
  if ((rank > 0) != (dims != nullptr))
    return invalid(known->name, ": ", rank, " dimensions at ", dims ? "an" : "no", " address");
  if (!known->tensor && rank != 0) return invalid(known->name, ": a scalar has no dimensions, given ", rank);
  if (!(scale >= 0) || std::isinf(scale)) return invalid(known->name, ": scale ", scale, " is negative or not finite");
  if (known->quantized) {
    if (scale == 0) return invalid(known->name, ": scale is 0");
    if (zero_point < known->zero_point_min || zero_point > known->zero_point_max) {
      return invalid(known->name, ": zero point ", zero_point, " is outside [", known->zero_point_min, ", ",
                     known->zero_point_max, "]");
    }
  } else if (known->code != kTensorInt32 && known->code != kOemScalar && known->code != kTensorOemByte) {
    if (scale != 0 || zero_point != 0) return invalid(known->name, ": takes no scale and no zero point");
  }
  uint64_t bytes = known->bytes;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] == 0) continue;
    bytes *= dims[i];
    if (bytes > kMostBytes) return invalid(known->name, ": more than ", kMostBytes, " bytes");
  }
  return {};
}

bool Operand::shape_known() const {
  return !tensor() || (!dims.empty() && std::find(dims.begin(), dims.end(), 0u) == dims.end());
}

uint64_t Operand::bytes() const {
  if (!shape_known()) return 0;
  uint64_t total = info(type).bytes;
  for (uint32_t d : dims) total *= d;
  return total;
}

Result<int> validate_operation(const Model& model, const Operation& operation, int level) {
  const OperationInfo* known = operation_info(operation.code);
  if (!known) return invalid("operation ", operation.code, " does not exist");
  Checked c{model, operation, *known, known->feature_level};
  std::vector<OperandCode> types[2];
  for (int side : {0, 1}) {
    for (uint32_t i : side ? operation.outputs : operation.inputs) {
      if (i >= model.operands.size())
        return c.error("operand ", i, " does not exist, there are ", model.operands.size());
      types[side].push_back(model.operands[i].type);
    }
  }
  int needed = signature_feature_level(operation.code, types[0], types[1]);
  // Inputs that change nothing need not be known to a level.
  for (size_t left = types[0].size(); needed > 0 && left > 1 && is_default(c, left - 1); --left) {
    const int without = signature_feature_level(operation.code, std::span(types[0]).first(left - 1), types[1]);
    if (without > 0) needed = std::min(needed, without);
  }
  if (needed == 0) return c.error("number or types of the operands fit no signature");
  c.need(needed);
  need_feature_level_of_dynamic_rank(c);
  PINNACE_TRY(validate_shapes(model, operation));
  PINNACE_TRY(check_scales(c));
  need_feature_level_of_rank(c);
  if (c.is({Op::IF})) PINNACE_TRY(check_if(c));
  if (c.is({Op::WHILE})) PINNACE_TRY(check_while(c));
  if (c.feature_level > level)
    return unsupported(known->name, ": needs feature level ", c.feature_level, ", there is ", level);
  return c.feature_level;
}

Status finish_model(Model& model, std::vector<uint32_t>* order) {
  if (model.operations.empty()) return invalid("a model without operations");
  model.depth = 0;
  for (const Operand& operand : model.operands) {
    if (operand.model) model.depth = std::max(model.depth, operand.model->depth + 1);
  }
  if (model.depth > kDeepestNesting) return unsupported("models refer to models more than ", kDeepestNesting, " deep");
  const size_t n = model.operands.size();
  for (uint32_t i : model.inputs) {
    if (model.operands[i].lifetime != Lifetime::kInput) return invalid("operand ", i, ", an input, has a value");
  }
  for (uint32_t i : model.outputs) {
    if (model.operands[i].lifetime != Lifetime::kOutput) return invalid("operand ", i, ", an output, has a value");
  }
  std::vector<int64_t> writer(n, -1);
  std::vector<bool> read(n, false);
  for (size_t k = 0; k < model.operations.size(); ++k) {
    for (uint32_t o : model.operations[k].outputs) {
      const Lifetime from = model.operands[o].lifetime;
      if (from != Lifetime::kTemporary && from != Lifetime::kOutput)
        return invalid("operation ", k, " writes operand ", o, ", which has a value");
      if (writer[o] >= 0) return invalid("operand ", o, " is written by operations ", writer[o], " and ", k);
      writer[o] = static_cast<int64_t>(k);
    }
    for (uint32_t i : model.operations[k].inputs) read[i] = true;
  }
  for (size_t i = 0; i < n; ++i) {
    const Lifetime from = model.operands[i].lifetime;
    if ((from == Lifetime::kTemporary || from == Lifetime::kOutput) && writer[i] < 0) {
      return invalid("operand ", i, read[i] ? " is read, but never written" : " is neither written nor read");
    }
  }
  // The lowest ready operation first.
  std::vector<uint32_t> sorted;
  std::vector<size_t> missing(model.operations.size(), 0);
  std::vector<std::vector<uint32_t>> readers(n);
  std::vector<uint32_t> ready;
  const auto later = std::greater<uint32_t>();
  for (size_t k = 0; k < model.operations.size(); ++k) {
    for (uint32_t i : model.operations[k].inputs) {
      if (writer[i] < 0) continue;
      ++missing[k];
      readers[i].push_back(static_cast<uint32_t>(k));
    }
    if (missing[k] == 0) ready.push_back(static_cast<uint32_t>(k));
  }
  std::make_heap(ready.begin(), ready.end(), later);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    const uint32_t k = ready.back();
    ready.pop_back();
    sorted.push_back(k);
    for (uint32_t o : model.operations[k].outputs) {
      for (uint32_t r : readers[o]) {
        if (--missing[r] > 0) continue;
        ready.push_back(r);
        std::push_heap(ready.begin(), ready.end(), later);
      }
    }
  }
  if (sorted.size() != model.operations.size()) return invalid("the operations form a cycle");
  std::vector<Operation> operations;
  operations.reserve(sorted.size());  // from here on nothing can fail
  for (uint32_t k : sorted) operations.push_back(std::move(model.operations[k]));
  model.operations = std::move(operations);
  if (order) *order = std::move(sorted);
  return {};
}

}  // namespace pinnace::nnapi
