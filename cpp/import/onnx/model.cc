// import_onnx: opens the file, checks what holds for the whole model, and puts the graph together.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <unordered_set>

#include "base/files/mapped_file.h"
#include "base/files/open_file.h"
#include "base/utf8.h"
#include "import/onnx/dynamic_ranks.h"
#include "import/onnx/wire_cost.h"
#include "ops/work.h"

namespace pinnace {
namespace onnx {
namespace {
// Newest forms of operators that the mappings know.
constexpr int64_t kNewestOpset = 28;
constexpr int64_t kNewestIr = 14;
// protobuf's own limit.
constexpr int64_t kMaxFileBytes = INT32_MAX;
// Dynamic dimensions that are tried as 1 for the sake of one rank, each of which costs an import.
constexpr size_t kMostReadings = 4;
// How far calls and loops may multiply the nodes of a file.
constexpr int64_t kExtraNodes = 100'000;

template <class... Parts>
Status corrupt(const char* rule, const Parts&... parts) {
  return Status(Code::kCorruptFile, str_cat(parts...)).with_rule(rule);
}

Result<Buffer> read_file(const std::string& path) {
  PINNACE_ASSIGN(const RegularFile file, open_regular(path));
  if (file.bytes > kMaxFileBytes) {
    return corrupt("O-1", path, ": ", file.bytes, " bytes, an ONNX model has at most ", kMaxFileBytes);
  }
  PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(file.bytes), path));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::read(file.descriptor.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read", path, errno);
    if (got == 0) return Status(Code::kFile, str_cat(path, ": became shorter while it was read"));
    done += static_cast<size_t>(got);
  }
  return bytes;
}

Result<std::unique_ptr<proto::ModelProto>> parse_model(const std::string& path) {
  PINNACE_ASSIGN(const Buffer bytes, read_file(path));
  const auto size = static_cast<int64_t>(bytes.size());
  PINNACE_ASSIGN(const int64_t cost, wire_cost({bytes.data(), bytes.size()}));
  if (cost > 16 * size + (int64_t{64} << 20)) {
    return corrupt("O-2", "its ", size, " bytes would take ", cost, " bytes of memory, more than 16 times the file");
  }
  auto model = std::make_unique<proto::ModelProto>();
  if (!model->ParseFromArray(bytes.data(), static_cast<int>(size))) return corrupt("O-1", "not an ONNX model");
  return model;
}

int64_t count_nodes(const google::protobuf::RepeatedPtrField<proto::NodeProto>& nodes) {
  int64_t count = nodes.size();
  for (const auto& node : nodes) {
    for (const auto& a : node.attribute()) count += a.has_g() ? count_nodes(a.g().node()) : 0;
  }
  return count;
}

/// Versions of the format and of the operators.
Result<Opsets> versions_of(const proto::ModelProto& model) {
  if (!model.has_graph()) return corrupt("O-1", "not an ONNX model: it has no graph");
  if (model.ir_version() < 1) return corrupt("O-3", "format version ", model.ir_version());
  if (model.ir_version() > kNewestIr) {
    return unsupported("format version ", model.ir_version(), " is newer than ", kNewestIr,
                       ", the newest that this build knows");
  }
  Opsets opsets;
  for (const auto& set : model.opset_import()) opsets[canonical_domain(set.domain())] = set.version();
  if (!opsets.contains("")) {
    if (model.opset_import_size() == 0 && model.ir_version() >= 3) return corrupt("O-3", "no opset is named");
    opsets[""] =
        model.ir_version() < 3 ? 1 : kNewestOpset;  // a model of functions or of an application's operators only
  }
  const int64_t opset = opsets[""];
  if (opset > kNewestOpset) {
    return unsupported("opset ", opset, " is newer than ", kNewestOpset, ", the newest that this build knows");
  }
  if (opset < 1) return corrupt("O-3", "opset ", opset);
  return opsets;
}

/// Names that writers put where they know nothing of a dimension.
bool says_nothing(std::string_view name) {
  for (std::string_view empty : {"", "?", "*", "-1", "None", "none", "unk", "unknown"}) {
    if (name == empty) return true;
  }
  return name.starts_with("unk__");
}

/// The graph's dynamic dimensions, by the source's names. A name that says nothing, or that the caller wants separate,
/// is no name: each of its occurrences is a dimension of its own, called after its input and place.
class Symbols {
 public:
  Symbols(const proto::GraphProto& source, Graph& graph, std::span<const Symbol> overrides,
          std::span<const std::string> separate)
      : graph_(graph), overrides_(overrides), separate_(separate) {
    for (const auto& input : source.input()) {
      for (const auto& d : input.type().tensor_type().shape().dim()) {
        if (d.has_dim_param()) taken_.insert(d.dim_param());
      }
    }
  }

