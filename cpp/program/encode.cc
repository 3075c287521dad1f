// Strings, operators, quantisations and constants are interned in order of first mention, which makes the bytes a
// function of the graph alone.
#include "program/encode.h"

#include <cstring>
#include <map>
#include <unordered_map>

#include "base/cancel.h"
#include "base/hash.h"
#include "ops/op.h"

namespace pinnace {
namespace {

/// A graph of a million nodes fits.
constexpr uint64_t kMaxBytes = uint64_t(256) << 20;
/// Graphs that share nested ones can be exponentially large when written out.
constexpr size_t kMaxGraphs = 65536;

class Encoder {
 public:
  Result<EncodedGraph> run(const Graph& graph) {
    string("");  // index 0, the default of every field that names a string
    for (const Symbol& s : graph.symbols) {
      format::SymbolT to;
      to.name = string(s.name);
      to.min = s.min;
      to.max = s.max;
      to.multiple_of = s.multiple_of;
      model_.symbols.push_back(std::make_unique<format::SymbolT>(std::move(to)));
    }
    encode(graph);
    if (too_large()) {
      return unsupported("graph '", graph.name, "' takes more than ", kMaxBytes,
                         " bytes beside its weights, or has more than ", kMaxGraphs, " nested graphs");
    }
    // What every session reads lies together, so that opening a file touches few pages of it.
    const uint64_t begin = aligned_size(small_.end);
    for (format::Span* span : large_spans_) *span = format::Span(begin + span->offset(), span->bytes());
    small_.parts.insert(small_.parts.end(), large_.parts.begin(), large_.parts.end());
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(format::Model::Pack(builder, &model_));
    return EncodedGraph{builder.Release(), std::move(small_.parts)};
  }

 private:
  bool too_large() const { return bytes_ > kMaxBytes || model_.graphs.size() > kMaxGraphs; }

  /// Nested graphs are numbered where a node mentions them: each after the graph of its node.
  uint32_t encode(const Graph& from) {
    const auto index = static_cast<uint32_t>(model_.graphs.size());
    model_.graphs.push_back(std::make_unique<format::GraphT>());
    format::GraphT& to = *model_.graphs.back();
    bytes_ += 64 + 8 * (from.inputs.size() + 2 * from.outputs.size());
    to.name = string(from.name);
    for (const Value& v : from.values) {
      if (stopped()) break;  // write_program looks too
      to.values.push_back(value(v));
    }
    to.inputs = from.inputs;
    to.outputs = from.outputs;
    for (const std::string& name : from.output_names) to.output_names.push_back(string(name));
    for (const State& s : from.states) {
      auto state = std::make_unique<format::StateT>();
      bytes_ += 64;
      state->name = string(s.name);
      state->input = s.input;
      state->output = s.output;
      state->initial = span(*s.initial, &state->hash);
      to.states.push_back(std::move(state));
    }
    for (const auto& n : from.nodes) {
      if (too_large() || stopped()) break;
      to.nodes.push_back(node(*n));
    }
    return index;
  }

  std::unique_ptr<format::ValueT> value(const Value& from) {
    auto to = std::make_unique<format::ValueT>();
    bytes_ += 96 + 16 * from.type.shape.size();
    to->name = string(from.name);
    to->dtype = static_cast<uint8_t>(from.type.dtype);
    bool bounded = false;
    for (const Dim& d : from.type.shape) {
      to->shape.push_back(d.known() ? d.size : d.symbol >= 0 ? -2 - int64_t(d.symbol) : Dim::kUnknown);
      bounded |= d.max != Dim::kUnknown;
    }
    if (bounded) {
      for (const Dim& d : from.type.shape) to->shape_max.push_back(d.max);
    }
    if (from.type.quantization) to->quantization = quantization(*from.type.quantization);
    if (from.constant) to->constant = span(*from.constant, &to->hash);
    return to;
  }

  std::unique_ptr<format::NodeT> node(const Node& from) {
    auto to = std::make_unique<format::NodeT>();
    bytes_ += 96 + 4 * (from.inputs.size() + from.outputs.size());
    to->op = op(from);
    to->name = string(from.name);
    to->inputs = from.inputs;
    to->outputs = from.outputs;
    to->file = string(from.source.file);
    to->line = from.source.line;
    to->module_path = string(from.source.module);
    for (const auto& [name, value] : from.attrs) to->attrs.push_back(attr(name, value));
    return to;
  }

