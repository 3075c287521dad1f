// The main line of a conversion, in order: load (import, passes, verify), check, build (compile, write, read back).
#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/exception_boundary.h"
#include "base/hash.h"
#include "base/log.h"
#include "compile/plan.h"
#include "convert/model_data.h"
#include "import/import.h"
#include "ops/work.h"
#include "passes/pass.h"
#include "program/node_info.h"
#include "program/program_data.h"
#include "program/writer.h"
#include "runtime/prepared_data.h"

namespace pinnace {
namespace {

bool is_program(std::string_view head) {
  return head.size() >= 4 && std::memcmp(head.data(), kProgramMagic, 4) == 0;
}

std::vector<TensorSpec> specs(const Graph& graph, const std::vector<ValueId>& ids,
                              const std::vector<std::string>* names) {
  std::vector<TensorSpec> all;
  all.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    all.push_back({names ? (*names)[i] : graph.value(ids[i]).name, graph.value(ids[i]).type});
  }
  return all;
}

Status check_pass_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == "all") continue;
    const auto known = all_passes();
    if (std::any_of(known.begin(), known.end(), [&](const PassDef* p) { return p->name == name; })) continue;
    std::string list;
    for (const PassDef* p : known) list += str_cat(list.empty() ? "" : ", ", p->name);
    return invalid("there is no pass '", name, "'; the passes are ", list);
  }
  return {};
}

Status name_dims(Graph& graph, std::span<const DimName> names) {
  for (const DimName& wanted : names) {
    if (wanted.input >= graph.inputs.size()) {
      return invalid("name '", wanted.name, "': there is no input ", wanted.input, " of ", graph.inputs.size());
    }
    const Value& input = graph.value(graph.inputs[wanted.input]);
    const Shape& shape = input.type.shape;
    if (wanted.dim >= shape.size()) {
      return invalid("name '", wanted.name, "': input '", input.name, "' has no dimension ", wanted.dim,
                     ", its rank is ", shape.size());
    }
    if (shape[wanted.dim].symbol < 0) continue;
    Symbol& symbol = graph.symbols[static_cast<size_t>(shape[wanted.dim].symbol)];
    for (const Symbol& other : graph.symbols) {
      if (&other != &symbol && other.name == wanted.name) {
        return invalid("name '", wanted.name, "' for dimension ", wanted.dim, " of input '", input.name,
                       "' is that of another dimension");
      }
    }
    symbol.name = wanted.name;
  }
  return {};
}

/// One for each input of the graph, nothing where none is given.
Result<std::vector<std::optional<Tensor>>> match_examples(const Graph& graph,
                                                          const std::vector<std::pair<std::string, Tensor>>& given) {
  std::vector<std::optional<Tensor>> matched(graph.inputs.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const auto& [name, tensor] = given[i];
    size_t at = i;
    if (!name.empty()) {
      at = 0;
      while (at < graph.inputs.size() && graph.value(graph.inputs[at]).name != name) ++at;
    }
    const std::string label = name.empty() ? str_cat("example ", i) : str_cat("example '", name, "'");
    if (at >= graph.inputs.size()) {
      return invalid(label, ": there is no such input, the model takes ", graph.inputs.size());
    }
    const TensorType& type = graph.value(graph.inputs[at]).type;
    bool fits = tensor.type.dtype == type.dtype && tensor.type.rank() == type.rank() && tensor.type.concrete();
    for (size_t d = 0; fits && d < type.shape.size(); ++d) {
      fits = !type.shape[d].known() || type.shape[d] == tensor.type.shape[d];
    }
    if (!fits) {
      return invalid(label, " is ", to_string(tensor.type), ", the input takes ", to_string(type, graph.symbols));
    }
    if ((tensor.type.bytes() > 0 && !tensor.memory.host) ||
        tensor.memory.bytes < static_cast<size_t>(tensor.type.bytes())) {
      return invalid(label, ": it must have ", tensor.type.bytes(), " bytes of memory");
    }
    matched[at] = tensor;
    // The input's own type has the quantisation.
    matched[at]->type.quantization = type.quantization;
  }
  return matched;
}

/// Metadata of a program that say what its inputs and outputs are, beside their types.
bool describes_interface(std::string_view key) {
  return key.starts_with("stream.") || key.starts_with("streamed.") || key.starts_with("input.") ||
         key.starts_with("preprocessing.");
}

