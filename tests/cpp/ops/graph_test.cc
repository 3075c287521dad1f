// Graph: construction, names, copies, replacing, erasing, compaction; Uses.
#include <gtest/gtest.h>

#include "cpp/runtime/everything.h"

namespace pinnace::testing {
namespace {

const TensorType kType{DType::kF32, {2}, nullptr};

/// x -> a -> b -> c -> y, with a read by c too.
Graph diamond() {
  Graph g;
  g.name = "diamond";
  const ValueId x = g.add_input("x", kType);
  const ValueId a = g.add_value("a", kType), b = g.add_value("b", kType), c = g.add_value("c", kType);
  g.add_node("relu", 1, "na", {x}, {a});
  g.add_node("relu", 1, "nb", {a}, {b});
  g.add_node("add", 1, "nc", {b, a}, {c});
  g.add_output("y", c);
  return g;
}

TEST(Graph, NamesAreMadeUnique) {
  Graph g = diamond();
  EXPECT_EQ(g.value(g.add_value("fresh", kType)).name, "fresh");
  const std::string second = g.value(g.add_value("a", kType)).name;
  EXPECT_NE(second, "a");
  EXPECT_TRUE(g.has_value_name(second));
  EXPECT_NE(g.add_node("relu", 1, "na", {0}, {})->name, "na");
  EXPECT_FALSE(g.value(g.add_value("", kType)).name.empty());
  // A name that came in by hand is seen.
  g.values.push_back({"by hand", kType, nullptr});
  EXPECT_NE(g.value(g.add_value("by hand", kType)).name, "by hand");
  EXPECT_TRUE(verify(g).ok()) << verify(g).message();
}

TEST(Graph, AttributesStaySorted) {
  Node n;
  for (const char* name : {"m", "a", "z", "b"}) n.set_attr(name, int64_t{1});
  n.set_attr("m", 2.5);
  ASSERT_EQ(n.attrs.size(), 4u);
  for (size_t i = 1; i < n.attrs.size(); ++i) EXPECT_LT(n.attrs[i - 1].first, n.attrs[i].first);
  EXPECT_EQ(std::get<double>(*n.attr("m")), 2.5);
  n.remove_attr("m");
  EXPECT_EQ(n.attr("m"), nullptr);
}

TEST(Graph, CloneIsDeepButSharesConstants) {
  const Graph g = graph_with_everything();
  Graph copy = g.clone();
  EXPECT_TRUE(same(g, copy));
  const auto constant = [](const Graph& from) {
    for (const Value& v : from.values) {
      if (v.constant) return v.constant;
    }
    return ConstantPtr();
  };
  EXPECT_EQ(constant(g), constant(copy));
  std::get<GraphPtr>(*copy.nodes[0]->attr("body"))->name = "changed";
  EXPECT_FALSE(same(g, copy));
  EXPECT_EQ(std::get<GraphPtr>(*g.nodes[0]->attr("body"))->name, "b");
}

TEST(Graph, ReplacesEveryUse) {
  Graph g = diamond();
  g.replace_uses(1, 0);  // a -> x
  EXPECT_EQ(g.nodes[1]->inputs, std::vector<ValueId>{0});
  EXPECT_EQ(g.nodes[2]->inputs, (std::vector<ValueId>{2, 0}));
  g.replace_uses(3, 2);
  EXPECT_EQ(g.outputs, std::vector<ValueId>{2});
  Graph sample = graph_with_everything();
  const ValueId old = sample.states[0].output;
  sample.replace_uses(old, sample.states[0].input);
  EXPECT_EQ(sample.states[0].output, sample.states[0].input);
}

TEST(Graph, ErasesAndCompacts) {
  Graph g = diamond();
  g.replace_uses(2, 1);  // nobody reads b
  g.erase_nodes({false, true, false});
  ASSERT_EQ(g.nodes.size(), 2u);
  EXPECT_EQ(g.nodes[1]->name, "nc");
  EXPECT_TRUE(verify(g).ok()) << "a value that nothing mentions is allowed: " << verify(g).message();
  const std::string before = print(g);
  g.compact();
  EXPECT_EQ(g.values.size(), 3u);
  EXPECT_EQ(print(g), before);
  EXPECT_TRUE(verify(g).ok()) << verify(g).message();
  Graph sample = graph_with_everything();
  sample.compact();
  EXPECT_TRUE(verify(sample).ok()) << verify(sample).message();
}

TEST(Graph, InsertsBefore) {
  Graph g = diamond();
  const ValueId v = g.add_value("v", kType);
  g.insert_node(1, "relu", 1, "between", {1}, {v});
  EXPECT_EQ(g.nodes[1]->name, "between");
  EXPECT_EQ(g.nodes[2]->name, "nb");
  EXPECT_TRUE(verify(g).ok());
}

TEST(Graph, UsesTellMakersAndReaders) {
  const Graph g = diamond();
  const Uses uses(g);
  EXPECT_EQ(uses.producer, (std::vector<int32_t>{-1, 0, 1, 2}));
  EXPECT_EQ(uses.readers[1], (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(uses.exits[3], 1);
  EXPECT_TRUE(uses.only_one_reader(2));
  EXPECT_FALSE(uses.only_one_reader(1));
  EXPECT_FALSE(uses.only_one_reader(3));
}

TEST(Graph, ConstantsKeepTheirOwner) {
  Graph g;
  const float numbers[] = {1, 2};
  const auto id = g.add_constant_of<float>("c", DType::kF32, {2}, numbers);
  ASSERT_TRUE(id.ok());
  const ConstantPtr held = g.value(*id).constant;
  g = Graph();
  EXPECT_EQ(held->bytes(), 8u);
  EXPECT_EQ(reinterpret_cast<const float*>(held->data())[1], 2);
  EXPECT_EQ(SourceLocation({"net.py", 41, "m"}).text(), "net.py:41");
  EXPECT_EQ(SourceLocation().text(), "");
}

}  // namespace
}  // namespace pinnace::testing
