// What an imported ONNX model means: names, symbols, functions, nested graphs, older opsets, and the list of refusals.
#include <algorithm>
#include <cmath>
#include <map>

#include "cpp/import/onnx_fixture.h"

namespace pinnace::testing {
namespace {
using Ops = std::vector<std::string>;

TEST_F(OnnxTest, SmallModelRuns) {
  make_small_model();
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(ops_of(imported->graph), (Ops{"mat_mul", "add", "relu"}));
  EXPECT_EQ(imported->graph.nodes[0]->name, "layer/matmul");
  EXPECT_EQ(imported->graph.nodes[1]->name, "Add_1");
  EXPECT_EQ(imported->graph.output_names, (Ops{"y"}));
  EXPECT_EQ(run(imported->graph, {{1, 0, 0, 0, 0, -1}}, {{2, 3}}), (std::vector<float>{0, 3, 0, 0}));
  EXPECT_TRUE(imported->notes.empty());
}

TEST_F(OnnxTest, NodesInAnyOrderAreSorted) {
  make_small_model();
  graph().mutable_node()->SwapElements(0, 2);
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(ops_of(imported->graph), (Ops{"mat_mul", "add", "relu"}));
}

TEST_F(OnnxTest, InputsWithInitialisersAreConstants) {
  make_small_model();
  add_input("w", {3, 2});
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->graph.inputs.size(), 1u);
  ASSERT_EQ(imported->notes.size(), 1u);
}

TEST_F(OnnxTest, EverythingThatCannotBeImportedIsListed) {
  add_input("x", {2});
  set_type(*graph().add_input(), "text", proto::TensorProto::STRING, {2});
  add_node(graph(), "RandomNormalLike", {"x"}, {"r"}).set_name("noise");
  add_node(graph(), "Neg", {"r"}, {"n"});  // reads what is missing, and is no problem itself
  add_node(graph(), "NoSuchOperator", {"n"}, {"m"});
  auto& concat = add_node(graph(), "Concat", {"x"}, {"c"});
  add_int(concat, "axis", 7);
  auto& meta = *concat.add_metadata_props();
  meta.set_key("pkg.torch.onnx.stack_trace");
  meta.set_value("File \"/home/me/net.py\", line 41, in forward\n    x = cat(y)");
  add_node(graph(), "Foo", {"x"}, {"f"}).set_domain("com.example");
  for (const char* needed : {"m", "c", "f"}) add_output(needed);
  const Status status = refused(Code::kConversion, "5 of 5 nodes cannot be imported");
  ASSERT_EQ(status.nodes().size(), 5u);
  EXPECT_EQ(status.nodes()[0].node, "text");
  EXPECT_EQ(status.nodes()[1].node, "noise");
  EXPECT_EQ(status.nodes()[1].op, "ai.onnx.RandomNormalLike");
  EXPECT_EQ(status.nodes()[2].op, "ai.onnx.NoSuchOperator");
  EXPECT_EQ(status.nodes()[3].source, "net.py:41");
  EXPECT_EQ(status.nodes()[4].op, "com.example.Foo");
}

TEST_F(OnnxTest, WhatNoOutputNeedsIsNoProblem) {
  make_small_model();
  add_node(graph(), "NoSuchOperator", {"x"}, {"m"});
  add_node(graph(), "Neg", {"m"}, {"n"});
  EXPECT_TRUE(import_model().ok());
  add_output("n");
  const Status status = refused(Code::kConversion, "1 of 5 nodes cannot be imported");
  ASSERT_EQ(status.nodes().size(), 1u);
  EXPECT_EQ(status.nodes()[0].op, "ai.onnx.NoSuchOperator");
}

TEST_F(OnnxTest, SourceAndModuleComeFromTorchsExporter) {
  make_small_model();
  auto& node = *graph().mutable_node(0);
  auto& trace = *node.add_metadata_props();
  trace.set_key("pkg.torch.onnx.stack_trace");
  trace.set_value("File \"a/outer.py\", line 3, in main\nFile \"b/net.py\", line 12, in forward\n  return self.fc(x)");
  auto& scopes = *node.add_metadata_props();
  scopes.set_key("pkg.torch.onnx.name_scopes");
  scopes.set_value("['', 'layers.3', 'layers.3.fc', 'linear']");
  graph().mutable_node(1)->set_doc_string("/home/me/old.py(7): forward\n/home/me/main.py(1): main\n");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->graph.nodes[0]->source, (SourceLocation{"net.py", 12, "layers.3.fc"}));
  EXPECT_EQ(imported->graph.nodes[1]->source, (SourceLocation{"old.py", 7, ""}));
}

