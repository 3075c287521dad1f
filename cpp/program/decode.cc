// The FlatBuffers verifier and the bound on memory (F-15, F-16, F-18), then graphs with their values, nodes and states
// (F-34 to F-42), then the manifest (F-43 to F-47).
#include "program/decode.h"

#include <algorithm>
#include <tuple>

#include "base/cancel.h"
#include "base/utf8.h"
#include "program/decode_types.h"
#include "program/footprint.h"

namespace pinnace {
namespace {

/// Every table, list and string lies in the section and is aligned; how many there are is bounded by its size.
template <class Root>
Result<const Root*> flatbuffer_root(const FileView& file, const Container& container, SectionKind kind) {
  const SectionEntry& section = container.only(kind);
  const auto bytes = container.bytes(section);
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  flatbuffers::Verifier::Options limits;
  limits.max_depth = 8;  // Model, Graph, Node, Attr
  // A table takes 4 bytes and 4 more where it is referred to; more tables than that are one table many times.
  limits.max_tables = static_cast<flatbuffers::uoffset_t>(std::min<uint64_t>(bytes.size() / 8 + 1, INT32_MAX));
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE ||
      !flatbuffers::Verifier(data, bytes.size(), limits).VerifyBuffer<Root>(nullptr)) {
    return file.corrupt(section.offset, "F-15", "section '", section_name(kind), "' of ", bytes.size(),
                        " bytes is not a well-formed FlatBuffer");
  }
  return flatbuffers::GetRoot<Root>(data);
}

class GraphDecoder {
 public:
  GraphDecoder(const RootLists& lists, const format::Model& model)
      : lists_(lists), file_(lists.file()), model_(model), graphs_(model.graphs()->size()), depth_(graphs_.size(), 0) {}

  Result<Graph> run() {
    for (auto& graph : graphs_) graph = std::make_shared<Graph>();
    for (index_ = 0; index_ < graphs_.size(); ++index_) {
      const format::Graph& from = *model_.graphs()->Get(index_);
      if (index_ > 0 && depth_[index_] == 0) {
        return file_.corrupt(file_.offset_of(&from), "F-40", "graph ", index_, " is nested in no node");
      }
      PINNACE_TRY(graph(from, *graphs_[index_]));
    }
    graphs_[0]->symbols = lists_.symbols;
    return std::move(*graphs_[0]);
  }

 private:
  Status graph(const format::Graph& from, Graph& to) {
    PINNACE_ASSIGN(to.name, lists_.string(from.name(), &from, "the name of a graph"));
    const uint32_t values = list_size(from.values());
    to.values.reserve(values);
    for (uint32_t i = 0; i < values; ++i) PINNACE_TRY(value(*from.values()->Get(i), i, to));
    PINNACE_ASSIGN(to.inputs, ids(from.inputs(), to, &from, "input", false));
    PINNACE_ASSIGN(to.outputs, ids(from.outputs(), to, &from, "output", false));
    if (list_size(from.output_names()) != to.outputs.size()) {
      return file_.corrupt(file_.offset_of(&from), "F-41", "graph '", to.name, "' has ", to.outputs.size(),
                           " outputs and ", list_size(from.output_names()), " names for them");
    }
    to.output_names.reserve(to.outputs.size());
    for (uint32_t i = 0; i < to.outputs.size(); ++i) {
      PINNACE_ASSIGN(std::string name, lists_.string(from.output_names()->Get(i), &from, "the name of an output"));
      to.output_names.push_back(std::move(name));
    }
    to.states.reserve(list_size(from.states()));
    for (uint32_t i = 0; i < list_size(from.states()); ++i) PINNACE_TRY(state(*from.states()->Get(i), to));
    to.nodes.reserve(list_size(from.nodes()));
    for (uint32_t i = 0; i < list_size(from.nodes()); ++i) {
      PINNACE_TRY(check_stopped("the reading of a program"));
      to.nodes.push_back(std::make_unique<Node>());
      PINNACE_TRY(node(*from.nodes()->Get(i), to, *to.nodes.back()));
    }
    return {};
  }

