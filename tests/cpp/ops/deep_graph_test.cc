// Graphs of 10,000 nodes in a row, in order, reversed and in a circle, and graphs nested 10,000 deep, in every format:
// the first are taken, the others refused, and neither is a matter of the stack's size.
#include <pinnace/model.h>

#include <cmath>

#include "cpp/guarded.h"
#include "cpp/import/onnx_fixture.h"
#include "cpp/import/torch_fixture.h"
#include "cpp/program/program_fixture.h"

namespace pinnace::testing {
namespace {

constexpr int kDepth = 10'000;
// A chain is legal work, with every pass and the planner: it takes a tenth of this on an idle machine.
const Allowance kWork{.seconds = kSanitized ? 60 : 5};

/// Loads, builds and runs a model of one input f32[2] and kDepth nodes on {1, -1}. Empty, or what is wrong.
std::string load_and_run(const std::string& path, float wanted) {
  const auto model = Model::load(path);
  if (!model.ok()) return model.status().message();
  if (model->nodes().size() != kDepth) return str_cat(model->nodes().size(), " nodes");
  const auto program = model->build();
  if (!program.ok()) return program.status().message();
  auto session = Session::create(*program, {.threads = 1});
  if (!session.ok()) return session.status().message();
  float x[] = {1, -1};
  Tensor in{program->inputs()[0].type, {}};
  in.memory.host = x, in.memory.bytes = sizeof x;
  const Status status = session->run(std::vector{in});
  if (!status.ok()) return status.message();
  const float y = *static_cast<const float*>(session->output(0).memory.host);
  // A kernel's sine is within 2 units in the last place of the library's; here the error does not grow.
  return std::abs(y - wanted) < 1e-6f ? "" : str_cat("gives ", y, ", not ", wanted);
}

std::string once(const Allowance& allowance, const std::function<std::string()>& body) {
  return run_guarded(1, allowance, [&](size_t, const auto&) { return body(); }).failure;
}

/// Empty if `path` is refused with `code` and a sentence that holds `part`.
std::string refusal(const std::string& path, Code code, std::string_view part) {
  const auto model = Model::load(path);
  if (model.ok()) return "is accepted";
  const std::string text = str_cat(code_name(model.status().code()), ": ", model.status().message());
  if (model.status().code() != code || text.find(part) == std::string::npos) return text.substr(0, 2000);
  return {};
}

class DeepGraph : public OnnxTest {
 protected:
  /// v<i + 1> = Neg(v<i>), in this order or the other; the last reads the first.
  void make_chain(bool reversed) {
    add_input("v0", {2});
    for (int i = 0; i < kDepth; ++i) {
      const int at = reversed ? kDepth - 1 - i : i;
      // Exp would overflow, and two Neg in a row may be taken out.
      add_node(graph(), "Sin", {str_cat("v", at)}, {str_cat("v", at + 1)});
    }
    add_output(str_cat("v", kDepth));
  }
  std::string save() {
    write(path(), model_.SerializeAsString());
    return path().string();
  }
  std::string save(const std::string& bytes, const char* name) {
    write(folder_ / name, bytes);
    return (folder_ / name).string();
  }
  /// What the chain gives for 1.
  static float wanted() {
    float y = 1;
    for (int i = 0; i < kDepth; ++i) y = std::sin(y);
    return y;
  }
};

std::string torch_file(const std::string& nodes, const std::string& tensors) {
  std::vector<torch_import::Entry> entries = torch_import::good_entries();
  entries[1].bytes = torch_import::program_of(nodes, tensors);
  return torch_import::zip_of(entries);
}
std::string torch_node(const std::string& target, const std::string& in, const std::string& out) {
  return str_cat(R"({"target":"torch.ops.aten.)", target, R"(.default","name":")", out,
                 R"(","inputs":[{"name":"self","arg":{"as_tensor":{"name":")", in,
                 R"("}},"kind":1}],"outputs":[{"as_tensor":{"name":")", out, R"("}}],"metadata":{}})");
}
std::string torch_chain() {
  std::string nodes, tensors;
  for (int i = 0; i < kDepth; ++i) {
    const std::string in = i ? str_cat("v", i) : "x", out = i + 1 < kDepth ? str_cat("v", i + 1) : "y";
    nodes += str_cat(i ? "," : "", torch_node("sin", in, out));
    if (i + 1 < kDepth) tensors += str_cat(",\"", out, "\":", torch_import::kTensor);
  }
  return torch_file(nodes, tensors);
}

TEST_F(DeepGraph, ChainsOfOnnxRun) {
  for (const bool reversed : {false, true}) {
    SCOPED_TRACE(reversed ? "reversed" : "in order");
    graph().Clear();
    make_chain(reversed);
    const std::string file = save();
    EXPECT_EQ(once(kWork, [&] { return load_and_run(file, wanted()); }), "");
  }
}

TEST_F(DeepGraph, ChainsOfTorchRun) {
  const std::string file = save(torch_chain(), "chain.pt2");
  EXPECT_EQ(once(kWork, [&] { return load_and_run(file, wanted()); }), "");
}

