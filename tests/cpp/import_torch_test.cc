// The archive reader and the expression parser on hostile input: names that leave the folder, duplicates, false sizes,
// programs with parts replaced. Damage without intent is import_torch_corruption_test.cc's.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "cpp/scratch_folder.h"
#include "cpp/torch_fixture.h"
#include "import/import.h"
#include "import/torch/archive.h"
#include "import/torch/expression.h"
#include "import/torch/mapping.h"
#include "import/torch/program.h"

namespace pinnace::torch_import {
namespace {

// ------------------------------------------------------------------------------------------------------ expressions

std::string text_of(const std::string& source) {
  const auto parsed = parse_expression(source);
  return parsed ? parsed->text() : parsed.status().message();
}

TEST(TorchExpression, PrintsAsPeopleWriteIt) {
  const std::string s = "Symbol('s77', positive=True, integer=True)";
  EXPECT_EQ(text_of(s), "s77");
  EXPECT_EQ(text_of("Integer(12)"), "12");
  EXPECT_EQ(text_of("Mul(Integer(2), " + s + ")"), "2*s77");
  EXPECT_EQ(text_of("Mul(" + s + ", Integer(2))"), "2*s77");
  EXPECT_EQ(text_of("Add(FloorDiv(Add(" + s + ", Integer(-1)), Integer(2)), Integer(1))"), "(s77 + -1)//2 + 1");
  EXPECT_EQ(text_of("Max(Integer(1), " + s + ")"), "Max(1, s77)");
  EXPECT_EQ(text_of("IntTrueDiv(" + s + ", Integer(4))"), "IntTrueDiv(s77, 4)");
  EXPECT_EQ(text_of("StrictGreaterThan(" + s + ", Float('0.5', precision=53))"), "StrictGreaterThan(s77, 0.5)");
  EXPECT_EQ(text_of("Mul(Integer(2), Symbol('u0'), evaluate=False)"), "2*u0");
}

TEST(TorchExpression, RefusesEverythingElse) {
  for (const char* bad :
       {"", "(", "Symbol('s", "Symbol(s77)", "Integer(x)", "__import__('os')", "Add(Integer(1)", "Add(Integer(1),,)",
        "Integer(1) Integer(2)", "Integer(99999999999999999999)x", "Symbol('a', b=)", "eval(Integer(1))"}) {
    EXPECT_FALSE(parse_expression(bad).ok()) << bad;
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "Add(";
  EXPECT_FALSE(parse_expression(deep).ok());
  EXPECT_FALSE(parse_expression(deep.substr(0, 4000)).ok());
}

TEST(TorchExpression, RangesAndFactors) {
  const auto range = [](std::string_view) { return Interval{2, 16}; };
  const auto of = [&](const std::string& source) { return range_of(*parse_expression(source), range); };
  EXPECT_EQ(of("Mul(Integer(2), Symbol('s'))").max, 32);
  EXPECT_EQ(of("Add(Symbol('s'), Integer(-3))").min, 0);
  EXPECT_EQ(of("FloorDiv(Symbol('s'), Integer(4))").max, 4);
  EXPECT_EQ(of("Mul(Integer(9223372036854775807), Symbol('s'))").max, INT64_MAX);
  EXPECT_EQ(parse_expression("Mul(Integer(6), Symbol('s'))")->factor(), 6);
  EXPECT_EQ(parse_expression("Add(Mul(Integer(6), Symbol('s')), Integer(4))")->factor(), 2);
}

// --------------------------------------------------------------------------------------------------------- archives

class TorchArchive : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (testing::scratch_folder() /
             ("pinnace_import_torch_" + std::to_string(reinterpret_cast<uintptr_t>(this)) + ".pt2"))
                .string();
  }
  void TearDown() override { std::filesystem::remove(path_); }
  Result<Imported> import(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return import_torch(path_, {});
  }
  void expect(const std::vector<Entry>& entries, Code code, const std::string& text) {
    const auto imported = import(zip_of(entries));
    ASSERT_FALSE(imported.ok()) << text;
    EXPECT_EQ(imported.status().code(), code) << imported.status().message();
    EXPECT_NE(imported.status().message().find(text), std::string::npos) << imported.status().message();
    EXPECT_NE(imported.status().message().find(path_), std::string::npos) << imported.status().message();
  }
  std::string path_;
};

TEST_F(TorchArchive, ReadsAGoodOne) {
  const auto imported = import(zip_of(good_entries()));
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  const Graph& graph = imported->graph;
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0]->op, "add");
  EXPECT_EQ(graph.nodes[0]->name, "y");
  EXPECT_EQ(graph.nodes[0]->source.text(), "/home/me/net.py:7");
  EXPECT_EQ(graph.value(graph.inputs[0]).name, "x");
}

TEST_F(TorchArchive, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"../a", "a/../b", "/a", "a//b", "a/./b", "a\\b", "C:b", "a/", "a\nb"}) {
    std::vector<Entry> entries = good_entries();
    entries.push_back({name, "x"});
    expect(entries, Code::kCorruptFile, "Z-3");
  }
}

