// settle_names: what the source calls values and nodes they are called, and nothing else is.
#include <gtest/gtest.h>

#include "import/source_names.h"

namespace pinnace::testing {
namespace {

const TensorType kType{DType::kF32, {2}, nullptr};

TEST(SourceNames, TheSourcesNamesWinOverAllOthers) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  const ValueId state = g.add_value("mean", kType);
  const ValueId weight = g.add_constant("add", kType, *Constant::copy_of("12345678", 8));
  g.states.push_back({"mean", state, kNoValue, *Constant::copy_of("12345678", 8)});
  const ValueId part = g.add_value("mean.reduce", kType), mean = g.add_value("mean.div", kType);
  const ValueId sum = g.add_value("add.add", kType), same = g.add_value("other", kType);
  const Node* reduce = g.add_node("relu", 1, "mean.node", {x}, {part});
  const Node* divide = g.add_node("relu", 1, "made up", {part}, {mean});
  const Node* add = g.add_node("add", 1, "mean", {mean, weight}, {sum});
  g.add_node("add", 1, "last", {sum, state}, {same});
  g.states[0].output = sum;
  g.add_output("y", same);
  SourceNames names;
  names.values = {{mean, "mean"}, {sum, "add"}, {same, "x"}};
  names.nodes = {{divide, "mean"}, {add, "mean.node"}};
  settle_names(g, names);
  g.compact();
  EXPECT_EQ(g.value(x).name, "x");  // an input is what the user calls it
  EXPECT_EQ(g.value(mean).name, "mean");
  EXPECT_EQ(g.value(sum).name, "add");
  EXPECT_EQ(g.value(part).name, "mean.reduce");
  EXPECT_EQ(g.value(same).name, "other");
  EXPECT_EQ(g.value(state).name, "mean_1");
  EXPECT_EQ(g.states[0].name, "mean");
  EXPECT_EQ(g.value(weight).name.substr(0, 4), "add_");
  EXPECT_EQ(divide->name, "mean");
  EXPECT_EQ(add->name, "mean.node");
  EXPECT_EQ(reduce->name, "mean.node_1");
  EXPECT_TRUE(verify(g).ok()) << verify(g).message();
  // What is added later finds the names of now.
  EXPECT_NE(g.value(g.add_value("mean", kType)).name, "mean");
  EXPECT_NE(g.value(g.add_value("add", kType)).name, "add");
}

TEST(SourceNames, NumbersStayClearOfOtherNames) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  const ValueId a = g.add_value("p", kType), b = g.add_value("q", kType), c = g.add_value("p_1", kType);
  g.add_node("relu", 1, "", {x}, {a});
  g.add_node("relu", 1, "", {a}, {b});
  g.add_node("relu", 1, "", {b}, {c});
  g.add_output("y", c);
  settle_names(g, {{{b, "p"}}, {}});
  EXPECT_EQ(g.value(b).name, "p");
  EXPECT_EQ(g.value(a).name, "p_1");
  EXPECT_NE(g.value(c).name, "p_1");
  g.compact();
  EXPECT_TRUE(verify(g).ok()) << verify(g).message();
  // Two values of one name: the first has it.
  settle_names(g, {{{a, "r"}, {c, "r"}}, {}});
  EXPECT_EQ(g.value(a).name, "r");
  EXPECT_NE(g.value(c).name, "r");
}

}  // namespace
}  // namespace pinnace::testing
