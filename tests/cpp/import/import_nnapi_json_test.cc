// NNAPI models in JSON: what a good one becomes, each rule broken alone, and seeded damage, which must be an error or
// another model that verifies.
#include <gtest/gtest.h>
#include <pinnace/model.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/text.h"
#include "cases/parse_case.h"
#include "cpp/guarded.h"
#include "cpp/scratch_folder.h"

namespace pinnace::testing {
namespace {

// SOFTMAX of x * 2 along an axis that is an input of the model, and IF that gives x or y, which is a graph.
constexpr const char* kText = R"({"format": "nnapi-vectors-1", "spec": "s", "folder": "f",
"buffers": [[1, 2, -3.5, 4], [2.0], [0], [1.0], [1], [], [0.25, 0.5, "inf", "nan"], [1, -1], [1, 200]],
"cases": [{"name": "first", "relaxed": false, "min_level": 29, "main": {"operands": [
{"code": 3, "dims": [2, 2], "life": "input", "buf": 0},
{"code": 3, "dims": [1], "life": "const", "buf": 1},
{"code": 1, "dims": [], "life": "const", "buf": 2},
{"code": 3, "dims": [2, 2], "life": "temp"},
{"code": 0, "dims": [], "life": "const_ref", "buf": 3},
{"code": 1, "dims": [], "life": "input", "buf": 4},
{"code": 3, "dims": [2, 2], "life": "output", "buf": 0}],
"operations": [
{"op": "SOFTMAX", "code": 25, "in": [3, 4, 5], "out": [6]},
{"op": "MUL", "code": 18, "in": [0, 1, 2], "out": [3]}],
"inputs": [0, 5], "outputs": [6]}, "refs": []},
{"name": "second", "relaxed": true, "min_level": 30, "main": {"operands": [
{"code": 9, "dims": [1], "life": "input", "buf": 4},
{"code": 15, "dims": [], "life": "graph", "ref": 0},
{"code": 15, "dims": [], "life": "graph", "ref": 0},
{"code": 3, "dims": [2, 2], "life": "input", "buf": 6},
{"code": 3, "dims": [2, 2], "life": "output", "buf": 0}],
"operations": [{"op": "IF", "code": 96, "in": [0, 1, 2, 3], "out": [4]}],
"inputs": [0, 3], "outputs": [4]},
"refs": [{"operands": [
{"code": 3, "dims": [2, 2], "life": "input"},
{"code": 3, "dims": [2, 2], "life": "output"}],
"operations": [{"op": "ABS", "code": 38, "in": [0], "out": [1]}],
"inputs": [0], "outputs": [1]}]},
{"name": "third", "relaxed": false, "min_level": 29, "main": {"operands": [
{"code": 5, "dims": [1, 1, 1, 2], "scale": 0.5, "zp": 1, "life": "input", "buf": 8},
{"code": 11, "dims": [1, 1, 1, 2], "life": "const", "buf": 7, "pc": {"dim": 3, "scales": [0.5, 2]}},
{"code": 3, "dims": [1, 1, 1, 2], "life": "output", "buf": 2},
{"code": 3, "dims": [1, 1, 1, 2], "life": "output", "buf": 2},
{"code": 3, "dims": [1, 1, 1, 2], "life": "temp"},
{"code": 1, "dims": [], "life": "const", "buf": 2}],
"operations": [{"op": "DEQUANTIZE", "code": 6, "in": [0], "out": [2]},
{"op": "DEQUANTIZE", "code": 6, "in": [1], "out": [4]},
{"op": "ADD", "code": 0, "in": [2, 4, 5], "out": [3]}],
"inputs": [0], "outputs": [2, 3]}, "refs": []}]})";

class NnapiJson : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = scratch_folder() / str_cat("pinnace_nnapi_", ::getpid(), "_", test->name(), ".json");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Result<Model> load(const std::string& text, const std::string& name) {
    std::ofstream(path_, std::ios::binary) << text;
    LoadOptions options;
    options.model_name = name;
    return Model::load(path_.string(), options);
  }
  /// Loads the case after each `from` in the text became `to`.
  Result<Model> load_with(const std::string& name, const std::string& from, const std::string& to) {
    std::string text = kText;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    for (; at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
    return load(text, name);
  }

  std::filesystem::path path_;
};