  Status value(const format::Value& from, uint32_t i, Graph& to) {
    Value v;
    PINNACE_ASSIGN(v.name, lists_.string(from.name(), &from, "the name of a tensor"));
    std::string label = str_cat("tensor ", i, " '", v.name, "'");
    if (index_ > 0) label += str_cat(" of graph ", index_);
    PINNACE_ASSIGN(v.type, lists_.type(from, label));
    if (from.constant()) {
      PINNACE_ASSIGN(v.constant, lists_.constant(*from.constant(), from.hash(), v.type, label));
    }
    to.values.push_back(std::move(v));
    return {};
  }

  /// F-34: every value id is in range; -1, a left-out input, only where it is allowed.
  Result<std::vector<ValueId>> ids(const flatbuffers::Vector<int32_t>* from, const Graph& graph, const void* place,
                                   std::string_view what, bool may_lack) {
    PINNACE_ASSIGN(const auto list, lists_.list(from, "a list of tensors"));
    for (int32_t id : list) PINNACE_TRY(check_id(id, graph, place, what, may_lack));
    return std::vector<ValueId>(list.begin(), list.end());
  }
  Status check_id(int32_t id, const Graph& graph, const void* place, std::string_view what, bool may_lack) {
    if (id == kNoValue && may_lack) return {};
    if (id >= 0 && static_cast<size_t>(id) < graph.values.size()) return {};
    return file_.corrupt(file_.offset_of(place), "F-34", what, " is tensor ", id, ", graph '", graph.name, "' has ",
                         graph.values.size());
  }

  Status state(const format::State& from, Graph& to) {
    State s;
    PINNACE_ASSIGN(s.name, lists_.string(from.name(), &from, "the name of a state"));
    PINNACE_TRY(check_id(from.input(), to, &from, "the input of a state", false));
    PINNACE_TRY(check_id(from.output(), to, &from, "the output of a state", false));
    s.input = from.input();
    s.output = from.output();
    PINNACE_ASSIGN(s.initial, lists_.constant(*from.initial(), from.hash(), to.value(s.input).type,
                                              str_cat("state '", s.name, "'")));
    to.states.push_back(std::move(s));
    return {};
  }

  Status node(const format::Node& from, const Graph& graph, Node& to) {
    PINNACE_ASSIGN(to.name, lists_.string(from.name(), &from, "the name of a node"));
    if (from.op() >= lists_.operators.size()) {
      return file_.corrupt(file_.offset_of(&from), "F-35", "node '", to.name, "' has operator ", from.op(),
                           ", the file has ", lists_.operators.size());
    }
    to.op = lists_.operators[from.op()].name;
    to.version = lists_.operators[from.op()].version;
    PINNACE_ASSIGN(to.inputs, ids(from.inputs(), graph, &from, "an input of a node", true));
    PINNACE_ASSIGN(to.outputs, ids(from.outputs(), graph, &from, "an output of a node", false));
    PINNACE_ASSIGN(to.source.file, lists_.string(from.file(), &from, "the source file of a node"));
    PINNACE_ASSIGN(to.source.module, lists_.string(from.module_path(), &from, "the module of a node"));
    if (from.line() < 0) {
      return file_.corrupt(file_.offset_of(&from), "F-36", "node '", to.name, "' is from line ", from.line());
    }
    to.source.line = from.line();
    to.attrs.reserve(list_size(from.attrs()));
    for (uint32_t i = 0; i < list_size(from.attrs()); ++i) PINNACE_TRY(attr(*from.attrs()->Get(i), to));
    return {};
  }