/// From an imported graph to a Model.
Result<Model> finish(Imported imported, std::string format, const LoadOptions& options,
                     std::shared_ptr<const CustomOps> custom,
                     std::shared_ptr<Model::Data> data = std::make_shared<Model::Data>()) {
  data->graph = std::move(imported.graph);
  data->notes = std::move(imported.notes);
  data->lent = std::move(imported.lent);
  data->format = std::move(format);
  data->custom = std::move(custom);
  data->ops = options.ops;
  for (const std::string& note : data->notes) PINNACE_LOG_INFO("note: ", note);
  PINNACE_TRY(name_dims(data->graph, options.dim_names));
  PINNACE_ASSIGN(std::vector<std::optional<Tensor>> examples, match_examples(data->graph, options.examples));
  return optimized(std::move(data), {options.disabled_passes, options.check_passes, 1, std::move(examples)});
}

/// That nobody wrote to what the graph borrows. Asked when it has been copied, so that the copy is known to be right.
Status check_lent(std::span<const LentBytes> lent) {
  for (const LentBytes& weight : lent) {
    PINNACE_ASSIGN(const uint64_t hash, hash_unless_stopped(weight.bytes, "the weights"));
    if (hash != weight.hash) {
      return invalid(weight.name, " was written to after the model was loaded: load it again");
    }
  }
  return {};
}

/// The program with what the back ends of `targets` pack for the declared shapes.
Result<Program> with_payloads(const Program& program, const BuildOptions& build, std::span<const TargetChoice> targets,
                              const Model::Data& model) {
  Options options;
  options.backends = build.backends;
  options.ops = model.ops;
  std::vector<std::shared_ptr<const Prepared>> all;  // keeps the bytes
  std::vector<Payload> payloads;
  // Each preparation has a budget of work of its own (AheadBudget), so that no payload depends on the other targets.
  for (const TargetChoice& target : targets) {
    PINNACE_ASSIGN(std::shared_ptr<const Prepared> prepared, Prepared::to_store(program, options, target));
    PINNACE_ASSIGN(const auto storable, prepared->data().packed.storable());
    for (const PackedConstants::Entry& e : storable) {
      // The CPU, which takes what the target does not, has others.
      if (e.target.substr(0, e.target.find(':')) != target.spec.backend) continue;
      const auto same = [&](const Payload& p) { return p.target == e.target && p.key == e.key; };
      if (std::none_of(payloads.begin(), payloads.end(), same)) payloads.push_back({e.target, e.key, e.bytes});
    }
    all.push_back(std::move(prepared));
  }
  PINNACE_ASSIGN(Buffer bytes, write_program(program.data().graph, program.data().metadata, payloads));
  return program_of("program", std::move(bytes), Verify::kFull);
}

/// `kind` is "input" or "output".
Status check_new_names(std::string_view kind, std::span<const std::string> names, size_t wanted) {
  if (names.size() != wanted) return invalid(names.size(), " names of ", kind, "s, the model has ", wanted);
  std::unordered_set<std::string_view> taken;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto controls = [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; };
    if (names[i].empty()) return invalid("the name of ", kind, " ", i, " is empty");
    if (std::any_of(names[i].begin(), names[i].end(), controls)) {
      return invalid("the name of ", kind, " ", i, " has a control character");
    }
    if (!taken.insert(names[i]).second) return invalid(kind, " name '", names[i], "' appears twice");
  }
  return {};
}

/// Values that are no inputs make room.
void name_inputs(Graph& graph, std::span<const std::string> names) {
  std::unordered_set<std::string> taken(names.begin(), names.end());
  std::vector<bool> renamed(graph.values.size());
  for (size_t i = 0; i < names.size(); ++i) {
    graph.value(graph.inputs[i]).name = names[i];
    renamed[static_cast<size_t>(graph.inputs[i])] = true;
  }
  std::vector<size_t> clashing;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!renamed[i] && !taken.insert(graph.values[i].name).second) clashing.push_back(i);
  }
  for (const size_t i : clashing) {
    std::string& name = graph.values[i].name;
    int64_t number = 1;
    while (!taken.insert(str_cat(name, "_", number)).second) ++number;
    name = str_cat(name, "_", number);
  }
}

}  // namespace