TEST_F(NnapiJson, InputsThatMustBeKnownAreConstants) {
  const auto model = load(kText, "first");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->format(), "nnapi");
  ASSERT_EQ(model->inputs().size(), 1u);
  EXPECT_EQ(model->inputs()[0].name, "input_0");
  ASSERT_EQ(model->notes().size(), 2u);
  EXPECT_EQ(model->notes()[0], "needs NNAPI feature level 3");  // the axis of SOFTMAX
  EXPECT_TRUE(model->notes()[1].starts_with("input 1 is a constant"));
  EXPECT_NE(model->text().find("softmax"), std::string::npos);
}

TEST_F(NnapiJson, GraphsReferToGraphs) {
  const auto model = load(kText, "second");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->notes()[0], "needs NNAPI feature level 4");
  EXPECT_NE(model->text().find("abs"), std::string::npos);
}

TEST_F(NnapiJson, EachRuleIsBrokenAlone) {
  struct Row {
    const char *name, *from, *to, *says;
    Code code = Code::kCorruptFile;
  };
  const Row rows[] = {
      {"", "", "", "holds 3 models", Code::kInvalidArgument},
      {"other", "", "", "there is no model 'other'", Code::kInvalidArgument},
      {"first", "vectors-1", "vectors-2", "format is not"},
      {"first", "\"spec\"", "spec", "not JSON"},
      {"first", "\"buffers\"", "\"buffer\"", "no list of buffers"},
      {"first", "\"refs\": []", "\"refs\": 0", "no list of refs"},
      {"first", "\"code\": 3,", "\"code\": 99,", "operand 0"},
      {"first", "\"code\": 0,", "\"code\": 6,", "no value of BOOL"},
      {"first", "\"dims\": [2, 2]", "\"dims\": [2, -2]", "not an integer"},
      {"first", "\"buf\": 1}", "\"buf\": 10}", "no buffer 10"},
      {"first", "\"buf\": 1}", "\"buf\": 0}", "buffer 0 has 16 bytes, the operand 4"},
      {"first", "\"life\": \"temp\"", "\"life\": \"lost\"", "'lost' is no origin"},
      {"first", "\"relaxed\": false", "\"relaxed\": 0", "\"relaxed\": "},
      {"third", "\"scale\": 0.5", "\"scale\": \"0.5\"", "\"scale\": "},
      {"third", "\"zp\": 1", "\"zp\": 1.5", "\"zp\": "},
      {"third", "\"zp\": 1", "\"zp\": 4294967297", "\"zp\" is not an integer of its range"},
      {"first", "\"in\": [0, 1, 2]", "\"in\": [0, 1, 99]", "operation 1", Code::kInvalidArgument},
      {"first", "\"in\": [0, 1, 2]", "\"in\": [3, 1, 2]", "main", Code::kInvalidArgument},
      {"first", "\"inputs\": [0, 5]", "\"inputs\": [0, 1, 5]", "operand 1 cannot be one of the inputs"},
      {"first", "\"outputs\": [6]", "\"outputs\": []", "a graph without outputs"},
      {"first", "\"outputs\": [6]", "\"outputs\": [6, 6]", "operand 6 cannot be one of the outputs"},
      {"second", "\"ref\": 0", "\"ref\": 1", "refers to no graph"},
      {"second", "\"life\": \"graph\", \"ref\": 0", "\"life\": \"temp\"", "a MODEL without its graph"},
      {"second", "{\"code\": 3, \"dims\": [2, 2], \"life\": \"input\"}",
       "{\"code\": 15, \"dims\": [], \"life\": \"graph\", \"ref\": 0}", "more than 64 deep"},
      {"third", "\"dim\": 3", "\"dim\": 4", "2 scales along dimension 4"},
      {"third", "[0.5, 2]", "[0.5, 0]", "not positive"},
      {"third", "[1, -1]", "[1, -129]", "no value of TENSOR_QUANT8_SYMM_PER_CHANNEL"},
  };
  for (const Row& row : rows) {
    const auto model = *row.from ? load_with(row.name, row.from, row.to) : load(kText, row.name);
    ASSERT_FALSE(model.ok()) << row.says;
    EXPECT_EQ(model.status().code(), row.code) << model.status().message();
    EXPECT_NE(model.status().message().find(row.says), std::string::npos) << model.status().message();
    EXPECT_NE(model.status().message().find(path_.string()), std::string::npos) << model.status().message();
  }
}