TEST_F(OnnxTest, ValuesKeepTheSourcesNamesBesideThoseMadeUp) {
  // A node "a" that becomes several calls its inner values "a/<op>"; the source may call others so.
  add_input("x", {1, 2, 3, 4});
  auto& pool = add_node(graph(), "GlobalLpPool", {"x"}, {"a/abs_1"});
  pool.set_name("a");
  add_int(pool, "p", 3);
  add_node(graph(), "Neg", {"a/abs_1"}, {"a/abs"}).set_name("b");
  add_node(graph(), "Exp", {"a/abs"}, {"a/reduce_sum_3"}).set_name("a/abs");
  add_output("a/reduce_sum_3");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  std::map<std::string, std::string> made_by;
  for (const auto& node : imported->graph.nodes) made_by[imported->graph.value(node->outputs[0]).name] = node->op;
  EXPECT_EQ(made_by["a/abs_1"], "pow");
  EXPECT_EQ(made_by["a/abs"], "neg");
  EXPECT_EQ(made_by["a/reduce_sum_3"], "exp");
  EXPECT_EQ(std::ranges::count(ops_of(imported->graph), "abs"), 1);
}

TEST_F(OnnxTest, VersionsAreChecked) {
  make_small_model();
  model_.mutable_opset_import(0)->set_version(999);
  refused(Code::kUnsupported, "opset 999 is newer");
  model_.mutable_opset_import(0)->set_version(3);
  refused(Code::kConversion, "its form of opset 3 is older than 6");
  model_.mutable_opset_import(0)->set_version(0);
  refused(Code::kCorruptFile, "opset 0");
  model_.clear_opset_import();
  refused(Code::kCorruptFile, "no opset");
  model_.set_ir_version(99);
  refused(Code::kUnsupported, "format version 99");
}

TEST_F(OnnxTest, OpenDimensionsAreSymbols) {
  add_input("x", {-1, 3});
  graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim();
  add_node(graph(), "Relu", {"x"}, {"y"});
  add_output("y");
  auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->graph.symbols, (std::vector<Symbol>{{"s1"}, {"x_dim2"}}));
  EXPECT_EQ(imported->graph.value(imported->graph.outputs[0]).type.shape,
            (Shape{Dim::of_symbol(0), 3, Dim::of_symbol(1)}));
  imported = import_model({.symbols = {{"s1", 1, 8, 2}, {"x_dim2", 5, 5}}});
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->graph.symbols, (std::vector<Symbol>{{"s1", 1, 8, 2}}));
  EXPECT_EQ(imported->graph.value(imported->graph.inputs[0]).type.shape, (Shape{Dim::of_symbol(0), 3, 5}));
  const auto unknown = import_model({.symbols = {{"batch", 1, 2}}});
  EXPECT_NE(unknown.status().message().find("no dynamic dimension 'batch', it has s1, x_dim2"), std::string::npos)
      << unknown.status().message();
}

TEST_F(OnnxTest, OlderFormsBecomeTheNewest) {
  model_.mutable_opset_import(0)->set_version(9);
  add_input("x", {2, 1, 3});
  auto& squeeze = add_node(graph(), "Squeeze", {"x"}, {"s"});
  auto& axes = add_attr(squeeze, "axes");
  axes.set_type(proto::AttributeProto::INTS);
  axes.add_ints(1);
  auto& clip = add_node(graph(), "Clip", {"s"}, {"c"});
  auto& max = add_attr(clip, "max");
  max.set_type(proto::AttributeProto::FLOAT);
  max.set_f(2);
  auto& softmax = add_node(graph(), "Softmax", {"c"}, {"p"});
  add_int(softmax, "axis", 0);  // over all six elements
  add_node(graph(), "Dropout", {"p"}, {"y"});
  add_output("y");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(ops_of(imported->graph), (Ops{"squeeze", "clip", "flatten", "softmax", "shape", "reshape"}));
  const auto y = run(imported->graph, {{2, 3, 4, 5, 6, 7}}, {{2, 1, 3}});
  for (float p : y) EXPECT_FLOAT_EQ(p, 1.0f / 6);
}

TEST_F(OnnxTest, FunctionsAreInlined) {
  add_input("x", {2});
  auto& function = *model_.add_functions();
  function.set_domain("mine"), function.set_name("LeakyTwice");
  function.add_input("a"), function.add_output("c"), function.add_attribute("slope");
  for (const auto& [in, out] : {std::pair{"a", "b"}, {"b", "c"}}) {
    auto& node = fill(*function.add_node(), "LeakyRelu", {in}, {out});
    auto& a = add_attr(node, "alpha");
    a.set_type(proto::AttributeProto::FLOAT);
    a.set_ref_attr_name("slope");
  }
  auto& call = add_node(graph(), "LeakyTwice", {"x"}, {"y"});
  call.set_domain("mine"), call.set_name("call");
  auto& slope = add_attr(call, "slope");
  slope.set_type(proto::AttributeProto::FLOAT);
  slope.set_f(0.5f);
  add_output("y");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(ops_of(imported->graph), (Ops{"leaky_relu", "leaky_relu"}));
  EXPECT_EQ(imported->graph.nodes[0]->name, "call/LeakyRelu_0");
  EXPECT_EQ(run(imported->graph, {{4, -4}}, {{2}}), (std::vector<float>{4, -1}));
}

// --------------------------------------------------------------------------------------------------- nested graphs

