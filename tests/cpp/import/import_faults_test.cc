// Loading each format of models, checking and building while each allocation, ours and those of the libraries that read
// files, and each call of the file system fails once.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include <pinnace/model.h>
#include <pinnace/testing.h>

#include "cpp/fault_harness.h"
#include "cpp/import/torch_fixture.h"
#include "cpp/program/program_fixture.h"
#include "onnx_model.pb.h"

namespace pinnace::testing {
namespace {
namespace proto = pinnace::onnx_proto;

constexpr const char* kNnapi = R"({"format": "nnapi-vectors-1", "spec": "s", "folder": "f",
"buffers": [[1, 2, -3.5, 4], [2.0], [0]],
"cases": [{"name": "first", "relaxed": false, "min_level": 29, "main": {"operands": [
{"code": 3, "dims": [2, 2], "life": "input", "buf": 0},
{"code": 3, "dims": [1], "life": "const", "buf": 1},
{"code": 1, "dims": [], "life": "const", "buf": 2},
{"code": 3, "dims": [2, 2], "life": "output", "buf": 0}],
"operations": [{"op": "MUL", "code": 18, "in": [0, 1, 2], "out": [3]}],
"inputs": [0], "outputs": [3]}, "refs": []}]})";

constexpr const char* kText = R"(graph "text" {
  symbol n 1..4
  input %x : f32[n,4]
  const %w : f32[4,2] = {1,2,3,4,5,6,7,8}
  const %b : f32[2] = {1,-1}
  %m : f32[n,2] = mat_mul(%x, %w)
  %s : f32[n,2] = add(%m, %b)
  %r : f32[n,2] = relu(%s)
  output "y" %r
})";

/// relu(x * w + b), w in the file or beside it.
std::string onnx_model(bool external) {
  proto::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  proto::GraphProto& graph = *model.mutable_graph();
  graph.set_name("a graph with a name that is long enough to be allocated");
  const auto typed = [](proto::ValueInfoProto& value, const char* name, int64_t columns) {
    value.set_name(name);
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(proto::TensorProto::FLOAT);
    tensor.mutable_shape()->add_dim()->set_dim_param("n");
    tensor.mutable_shape()->add_dim()->set_dim_value(columns);
  };
  typed(*graph.add_input(), "x", 4);
  typed(*graph.add_output(), "y", 2);
  const auto constant = [&](const char* name, const std::vector<int64_t>& dims,
                            const std::vector<float>& values) -> auto& {
    auto& t = *graph.add_initializer();
    t.set_name(name);
    t.set_data_type(proto::TensorProto::FLOAT);
    for (int64_t d : dims) t.add_dims(d);
    t.set_raw_data(values.data(), values.size() * sizeof(float));
    return t;
  };
  auto& w = constant("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  constant("b", {2}, {1, -1});
  if (external) {
    w.clear_raw_data();
    w.set_data_location(proto::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair{"location", "w.bin"}, {"offset", "0"}, {"length", "32"}}) {
      auto& entry = *w.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
  }
  const auto node = [&](const char* op, const std::vector<const char*>& inputs, const char* output) {
    auto& n = *graph.add_node();
    n.set_op_type(op);
    for (const char* input : inputs) n.add_input(input);
    n.add_output(output);
  };
  node("MatMul", {"x", "w"}, "a node's output with a name that is long enough");
  node("Add", {"a node's output with a name that is long enough", "b"}, "s");
  node("Relu", {"s"}, "y");
  return model.SerializeAsString();
}

class ImportFaults : public ::testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    if (!kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
    const float w[] = {1, 2, 3, 4, 5, 6, 7, 8};
    write("w.bin", std::string(reinterpret_cast<const char*>(w), sizeof w));
    write("plain.onnx", onnx_model(false));
    write("external.onnx", onnx_model(true));
    write("net.pt2", torch_import::zip_of(torch_import::good_entries()));
    write("nnapi.json", kNnapi);
    const Program program = load(sample_bytes());
    write("net.pnc", {reinterpret_cast<const char*>(program.bytes().data()), program.bytes().size()});
    names_ = folder_.names();
  }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_.file(name), std::ios::binary) << bytes;
  }

  TemporaryFolder folder_;
  std::vector<std::string> names_;
};

