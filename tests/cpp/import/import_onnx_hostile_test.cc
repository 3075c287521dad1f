// What a malicious ONNX file may do to the importer: be refused, and the sentence says why. Damage without intent is
// import_onnx_corruption_test.cc's, size and time are import_limits_test.cc's.
#include "cpp/import/onnx_fixture.h"

namespace pinnace::testing {
namespace {

TEST_F(OnnxTest, OtherFilesAreNotModels) {
  EXPECT_EQ(import_onnx(folder_ / "none.onnx", {}).status().code(), Code::kFile);
  EXPECT_EQ(import_onnx(folder_, {}).status().code(), Code::kFile);
  EXPECT_EQ(import_bytes("").status().code(), Code::kCorruptFile);
  EXPECT_EQ(import_bytes("PK\x03\x04 an archive").status().code(), Code::kCorruptFile);
}

TEST_F(OnnxTest, TwoBytesPerNodeDoNotTakeTwoHundred) {
  std::string nodes;
  for (int i = 0; i < 2'000'000; ++i) nodes.append("\x0a\x00", 2);
  const uint32_t size = static_cast<uint32_t>(nodes.size());
  std::string bytes = "\x3a";  // field 7, the graph
  for (uint32_t left = size; left; left >>= 7)
    bytes.push_back(static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0)));
  const auto imported = import_bytes(bytes + nodes);
  EXPECT_EQ(imported.status().code(), Code::kCorruptFile);
  EXPECT_EQ(imported.status().rule(), "O-2") << imported.status().message();
}

TEST_F(OnnxTest, NestingIsLimited) {
  add_input("c", {}, proto::TensorProto::BOOL);
  add_input("x", {2});
  proto::GraphProto* at = &graph();
  for (int depth = 0; depth < 60; ++depth) {
    auto& node = add_node(*at, "If", {"c"}, {str_cat("y", depth)});
    add_graph(node, "else_branch");
    at->add_output()->set_name(str_cat("y", depth));
    at = &add_graph(node, "then_branch");
  }
  refused(Code::kCorruptFile, "nest deeper than 100");
}

// ----------------------------------------------------------------------------------------------------- names, order

TEST_F(OnnxTest, CyclesAreNamed) {
  add_input("x", {2});
  add_node(graph(), "Add", {"x", "b"}, {"a"});
  add_node(graph(), "Neg", {"a"}, {"b"});
  add_output("b");
  EXPECT_EQ(refused(Code::kCorruptFile, "wait for each other").rule(), "O-22");
}

TEST_F(OnnxTest, DanglingAndDoubleNamesAreRefused) {
  add_input("x", {2});
  add_node(graph(), "Neg", {"nothing"}, {"y"});
  add_output("y");
  EXPECT_EQ(refused(Code::kCorruptFile, "'nothing'").rule(), "O-20");
  graph().mutable_node(0)->set_input(0, "x");
  add_node(graph(), "Abs", {"x"}, {"y"});
  EXPECT_EQ(refused(Code::kCorruptFile, "'y' is made").rule(), "O-21");
  add_input("z", {2});
  graph().mutable_node(1)->set_input(0, "z");
  graph().mutable_node(1)->set_output(0, "x");
  EXPECT_EQ(refused(Code::kCorruptFile, "'x' is made twice").rule(), "O-21");
  graph().mutable_node()->RemoveLast();
  graph().mutable_output(0)->set_name("absent");
  refused(Code::kCorruptFile, "'absent'");
  graph().mutable_output(0)->set_name("y");
  add_input("x", {2});
  refused(Code::kCorruptFile, "'x' is defined twice");
}

TEST_F(OnnxTest, FunctionsThatCallThemselvesAreRefused) {
  add_input("x", {2});
  auto& function = *model_.add_functions();
  function.set_domain("mine"), function.set_name("F");
  function.add_input("a"), function.add_output("b");
  fill(*function.add_node(), "F", {"a"}, {"b"}).set_domain("mine");
  add_node(graph(), "F", {"x"}, {"y"}).set_domain("mine");
  add_output("y");
  refused(Code::kConversion, "call themselves");
}

