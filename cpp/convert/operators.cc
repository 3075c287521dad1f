// <pinnace/operators.h>: the schemas of operators as plain data.
#include <pinnace/operators.h>

#include "ops/op.h"

namespace pinnace {
namespace {

std::vector<DType> dtype_list(DTypes types) {
  std::vector<DType> list;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (types >> i & 1) list.push_back(static_cast<DType>(i));
  }
  return list;
}

std::string default_text(const AttrDef& attr) {
  if (attr.required) return {};
  switch (attr.kind) {
    case AttrKind::kInt:
      return str_cat(attr.int_default());
    case AttrKind::kFloat:
      return str_cat(attr.float_default());
    case AttrKind::kString:
      return std::string(attr.string_default());
    default:
      return {};
  }
}

OperatorInfo describe(const OpDef& op) {
  OperatorInfo info;
  info.name = op.name;
  info.version = op.version;
  for (const InputDef& in : op.inputs) {
    info.inputs.push_back({std::string(in.name), dtype_list(in.types), in.type_letter, in.arity == Arity::kOptional,
                           in.arity == Arity::kVariadic});
  }
  for (const AttrDef& attr : op.attrs) {
    info.attributes.push_back({std::string(attr.name), attr_kind_name(attr.kind), attr.required, default_text(attr)});
  }
  info.min_outputs = op.min_outputs;
  info.max_outputs = op.max_outputs;
  info.control_flow = op.reference == nullptr;
  return info;
}

}  // namespace

std::vector<OperatorInfo> operators() {
  std::vector<OperatorInfo> all;
  for (const OpDef* op : all_ops()) all.push_back(describe(*op));
  return all;
}

}  // namespace pinnace
