// ONNX models made in the test, written to a folder of its own and imported from there.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cpp/scratch_folder.h"
#include "import/import.h"
#include "onnx_model.pb.h"

namespace pinnace::testing {
namespace proto = pinnace::onnx_proto;

class OnnxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = scratch_folder() / str_cat("pinnace_onnx_", ::getpid(), "_", test->name());
    std::filesystem::create_directories(folder_ / "model");
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(17);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  proto::GraphProto& graph() { return *model_.mutable_graph(); }
  std::filesystem::path path() const { return folder_ / "model" / "model.onnx"; }

  static void write(const std::filesystem::path& to, const std::string& bytes) {
    std::ofstream(to, std::ios::binary) << bytes;
  }
  Result<Imported> import_bytes(const std::string& bytes, const ImportOptions& options = {}) {
    write(path(), bytes);
    return import_onnx(path(), options);
  }
  Result<Imported> import_model(const ImportOptions& options = {}) {
    return import_bytes(model_.SerializeAsString(), options);
  }
  /// The status of an import that must fail with `code` and a text that holds `part`; a reference, as tests may ignore
  /// it.
  const Status& refused(Code code, const std::string& part) {
    const auto imported = import_model();
    EXPECT_FALSE(imported.ok()) << "wanted: " << part;
    EXPECT_STREQ(code_name(imported.status().code()), code_name(code)) << imported.status().message();
    EXPECT_NE(imported.status().message().find(part), std::string::npos) << imported.status().message();
    return last_ = imported.status();
  }

  /// A dimension below 0 has the name "s<n>".
  static void set_type(proto::ValueInfoProto& value, const std::string& name, int type,
                       const std::vector<int64_t>& dims) {
    value.set_name(name);
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (int64_t d : dims) {
      auto& dim = *tensor.mutable_shape()->add_dim();
      d < 0 ? dim.set_dim_param(str_cat("s", -d)) : dim.set_dim_value(d);
    }
  }
  void add_input(const std::string& name, const std::vector<int64_t>& dims, int type = proto::TensorProto::FLOAT) {
    set_type(*graph().add_input(), name, type, dims);
  }
  void add_output(const std::string& name) { graph().add_output()->set_name(name); }
  static proto::NodeProto& add_node(proto::GraphProto& to, const std::string& op, std::vector<std::string> inputs,
                                    std::vector<std::string> outputs) {
    return fill(*to.add_node(), op, std::move(inputs), std::move(outputs));
  }
  static proto::NodeProto& fill(proto::NodeProto& node, const std::string& op, std::vector<std::string> inputs,
                                std::vector<std::string> outputs) {
    node.set_op_type(op);
    for (auto& name : inputs) node.add_input(std::move(name));
    for (auto& name : outputs) node.add_output(std::move(name));
    return node;
  }
  proto::TensorProto& add_floats(const std::string& name, const std::vector<int64_t>& dims, std::vector<float> values) {
    auto& t = *graph().add_initializer();
    t.set_name(name);
    t.set_data_type(proto::TensorProto::FLOAT);
    for (int64_t d : dims) t.add_dims(d);
    t.set_raw_data(values.data(), values.size() * sizeof(float));
    return t;
  }
  static proto::AttributeProto& add_attr(proto::NodeProto& node, const std::string& name) {
    auto& a = *node.add_attribute();
    a.set_name(name);
    return a;
  }
  static void add_int(proto::NodeProto& node, const std::string& name, int64_t value) {
    auto& a = add_attr(node, name);
    a.set_type(proto::AttributeProto::INT);
    a.set_i(value);
  }
  static proto::GraphProto& add_graph(proto::NodeProto& node, const std::string& name) {
    auto& a = add_attr(node, name);
    a.set_type(proto::AttributeProto::GRAPH);
    a.mutable_g()->set_name(name);
    return *a.mutable_g();
  }

  /// y = relu(x w + b) with x f32[2,3].
  void make_small_model() {
    add_input("x", {2, 3});
    add_floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
    add_floats("b", {2}, {-1, 1});
    add_node(graph(), "MatMul", {"x", "w"}, {"xw"}).set_name("layer/matmul");
    add_node(graph(), "Add", {"xw", "b"}, {"sum"});
    add_node(graph(), "Relu", {"sum"}, {"y"});
    add_output("y");
  }
  static std::vector<std::string> ops_of(const Graph& graph) {
    std::vector<std::string> ops;
    for (const auto& node : graph.nodes) ops.push_back(node->op);
    return ops;
  }
  /// The only output, of type f32, for f32 inputs.
  static std::vector<float> run(const Graph& graph, std::vector<std::vector<float>> inputs,
                                const std::vector<Shape>& shapes) {
    std::vector<TensorType> types;
    for (const Shape& shape : shapes) types.push_back({DType::kF32, shape, nullptr});
    std::vector<TensorView> views;
    for (size_t i = 0; i < inputs.size(); ++i) {
      views.push_back({&types[i], reinterpret_cast<std::byte*>(inputs[i].data())});
    }
    const auto outputs = run_graph_reference(graph, views);
    EXPECT_TRUE(outputs.ok()) << outputs.status().message();
    if (!outputs.ok()) return {};
    const auto* data = reinterpret_cast<const float*>((*outputs)[0].bytes.data());
    return {data, data + (*outputs)[0].type.elements()};
  }

  proto::ModelProto model_;
  std::filesystem::path folder_;
  Status last_;
};

}  // namespace pinnace::testing
