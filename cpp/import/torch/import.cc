// import_torch: reads the program from an archive or from memory, builds its graph, and reports everything that could
// not be mapped.
#include <algorithm>
#include <iterator>
#include <map>

#include "base/cancel.h"
#include "base/utf8.h"
#include "import/torch/exported/archive.h"
#include "import/torch/mapping.h"
#include "ops/work.h"

namespace pinnace {
namespace torch_import {
namespace {

constexpr uint64_t kMaxConfigBytes = 1u << 30;  // of one JSON entry: models have some MB

Result<std::string> model_name(const Parts& parts, const std::string& wanted) {
  std::vector<std::string> names;
  for (const std::string& entry : parts.names()) {
    if (entry.starts_with("models/") && entry.ends_with(".json")) names.push_back(entry.substr(7, entry.size() - 12));
  }
  std::string list;
  for (const std::string& name : names) list += str_cat(list.empty() ? "" : ", ", name);
  if (!wanted.empty()) {
    if (std::find(names.begin(), names.end(), wanted) != names.end()) return wanted;
    return invalid("the archive has no model '", wanted, "'; it has: ", list);
  }
  if (names.size() == 1) return names[0];
  if (names.empty()) return Status(Code::kCorruptFile, "the archive has no entry models/NAME.json");
  return invalid("the archive holds ", names.size(), " models (", list, "); name one with model_name");
}

/// `kind`: "weights" or "constants". Torch 2.8 writes them as one pickle, which is left to Python: tensors have to be
/// looked for among what else a pickle may hold.
Result<Payloads> payloads(const Parts& parts, std::string_view kind, const std::string& model) {
  const std::string folder = str_cat("data/", kind, "/", model), entry = str_cat(folder, "_", kind, "_config.json");
  if (!parts.has(entry)) {
    if (!parts.has(folder + ".pt")) return Payloads{};
    return unsupported(folder, ".pt is a pickle of ", kind,
                       ", as torch 2.8 writes them, which pinnace.load() in Python reads: convert the file there, or "
                       "export the model again with torch 2.9 or newer");
  }
  PINNACE_ASSIGN(const Buffer json, parts.read(entry, kJsonPadding));
  return parse_payloads(json, json.size() - kJsonPadding, entry);
}

Status conversion_failure(std::vector<NodeProblem> problems, int node_count) {
  std::string text = str_cat(problems.size(), " of ", node_count, " nodes cannot be imported");
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < problems.size() && i < kShown; ++i) {
    const NodeProblem& p = problems[i];
    append_text(text, "\n  ");
    append_text(text, printable(str_cat(p.op, " (node '", p.node, "'", p.module.empty() ? "" : " of ", p.module,
                                        p.source.empty() ? "" : ", ", p.source, "): ", p.rule,
                                        p.value.empty() ? "" : ": ", p.value)));
  }
  if (problems.size() > kShown) append_text(text, str_cat("\n  and ", problems.size() - kShown, " more"));
  Status status(Code::kConversion, std::move(text));
  status.with_nodes(std::move(problems));
  return status;
}

int count_nodes(const GraphDef& def) {
  int count = static_cast<int>(def.nodes.size());
  for (const NodeDef& node : def.nodes) {
    for (const NamedArgument& a : node.inputs) {
      if (a.value.graph) count += count_nodes(*a.value.graph);
    }
  }
  return count;
}

/// A note for each dimension of an input that an assertion of the program made a multiple of a number.
void note_divided(Session& session, const Graph& graph) {
  for (const ValueId input : graph.inputs) {
    const Shape& shape = graph.value(input).type.shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (!session.divided.contains(shape[i].symbol)) continue;
      const Symbol& symbol = session.symbols[static_cast<size_t>(shape[i].symbol)];
      session.note(str_cat("dimension ", i, " of input '", graph.value(input).name, "' is a multiple of ",
                           symbol.multiple_of, ": the exported program takes no other sizes"));
    }
  }
}

Result<Imported> import_parts(Parts& parts, const std::string& what, const ImportOptions& options) {
  PINNACE_ASSIGN(const std::string name, model_name(parts, options.model_name));
  const std::string entry = str_cat("models/", name, ".json");
  ProgramDef program;
  {
    PINNACE_ASSIGN(const Buffer json, parts.read(entry, kJsonPadding));
    if (json.size() > kMaxConfigBytes)
      return unsupported(entry, " has ", json.size(), " bytes, at most ", kMaxConfigBytes, " are read");
    PINNACE_ASSIGN(program, parse_program(json, json.size() - kJsonPadding, entry));
  }
  PINNACE_ASSIGN(Payloads weights, payloads(parts, "weights", name));
  PINNACE_ASSIGN(Payloads constants, payloads(parts, "constants", name));
  Session session{options, program, parts, name, std::move(weights), std::move(constants)};
  session.node_count = count_nodes(program.graph);
  session.notes = program.notes;

  Imported imported;
  imported.graph.name = name;
  Builder builder(session, imported.graph);
  const Status built = builder.build_program();
  PINNACE_TRY(check_stopped(what));
  PINNACE_TRY(session.fatal);
  if (!session.problems.empty()) return conversion_failure(std::move(session.problems), session.node_count);
  PINNACE_TRY(built);
  note_divided(session, imported.graph);
  imported.graph = imported.graph.clone();  // names were given directly: the copy indexes them anew
  PINNACE_TRY(update_types(imported.graph, options.ops));
  PINNACE_TRY(verify(imported.graph));
  imported.notes = std::move(session.notes);
  return imported;
}

void name_lent(const Graph& graph, std::map<const std::byte*, LentBytes*>& at, const std::string& model) {
  for (const Value& value : graph.values) {
    if (!value.constant || value.constant->bytes() == 0) continue;
    const auto next = at.upper_bound(value.constant->data());
    if (next == at.begin()) continue;
    LentBytes& lent = *std::prev(next)->second;
    const std::byte* end = lent.bytes.data() + lent.bytes.size();
    if (value.constant->data() < end) lent.name = str_cat("weight '", value.name, "' of ", model);
  }
  for (const auto& node : graph.nodes) {
    for (const auto& [name, attr] : node->attrs) {
      if (const auto* nested = std::get_if<GraphPtr>(&attr)) name_lent(**nested, at, model);
    }
  }
}

/// Those of the storages that a constant of the graph lies in, by its name. Of the others the graph has copies.
std::vector<LentBytes> lent_to(const Graph& graph, std::vector<LentBytes> storages, const std::string& model) {
  std::map<const std::byte*, LentBytes*> at;
  for (LentBytes& storage : storages) {
    storage.name.clear();
    at.emplace(storage.bytes.data(), &storage);
  }
  name_lent(graph, at, model);
  std::erase_if(storages, [](const LentBytes& storage) { return storage.name.empty(); });
  return storages;
}

/// Errors begin with what was imported.
Result<Imported> named(Result<Imported> imported, const std::string& what) {
  if (imported || imported.status().message().starts_with(what)) return imported;
  return imported.status().with_prefix(what + ": ");
}

}  // namespace
}  // namespace torch_import

bool is_zip_archive(std::string_view head) {
  return head.starts_with("PK\3\4");
}

Result<Imported> import_torch(const std::string& path, const ImportOptions& options) {
  const AheadBudget budget;
  const auto imported = [&]() -> Result<Imported> {
    PINNACE_ASSIGN(torch_import::Archive archive, torch_import::Archive::open(path));
    return torch_import::import_parts(archive, path, options);
  };
  return torch_import::named(imported(), path);
}

Result<Imported> import_torch_program(const TorchProgram& program, const ImportOptions& options) {
  const AheadBudget budget;
  const auto imported = [&]() -> Result<Imported> {
    PINNACE_ASSIGN(torch_import::MemoryParts parts, torch_import::MemoryParts::of(program));
    PINNACE_ASSIGN(Imported made, torch_import::import_parts(parts, program.name, options));
    made.lent = torch_import::lent_to(made.graph, parts.take_lent(), program.name);
    return made;
  };
  return torch_import::named(imported(), program.name);
}

}  // namespace pinnace