TEST_F(OnnxTest, FunctionsThatDoubleAreStopped) {
  add_input("x", {2});
  for (int i = 0; i < 40; ++i) {  // F0 calls F1 twice, F1 calls F2 twice, …: 2^40 nodes
    auto& function = *model_.add_functions();
    function.set_domain("mine"), function.set_name(str_cat("F", i));
    function.add_input("a"), function.add_output("c");
    fill(*function.add_node(), str_cat("F", i + 1), {"a"}, {"b"}).set_domain("mine");
    fill(*function.add_node(), str_cat("F", i + 1), {"b"}, {"c"}).set_domain("mine");
  }
  auto& last = *model_.add_functions();
  last.set_domain("mine"), last.set_name("F40");
  last.add_input("a"), last.add_output("b");
  fill(*last.add_node(), "Neg", {"a"}, {"b"});
  add_node(graph(), "F0", {"x"}, {"y"}).set_domain("mine");
  add_output("y");
  EXPECT_EQ(refused(Code::kCorruptFile, "multiply the model").rule(), "O-23");
}

TEST_F(OnnxTest, NamesAreUtf8AndCommentsMayBeAnything) {
  add_input("x", {2});
  add_node(graph(), "Neg", {"x"}, {"y"}).set_doc_string("caf\xe9.py(7): forward");
  add_output("y");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->graph.nodes[0]->source.text(), "");
  graph().mutable_node(0)->set_name("caf\xe9");
  EXPECT_EQ(refused(Code::kCorruptFile, "node 0: 'caf\\xe9' is not UTF-8").rule(), "G-17");
}

// ---------------------------------------------------------------------------------------------------------- tensors

TEST_F(OnnxTest, ShapesAreCheckedBeforeMemoryIsTaken) {
  make_small_model();
  auto& w = *graph().mutable_initializer(0);
  w.set_dims(0, -3);
  EXPECT_EQ(refused(Code::kCorruptFile, "-3").rule(), "O-11");
  w.set_dims(0, int64_t{1} << 40);
  EXPECT_EQ(refused(Code::kCorruptFile, "raw_data has 24").rule(), "O-12");
  w.set_dims(1, int64_t{1} << 40);
  EXPECT_EQ(refused(Code::kCorruptFile, "larger than memory").rule(), "O-11");
  w.set_dims(0, 3), w.set_dims(1, 2);
  for (int i = 0; i < 40; ++i) w.add_dims(1);
  EXPECT_EQ(refused(Code::kCorruptFile, "42 dimensions").rule(), "O-11");
}

TEST_F(OnnxTest, TypedFieldsMustFit) {
  auto& t = *graph().add_initializer();
  t.set_name("w");
  t.set_data_type(proto::TensorProto::UINT8);
  t.add_dims(2);
  t.add_int32_data(255), t.add_int32_data(256);
  add_output("w");
  EXPECT_EQ(refused(Code::kCorruptFile, "element 1 is 256").rule(), "O-13");
  t.set_raw_data("ab");
  EXPECT_EQ(refused(Code::kCorruptFile, "more than one field").rule(), "O-12");
  t.clear_raw_data(), t.clear_int32_data(), t.add_int32_data(1);
  EXPECT_EQ(refused(Code::kCorruptFile, "int32_data has 1").rule(), "O-12");
}

TEST_F(OnnxTest, BoolsAreZeroOrOne) {
  auto& t = *graph().add_initializer();
  t.set_name("w");
  t.set_data_type(proto::TensorProto::BOOL);
  t.add_dims(2);
  t.set_raw_data(std::string("\x07\x00", 2));
  add_output("w");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  const Value& w = imported->graph.value(imported->graph.outputs[0]);
  EXPECT_EQ(w.constant->data()[0], std::byte{1});
  EXPECT_EQ(w.constant->data()[1], std::byte{0});
}

// ---------------------------------------------------------------------------------------------------- external data