Result<Model> optimized(std::shared_ptr<Model::Data> data, const PassOptions& passes) {
  PINNACE_TRY(verify(data->graph));
  PINNACE_TRY(update_types(data->graph, data->custom->table()));
  const LogTime time;
  const size_t nodes_before = data->graph.nodes.size();
  const PassContext context{data->custom->table(), {}};
  PINNACE_ASSIGN(const std::vector<PassResult> results, run_passes(data->graph, context, passes));
  data->reports.clear();
  for (const PassResult& r : results) {
    data->reports.push_back({std::string(r.pass->name), r.changes, r.milliseconds, r.largest_error});
  }
  data->merged.insert(data->merged.end(), context.merged.begin(), context.merged.end());
  data->graph.compact();
  PINNACE_LOG_INFO("passes: ", nodes_before, " nodes became ", data->graph.nodes.size(), ", in ", time.text());
  data->inputs = specs(data->graph, data->graph.inputs, nullptr);
  data->outputs = specs(data->graph, data->graph.outputs, &data->graph.output_names);
  return Model(std::move(data));
}

Result<Model> Model::with_names(std::span<const std::string> inputs, std::span<const std::string> outputs) const {
  return exception_boundary([&]() -> Result<Model> {
    std::shared_ptr<Data> data = data_->clone();
    PINNACE_TRY(check_new_names("input", inputs, data->graph.inputs.size()));
    PINNACE_TRY(check_new_names("output", outputs, data->graph.outputs.size()));
    for (auto& [key, fact] : data->facts) {  // what an input is goes by its name
      if (key.starts_with("stream.")) return invalid("names are given before streamed(), whose states go by them");
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (key != str_cat("input.", data->graph.value(data->graph.inputs[i]).name)) continue;
        key = str_cat("input.", inputs[i]);
        break;
      }
    }
    name_inputs(data->graph, inputs);
    data->graph.output_names.assign(outputs.begin(), outputs.end());
    PINNACE_TRY(verify(data->graph));
    data->inputs = specs(data->graph, data->graph.inputs, nullptr);
    data->outputs = specs(data->graph, data->graph.outputs, &data->graph.output_names);
    return Model(std::move(data));
  });
}

std::vector<std::pair<std::string, std::string>> passes() {
  std::vector<std::pair<std::string, std::string>> list;
  for (const PassDef* p : all_passes()) list.emplace_back(p->name, p->summary);
  return list;
}

Result<std::string> Model::format_of(const std::string& path) {
  return exception_boundary([&]() -> Result<std::string> {
    PINNACE_ASSIGN(const std::string head, sniffed_bytes(path));
    return std::string(is_program(head) ? "pnc" : find_importer(head).format);
  });
}

Result<Model> Model::load(const std::string& path, const LoadOptions& options) {
  return exception_boundary([&]() -> Result<Model> {
    const AheadBudget budget;
    PINNACE_TRY(check_pass_names(options.disabled_passes));
    PINNACE_ASSIGN(std::shared_ptr<const CustomOps> custom, CustomOps::create(options.ops));
    PINNACE_ASSIGN(const std::string head, sniffed_bytes(path));
    if (is_program(head)) {
      // A program was optimised when it was made; running the passes again would change what its metadata vouch for.
      PINNACE_ASSIGN(Program program, Program::open(path, Verify::kFull));
      LoadOptions as_is = options;
      as_is.disabled_passes = {"all"};
      auto data = std::make_shared<Model::Data>();
      for (const auto& fact : program.metadata()) {
        if (describes_interface(fact.first)) data->facts.push_back(fact);
      }
      return finish({program.data().graph.clone()}, "pnc", as_is, std::move(custom), std::move(data));
    }
    const Importer& importer = find_importer(head);
    const LogTime time;
    PINNACE_ASSIGN(Imported imported, importer.import(path, {options.symbols, options.model_name, custom->table(),
                                                             options.separate_dims}));
    PINNACE_LOG_INFO("imported '", path, "' (", importer.format, "): ", imported.graph.nodes.size(), " nodes, in ",
                     time.text());
    return finish(std::move(imported), std::string(importer.format), options, std::move(custom));
  });
}