  /// Dimension `place` of an input, which has `name` there.
  Dim dim(const std::string& name, const std::string& input, int place) {
    const bool wanted =
        std::any_of(separate_.begin(), separate_.end(), [&](const std::string& s) { return s.empty() || s == name; });
    const bool overridden =
        std::any_of(overrides_.begin(), overrides_.end(), [&](const Symbol& o) { return o.name == name; });
    if (!wanted && (overridden || !says_nothing(name))) return shared(name);
    std::string own = str_cat(input, "_dim", place);
    while (taken_.contains(own)) own += '_';
    taken_.insert(own);
    if (!name.empty()) apart_[name] += str_cat(apart_[name].empty() ? "" : ", ", own);
    return shared(own);
  }

  /// One sentence for each name that was not taken for one.
  void note(std::vector<std::string>& notes) const {
    for (const auto& [name, own] : apart_) {
      notes.push_back(str_cat("Dimensions named '", name, "' are taken for ones that may differ: ", own, "."));
    }
  }

  Status check_overrides() const {
    for (const Symbol& o : overrides_) {
      if (o.min < 0 || o.max < o.min || o.multiple_of < 1) {
        return invalid("dimension '", o.name, "': range ", o.min, " to ", o.max, ", multiple of ", o.multiple_of);
      }
      if (std::find(used_.begin(), used_.end(), o.name) != used_.end()) continue;
      std::string names;
      for (const Symbol& s : graph_.symbols) names += str_cat(names.empty() ? "" : ", ", s.name);
      return invalid("the model has no dynamic dimension '", o.name, "', it has ", names.empty() ? "none" : names);
    }
    return {};
  }

 private:
  Dim shared(const std::string& name) {
    for (const Symbol& o : overrides_) {
      if (o.name == name && o.min == o.max) return used(o), Dim(o.min);
    }
    const auto [at, fresh] = indices_.emplace(name, static_cast<int32_t>(graph_.symbols.size()));
    if (!fresh) return Dim::of_symbol(at->second);
    Symbol symbol{name};
    for (const Symbol& o : overrides_) {
      if (o.name == name) symbol = o, used(o);
    }
    graph_.symbols.push_back(symbol);
    return Dim::of_symbol(static_cast<int32_t>(graph_.symbols.size() - 1));
  }

