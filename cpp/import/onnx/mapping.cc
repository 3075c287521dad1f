// The table from ONNX's operators to mapping functions, and the rule for those that need none of their own.
#include "import/onnx/mapping.h"

#include <algorithm>
#include <iterator>

namespace pinnace::onnx {
namespace {
struct Entry {
  std::string_view op_type;
  MapFn function;
};
constexpr Entry kMappings[] = {
#define MAP(op_type, function) {#op_type, map_##function},
#include "import/onnx/mappings.inc"
#undef MAP
};
static_assert(std::is_sorted(std::begin(kMappings), std::end(kMappings),
                             [](const Entry& a, const Entry& b) { return a.op_type < b.op_type; }),
              "mappings.inc must be in alphabetical order, capitals before small letters");

bool upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool lower(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
}  // namespace

MapFn find_mapping(std::string_view op_type) {
  const auto* at = std::lower_bound(std::begin(kMappings), std::end(kMappings), op_type,
                                    [](const Entry& e, std::string_view wanted) { return e.op_type < wanted; });
  return at != std::end(kMappings) && at->op_type == op_type ? at->function : nullptr;
}

std::string snake_case(std::string_view name) {
  if (name == "IsNaN") return "is_nan";
  if (name == "PRelu") return "prelu";
  if (name == "Col2Im") return "col2im";
  std::string snake;
  for (size_t i = 0; i < name.size(); ++i) {
    // A word starts at a capital after a small letter, and at the last of several capitals before a small one.
    const bool starts = i > 0 && upper(name[i]) &&
                        (lower(name[i - 1]) || (upper(name[i - 1]) && i + 1 < name.size() && lower(name[i + 1])));
    if (starts) snake.push_back('_');
    snake.push_back(upper(name[i]) ? static_cast<char>(name[i] - 'A' + 'a') : name[i]);
  }
  return snake;
}

Status map_as(SourceNode& node, std::string_view op, std::vector<ValueId> inputs, Attrs attrs, Names skip) {
  PINNACE_ASSIGN(const OpDef* def, node.find(op));
  PINNACE_ASSIGN(Attrs converted, convert_attributes(node, *def, skip));
  for (auto& attr : attrs) converted.push_back(std::move(attr));
  return node.finish(op, std::move(inputs), std::move(converted));
}

Status map_generic(SourceNode& node) {
  return map_as(node, snake_case(node.proto().op_type()), node.inputs());
}

}  // namespace pinnace::onnx
