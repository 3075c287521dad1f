// Counting by module first, naming second.
#include "import/torch/exported/module_names.h"

#include <algorithm>

#include "base/text.h"

namespace pinnace::torch_import {
namespace {

bool gives_tensors(const NodeDef& node) {
  return std::ranges::any_of(node.outputs, [](const Argument& output) {
    return output.kind == ArgumentKind::kTensor || output.kind == ArgumentKind::kTensors;
  });
}

std::string module_call(const SourceLocation& source, int64_t call) {
  return call > 0 ? str_cat(source.module, "@", call) : source.module;
}

/// "hardtanh__7" without its number and the underscore of operators that work in place. Nodes of older archives have no
/// name but that of their output.
std::string_view operator_in(const NodeDef& node) {
  const std::string_view name = node.name.empty() ? node.outputs[0].text : node.name;
  std::string_view base = name;
  while (!base.empty() && base.back() >= '0' && base.back() <= '9') base.remove_suffix(1);
  if (base.empty() || base.back() != '_') base = name;
  while (!base.empty() && base.back() == '_') base.remove_suffix(1);
  return base.empty() ? name : base;
}

}  // namespace

std::vector<std::string> module_names(const GraphDef& def) {
  std::map<std::string, int64_t> nodes_of, uses;
  for (const NodeDef& node : def.nodes) {
    if (gives_tensors(node)) ++nodes_of[module_call(node.source, node.module_call)];
  }
  std::vector<std::string> names(def.nodes.size());
  for (size_t i = 0; i < def.nodes.size(); ++i) {
    const NodeDef& node = def.nodes[i];
    if (node.source.module.empty() || !gives_tensors(node)) continue;
    names[i] = module_call(node.source, node.module_call);
    if (nodes_of[names[i]] == 1) continue;
    append_text(names[i], str_cat(":", operator_in(node)));
    const int64_t before = uses[names[i]]++;
    if (before > 0) append_text(names[i], str_cat("_", before));
  }
  return names;
}

}  // namespace pinnace::torch_import
