// The table from ONNX's operators to mapping functions, and the rule for those that need none of their own.
#include "import/onnx/mapping.h"

#include "base/sorted_table.h"

namespace pinnace::onnx {
namespace {
bool upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool lower(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
}  // namespace

MapFn find_mapping(std::string_view op_type) {
  static constexpr SortedTable kMappings({
#define MAP(op_type, function) TableLine<std::string_view, MapFn>{#op_type, map_##function},
#include "import/onnx/mappings.inc"
#undef MAP
  });
  return kMappings.find(op_type);
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