  Status attr(const format::Attr& from, Node& to) {
    PINNACE_ASSIGN(std::string name, lists_.string(from.name(), &from, "the name of an attribute"));
    const auto fail = [&](std::string_view rule, const auto&... parts) {
      return file_.corrupt(file_.offset_of(&from), rule, "attribute '", name, "' of node '", to.name, "' ", parts...);
    };
    const auto kind = static_cast<AttrKind>(from.kind());
    if (from.kind() > format::AttrKind::MAX) return fail("F-37", "is of kind ", static_cast<int>(from.kind()));
    PINNACE_ASSIGN(const auto ints, lists_.list(from.ints(), "a list of ints"));
    PINNACE_ASSIGN(const auto floats, lists_.list(from.floats(), "a list of floats"));
    PINNACE_ASSIGN(const auto strings, lists_.list(from.strings(), "a list of strings"));
    const bool of_ints = kind == AttrKind::kInt || kind == AttrKind::kInts;
    const bool of_floats = kind == AttrKind::kFloat || kind == AttrKind::kFloats;
    const bool of_strings = kind == AttrKind::kString || kind == AttrKind::kStrings;
    const size_t count = of_ints ? ints.size() : of_floats ? floats.size() : strings.size();
    const bool single = kind == AttrKind::kInt || kind == AttrKind::kFloat || kind == AttrKind::kString;
    if ((single && count != 1) || (!of_ints && !ints.empty()) || (!of_floats && !floats.empty()) ||
        (!of_strings && !strings.empty()) || (kind != AttrKind::kGraph && from.graph() != 0)) {
      return fail("F-38", "is of kind ", attr_kind_name(kind), " and holds ", ints.size(), " ints, ", floats.size(),
                  " floats, ", strings.size(), " strings and graph ", from.graph());
    }
    std::vector<std::string> texts;
    texts.reserve(strings.size());
    for (uint32_t index : strings) {
      PINNACE_ASSIGN(std::string text, lists_.string(index, &from, "a string of an attribute"));
      texts.push_back(std::move(text));
    }
    Attr value;
    switch (kind) {
      case AttrKind::kInt:
        value = ints[0];
        break;
      case AttrKind::kFloat:
        value = floats[0];
        break;
      case AttrKind::kString:
        value = std::move(texts[0]);
        break;
      case AttrKind::kInts:
        value = std::vector<int64_t>(ints.begin(), ints.end());
        break;
      case AttrKind::kFloats:
        value = std::vector<double>(floats.begin(), floats.end());
        break;
      case AttrKind::kStrings:
        value = std::move(texts);
        break;
      case AttrKind::kGraph: {
        // Nested graphs come later in the list and belong to one node each: so they are a tree, without looking
        // further.
        const uint32_t nested = from.graph();
        if (nested <= index_ || nested >= graphs_.size() || depth_[nested] != 0) {
          return fail("F-39", "is graph ", nested, " in graph ", index_, "; it must come later, be one of the file's ",
                      graphs_.size(), " and belong to no other node");
        }
        depth_[nested] = depth_[index_] + 1;
        if (depth_[nested] > kMaxGraphDepth) {
          return fail("F-42", "is a graph nested ", depth_[nested], " deep, at most ", kMaxGraphDepth);
        }
        value = graphs_[nested];
      }
    }
    to.attrs.emplace_back(std::move(name), std::move(value));
    return {};
  }

  const RootLists& lists_;
  const FileView& file_;
  const format::Model& model_;
  std::vector<GraphPtr> graphs_;
  std::vector<int> depth_;  // 0: the model, or a graph that no node has claimed yet
  uint32_t index_ = 0;      // of the graph that is being decoded
};

/// Probes for what the graph will take: its containers cannot report that there is no memory, a Buffer can.
Status reserve(uint64_t bytes) {
  if (bytes < (1 << 20)) return {};
  return Buffer::allocate(bytes, "the graph of a program").status();
}

}  // namespace

Result<DecodedGraph> decode_graph(const FileView& file, const Container& container, std::shared_ptr<const void> owner) {
  PINNACE_ASSIGN(const format::Model* model, flatbuffer_root<format::Model>(file, container, SectionKind::kGraph));
  const uint64_t at = container.only(SectionKind::kGraph).offset;
  if (model->graphs()->size() == 0) return file.corrupt(at, "F-16", "there is no graph");
  const uint64_t allowed = footprint_allowance(file.bytes.size(), container.only(SectionKind::kManifest).bytes);
  const uint64_t needed = graph_footprint(*model, allowed);
  if (needed > allowed) {
    return file.corrupt(at, "F-18", "the graph takes more memory than the ", allowed, " bytes that a file of ",
                        file.bytes.size(), " may");
  }
  PINNACE_TRY(reserve(needed));
  RootLists lists(file, container, *model, std::move(owner));
  PINNACE_TRY(lists.read());
  PINNACE_ASSIGN(Graph graph, GraphDecoder(lists, *model).run());
  return DecodedGraph{std::move(graph), std::move(lists.operators), lists.unhashed()};
}

