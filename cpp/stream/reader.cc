// StreamReader: constants, sizes and attributes of the whole graph.
#include "ops/element.h"
#include "stream/rule.h"

namespace pinnace {
namespace {

const AttrDef* definition(const OpTable& ops, const Node& node, std::string_view name) {
  for (const AttrDef& def : ops.find(node.op)->attrs) {
    if (std::string_view(def.name) == name) return &def;
  }
  return nullptr;
}

}  // namespace

std::optional<std::vector<int64_t>> StreamReader::ints(const Node& node, size_t i) const {
  if (!has(node, i)) return std::nullopt;
  const Value& v = graph.value(node.inputs[i]);
  if (!v.constant || (v.type.dtype != DType::kI64 && v.type.dtype != DType::kI32)) return std::nullopt;
  std::vector<int64_t> all(static_cast<size_t>(v.type.elements()));
  for (size_t k = 0; k < all.size(); ++k) {
    all[k] = v.type.dtype == DType::kI64 ? reinterpret_cast<const int64_t*>(v.constant->data())[k]
                                         : reinterpret_cast<const int32_t*>(v.constant->data())[k];
  }
  return all;
}

std::optional<double> StreamReader::number(const Node& node, size_t i) const {
  if (!has(node, i)) return std::nullopt;
  const Value& v = graph.value(node.inputs[i]);
  if (!v.constant || v.type.elements() != 1 || v.type.quantized() || !(dtypes(v.type.dtype) & kAny))
    return std::nullopt;
  return visit(v.type.dtype, [&](auto zero) {
    return static_cast<double>(widen(*reinterpret_cast<const decltype(zero)*>(v.constant->data())));
  });
}

std::optional<std::vector<Length>> StreamReader::lengths(const Node& node, size_t i) const {
  if (!has(node, i)) return std::nullopt;
  if ((*this)[node.inputs[i]].lengths) return (*this)[node.inputs[i]].lengths;
  const auto fixed = ints(node, i);
  if (!fixed) return std::nullopt;
  std::vector<Length> all;
  for (const int64_t value : *fixed) all.push_back({0, 1, value});
  return all;
}

int64_t StreamReader::attr_int(const Node& node, std::string_view name) const {
  if (const Attr* attr = node.attr(name)) {
    if (const auto* found = std::get_if<int64_t>(attr)) return *found;
  }
  const AttrDef* def = definition(ops_, node, name);
  return def && def->kind == AttrKind::kInt && !def->required ? def->int_default() : 0;
}

std::string_view StreamReader::attr_string(const Node& node, std::string_view name) const {
  if (const Attr* attr = node.attr(name)) {
    if (const auto* found = std::get_if<std::string>(attr)) return *found;
  }
  const AttrDef* def = definition(ops_, node, name);
  return def && def->kind == AttrKind::kString && !def->required ? def->string_default() : std::string_view();
}

std::vector<int64_t> StreamReader::attr_ints(const Node& node, std::string_view name) const {
  const Attr* attr = node.attr(name);
  const auto* found = attr ? std::get_if<std::vector<int64_t>>(attr) : nullptr;
  return found ? *found : std::vector<int64_t>();
}

}  // namespace pinnace