TEST_F(DeepGraph, ChainsOfProgramsRun) {
  make_chain(false);
  const auto model = Model::load(save());
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto program = model->build();
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string file = (folder_ / "chain.pnc").string();
  ASSERT_TRUE(program->save(file).ok());
  EXPECT_EQ(once(kWork, [&] { return load_and_run(file, wanted()); }), "");
  EXPECT_EQ(once(kWork,
                 [&] {
                   const auto again = Model::parse(model->text());
                   return again.ok() ? std::string() : again.status().message();
                 }),
            "");
}

TEST_F(DeepGraph, CirclesAreNamed) {
  make_chain(true);
  graph().mutable_node(kDepth - 1)->set_input(0, str_cat("v", kDepth));
  const std::string onnx = save();
  EXPECT_EQ(once({}, [&] { return refusal(onnx, Code::kCorruptFile, "wait for each other"); }), "");
  // In an archive nodes stand in order: whoever reads a later value reads nothing.
  const std::string tensors = str_cat(",\"z\":", torch_import::kTensor);
  const std::string nodes = torch_node("sin", "z", "y") + "," + torch_node("sin", "y", "z");
  const std::string torch = save(torch_file(nodes, tensors), "circle.pt2");
  EXPECT_EQ(once({}, [&] { return refusal(torch, Code::kConversion, "before it is made: z"); }), "");
  const std::string dangling = save(torch_file(torch_node("sin", "nothing", "y"), ""), "dangling.pt2");
  EXPECT_EQ(once({}, [&] { return refusal(dangling, Code::kConversion, "before it is made: nothing"); }), "");
}

/// A message that holds another as `field`, from the innermost outwards; protobuf's own writer would recurse.
std::string nested_message(const std::string& innermost, const std::vector<std::string>& before_each_level) {
  std::vector<std::string> heads;
  size_t length = innermost.size();
  for (int i = 0; i < kDepth; ++i) {
    for (const std::string& tag : before_each_level) {
      std::string head = tag;
      for (size_t left = length; true; left >>= 7) {
        head.push_back(static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0)));
        if (left <= 0x7f) break;
      }
      length += head.size();
      heads.push_back(std::move(head));
    }
  }
  std::string bytes;
  bytes.reserve(length);
  for (size_t i = heads.size(); i-- > 0;) bytes += heads[i];
  return bytes + innermost;
}

TEST_F(DeepGraph, NestingOfTenThousandIsRefused) {
  // GraphProto.node = 1, NodeProto.attribute = 5, AttributeProto.g = 6, each a message; ModelProto.graph = 7.
  const std::string graphs = nested_message("", {"\x32", "\x2a", "\x0a"});
  std::string model = "\x08\x08\x3a";
  for (size_t left = graphs.size(); true; left >>= 7) {
    model.push_back(static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0)));
    if (left <= 0x7f) break;
  }
  const std::string onnx = save(model + graphs, "nested.onnx");
  EXPECT_EQ(once({}, [&] { return refusal(onnx, Code::kCorruptFile, "nest deeper than 100"); }), "");

  std::string nodes, ends;
  for (int i = 0; i < kDepth; ++i) {
    nodes +=
        R"({"target":"torch.ops.higher_order.cond","name":"y","inputs":[{"name":"","arg":{"as_graph":{"name":"g","graph":{"inputs":[],"outputs":[],"nodes":[)";
    ends += R"(],"tensor_values":{}}}},"kind":1}],"outputs":[]})";
  }
  const std::string torch = save(torch_file(nodes + ends, ""), "nested.pt2");
  EXPECT_EQ(once({}, [&] { return refusal(torch, Code::kCorruptFile, "JSON"); }), "");

  FileParts parts(sample_bytes());
  format::ModelT& tables = *parts.model;
  const auto op = static_cast<uint32_t>(tables.operators.size());
  tables.strings.push_back("testing.hold");
  tables.operators.push_back(std::make_unique<format::OperatorT>());
  tables.operators.back()->name = static_cast<uint32_t>(tables.strings.size() - 1);
  tables.operators.back()->version = 1;
  tables.graphs.resize(1);
  for (int i = 0; i < kDepth; ++i) {
    auto node = std::make_unique<format::NodeT>();
    node->op = op;
    node->attrs.push_back(std::make_unique<format::AttrT>());
    node->attrs[0]->kind = format::AttrKind::Graph;
    node->attrs[0]->graph = i + 1;
    tables.graphs.back()->nodes.push_back(std::move(node));
    tables.graphs.push_back(std::make_unique<format::GraphT>());
  }
  const std::vector<std::byte> bytes = parts.write();
  const std::string pnc = save({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "nested.pnc");
  // Names of nodes say where they are nested, so the sum of depths is what is too much here; F-42 has the depth alone.
  EXPECT_EQ(once({}, [&] { return refusal(pnc, Code::kCorruptFile, "(rule F-18)"); }), "");
}

}  // namespace
}  // namespace pinnace::testing