Result<Model> Model::load_torch_program(const TorchProgram& source, const LoadOptions& options) {
  return exception_boundary([&]() -> Result<Model> {
    const AheadBudget budget;
    PINNACE_TRY(check_pass_names(options.disabled_passes));
    PINNACE_ASSIGN(std::shared_ptr<const CustomOps> custom, CustomOps::create(options.ops));
    const LogTime time;
    PINNACE_ASSIGN(Imported imported,
                   import_torch_program(
                       source, {.symbols = options.symbols, .model_name = options.model_name, .ops = custom->table()}));
    PINNACE_LOG_INFO("imported ", source.name, " (pt2): ", imported.graph.nodes.size(), " nodes, in ", time.text());
    return finish(std::move(imported), "pt2", options, std::move(custom));
  });
}

Result<Model> Model::load_torch_nnapi(const TorchNnapiModel& source, const LoadOptions& options) {
  return exception_boundary([&]() -> Result<Model> {
    const AheadBudget budget;
    PINNACE_TRY(check_pass_names(options.disabled_passes));
    PINNACE_ASSIGN(std::shared_ptr<const CustomOps> custom, CustomOps::create(options.ops));
    PINNACE_ASSIGN(Imported imported, import_torch_nnapi(source, {.symbols = options.symbols, .ops = custom->table()}));
    return finish(std::move(imported), "nnapi", options, std::move(custom));
  });
}

Result<Model> Model::parse(std::string_view text, const LoadOptions& options) {
  return exception_boundary([&]() -> Result<Model> {
    const AheadBudget budget;
    PINNACE_TRY(check_pass_names(options.disabled_passes));
    PINNACE_ASSIGN(std::shared_ptr<const CustomOps> custom, CustomOps::create(options.ops));
    PINNACE_ASSIGN(Graph graph, pinnace::parse(text));
    return finish({std::move(graph)}, "text", options, std::move(custom));
  });
}

std::span<const TensorSpec> Model::inputs() const {
  return data_->inputs;
}
std::span<const TensorSpec> Model::outputs() const {
  return data_->outputs;
}
std::span<const Symbol> Model::symbols() const {
  return data_->graph.symbols;
}
std::vector<NodeInfo> Model::nodes() const {
  return node_infos(data_->graph);
}
std::vector<TensorSpec> Model::constants() const {
  return constant_specs(data_->graph);
}
std::string Model::text(size_t max_constant_bytes) const {
  return print(data_->graph, max_constant_bytes);
}
std::span<const std::string> Model::notes() const {
  return data_->notes;
}
std::span<const PassReport> Model::pass_reports() const {
  return data_->reports;
}
std::span<const std::pair<std::string, std::string>> Model::merged() const {
  return data_->merged;
}
const std::string& Model::format() const {
  return data_->format;
}

Result<Program> Model::build(const BuildOptions& options) const {
  return exception_boundary([&]() -> Result<Program> {
    const LogTime time;
    std::string targets;
    std::vector<TargetChoice> storing;
    for (const std::string& target : options.targets) {
      PINNACE_ASSIGN(TargetChoice choice, find_target(target, "fp32", options.backends));
      if (choice.backend->stores_payloads(choice.spec)) storing.push_back(std::move(choice));
      targets += str_cat(targets.empty() ? "" : ",", target);
    }
    if (options.targets.empty()) return invalid("build needs at least one target");
    std::vector<std::pair<std::string, std::string>> metadata = options.metadata;
    metadata.insert(metadata.end(), data_->facts.begin(), data_->facts.end());
    metadata.emplace_back("producer", str_cat("pinnace ", PINNACE_VERSION));
    metadata.emplace_back("source.format", data_->format);
    metadata.emplace_back("targets", targets);
    PINNACE_ASSIGN(Buffer bytes, write_program(data_->graph, std::move(metadata), {}));
    PINNACE_TRY(check_lent(data_->lent));
    PINNACE_ASSIGN(Program program, program_of("program", std::move(bytes), Verify::kFull));
    if (!storing.empty()) {
      PINNACE_ASSIGN(program, with_payloads(program, options, storing, *data_));
    }
    PINNACE_LOG_INFO("built for ", targets, ": ", program.data().file.size(), " bytes, ",
                     program.data().payloads.size(), " payloads, in ", time.text());
    return program;
  });
}

}  // namespace pinnace
