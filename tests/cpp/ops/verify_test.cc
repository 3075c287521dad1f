// The verifier: the sample satisfies every rule, and each test breaks one rule only.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "base/status.h"
#include "cpp/runtime/everything.h"

namespace pinnace::testing {
namespace {

ValueId find(const Graph& g, std::string_view name) {
  for (size_t i = 0; i < g.values.size(); ++i) {
    if (g.values[i].name == name) return static_cast<ValueId>(i);
  }
  ADD_FAILURE() << "no value " << name;
  return 0;
}

Value& named(Graph& g, std::string_view name) {
  return g.value(find(g, name));
}
Graph& body(Graph& g) {
  return *std::get<GraphPtr>(*g.nodes[0]->attr("body"));
}

void requantize(Graph& g, std::string_view name, const std::function<void(Quantization&)>& change) {
  TensorType& type = named(g, name).type;
  auto copy = std::make_shared<Quantization>(*type.quantization);
  change(*copy);
  type.quantization = std::move(copy);
}

struct Break {
  const char* what;
  const char* rule;
  std::function<void(Graph&)> change;
};

const Break kBreaks[] = {
    {"input id too large", "G-1", [](Graph& g) { g.inputs[0] = 9999; }},
    {"input id none", "G-1", [](Graph& g) { g.inputs.push_back(kNoValue); }},
    {"node input too large", "G-1", [](Graph& g) { g.nodes[1]->inputs[0] = 9999; }},
    {"node input below none", "G-1", [](Graph& g) { g.nodes[1]->inputs[0] = -2; }},
    {"node output none", "G-1", [](Graph& g) { g.nodes[2]->outputs[0] = kNoValue; }},
    {"output id none", "G-1", [](Graph& g) { g.outputs[0] = kNoValue; }},
    {"state input too large", "G-1", [](Graph& g) { g.states[0].input = 9999; }},
    {"state output none", "G-1", [](Graph& g) { g.states[0].output = kNoValue; }},
    {"nested output id", "G-1", [](Graph& g) { body(g).outputs[0] = 50; }},
    {"two nodes make one value", "G-2", [](Graph& g) { g.nodes[2]->outputs[0] = g.nodes[0]->outputs[0]; }},
    {"one node makes a value twice", "G-2", [](Graph& g) { g.nodes[0]->outputs[1] = g.nodes[0]->outputs[0]; }},
    {"a node makes an input", "G-2", [](Graph& g) { g.nodes[2]->outputs[0] = g.inputs[0]; }},
    {"an input twice", "G-2", [](Graph& g) { g.inputs.push_back(g.inputs[0]); }},
    {"a constant is an input", "G-2", [](Graph& g) { g.inputs.push_back(find(g, "w")); }},
    {"a state's value is an input", "G-2", [](Graph& g) { g.inputs.push_back(g.states[0].input); }},
    {"read before made", "G-3",
     [](Graph& g) { std::swap(g.nodes[0], g.nodes[2]), g.nodes[0]->inputs[0] = find(g, "y"); }},
    {"a cycle of one node", "G-3", [](Graph& g) { g.nodes[1]->inputs[0] = g.nodes[1]->outputs[0]; }},
    {"an output that nothing makes", "G-3", [](Graph& g) { g.outputs[0] = g.add_value("ghost", {}); }},
    {"a new state that nothing makes", "G-3",
     [](Graph& g) { g.states[0].output = g.add_value("ghost", named(g, "h").type); }},
    {"value names", "G-4", [](Graph& g) { named(g, "y").name = "x"; }},
    {"names of values that nobody mentions", "G-4", [](Graph& g) { g.values.push_back({"x", {}, nullptr}); }},
    {"node names", "G-5", [](Graph& g) { g.nodes[1]->name = g.nodes[0]->name; }},
    {"an output name too few", "G-6", [](Graph& g) { g.output_names.pop_back(); }},
    {"an output name too many", "G-6", [](Graph& g) { g.output_names.push_back("z"); }},
    {"a constant's bytes", "G-7", [](Graph& g) { named(g, "w").type.shape = {3}; }},
    {"a constant's dynamic size", "G-7", [](Graph& g) { named(g, "w").type.shape = {Dim()}; }},
    {"a state's bytes", "G-8", [](Graph& g) { named(g, "h").type.shape = {1, 5}, named(g, "h2").type.shape = {1, 5}; }},
    {"a state without contents", "G-8", [](Graph& g) { g.states[0].initial = nullptr; }},
    {"a state of a dynamic size", "G-8", [](Graph& g) { named(g, "h").type.shape = {1, Dim()}; }},
    {"a new state of another size", "G-8", [](Graph& g) { named(g, "h2").type.shape = {2, 2}; }},
    {"a new state of another rank", "G-8", [](Graph& g) { named(g, "h2").type.shape = {4}; }},
    {"a new state of another type", "G-8", [](Graph& g) { named(g, "h2").type.dtype = DType::kI32; }},
    {"state names", "G-9",
     [](Graph& g) {
       const ValueId id = g.add_value("h_too", named(g, "h").type);
       g.states.push_back({"h", id, g.states[0].output, g.states[0].initial});
     }},
    {"a nested state", "G-9", [](Graph& g) { body(g).states.push_back({"s", 0, 0, nullptr}); }},
    {"symbol names", "G-10", [](Graph& g) { g.symbols[1].name = g.symbols[0].name; }},
    {"a symbol without a name", "G-10", [](Graph& g) { g.symbols[1].name.clear(); }},
    {"a symbol's negative size", "G-10", [](Graph& g) { g.symbols[0].min = -1; }},
    {"a symbol's empty range", "G-10", [](Graph& g) { g.symbols[0].max = 0; }},
    {"a symbol's divisor", "G-10", [](Graph& g) { g.symbols[0].multiple_of = 0; }},
    {"a symbol without a size", "G-10", [](Graph& g) { g.symbols[0] = {"batch", 5, 7, 4}; }},
    {"nested symbols", "G-10", [](Graph& g) { body(g).symbols.push_back({"s"}); }},
    {"an element type", "G-11", [](Graph& g) { named(g, "y").type.dtype = static_cast<DType>(kDTypeCount); }},
    {"a negative size", "G-11", [](Graph& g) { named(g, "y").type.shape[0].size = -2; }},
    {"a symbol that is none", "G-11", [](Graph& g) { named(g, "y").type.shape[0] = Dim::of_symbol(2); }},
    {"a negative symbol", "G-11", [](Graph& g) { named(g, "y").type.shape[0].symbol = -2; }},
    {"a size and a symbol", "G-11", [](Graph& g) { named(g, "y").type.shape[0].symbol = 0; }},
    {"a size and a bound", "G-11", [](Graph& g) { named(g, "y").type.shape[0].max = 4; }},
    {"a symbol and a bound", "G-11", [](Graph& g) { named(g, "x").type.shape[0].max = 4; }},
    {"a negative bound", "G-11", [](Graph& g) { named(g, "y").type.shape[1].max = -2; }},
    {"a nested symbol that is none", "G-11", [](Graph& g) { body(g).value(0).type.shape[0] = Dim::of_symbol(2); }},
    {"too large", "G-12", [](Graph& g) { named(g, "y").type.shape = {int64_t{1} << 40, int64_t{1} << 30}; }},
    {"too large beside zero", "G-12",
     [](Graph& g) { named(g, "y").type.shape = {0, int64_t{1} << 40, int64_t{1} << 30}; }},
    {"quantised floats", "G-13", [](Graph& g) { named(g, "last").type.dtype = DType::kF32; }},
    {"an axis beyond the rank", "G-13", [](Graph& g) { requantize(g, "u8", [](auto& q) { q.axis = 2; }); }},
    {"an axis below -1", "G-13", [](Graph& g) { requantize(g, "last", [](auto& q) { q.axis = -2; }); }},
    {"a block without an axis", "G-13", [](Graph& g) { requantize(g, "last", [](auto& q) { q.block = 2; }); }},
    {"a negative block", "G-13", [](Graph& g) { requantize(g, "i4", [](auto& q) { q.block = -1; }); }},
    {"scales per axis", "G-13",
     [](Graph& g) { requantize(g, "u8", [](auto& q) { q.scales.push_back(1), q.zero_points.push_back(0); }); }},
    {"scales per block", "G-13", [](Graph& g) { requantize(g, "i4", [](auto& q) { q.block = 2; }); }},
    {"no scale", "G-13", [](Graph& g) { requantize(g, "last", [](auto& q) { q = {}; }); }},
    {"zero points", "G-13", [](Graph& g) { requantize(g, "last", [](auto& q) { q.zero_points.clear(); }); }},
    {"a negative scale", "G-13", [](Graph& g) { requantize(g, "last", [](auto& q) { q.scales[0] = -1; }); }},
    {"an infinite scale", "G-13", [](Graph& g) { requantize(g, "last", [](auto& q) { q.scales[0] = INFINITY; }); }},
    {"a zero point out of range", "G-13",
     [](Graph& g) { requantize(g, "last", [](auto& q) { q.zero_points[0] = 128; }); }},
    {"attributes' order", "G-14", [](Graph& g) { std::swap(g.nodes[0]->attrs[0], g.nodes[0]->attrs[1]); }},
    {"an attribute twice", "G-14",
     [](Graph& g) { g.nodes[0]->attrs.insert(g.nodes[0]->attrs.begin(), g.nodes[0]->attrs[0]); }},
    {"no nested graph", "G-15", [](Graph& g) { g.nodes[0]->set_attr("body", GraphPtr()); }},
    {"no operator", "G-16", [](Graph& g) { g.nodes[0]->op.clear(); }},
    {"no version", "G-16", [](Graph& g) { g.nodes[0]->version = 0; }},
    {"a graph's name", "G-17", [](Graph& g) { g.name = "\xff"; }},
    {"a symbol's name", "G-17", [](Graph& g) { g.symbols[0].name = "\xc0\x80"; }},
    {"a value's name", "G-17", [](Graph& g) { named(g, "y").name = "y\xed\xa0\x80"; }},
    {"a state's name", "G-17", [](Graph& g) { g.states[0].name = "\x80"; }},
    {"an output's name", "G-17", [](Graph& g) { g.output_names[0] = "\xe2\x82"; }},
    {"an operator", "G-17", [](Graph& g) { g.nodes[1]->op = "\xff"; }},
    {"a node's name", "G-17", [](Graph& g) { g.nodes[1]->name = "\xff"; }},
    {"a source file", "G-17", [](Graph& g) { g.nodes[1]->source.file = "\xff.py"; }},
    {"a module", "G-17", [](Graph& g) { g.nodes[1]->source.module = "\xff"; }},
    {"an attribute's name", "G-17", [](Graph& g) { g.nodes[1]->set_attr("\xff", int64_t(1)); }},
    {"a string", "G-17", [](Graph& g) { g.nodes[1]->set_attr("s", std::string("\xff")); }},
    {"a string of a list", "G-17",
     [](Graph& g) { g.nodes[1]->set_attr("s", std::vector<std::string>{"fine", "\xff"}); }},
    {"a nested name", "G-17", [](Graph& g) { body(g).value(0).name = "\xff"; }},
    {"no node", "G-16", [](Graph& g) { g.nodes[2] = nullptr; }},
};

TEST(Verify, EachRuleIsBrokenAlone) {
  for (const Break& b : kBreaks) {
    SCOPED_TRACE(b.what);
    Graph g = graph_with_everything();
    b.change(g);
    const Status status = verify(g);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.rule(), b.rule) << status.message();
    EXPECT_NE(status.message().find(str_cat("(rule ", b.rule, ")")), std::string::npos) << status.message();
  }
}

TEST(Verify, SentenceNamesPlaceAndNumber) {
  Graph g = graph_with_everything();
  g.nodes[1]->inputs[0] = 9999;
  EXPECT_NE(verify(g).message().find("node 'update': value 9999 is none of "), std::string::npos)
      << verify(g).message();
}

TEST(Verify, AllowsWhatIsNotForbidden) {
  Graph g = graph_with_everything();
  g.add_value("nobody mentions it", {});
  g.nodes[1]->source.file.clear();
  named(g, "h2").type.shape = {1, Dim()};  // known when it runs
  requantize(g, "last", [](auto& q) { q.scales[0] = 0; });
  EXPECT_TRUE(verify(g).ok()) << verify(g).message();
  EXPECT_TRUE(verify(Graph()).ok());
}

GraphPtr nested(int depth) {
  auto inner = std::make_shared<Graph>();
  for (int i = 0; i < depth; ++i) {
    auto outer = std::make_shared<Graph>();
    outer->add_node("op", 1, "n", {}, {})->set_attr("b", std::move(inner));
    inner = std::move(outer);
  }
  return inner;
}

TEST(Verify, LimitsNesting) {
  EXPECT_TRUE(verify(*nested(200)).ok());
  EXPECT_EQ(verify(*nested(201)).rule(), "G-15");
  EXPECT_EQ(verify(*nested(3000)).rule(), "G-15");
}

TEST(Verify, CountsSharedGraphsOnceAndByTheirDepth) {
  // Each graph nests the one below it twice: 2^150 paths, 151 graphs.
  auto inner = std::make_shared<Graph>();
  for (int i = 0; i < 150; ++i) {
    auto outer = std::make_shared<Graph>();
    outer->add_node("op", 1, "a", {}, {})->set_attr("b", inner);
    outer->add_node("op", 1, "b", {}, {})->set_attr("b", inner);
    inner = std::move(outer);
  }
  EXPECT_TRUE(verify(*inner).ok());
  // Visited first at depth 1, reached again at depth 100: 250 in all.
  Graph top;
  top.add_node("op", 1, "near", {}, {})->set_attr("b", inner);
  GraphPtr far = inner;
  for (int i = 0; i < 99; ++i) {
    auto outer = std::make_shared<Graph>();
    outer->add_node("op", 1, "n", {}, {})->set_attr("b", std::move(far));
    far = std::move(outer);
  }
  top.add_node("op", 1, "far", {}, {})->set_attr("b", far);
  EXPECT_EQ(verify(top).rule(), "G-15");
}

TEST(Verify, RefusesAGraphInItself) {
  auto g = std::make_shared<Graph>();
  Node* node = g->add_node("op", 1, "n", {}, {});
  node->set_attr("b", g);
  EXPECT_EQ(verify(*g).rule(), "G-15");
  node->attrs.clear();  // or it would never be freed
}

TEST(Verify, TakesLongChains) {
  Graph g;
  ValueId last = g.add_input("x", {DType::kF32, {4}, nullptr});
  for (int i = 0; i < 10000; ++i) {
    const ValueId next = g.add_value("v", {DType::kF32, {4}, nullptr});
    g.add_node("relu", 1, "n", {last}, {next});
    last = next;
  }
  g.add_output("y", last);
  EXPECT_TRUE(verify(g).ok()) << verify(g).message();
}

}  // namespace
}  // namespace pinnace::testing