  void used(const Symbol& o) { used_.push_back(o.name); }
  Graph& graph_;
  std::span<const Symbol> overrides_;
  std::span<const std::string> separate_;
  std::set<std::string> taken_;               ///< names of the source, and those given here
  std::map<std::string, std::string> apart_;  ///< by a name that is none: the dimensions that have it
  std::vector<std::string> used_;
  std::unordered_map<std::string, int32_t> indices_;
};

/// The type of a graph input.
Result<TensorType> input_type(const proto::ValueInfoProto& input, Symbols& symbols) {
  const auto& type = input.type();
  if (!type.has_tensor_type()) {
    return refuse("only tensors can be inputs", type.has_sequence_type()        ? "a sequence"
                                                : type.has_optional_type()      ? "an optional value"
                                                : type.has_map_type()           ? "a map"
                                                : type.has_sparse_tensor_type() ? "a sparse tensor"
                                                                                : "without a type");
  }
  const auto dtype = dtype_of(type.tensor_type().elem_type());
  if (!dtype) return refuse("element type is not supported", data_type_text(type.tensor_type().elem_type()));
  if (!type.tensor_type().has_shape()) return refuse("the number of dimensions must be known");
  const auto& shape = type.tensor_type().shape();
  if (shape.dim_size() > kMaxRank)
    return refuse(str_cat("at most ", kMaxRank, " dimensions"), str_cat(shape.dim_size()));
  TensorType result{*dtype, {}, nullptr};
  for (int i = 0; i < shape.dim_size(); ++i) {
    const auto& d = shape.dim(i);
    if (d.has_dim_value() && d.dim_value() >= 0) {
      result.shape.push_back(d.dim_value());
    } else if (d.has_dim_value() && d.dim_value() < -1) {
      return refuse("dimensions must not be negative", str_cat(d.dim_value()));
    } else {  // -1 is how some writers spell a dynamic dimension
      result.shape.push_back(symbols.dim(d.dim_param(), input.name(), i));
    }
  }
  int64_t bits = dtype_bits(*dtype);
  for (const Dim& d : result.shape) {
    if (d.known() && d.size > 0 && bits > INT64_MAX / 16 / d.size)
      return refuse("larger than memory can be", to_string(result));
    bits *= d.known() && d.size > 0 ? d.size : 1;
  }
  return result;
}

Status import_inputs(Scope& scope, const proto::GraphProto& graph, Symbols& symbols) {
  Import& import = scope.builder.import;
  int defaults = 0;
  std::unordered_set<std::string_view> initialised;
  for (const auto& t : graph.initializer()) initialised.insert(t.name());
  for (const auto& t : graph.sparse_initializer()) initialised.insert(t.values().name());
  for (const auto& input : graph.input()) {
    if (scope.names.contains(input.name())) {
      if (!initialised.contains(input.name())) return corrupt("O-21", "input '", input.name(), "' is defined twice");
      ++defaults;
      continue;
    }
    auto type = input_type(input, symbols);
    if (!type.ok()) {
      const NodeProblem& p = type.status().nodes()[0];
      import.refuse(input.name(), "input", {}, p.rule, p.value);
      PINNACE_TRY(scope.define(input.name(), kPoisoned));
      continue;
    }
    PINNACE_TRY(scope.define(input.name(), scope.builder.add_input(input.name(), std::move(*type))));
  }
  if (defaults) {
    import.notes.push_back(str_cat(defaults, " inputs have initialisers: they are constants of the imported model."));
  }
  return {};
}

Status import_outputs(Scope& scope, const proto::GraphProto& graph) {
  Import& import = scope.builder.import;
  for (const auto& output : graph.output()) {
    PINNACE_ASSIGN(const ValueId id, scope.find(output.name(), "the graph"));
    if (id == kNoValue) return corrupt("O-20", "an output has no name");
    if (id == kPoisoned) continue;
    if (is_listed(id)) {
      import.refuse(output.name(), "output", {}, kOnlyTensorsLeave,
                    import.list(id).optional ? "an optional value" : "a sequence");
      continue;
    }
    const auto dtype = dtype_of(output.type().tensor_type().elem_type());
    if (output.type().has_tensor_type() && dtype && *dtype != scope.builder.type(id).dtype) {
      import.refuse(output.name(), "output", {}, str_cat("is declared as ", dtype_name(*dtype)),
                    to_string(scope.builder.type(id)));
    }
    scope.builder.graph.add_output(output.name(), id);
  }
  return {};
}

Status summary(const Import& import) {
  constexpr size_t kShown = 5;
  const auto failed = static_cast<int64_t>(import.problems.size());
  std::string text = str_cat(failed, " of ", std::max(import.nodes, failed), " nodes cannot be imported");
  for (size_t i = 0; i < std::min(kShown, import.problems.size()); ++i) {
    const NodeProblem& p = import.problems[i];
    text += "\n  " + printable(str_cat(p.op, " '", p.node, "'", p.source.empty() ? "" : str_cat(" (", p.source, ")"),
                                       ": ", p.rule, p.value.empty() ? "" : str_cat(": ", p.value)));
  }
  if (import.problems.size() > kShown) text += str_cat("\n  and ", import.problems.size() - kShown, " more");
  return Status(Code::kConversion, std::move(text)).with_nodes(import.problems);
}

/// How an import came to one rank for each value.
struct OpenRanks {
  std::vector<std::pair<std::string, std::string>> at_least_two = {};  ///< as in Import
  bool contradicted = false;  ///< an output has another rank than the file declares
};

Result<Imported> import_model(proto::ModelProto& model, Folder folder, const ImportOptions& options, OpenRanks& ranks) {
  Import import{options, ExternalData(std::move(folder)), {}, {}, {}, 0, 0, kSparseBytes, {}, 0};
  Frame frame;
  PINNACE_ASSIGN(frame.opsets, versions_of(model));
  import.node_limit = kExtraNodes + count_nodes(model.graph().node());
  for (const auto& f : model.functions()) {
    if (!import.functions.emplace(function_key(f.domain(), f.name(), f.overload()), &f).second) {
      return corrupt("O-21", "function '", f.domain(), ".", f.name(), "' is defined twice");
    }
  }
  if (model.training_info_size()) import.notes.push_back("Training information is ignored.");
  if (model.graph().quantization_annotation_size()) import.notes.push_back("Quantisation annotations are ignored.");
  GraphBuilder builder(import);
  import.symbols = &builder.graph.symbols;
  builder.graph.name = model.graph().name();
  Scope scope{builder, frame, nullptr, {}};
  Symbols symbols(model.graph(), builder.graph, options.symbols, options.separate_dims);
  PINNACE_TRY(import_initializers(scope, model.graph()));
  // The bytes are in constants now; clear() would keep the string's memory.
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) {
    std::unique_ptr<std::string> bytes(tensor.release_raw_data());
  }
  for (auto& sparse : *model.mutable_graph()->mutable_sparse_initializer()) {
    std::unique_ptr<std::string> bytes(sparse.mutable_values()->release_raw_data());
    std::unique_ptr<std::string> places(sparse.mutable_indices()->release_raw_data());
  }
  PINNACE_TRY(import_inputs(scope, model.graph(), symbols));
  PINNACE_TRY(symbols.check_overrides());
  symbols.note(import.notes);
  PINNACE_TRY(import_nodes(scope, model.graph().node(), names_of(model.graph().output())));
  PINNACE_TRY(import_outputs(scope, model.graph()));
  ranks = {import.at_least_two, ranks_contradict(builder, model.graph())};
  if (!import.problems.empty()) return summary(import);
  settle_names(builder.graph, builder.names);
  note_at_least_two(import, import.notes);
  builder.graph.compact();
  const Status verified = verify(builder.graph);
  if (!verified.ok()) return Status(Code::kCorruptFile, verified.message()).with_rule(verified.rule());
  return Imported{std::move(builder.graph), std::move(import.notes)};
}
}  // namespace
}  // namespace onnx

