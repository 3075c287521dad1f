// Names that a PyTorch archive gives: inputs and outputs by the nests of its call, nodes by their modules, files
// without the folders of the machine that wrote it. Hostile nests end without a name, not without an end.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/text.h"
#include "import/source_files.h"
#include "import/torch/exported/call_names.h"
#include "import/torch/exported/module_names.h"

namespace pinnace::torch_import {
namespace {

using Names = std::vector<std::string>;

const std::string kLeaf = R"({"type":null,"context":null,"children_spec":[]})";

std::string nest(const std::string& type, const std::string& context, const Names& children) {
  std::string list, escaped;
  for (const std::string& child : children) list += (list.empty() ? "" : ",") + child;
  for (const char c : context) escaped += c == '"' ? "\\\"" : std::string(1, c);
  return str_cat(R"({"type":")", type, R"(","context":")", escaped, R"(","children_spec":[)", list, "]}");
}
std::string tuple(const Names& children) {
  return nest("builtins.tuple", "null", children);
}
std::string dict(const std::string& keys, const Names& children) {
  return nest("builtins.dict", keys, children);
}
std::string spec(const std::string& root) {
  return str_cat("[1,", root, "]");
}

TEST(TorchCallNames, FollowTheNestsOfACall) {
  const std::string states = nest("builtins.list", "null", {tuple({kLeaf, kLeaf})});
  const std::string call = spec(tuple({tuple({kLeaf, dict(R"(["image",7])", {kLeaf, states})}),
                                       dict(R"(["mask"])", {nest("my.Class", R"([["a"],["b"]])", {kLeaf})})}));
  EXPECT_EQ(input_names(call, {"x", "batch"}), (Names{"x", "batch.image", "batch.7.0.0", "batch.7.0.1", "mask.a"}));
  EXPECT_EQ(input_names(call, {"x"}), Names{});  // fewer names than arguments
  EXPECT_EQ(input_names(spec(kLeaf), {}), Names{});
  EXPECT_EQ(input_names("", {}), Names{});
}

TEST(TorchCallNames, NameResultsThatHaveNames) {
  EXPECT_EQ(output_names(spec(kLeaf)), (Names{""}));
  EXPECT_EQ(output_names(spec(tuple({kLeaf, tuple({kLeaf})}))), (Names{"", ""}));
  EXPECT_EQ(output_names(spec(tuple({kLeaf, dict(R"(["a"])", {kLeaf})}))), (Names{"", "1.a"}));
  EXPECT_EQ(output_names(spec(nest("transformers.Output", R"(["logits","past"])", {kLeaf, tuple({kLeaf, kLeaf})}))),
            (Names{"logits", "past.0", "past.1"}));
  EXPECT_EQ(output_names(spec(dict(R"(["a"])", {kLeaf, kLeaf}))), (Names{"", ""}));  // a key too few
  EXPECT_EQ(output_names(spec(dict(R"(["",2.5])", {kLeaf, kLeaf}))), (Names{"", ""}));
  for (const char* text : {"", "[]", "[1]", "[1,2]", "[1,{}]", R"([1,{"type":3}])", R"([1,{"type":"x"}])", "nonsense"})
    EXPECT_TRUE(output_names(text).empty() || output_names(text) == Names{""}) << text;
}

TEST(TorchCallNames, HostileNestsAreBounded) {
  std::string deep = kLeaf;
  for (int i = 0; i < 300; ++i) deep = dict(R"(["key"])", {deep});
  EXPECT_EQ(output_names(spec(deep)), (Names{""}));  // longer than a name may be
  for (int i = 0; i < 3000; ++i) deep = tuple({deep});
  EXPECT_EQ(output_names(spec(deep)), Names{});  // deeper than JSON is read
  const std::string key(kMaxCallName - 20, 'k');
  Names many(20000, kLeaf);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(output_names(spec(dict(str_cat(R"([")", key, R"("])"), {tuple(many)}))), Names{});  // 4 MB of names
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(output_names(spec(dict(str_cat(R"([")", std::string(100000, 'k'), R"(","b"])"), {kLeaf, kLeaf}))),
            (Names{"", "b"}));
}

NodeDef node_of(const std::string& name, const std::string& module, int64_t call = 0) {
  NodeDef node;
  node.name = name;
  node.source.module = module;
  node.module_call = call;
  Argument output;
  output.kind = ArgumentKind::kTensor;
  output.text = name;
  node.outputs.push_back(std::move(output));
  return node;
}

TEST(TorchModuleNames, AreTheModulesPathAndTheOperatorWhereThereAreSeveral) {
  GraphDef def;
  def.nodes.push_back(node_of("conv2d", "features.0"));
  def.nodes.push_back(node_of("relu_", "act"));
  def.nodes.push_back(node_of("relu__1", "act", 1));
  def.nodes.push_back(node_of("view_7", "attn"));
  def.nodes.push_back(node_of("view_8", "attn"));
  def.nodes.push_back(node_of("hardtanh__7", "attn"));
  def.nodes.push_back(node_of("add", ""));
  def.nodes.push_back(node_of("sym_size", "features.0"));
  def.nodes.back().outputs[0].kind = ArgumentKind::kSymInt;
  EXPECT_EQ(module_names(def),
            (Names{"features.0", "act", "act@1", "attn:view", "attn:view_1", "attn:hardtanh", "", ""}));
}

TEST(SourceFiles, HaveNoFoldersOfTheMachine) {
  SourceFiles files;
  files.learn("/home/me/proj/mypkg/models/net.py", "torch.nn.modules.linear.Linear");
  EXPECT_EQ(files.stored_name("/home/me/proj/mypkg/models/net.py"), "net.py");
  files.learn("/home/me/proj/mypkg/models/net.py", "mypkg.models.net.Net.Inner");
  files.learn("/home/me/proj/other.py", "other.Net");  // no package: nothing lies below it
  files.learn("C:\\work\\pkg\\__init__.py", "pkg.Net");
  EXPECT_EQ(files.stored_name("/home/me/proj/mypkg/models/net.py"), "mypkg/models/net.py");
  EXPECT_EQ(files.stored_name("/home/me/proj/mypkg/ops.py"), "mypkg/ops.py");
  EXPECT_EQ(files.stored_name("/home/me/proj/other.py"), "other.py");
  EXPECT_EQ(files.stored_name("/home/me/proj/mypkg2/net.py"), "net.py");
  EXPECT_EQ(files.stored_name("C:\\work\\pkg\\blocks.py"), "pkg/blocks.py");
  EXPECT_EQ(files.stored_name("/home/me/proj/mypkg/venv/lib/python3.11/site-packages/torchvision/models/resnet.py"),
            "torchvision/models/resnet.py");
  EXPECT_EQ(files.stored_name("<eval_with_key>.12"), "<eval_with_key>");
  EXPECT_EQ(files.stored_name("<"), "");
  EXPECT_EQ(files.stored_name(""), "");
  EXPECT_EQ(files.stored_name("/a/" + std::string(5000, 'x') + "/net.py"), "net.py");
}

TEST(SourceFiles, TakeNoMoreThanAHandfulOfPackages) {
  SourceFiles files;
  for (int i = 0; i < 1000; ++i) files.learn(str_cat("/r", i, "/p/net.py"), "p.net.Net");
  EXPECT_EQ(files.stored_name("/r0/p/net.py"), "p/net.py");
  EXPECT_EQ(files.stored_name("/r999/p/net.py"), "net.py");
}

}  // namespace
}  // namespace pinnace::torch_import