class ExternalTest : public OnnxTest {
 protected:
  void SetUp() override {
    OnnxTest::SetUp();
    make_small_model();
    graph().mutable_initializer(1)->clear_raw_data();
    graph().mutable_initializer(1)->set_data_location(proto::TensorProto::EXTERNAL);
    const float values[] = {0, 0, -1, 1};
    bytes_.assign(reinterpret_cast<const char*>(values), sizeof values);
    write(folder_ / "model" / "data.bin", bytes_);
    write(folder_ / "outside.bin", bytes_);
  }
  void place(const std::string& location, const std::string& offset = "8", const std::string& length = "8") {
    auto& b = *graph().mutable_initializer(1);
    b.clear_external_data();
    for (const auto& [key, value] : {std::pair{"location", location}, {"offset", offset}, {"length", length}}) {
      if (value.empty()) continue;
      auto& entry = *b.add_external_data();
      entry.set_key(key), entry.set_value(value);
    }
  }
  std::string bytes_;
};

TEST_F(ExternalTest, IsReadFromTheFolder) {
  place("data.bin");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(run(imported->graph, {{1, 1, 1, 1, 1, 1}}, {{2, 3}}), (std::vector<float>{8, 13, 8, 13}));
  place("data.bin", "8", "");
  EXPECT_TRUE(import_model().ok());
  std::filesystem::create_directory(folder_ / "model" / "sub");
  std::filesystem::create_symlink("../data.bin", folder_ / "model" / "sub" / "link.bin");
  place("sub/link.bin");  // a link that stays inside
  EXPECT_TRUE(import_model().ok());
}

TEST_F(ExternalTest, StaysInTheFolder) {
  place("../outside.bin");
  EXPECT_EQ(refused(Code::kCorruptFile, "outside the model's folder").rule(), "O-14");
  place(folder_ / "outside.bin");
  EXPECT_EQ(refused(Code::kCorruptFile, "not a path below").rule(), "O-14");
  place(folder_ / "model" / "data.bin");
  EXPECT_EQ(refused(Code::kCorruptFile, "not a path below").rule(), "O-14");
  std::filesystem::create_symlink("../outside.bin", folder_ / "model" / "link.bin");
  place("link.bin");
  EXPECT_EQ(refused(Code::kCorruptFile, "outside the model's folder").rule(), "O-14");
  std::filesystem::create_directory_symlink("..", folder_ / "model" / "up");
  place("up/outside.bin");
  EXPECT_EQ(refused(Code::kCorruptFile, "outside the model's folder").rule(), "O-14");
  std::filesystem::create_directory(folder_ / "model2");  // shares the folder's name as a prefix
  write(folder_ / "model2" / "data.bin", bytes_);
  place("../model2/data.bin");
  EXPECT_EQ(refused(Code::kCorruptFile, "outside the model's folder").rule(), "O-14");
  place(std::string("data.bin\0x", 10));
  EXPECT_EQ(refused(Code::kCorruptFile, "not a path below").rule(), "O-14");
}

TEST_F(ExternalTest, StaysInTheFile) {
  place("data.bin", "12");
  EXPECT_EQ(refused(Code::kCorruptFile, "has 16 bytes").rule(), "O-15");
  place("data.bin", "9223372036854775807");
  EXPECT_EQ(refused(Code::kCorruptFile, "has 16 bytes").rule(), "O-15");
  place("data.bin", "-8");
  EXPECT_EQ(refused(Code::kCorruptFile, "not a number of bytes").rule(), "O-15");
  place("data.bin", "8x");
  EXPECT_EQ(refused(Code::kCorruptFile, "not a number of bytes").rule(), "O-15");
  place("data.bin", "0", "16");
  EXPECT_EQ(refused(Code::kCorruptFile, "its external data 16").rule(), "O-12");
  place("");
  EXPECT_EQ(refused(Code::kCorruptFile, "no location").rule(), "O-15");
  place("none.bin");
  refused(Code::kFile, "none.bin");
  place(".");
  refused(Code::kCorruptFile, "");
}

}  // namespace
}  // namespace pinnace::testing