bool is_any_file(std::string_view) {
  return true;
}

Result<Imported> import_onnx(const std::string& path, const ImportOptions& options) {
  const AheadBudget budget;
  const auto import = [&](const ImportOptions& with, onnx::OpenRanks& ranks) -> Result<Imported> {
    auto model = onnx::parse_model(path);
    if (!model.ok())
      return model.status().code() == Code::kFile ? model.status() : model.status().with_prefix(path + ": ");
    PINNACE_ASSIGN(Folder folder, Folder::of_file(path));
    auto imported = onnx::import_model(**model, std::move(folder), with, ranks);
    if (!imported.ok()) return imported.status().with_prefix(path + ": ");
    return imported;
  };
  onnx::OpenRanks ranks;
  Result<Imported> imported = import(options, ranks);
  if (ranks.at_least_two.empty() || (imported.ok() && !ranks.contradicted)) return imported;
  if (!imported.ok() && imported.status().code() != Code::kConversion) return imported;
  // Other readings, where one agrees with more of the file: one of these dimensions is 1, or all are.
  std::vector<std::vector<std::pair<std::string, std::string>>> readings;
  for (const auto& dim : ranks.at_least_two) readings.push_back({dim});
  if (readings.size() > onnx::kMostReadings) readings.resize(onnx::kMostReadings);
  if (ranks.at_least_two.size() > 1) readings.push_back(ranks.at_least_two);
  for (const auto& ones : readings) {
    ImportOptions with = options;
    for (const auto& [name, squeeze] : ones) with.symbols.push_back({name, 1, 1});
    onnx::OpenRanks other_ranks;
    Result<Imported> other = import(with, other_ranks);
    if (!other.ok() && other.status().code() != Code::kConversion) return other;
    if (!other.ok() || other_ranks.contradicted) continue;
    onnx::note_ones(ones, other->notes);
    return other;
  }
  return imported;
}

}  // namespace pinnace
