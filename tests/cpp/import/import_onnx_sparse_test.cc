// Sparse tensors of ONNX: as initialisers and as constants they become dense; what does not fit is an error.
#include "cpp/import/onnx_fixture.h"

namespace pinnace::testing {
namespace {

class SparseTest : public OnnxTest {
 protected:
  static void fill(proto::SparseTensorProto& sparse, std::vector<int64_t> dims, std::vector<float> values,
                   std::vector<int64_t> index_dims, std::vector<int64_t> indices) {
    sparse.Clear();
    for (int64_t d : dims) sparse.add_dims(d);
    auto& v = *sparse.mutable_values();
    v.set_name("w");
    v.set_data_type(proto::TensorProto::FLOAT);
    v.add_dims(static_cast<int64_t>(values.size()));
    v.set_raw_data(values.data(), values.size() * sizeof(float));
    auto& i = *sparse.mutable_indices();
    i.set_data_type(proto::TensorProto::INT64);
    for (int64_t d : index_dims) i.add_dims(d);
    i.set_raw_data(indices.data(), indices.size() * sizeof(int64_t));
  }
  /// y = x + w with w sparse [2,3].
  proto::SparseTensorProto& make_model() {
    model_.clear_graph();
    add_input("x", {2, 3});
    add_node(graph(), "Add", {"x", "w"}, {"y"});
    add_output("y");
    return *graph().add_sparse_initializer();
  }
  void expect_values(const std::vector<float>& wanted) {
    const auto imported = import_model();
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    EXPECT_EQ(run(imported->graph, {{0, 0, 0, 0, 0, 0}}, {{2, 3}}), wanted);
  }
};

TEST_F(SparseTest, BecomesDense) {
  fill(make_model(), {2, 3}, {5, 7}, {2}, {1, 5});
  expect_values({0, 5, 0, 0, 0, 7});
  fill(make_model(), {2, 3}, {5, 7}, {2, 2}, {0, 1, 1, 2});
  expect_values({0, 5, 0, 0, 0, 7});
  fill(make_model(), {2, 3}, {}, {0}, {});
  expect_values({0, 0, 0, 0, 0, 0});
  add_input("w", {2, 3});  // an initialiser is a default of the input of that name
  expect_values({0, 0, 0, 0, 0, 0});
}

TEST_F(SparseTest, ConstantsAndBranchesMayBeSparse) {
  make_model();
  graph().clear_sparse_initializer();
  auto& value = add_attr(add_node(graph(), "Constant", {}, {"w"}), "sparse_value");
  value.set_type(proto::AttributeProto::SPARSE_TENSOR);
  fill(*value.mutable_sparse_tensor(), {3}, {2}, {1}, {1});
  expect_values({0, 2, 0, 0, 2, 0});

  model_.clear_graph();
  add_input("x", {2, 3});
  add_input("c", {}, proto::TensorProto::BOOL);
  auto& branch = add_node(graph(), "If", {"c"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& body = add_graph(branch, name);
    fill(*body.add_sparse_initializer(), {2, 3}, {4}, {1}, {0});
    add_node(body, "Add", {"x", "w"}, {"z"});
    body.add_output()->set_name("z");
  }
  add_output("y");
  const auto imported = import_model();
  EXPECT_TRUE(imported.ok()) << imported.status().message();
}

TEST_F(SparseTest, HostileIndicesAreErrors) {
  constexpr int64_t kFar = int64_t{1} << 62;
  for (const int64_t index : {int64_t{-1}, int64_t{6}, kFar, INT64_MIN}) {
    fill(make_model(), {2, 3}, {5}, {1}, {index});
    EXPECT_EQ(refused(Code::kCorruptFile, "is outside float32[2,3]").rule(), "O-16");
    fill(make_model(), {2, 3}, {5}, {1, 2}, {index == 6 ? 2 : index, 0});
    refused(Code::kCorruptFile, "in dimension 0 is outside float32[2,3]");
  }
  fill(make_model(), {2, 3}, {5, 7}, {2}, {4, 4});
  refused(Code::kCorruptFile, "does not follow that before it");
  fill(make_model(), {2, 3}, {5, 7}, {2, 2}, {1, 0, 0, 2});
  refused(Code::kCorruptFile, "does not follow that before it");
  fill(make_model(), {0, 3}, {5}, {1}, {0});
  refused(Code::kCorruptFile, "is outside float32[0,3]");
}

TEST_F(SparseTest, PartsMustFitEachOther) {
  fill(make_model(), {2, 3}, {5, 7}, {3}, {1, 2, 3});
  refused(Code::kCorruptFile, "its indices are int64[3]");
  fill(make_model(), {2, 3}, {5, 7}, {2, 3}, {1, 2, 3, 4, 5, 6});
  refused(Code::kCorruptFile, "its indices are int64[2,3]");
  fill(make_model(), {2, 3}, {5, 7}, {}, {1});
  refused(Code::kCorruptFile, "its indices are int64[]");
  fill(make_model(), {2, 3}, {5, 7}, {2}, {1});
  refused(Code::kCorruptFile, "raw_data has 8");
  fill(make_model(), {}, {5}, {1}, {0});
  refused(Code::kCorruptFile, "has no dimensions");
  fill(make_model(), {2, -3}, {5}, {1}, {0});
  refused(Code::kCorruptFile, "dimension of -3");
  auto& typed = make_model();
  fill(typed, {2, 3}, {5}, {1}, {0});
  typed.mutable_indices()->set_data_type(proto::TensorProto::DOUBLE);
  refused(Code::kCorruptFile, "its indices are float64[1]");
  auto& shaped = make_model();
  fill(shaped, {2, 3}, {5}, {1}, {0});
  shaped.mutable_values()->add_dims(1);
  refused(Code::kCorruptFile, "must be a vector");
  auto& twice = make_model();
  fill(twice, {2, 3}, {5}, {1}, {0});
  add_floats("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  refused(Code::kCorruptFile, "'w' is defined twice");
}

TEST_F(SparseTest, WhatCannotBeDenseIsRefusedByName) {
  fill(make_model(), {1 << 20, 1 << 20}, {5}, {1}, {0});
  refused(Code::kConversion, "bytes as a dense tensor");
  fill(make_model(), {int64_t{1} << 40, int64_t{1} << 40}, {5}, {1}, {0});
  refused(Code::kCorruptFile, "larger than memory can be");
  auto& small = make_model();
  fill(small, {2, 3}, {}, {0}, {});
  small.mutable_values()->set_data_type(proto::TensorProto::INT4);
  refused(Code::kConversion, "less than a byte");
}

}  // namespace
}  // namespace pinnace::testing