TEST_F(TorchArchive, RefusesWhatBreaksTheDirectory) {
  std::vector<Entry> entries = good_entries();
  entries.push_back(entries[3]);
  expect(entries, Code::kCorruptFile, "Z-6");
  entries = good_entries();
  entries[3].stated_size = 1000000;
  expect(entries, Code::kCorruptFile, "Z-5");
  entries = good_entries();
  entries[3].method = 8;
  expect(entries, Code::kCorruptFile, "Z-4");
  entries = good_entries();
  entries[0].bytes = "pt3";
  expect(entries, Code::kCorruptFile, "Z-7");
  entries.erase(entries.begin());
  expect(entries, Code::kCorruptFile, "Z-7");
  entries = good_entries();
  entries[1].name = "a/models/m.txt";
  expect(entries, Code::kCorruptFile, "models/NAME.json");
}

TEST_F(TorchArchive, RefusesEntriesThatAreNotWhatTheDirectorySays) {
  std::vector<Entry> entries = good_entries();
  entries[3].own_name = "a/data/weights/weight_1";
  expect(entries, Code::kCorruptFile, "Z-10");
  entries = good_entries();
  entries.push_back({"a/data/weights/weight_1", "", 0, UINT32_MAX, "", 3});  // the bytes of weight_0
  expect(entries, Code::kCorruptFile, "Z-10");
}

TEST_F(TorchArchive, RefusesWeightsBeyondTheirStorage) {
  const auto meta = [](const char* sizes, const char* strides, const char* offset) {
    return weights_of(str_cat(R"({"dtype":7,"sizes":[{"as_int":)", sizes, R"(}],"strides":[{"as_int":)", strides,
                              R"(}],"storage_offset":{"as_int":)", offset, R"(},"layout":7})"));
  };
  const std::pair<std::string, const char*> bad[] = {
      {meta("2", "1", "1"), "storage of 2"},
      {meta("2", "2", "0"), "storage of 2"},
      {meta("2", "-1", "1"), "stride -1"},
      {meta("-2", "1", "0"), "size -2"},
      {meta("2", "9223372036854775807", "1"), "overflow"},
      {meta("2", "1", "-1"), "overflow"},
      {meta("4611686018427387904", "0", "0"), "expansion"},
      {meta("1000000000", "0", "0"), "expansion"},
  };
  for (const auto& [config, text] : bad) {
    std::vector<Entry> entries = good_entries();
    entries[2].bytes = config;
    expect(entries, Code::kCorruptFile, text);
  }
  std::vector<Entry> entries = good_entries();
  entries[2].bytes.replace(entries[2].bytes.find("weight_0"), 8, "../../..");
  expect(entries, Code::kCorruptFile, "no entry");
}

TEST_F(TorchArchive, NamesOtherSchemasAndUnknownOperators) {
  std::vector<Entry> entries = good_entries();
  entries[1].bytes = program_of(kAdd, "", "9");
  expect(entries, Code::kUnsupported, "schema version 9");
  entries = good_entries();
  std::string node = kAdd;
  node.replace(node.find("aten.add"), 8, "aten.foo");
  entries[1].bytes = program_of(node);
  const auto imported = import(zip_of(entries));
  ASSERT_FALSE(imported.ok());
  ASSERT_EQ(imported.status().nodes().size(), 1u);
  EXPECT_EQ(imported.status().nodes()[0].rule, "operator not mapped");
  EXPECT_EQ(imported.status().nodes()[0].source, "/home/me/net.py:7");
  EXPECT_EQ(imported.status().nodes()[0].op, "aten.foo.Tensor");
}

TEST_F(TorchArchive, RefusesDeepNesting) {
  std::vector<Entry> entries = good_entries();
  entries[1].bytes = std::string(200000, '[');
  expect(entries, Code::kCorruptFile, "JSON");
  std::string node = kAdd;
  for (int i = 0; i < 60; ++i) {
    node =
        R"({"target":"torch.ops.higher_order.cond","name":"y","inputs":[{"name":"","arg":{"as_graph":{"name":"g","graph":{"inputs":[],"outputs":[],"nodes":[)" +
        node + R"(],"tensor_values":{}}}},"kind":1}],"outputs":[]})";
  }
  entries[1].bytes = program_of(node);
  expect(entries, Code::kCorruptFile, "nested");
}

TEST_F(TorchArchive, MutatedProgramsNeverCrash) {
  const std::string good = program_of(kAdd);
  const char* const words[] = {"null",          "[]", "{}", "-1", "9223372036854775807", "\"x\"", "true", "1e999",
                               "{\"as_int\":1}"};
  std::mt19937 random(6);
  std::vector<Entry> entries = good_entries();
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    switch (random() % 3) {
      case 0: {  // a value becomes another
        size_t at = bad.find(':', random() % bad.size());
        if (at == std::string::npos) continue;
        const size_t end = bad.find_first_of(",}]", at);
        bad.replace(at + 1, end - at - 1, words[random() % std::size(words)]);
        break;
      }
      case 1:
        bad[random() % bad.size()] = static_cast<char>(random() % 128);
        break;
      default:
        bad.erase(random() % bad.size(), random() % 20);
        break;
    }
    entries[1].bytes = bad;
    (void)import(zip_of(entries)).ok();
  }
}

TEST(TorchMappings, EveryTableCanBeSearched) {
  for (const char* target : {"aten.add", "aten.conv2d", "_operator.mul", "aten.scaled_dot_product_attention",
                             "higher_order.cond", "torchvision.nms"}) {
    ASSERT_NE(find_mapping(target), nullptr) << target;
    EXPECT_EQ(find_mapping(target)->target, target);
  }
  EXPECT_EQ(find_mapping("aten.ad"), nullptr);
  EXPECT_EQ(find_mapping(""), nullptr);
}

}  // namespace
}  // namespace pinnace::torch_import