Result<Manifest> decode_manifest(const FileView& file, const Container& container) {
  PINNACE_ASSIGN(const format::Manifest* from,
                 flatbuffer_root<format::Manifest>(file, container, SectionKind::kManifest));
  Manifest manifest;
  uint64_t left = file.bytes.size();
  const auto text = [&](const flatbuffers::String* s) -> Result<std::string> {
    if (s->size() > left)
      return file.corrupt(file.offset_of(s), "F-19", "texts of the manifest are longer than the file");
    left -= s->size();
    const std::string_view view(s->c_str(), s->size());
    if (!is_utf8(view)) return file.corrupt(file.offset_of(s), "F-20", "a text of the manifest is not UTF-8");
    return std::string(view);
  };
  if (list_size(from->facts()) > kMaxFacts) {
    return file.corrupt(file.offset_of(from), "F-43", list_size(from->facts()), " metadata are too many, at most ",
                        kMaxFacts);
  }
  for (uint32_t i = 0; i < list_size(from->facts()); ++i) {
    const format::Fact& fact = *from->facts()->Get(i);
    PINNACE_ASSIGN(std::string key, text(fact.key()));
    PINNACE_ASSIGN(std::string value, text(fact.value()));
    const uint64_t at = file.offset_of(&fact);
    if (const Status status = check_fact(key, value); !status.ok()) return file.corrupt(at, "F-44", status.message());
    if (i > 0 && key <= manifest.metadata.back().first) {
      return file.corrupt(at, "F-45", "metadata '", key, "' follows '", manifest.metadata.back().first,
                          "'; keys ascend");
    }
    manifest.metadata.emplace_back(std::move(key), std::move(value));
  }
  std::vector<bool> claimed(container.sections.size(), false);
  for (uint32_t i = 0; i < list_size(from->payloads()); ++i) {
    const format::Payload& p = *from->payloads()->Get(i);
    Payload payload;
    PINNACE_ASSIGN(payload.target, text(p.target()));
    PINNACE_ASSIGN(payload.key, text(p.key()));
    const uint64_t at = file.offset_of(&p);
    if (p.section() >= claimed.size() || container.sections[p.section()].kind != SectionKind::kPayload ||
        claimed[p.section()]) {
      return file.corrupt(at, "F-46", "payload '", payload.key, "' for ", payload.target, " is section ", p.section(),
                          ", which is not a payload of its own");
    }
    claimed[p.section()] = true;
    const SectionEntry& section = container.sections[p.section()];
    payload.bytes = container.bytes(section);
    payload.stored =
        container.verify == Verify::kOnUse
            ? std::make_shared<const StoredBytes>(container.stored, payload.bytes, section.hash, "a payload", "F-13")
            : std::make_shared<const StoredBytes>(container.stored, payload.bytes);
    if (i > 0 && std::tie(payload.target, payload.key) <=
                     std::tie(manifest.payloads.back().target, manifest.payloads.back().key)) {
      return file.corrupt(at, "F-45", "payload '", payload.key, "' for ", payload.target,
                          " is out of order; targets and keys ascend");
    }
    manifest.payloads.push_back(std::move(payload));
    manifest.payload_sections.push_back(p.section());
  }
  for (size_t i = 0; i < claimed.size(); ++i) {
    if (container.sections[i].kind != SectionKind::kPayload || claimed[i]) continue;
    return file.corrupt(container.sections[i].offset, "F-47", "section ", i,
                        " is a payload that the manifest does not name");
  }
  return manifest;
}

Status check_fact(std::string_view key, std::string_view value) {
  const auto one_line = [](std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  };
  if (key.empty()) return invalid("a key of the metadata is empty");
  if (!is_utf8(key) || !is_utf8(value)) return invalid("metadata '", key, "' is not UTF-8");
  if (!one_line(key) || !one_line(value)) return invalid("metadata '", key, "' holds a control character");
  return {};
}

}  // namespace pinnace