  std::unique_ptr<format::AttrT> attr(const std::string& name, const Attr& from) {
    auto to = std::make_unique<format::AttrT>();
    to->name = string(name);
    to->kind = static_cast<format::AttrKind>(attr_kind(from));
    switch (attr_kind(from)) {
      case AttrKind::kInt:
        to->ints = {std::get<int64_t>(from)};
        break;
      case AttrKind::kFloat:
        to->floats = {std::get<double>(from)};
        break;
      case AttrKind::kString:
        to->strings = {string(std::get<std::string>(from))};
        break;
      case AttrKind::kInts:
        to->ints = std::get<std::vector<int64_t>>(from);
        break;
      case AttrKind::kFloats:
        to->floats = std::get<std::vector<double>>(from);
        break;
      case AttrKind::kStrings:
        for (const std::string& s : std::get<std::vector<std::string>>(from)) to->strings.push_back(string(s));
        break;
      case AttrKind::kGraph:
        to->graph = encode(*std::get<GraphPtr>(from));
        break;
    }
    bytes_ += 64 + 8 * (to->ints.size() + to->floats.size() + to->strings.size());
    return to;
  }

  uint32_t string(const std::string& text) {
    const auto [at, added] = strings_.try_emplace(text, static_cast<uint32_t>(model_.strings.size()));
    if (added) {
      model_.strings.push_back(text);
      bytes_ += text.size() + 16;
    }
    return at->second;
  }

  uint32_t op(const Node& node) {
    const auto [at, added] = operators_.try_emplace({node.op, node.version}, static_cast<uint32_t>(operators_.size()));
    if (added) {
      auto to = std::make_unique<format::OperatorT>();
      to->name = string(node.op);
      to->version = node.version;
      to->application = find_op(node.op) == nullptr;
      model_.operators.push_back(std::move(to));
    }
    return at->second;
  }

  int32_t quantization(const Quantization& q) {
    Hasher hasher;
    hasher.add(std::as_bytes(std::span(q.scales)));
    hasher.add(std::as_bytes(std::span(q.zero_points)));
    const auto [first, last] = quantizations_.equal_range(hasher.digest());
    for (auto at = first; at != last; ++at) {
      const format::QuantizationT& other = *model_.quantizations[static_cast<size_t>(at->second)];
      // Bits, not values: a scale of -0 is another file than one of 0.
      if (other.axis == q.axis && other.block == q.block && other.zero_points == q.zero_points &&
          other.scales.size() == q.scales.size() &&
          std::memcmp(other.scales.data(), q.scales.data(), q.scales.size() * sizeof(float)) == 0) {
        return at->second;
      }
    }
    auto to = std::make_unique<format::QuantizationT>();
    bytes_ += 64 + 8 * q.scales.size();
    to->scales = q.scales;
    to->zero_points = q.zero_points;
    to->axis = q.axis;
    to->block = q.block;
    const auto index = static_cast<int32_t>(model_.quantizations.size());
    quantizations_.emplace(hasher.digest(), index);
    model_.quantizations.push_back(std::move(to));
    return index;
  }

  /// The place of a constant in the weights, and the hash of its bytes; equal bytes share one place.
  std::unique_ptr<format::Span> span(const Constant& constant, uint64_t* hash_to) {
    const std::span<const std::byte> bytes(constant.data(), constant.bytes());
    if (bytes.empty()) return std::make_unique<format::Span>(0, 0);
    const bool large = bytes.size() > kCheckedAtOnce;
    const auto at_offset = [&](uint64_t offset) {
      auto made = std::make_unique<format::Span>(offset, bytes.size());
      if (large) large_spans_.push_back(made.get());
      return made;
    };
    const uint64_t hash = *hash_to = hash64(bytes);
    const auto [first, last] = constants_.equal_range(hash);
    for (auto at = first; at != last; ++at) {
      const Placed& other = at->second;
      if (other.bytes.size() == bytes.size() &&
          (other.bytes.data() == bytes.data() || std::memcmp(other.bytes.data(), bytes.data(), bytes.size()) == 0)) {
        return at_offset(other.offset);
      }
    }
    Weights& to = large ? large_ : small_;
    const uint64_t offset = aligned_size(to.end);
    to.end = offset + bytes.size();
    to.parts.push_back(bytes);
    constants_.emplace(hash, Placed{offset, bytes});
    return at_offset(offset);
  }

  /// Constants one after the other, each at a multiple of 64.
  struct Weights {
    std::vector<std::span<const std::byte>> parts;
    uint64_t end = 0;
  };
  struct Placed {
    uint64_t offset;  ///< in the small or the large ones
    std::span<const std::byte> bytes;
  };
  format::ModelT model_;
  Weights small_, large_;
  std::vector<format::Span*> large_spans_;
  uint64_t bytes_ = 0;  // upper bound of the FlatBuffer so far, taken high
  std::unordered_map<std::string, uint32_t> strings_;
  std::map<std::pair<std::string, int32_t>, uint32_t> operators_;
  std::unordered_multimap<uint64_t, int32_t> quantizations_;
  std::unordered_multimap<uint64_t, Placed> constants_;
};

}  // namespace

Result<EncodedGraph> encode_graph(const Graph& graph) {
  return Encoder().run(graph);
}

}  // namespace pinnace
