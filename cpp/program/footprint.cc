// Sizes of the containers of graph.h, with 16 bytes for the bookkeeping of every allocation (glibc's malloc takes 8 to
// 16).
#include "program/footprint.h"

#include <string>
#include <vector>

#include <pinnace/program.h>

#include "graph/graph.h"

namespace pinnace {
namespace {

constexpr uint64_t kAllocation = 16;
/// A name in verify()'s tables of names: a node of a hash table with its bucket.
constexpr uint64_t kNameEntry = 96;
/// Reports name every value that a node mentions (Program::nodes, text). Up to this length that is in proportion to the
/// file; longer names, ranks and paths are counted once per mention.
constexpr uint64_t kFreeMention = 64;

class Counter {
 public:
  Counter(const format::Model& model, uint64_t limit) : model_(model), limit_(limit) {}

  uint64_t run() {
    add(list(model_.strings()), sizeof(std::string_view));
    each(model_.operators(), [&](const format::Operator& o) { sum_ += 64 + text(o.name()); });
    each(model_.symbols(), [&](const format::Symbol& s) { sum_ += sizeof(Symbol) + kAllocation + text(s.name()); });
    each(model_.quantizations(), [&](const format::Quantization& q) {
      sum_ += sizeof(Quantization) + 5 * kAllocation + 4 * list(q.scales()) + 4 * list(q.zero_points());
    });
    paths_.resize(model_.graphs()->size());
    sum_ += 32 * uint64_t(paths_.size());
    for (index_ = 0; index_ < paths_.size() && sum_ <= limit_; ++index_) graph(*model_.graphs()->Get(index_));
    return sum_;
  }

 private:
  template <class T>
  static uint64_t list(const flatbuffers::Vector<T>* v) {
    return v ? v->size() : 0;
  }
  void add(uint64_t count, uint64_t size) { sum_ += kAllocation + count * size; }
  template <class T, class F>
  void each(const flatbuffers::Vector<flatbuffers::Offset<T>>* v, F f) {
    sum_ += kAllocation;
    for (uint32_t i = 0; i < list(v) && sum_ <= limit_; ++i) f(*v->Get(i));
  }
  uint64_t length(uint32_t string) const {
    return string < model_.strings()->size() ? model_.strings()->Get(string)->size() : 0;
  }
  /// What a copy of a string takes beside the std::string itself, which holds 15 bytes in place.
  uint64_t text(uint32_t string) const {
    const uint64_t bytes = length(string);
    return bytes > 15 ? bytes + kAllocation : 0;
  }
  void mention(uint64_t bytes) { sum_ += bytes > kFreeMention ? bytes : 0; }

  /// A TensorSpec of the program, or a mention of a value by a node.
  void mention_value(const format::Graph& graph, int32_t id, bool with_type) {
    if (id < 0 || static_cast<uint64_t>(id) >= list(graph.values())) return;
    const format::Value& value = *graph.values()->Get(static_cast<uint32_t>(id));
    mention(length(value.name()));
    if (with_type) mention(list(value.shape()) * sizeof(Dim));
  }

  void attr(const format::Attr& a, uint64_t path) {
    sum_ += sizeof(std::pair<std::string, Attr>) + text(a.name()) + kAllocation;
    add(list(a.ints()), sizeof(int64_t));
    add(list(a.floats()), sizeof(double));
    for (uint32_t i = 0; i < list(a.strings()) && sum_ <= limit_; ++i) {
      sum_ += sizeof(std::string) + text(a.strings()->Get(i));
    }
    if (a.kind() == format::AttrKind::Graph && a.graph() > index_ && a.graph() < paths_.size()) {
      paths_[a.graph()] = path + length(a.name());
    }
  }

  void graph(const format::Graph& g) {
    sum_ += sizeof(Graph) + 12 * kAllocation + text(g.name());
    each(g.values(), [&](const format::Value& v) {
      sum_ += sizeof(Value) + kNameEntry + 2 * text(v.name()) + kAllocation + list(v.shape()) * sizeof(Dim);
      if (v.constant()) sum_ += sizeof(Constant) + sizeof(StoredBytes) + 3 * kAllocation;
    });
    each(g.states(), [&](const format::State& s) {
      sum_ += sizeof(State) + sizeof(StateSpec) + sizeof(Constant) + sizeof(StoredBytes) + kNameEntry +
              3 * text(s.name()) + 5 * kAllocation;
      mention_value(g, s.input(), true);
    });
    // Twice a Dim per rank for inputs and outputs would be the TensorSpecs; they count in full, whatever their length.
    for (const auto* ids : {g.inputs(), g.outputs()}) {
      for (uint32_t i = 0; i < list(ids) && sum_ <= limit_; ++i) {
        const int32_t id = ids->Get(i);
        sum_ += sizeof(ValueId) + sizeof(TensorSpec) + sizeof(std::string) + kNameEntry;
        if (id < 0 || static_cast<uint64_t>(id) >= list(g.values())) continue;
        const format::Value& value = *g.values()->Get(static_cast<uint32_t>(id));
        sum_ += text(value.name()) + list(value.shape()) * sizeof(Dim) + kAllocation;
      }
    }
    for (uint32_t i = 0; i < list(g.output_names()) && sum_ <= limit_; ++i)
      sum_ += 48 + 3 * text(g.output_names()->Get(i));
    each(g.nodes(), [&](const format::Node& n) { node(g, n); });
  }

  void node(const format::Graph& g, const format::Node& n) {
    sum_ += sizeof(Node) + sizeof(void*) + kNameEntry + 7 * kAllocation;
    if (n.op() < list(model_.operators())) sum_ += text(model_.operators()->Get(n.op())->name());
    sum_ += 2 * text(n.name()) + text(n.file()) + text(n.module_path());
    mention(paths_[index_]);
    add(list(n.inputs()), sizeof(ValueId) + sizeof(void*));
    add(list(n.outputs()), sizeof(ValueId) + sizeof(void*));
    for (uint32_t i = 0; i < list(n.inputs()) && sum_ <= limit_; ++i) mention_value(g, n.inputs()->Get(i), false);
    for (uint32_t i = 0; i < list(n.outputs()) && sum_ <= limit_; ++i) mention_value(g, n.outputs()->Get(i), true);
    each(n.attrs(), [&](const format::Attr& a) { attr(a, paths_[index_] + length(n.name()) + 2); });
  }

  const format::Model& model_;
  const uint64_t limit_;
  uint64_t sum_ = 0;
  uint32_t index_ = 0;           // of the graph that is counted
  std::vector<uint64_t> paths_;  // per graph: length of the path that reports give for its nodes
};

}  // namespace

uint64_t graph_footprint(const format::Model& model, uint64_t limit) {
  return Counter(model, limit).run();
}

}  // namespace pinnace
