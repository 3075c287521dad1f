// The order of trust: container, FlatBuffers, fields, operators known, graph well-formed, operators brought up to date,
// nodes as their schemas say.
#include "program/reader.h"

#include <algorithm>

#include "program/decode.h"

namespace pinnace {
namespace {

template <class F>
Status for_each_node(const Graph& graph, const F& visit) {
  for (const auto& node : graph.nodes) {
    PINNACE_TRY(visit(graph, *node));
    for (const auto& [name, attr] : node->attrs) {
      if (const auto* nested = std::get_if<GraphPtr>(&attr)) PINNACE_TRY(for_each_node(**nested, visit));
    }
  }
  return {};
}

/// Every node whose operator is missing at once, so that a user sees the whole distance.
Status missing_operators(const FileView& file, const Graph& graph, const std::vector<std::string>& missing) {
  constexpr size_t kListed = 100;
  size_t nodes = 0, total = 0;
  std::vector<NodeProblem> problems;
  std::string first;
  PINNACE_TRY(for_each_node(graph, [&](const Graph&, const Node& node) {
    ++total;
    if (std::find(missing.begin(), missing.end(), node.op) == missing.end()) return Status();
    const std::string source = node.source.text();
    if (nodes++ == 0) {
      first = str_cat("operator ", node.op, " (node '", node.name, "'", source.empty() ? "" : ", ", source, ")");
    }
    if (problems.size() < kListed) {
      problems.push_back({node.name, node.op, source, "not in this build", "", node.source.module});
    }
    return Status();
  }));
  if (nodes == 0) {  // no node uses it: the file was not written by us, but says what it wants
    return unsupported(file.name, ": operator ", missing.front(), " is not in this build, which has ", all_ops().size(),
                       " operators");
  }
  std::string rest;
  if (nodes > 1) rest = str_cat("; ", nodes, " of ", total, " nodes use operators that are missing");
  Status status =
      unsupported(file.name, ": ", first, " is not in this build, which has ", all_ops().size(), " operators", rest);
  return status.with_nodes(std::move(problems));
}

/// That this build has the operators, in versions that are not older than the file's.
Status check_operators(const FileView& file, const DecodedGraph& decoded, const OpTable& ops) {
  std::vector<std::string> missing;
  for (const FileOperator& op : decoded.operators) {
    const OpDef* known = ops.find(op.name);
    if (!known) {
      if (!op.application) missing.push_back(op.name);
    } else if (op.application && known == find_op(op.name)) {
      return unsupported(file.name, ": operator ", op.name, " is the application's own in the file, and built in here");
    } else if (op.version > known->version) {
      return unsupported(file.name, ": operator ", op.name, " is of version ", op.version, ", this build has ",
                         known->version);
    }
  }
  return missing.empty() ? Status() : missing_operators(file, decoded.graph, missing);
}

Status check_nodes(const Graph& graph, const OpTable& ops) {
  std::vector<const TensorType*> types;
  return for_each_node(graph, [&](const Graph& owner, const Node& node) {
    const OpDef* op = ops.find(node.op);
    if (!op) return Status();  // the application's: its session checks it
    types.clear();
    for (ValueId id : node.inputs) types.push_back(id == kNoValue ? nullptr : &owner.value(id).type);
    return check_node(node, *op, types);
  });
}

void fill_specs(ProgramData& data) {
  const Graph& graph = data.graph;
  data.inputs.reserve(graph.inputs.size());
  for (ValueId id : graph.inputs) data.inputs.push_back({graph.value(id).name, graph.value(id).type});
  data.outputs.reserve(graph.outputs.size());
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    data.outputs.push_back({graph.output_names[i], graph.value(graph.outputs[i]).type});
  }
  data.states.reserve(graph.states.size());
  for (const State& s : graph.states) data.states.push_back({s.name, graph.value(s.input).type});
}

}  // namespace

Result<std::shared_ptr<const ProgramData>> read_program(std::string name, std::shared_ptr<const void> owner,
                                                        std::span<const std::byte> bytes, const ReadOptions& options) {
  assert(reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment == 0);
  FileView file{.name = std::move(name), .bytes = bytes, .descriptor = options.descriptor};
  file.may_change = options.descriptor >= 0 || options.mapped;
  PINNACE_ASSIGN(const Container container, read_container(file, options.verify));
  PINNACE_ASSIGN(Manifest manifest, decode_manifest(file, container));
  PINNACE_ASSIGN(DecodedGraph decoded, decode_graph(file, container, owner));
  if (decoded.unhashed && options.verify == Verify::kOnUse) {  // of version 1.0
    PINNACE_TRY(check_hash(file, container, container.only(SectionKind::kWeights)));
  }
  PINNACE_TRY(check_operators(file, decoded, options.ops));
  const uint64_t at = container.only(SectionKind::kGraph).offset;
  const auto broken = [&](std::string_view rule, const Status& status) {
    return file.corrupt(at, rule, status.message());
  };
  if (const Status status = verify(decoded.graph); !status.ok()) return broken("F-48", status);
  auto upgraded = upgrade_graph(decoded.graph, options.ops, options.upgrades);
  if (!upgraded) return upgraded.status().with_prefix(str_cat(file.name, ": "));
  if (*upgraded > 0) {
    if (const Status status = verify(decoded.graph); !status.ok()) return broken("F-48", status);
  }
  if (Status status = check_nodes(decoded.graph, options.ops); !status.ok()) {
    if (status.code() == Code::kUnsupported) return status.with_prefix(str_cat(file.name, ": "));
    return broken("F-49", status);
  }
  auto data = std::make_shared<ProgramData>();
  data->owner = std::move(owner);
  data->file = FileBytes({bytes});
  for (const SectionEntry& s : container.sections) {
    data->sections.push_back({static_cast<uint32_t>(s.kind), bytes.subspan(s.offset, s.bytes), s.hash});
  }
  data->name = file.name;
  data->descriptor = options.descriptor;
  data->graph = std::move(decoded.graph);
  data->metadata = std::move(manifest.metadata);
  data->payloads = std::move(manifest.payloads);
  data->payload_sections = std::move(manifest.payload_sections);
  fill_specs(*data);
  return std::shared_ptr<const ProgramData>(std::move(data));
}

}  // namespace pinnace