// A hundred of them had 128 MB of places each.
TEST_F(NnapiJson, WhatResizingTakesIsWorkedOutWithinTheBudget) {
  const auto text = [](int64_t width) {
    std::string operands, operations, outputs;
    for (int i = 0; i < 100; ++i) {
      operands += str_cat(R"(,{"code": 3, "dims": [1, 1, )", width, R"(, 1], "life": "output", "buf": 0})");
      operations += str_cat(
          i ? "," : "", R"({"op": "RESIZE_NEAREST_NEIGHBOR", "code": 94, "in": [0, 1, 2, 3], "out": [)", 4 + i, "]}");
      outputs += str_cat(i ? "," : "", 4 + i);
    }
    return str_cat(
        R"({"format": "nnapi-vectors-1", "spec": "s", "folder": "f", "buffers": [[1, 2, 3], [)", width,
        R"(], [1], [0]], "cases": [{"name": "first", "relaxed": false, "min_level": 30, "main": {"operands": [
{"code": 3, "dims": [1, 1, 3, 1], "life": "input", "buf": 0},
{"code": 1, "dims": [], "life": "const", "buf": 1},
{"code": 1, "dims": [], "life": "const", "buf": 2},
{"code": 6, "dims": [], "life": "const", "buf": 3})",
        operands, R"(], "operations": [)", operations, R"(], "inputs": [0], "outputs": [)", outputs,
        R"(]}, "refs": []}]})");
  };
  const auto usual = load(text(1000), "first");
  EXPECT_TRUE(usual.ok()) << usual.status().message();
  const auto begin = std::chrono::steady_clock::now();
  const auto huge = load(text(16'000'000), "first");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  ASSERT_FALSE(huge.ok());
  EXPECT_NE(huge.status().message().find("16000000 elements is more than is computed ahead"), std::string::npos)
      << huge.status().message();
}

TEST_F(NnapiJson, DamagedTextIsAnErrorOrAnotherModel) {
  const std::string good = kText;
  const Observed seen = run_guarded(3000, {.memory = 64 << 20}, [&](size_t i, const std::function<void()>& accept) {
    Random random(test_seed() * 7919 + i);
    std::string text = good;
    const auto at = [&] { return static_cast<size_t>(random.integer(0, static_cast<int64_t>(text.size()) - 1)); };
    for (int64_t changes = random.integer(1, 4); changes > 0; --changes) {
      constexpr std::string_view characters = "0123456789-.,[]{}\"";
      // Digits become others more often than anything else: those texts are still JSON.
      const size_t place = random.integer(0, 3) == 0 ? at() : good.find_first_of("0123456789", at());
      if (place == std::string::npos) continue;
      const int64_t last = random.integer(0, 5) == 0 ? static_cast<int64_t>(characters.size()) - 1 : 9;
      text[place] = characters[static_cast<size_t>(random.integer(0, last))];
    }
    const char* names[] = {"first", "second", "third"};
    const auto model = load(text, names[i % 3]);
    if (model.ok()) {
      accept();
      return std::string();
    }
    const Code code = model.status().code();
    const bool typed = code == Code::kCorruptFile || code == Code::kInvalidArgument || code == Code::kUnsupported;
    return typed ? std::string() : str_cat(code_name(code), ": ", model.status().message(), "\n", text);
  });
  EXPECT_EQ(seen.failure, "") << "seed " << test_seed();
  EXPECT_GT(seen.accepted, 100u);
}

}  // namespace
}  // namespace pinnace::testing