TEST_P(ImportFaults, Load) {
  for (const char* name : {"plain.onnx", "external.onnx", "net.pt2", "nnapi.json", "net.pnc"}) {
    const std::string path = folder_.file(name);
    const LoadOptions options;
    std::string right;
    {
      const auto model = Model::load(path, options);
      ASSERT_TRUE(model.ok()) << name << ": " << model.status().message();
      right = model->text();
    }
    std::optional<Model> loaded;
    const auto call = [&] {
      auto model = Model::load(path, options);
      if (model) loaded.emplace(std::move(*model));
      return model.status();
    };
    const auto after = [&](const Status& status) -> std::string {
      if (folder_.names() != names_) return "files are left in the folder";
      if (status.ok() && loaded->text() != right) return "another model was loaded: " + loaded->text();
      const auto model = Model::load(path, options);
      if (!model) return "cannot be loaded any more: " + model.status().message();
      return model->text() == right ? "" : "another model is loaded now";
    };
    // libzip takes some of its own failed allocations for an archive that is none.
    std::vector<Code> codes;
    if (GetParam() == Fault::kLibraryAllocation) codes = {Code::kCorruptFile};
    std::vector<Fault> meets = {Fault::kAllocation, Fault::kNoMoreAllocations, Fault::kFile};
    if (name != std::string("net.pnc")) meets.push_back(Fault::kLibraryAllocation);
    fail_everywhere({std::string("load ") + name, [] {}, call, after, [&] { loaded.reset(); }, meets, codes},
                    GetParam());
  }
}

TEST_P(ImportFaults, ParseCheckAndBuild) {
  const LoadOptions options;
  const auto text = Model::parse(kText, options);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const std::string right = text->text();
  std::optional<Model> model;
  fail_everywhere({"parse the text form", [] {},
                   [&] {
                     auto parsed = Model::parse(kText, options);
                     if (parsed) model.emplace(std::move(*parsed));
                     return parsed.status();
                   },
                   [&](const Status& status) -> std::string {
                     if (status.ok() && model->text() != right) return "another model was parsed";
                     const auto now = Model::parse(kText, options);
                     return now && now->text() == right ? "" : "cannot be parsed any more";
                   },
                   [&] { model.reset(); }},
                  GetParam());
  const std::vector<std::string> targets = {"cpu"};
  const size_t nodes = text->nodes().size();
  std::vector<CheckRow> rows;
  fail_everywhere({"check", [] {},
                   [&] {
                     auto checked = text->check(targets);
                     if (checked) rows = std::move(*checked);
                     return checked.status();
                   },
                   [&](const Status& status) -> std::string {
                     if (status.ok() && rows.size() != nodes) return "there are rows missing";
                     const auto now = text->check(targets);
                     return now && now->size() == nodes ? "" : "cannot be checked any more";
                   },
                   [&] { rows = {}; }},
                  GetParam());
  BuildOptions build;
  build.targets = {"cpu"};
  const auto whole = text->build(build);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const auto same = [&](const Program& program) {
    return std::equal(program.bytes().begin(), program.bytes().end(), whole->bytes().begin(), whole->bytes().end());
  };
  std::optional<Program> program;
  fail_everywhere({"build", [] {},
                   [&] {
                     auto built = text->build(build);
                     if (built) program.emplace(std::move(*built));
                     return built.status();
                   },
                   [&](const Status& status) -> std::string {
                     if (status.ok() && !same(*program)) return "another program was built";
                     const auto now = text->build(build);
                     return now && same(*now) ? "" : "cannot be built any more";
                   },
                   [&] { program.reset(); }},
                  GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, ImportFaults,
                         ::testing::Values(Fault::kAllocation, Fault::kNoMoreAllocations, Fault::kLibraryAllocation,
                                           Fault::kFile),
                         kFaultTestName);

}  // namespace
}  // namespace pinnace::testing