TEST_F(OnnxTest, BranchesTakeTheSameCapturedValues) {
  add_input("c", {}, proto::TensorProto::BOOL);
  add_input("x", {2});
  add_input("z", {2});
  auto& node = add_node(graph(), "If", {"c"}, {"y"});
  auto& then_branch = add_graph(node, "then_branch");
  add_node(then_branch, "Neg", {"z"}, {"t"});
  then_branch.add_output()->set_name("t");
  auto& else_branch = add_graph(node, "else_branch");
  add_node(else_branch, "Add", {"x", "z"}, {"e"});
  else_branch.add_output()->set_name("e");
  add_output("y");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  const Graph& g = imported->graph;
  ASSERT_EQ(ops_of(g), (Ops{"if"}));
  EXPECT_EQ(g.nodes[0]->inputs, g.inputs);
  for (const char* name : {"then_branch", "else_branch"}) {
    EXPECT_EQ(std::get<GraphPtr>(*g.nodes[0]->attr(name))->inputs.size(), 2u);
  }
  for (const bool taken : {true, false}) {
    uint8_t condition = taken;
    float x[] = {1, 2}, z[] = {10, 20};
    const TensorType types[] = {{DType::kBool, {}, nullptr}, {DType::kF32, {2}, nullptr}};
    const TensorView in[] = {{&types[0], reinterpret_cast<std::byte*>(&condition)},
                             {&types[1], reinterpret_cast<std::byte*>(x)},
                             {&types[1], reinterpret_cast<std::byte*>(z)}};
    const auto out = run_graph_reference(g, in);
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(*reinterpret_cast<const float*>((*out)[0].bytes.data()), taken ? -10 : 11);
  }
}

TEST_F(OnnxTest, BranchThatIsAlwaysTakenIsInlined) {
  add_input("x", {2});
  auto& constant = *graph().add_initializer();
  constant.set_name("c");
  constant.set_data_type(proto::TensorProto::BOOL);
  constant.add_int32_data(0);
  auto& node = add_node(graph(), "If", {"c"}, {"y"});
  auto& then_branch = add_graph(node, "then_branch");
  add_node(then_branch, "NoSuchOperator", {"x"}, {"t"});
  then_branch.add_output()->set_name("t");
  auto& else_branch = add_graph(node, "else_branch");
  add_node(else_branch, "Neg", {"x"}, {"e"});
  else_branch.add_output()->set_name("e");
  add_output("y");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(ops_of(imported->graph), (Ops{"neg"}));
}

TEST_F(OnnxTest, LoopsMayCarryValuesThatGrow) {
  add_input("x", {2});
  auto& trips = *graph().add_initializer();
  trips.set_name("trips");
  trips.set_data_type(proto::TensorProto::INT64);
  trips.add_int64_data(3);
  auto& loop = add_node(graph(), "Loop", {"trips", "", "x"}, {"y"});
  auto& body = add_graph(loop, "body");
  body.add_input()->set_name("i"), body.add_input()->set_name("go"), body.add_input()->set_name("all");
  auto& concat = add_node(body, "Concat", {"all", "x"}, {"more"});
  add_int(concat, "axis", 0);
  body.add_output()->set_name("go"), body.add_output()->set_name("more");
  add_output("y");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(run(imported->graph, {{1, 2}}, {{2}}), (std::vector<float>{1, 2, 1, 2, 1, 2, 1, 2}));
}

TEST_F(OnnxTest, NumbersBesideValuesThatAreOnlyStoredAreRefused) {
  add_input("x", {2}, proto::TensorProto::FLOAT8E4M3FNUZ);
  auto& node = add_node(graph(), "Swish", {"x"}, {"y"});
  auto& alpha = *node.add_attribute();
  alpha.set_name("alpha");
  alpha.set_type(proto::AttributeProto::FLOAT);
  alpha.set_f(0.5f);
  add_output("y");
  EXPECT_EQ(refused(Code::kConversion, "stored, not computed with").nodes().size(), 1u);
}

TEST_F(OnnxTest, NumbersThatDoNotFitTheIntegersBesideThemAreRefused) {
  add_input("x", {2}, proto::TensorProto::INT64);
  auto& node = add_node(graph(), "Swish", {"x"}, {"y"});
  auto& alpha = *node.add_attribute();
  alpha.set_name("alpha");
  alpha.set_type(proto::AttributeProto::FLOAT);
  add_output("y");
  for (const float value : {INFINITY, -INFINITY, NAN, 1e30f, 0x1p63f, -0x1.000002p63f}) {
    alpha.set_f(value);
    EXPECT_EQ(refused(Code::kConversion, "a number that has to be int64 does not fit it").nodes().size(), 1u) << value;
  }
}

TEST_F(OnnxTest, ProblemsInNestedGraphsAreListedOnce) {
  add_input("c", {}, proto::TensorProto::BOOL);
  auto& node = add_node(graph(), "If", {"c"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& branch = add_graph(node, name);
    add_node(branch, "NoSuchOperator", {"c"}, {"t"});
    branch.add_output()->set_name("t");
  }
  add_output("y");
  EXPECT_EQ(refused(Code::kConversion, "2 of 3 nodes").nodes().size(), 2u);
}

}  // namespace
}  // namespace pinnace::testing
