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

#include "cpp/counted_memory.h"
#include "cpp/import/torch_fixture.h"
#include "cpp/scratch_folder.h"
#include "import/import.h"
#include "import/torch/exported/archive.h"
#include "import/torch/exported/expression.h"
#include "import/torch/exported/parts.h"
#include "import/torch/exported/program.h"
#include "import/torch/mapping.h"

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
  EXPECT_EQ(graph.nodes[0]->source.text(), "net.py:7");
  EXPECT_EQ(graph.value(graph.inputs[0]).name, "x");
}

/// The same entries as parts in memory; the bytes are those of `entries`.
TorchProgram program_in_memory(const std::vector<Entry>& entries) {
  TorchProgram program{"net", {}};
  for (const Entry& e : entries) {
    program.parts.push_back({e.name.substr(2), std::as_bytes(std::span(e.bytes)), nullptr});
  }
  return program;
}

TEST_F(TorchArchive, ReadsThePartsOfAGoodOneFromMemory) {
  const std::vector<Entry> entries = good_entries();
  const auto from_archive = import(zip_of(entries));
  TorchProgram program = program_in_memory(entries);
  alignas(64) std::byte memory[16];
  const auto import_at = [&](std::byte* place) {
    std::memcpy(place, entries[3].bytes.data(), 8);
    program.parts[3].bytes = {place, 8};
    return import_torch_program(program, {});
  };
  const auto copied = import_at(memory + 8);
  const auto imported = import_at(memory);
  ASSERT_TRUE(from_archive.ok() && copied.ok() && imported.ok()) << imported.status().message();
  EXPECT_EQ(print(copied->graph), print(from_archive->graph));
  EXPECT_EQ(print(imported->graph), print(from_archive->graph));
  EXPECT_TRUE(copied->lent.empty()) << "what is not aligned is copied";
  ASSERT_EQ(imported->lent.size(), 1u);
  EXPECT_EQ(imported->lent[0].name, "weight 'w' of net");
  EXPECT_TRUE(from_archive->lent.empty());
}

TEST_F(TorchArchive, ChecksPartsInMemoryAsItsEntries) {
  const auto refused = [](const std::vector<Entry>& entries) {
    return import_torch_program(program_in_memory(entries), {}).status();
  };
  for (const char* name : {"a/../a", "a//a", "a/a//b", "a/./b", "a/a\\b", "a/C:b", "a/b/", "a/a\nb"}) {
    std::vector<Entry> entries = good_entries();
    entries.push_back({name, "x"});
    EXPECT_EQ(refused(entries).code(), Code::kInvalidArgument) << name;
  }
  std::vector<Entry> entries = good_entries();
  entries.push_back(entries[3]);
  EXPECT_EQ(refused(entries).code(), Code::kInvalidArgument);
  entries = good_entries();
  entries[3].bytes.resize(4);
  EXPECT_EQ(refused(entries).code(), Code::kCorruptFile);
  EXPECT_TRUE(refused(entries).message().starts_with("net: weight ")) << refused(entries).message();
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
      {meta("4611686018427387904", "0", "0"), "larger than memory"},
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

/// A program of one node with the argument x of these sizes and others of the same kind, given as JSON.
std::string program_with(const std::string& target, const std::string& sizes, const std::string& arguments) {
  std::string node = kAdd;
  const std::string other = R"({"name":"other","arg":{"as_tensor":{"name":"p_w"}},"kind":1})";
  node.replace(node.find(other), other.size(), arguments);
  node.replace(node.find("aten.add.Tensor"), 15, target);
  std::string program = program_of(node);
  const std::string from = str_cat(R"("x":)", kTensor);
  std::string list, strides;
  for (size_t at = 0; at < sizes.size();) {
    const size_t end = std::min(sizes.find(',', at), sizes.size());
    list += str_cat(list.empty() ? "" : ",", R"({"as_int":)", sizes.substr(at, end - at), "}");
    strides += str_cat(strides.empty() ? "" : ",", R"({"as_int":1})");
    at = end + 1;
  }
  const std::string to = str_cat(R"("x":{"dtype":7,"sizes":[)", list, R"(],"strides":[)", strides,
                                 R"(],"storage_offset":{"as_int":0},"layout":7})");
  return program.replace(program.find(from), from.size(), to);
}

TEST_F(TorchArchive, RefusesSizesLargerThanMemory) {
  for (const char* sizes :
       {"9223372036854775807", "4611686018427387904,2", "0,9223372036854775807", "4294967296,4294967296"}) {
    std::vector<Entry> entries = good_entries();
    entries[1].bytes = program_with("aten.relu.default", sizes, R"({"name":"n","arg":{"as_none":true},"kind":2})");
    expect(entries, Code::kCorruptFile, "input 'x' is larger than memory can be");
  }
  // A weight of nothing, whose other size no storage bounds.
  std::vector<Entry> entries = good_entries();
  entries[2].bytes = weights_of(
      R"({"dtype":7,"sizes":[{"as_int":0},{"as_int":9223372036854775807}],"strides":[{"as_int":1},{"as_int":1}],"storage_offset":{"as_int":0},"layout":7})");
  expect(entries, Code::kCorruptFile, "larger than memory can be");
}

TEST_F(TorchArchive, NumbersInArgumentsTakeNoMemory) {
  const auto integer = [](const char* name, const char* value) {
    return str_cat(R"({"name":")", name, R"(","arg":{"as_int":)", value, R"(},"kind":1})");
  };
  const auto ints = [](const char* name, const char* values) {
    return str_cat(R"({"name":")", name, R"(","arg":{"as_ints":[)", values, R"(]},"kind":1})");
  };
  struct Attack {
    const char* target;
    const char* sizes;
    std::string arguments;
  };
  std::vector<Attack> all;
  for (const char* n : {"1099511627776", "9223372036854775807", "-9223372036854775808", "-1099511627776"}) {
    all.push_back({"aten.diag_embed.default", "2", integer("offset", n)});
    all.push_back({"aten.diagflat.default", "2", integer("offset", n)});
    all.push_back({"aten.diag.default", "2", integer("diagonal", n)});
    all.push_back({"aten.diag.default", "2,3", integer("diagonal", n)});
    all.push_back({"aten.diagonal.default", "2,3", integer("offset", n)});
    all.push_back({"aten.chunk.default", "5", integer("chunks", n)});
    all.push_back({"aten.pixel_shuffle.default", "1,4,2,2", integer("upscale_factor", n)});
    all.push_back({"aten.pixel_shuffle.default", "4,2,2", integer("upscale_factor", n)});
    all.push_back({"aten.pixel_unshuffle.default", "4,2,2", integer("downscale_factor", n)});
    all.push_back({"aten.unfold.default", "5",
                   str_cat(integer("dimension", "0"), ",", integer("size", n), ",", integer("step", "1"))});
    for (const char* other : {"1,1", "0,0"}) {
      const std::string twice = str_cat(n, ",", n);
      all.push_back({"aten.im2col.default", "1,1,4,4",
                     str_cat(ints("kernel_size", twice.c_str()), ",", ints("dilation", other), ",",
                             ints("padding", "0,0"), ",", ints("stride", "1,1"))});
      all.push_back({"aten.im2col.default", "1,1,4,4",
                     str_cat(ints("kernel_size", "2,2"), ",", ints("dilation", twice.c_str()), ",",
                             ints("padding", other), ",", ints("stride", "1,1"))});
    }
  }
  for (const char* n : {"1099511627776", "4611686018427387904"}) {
    all.push_back({"aten.tril_indices.default", "2", str_cat(integer("row", n), ",", integer("col", "0"))});
    all.push_back({"aten.as_strided.default", "2",
                   str_cat(ints("size", "2,2"), ",", ints("stride", str_cat(n, ",1").c_str()), ",",
                           integer("storage_offset", n))});
  }
  for (const char* sizes : {"1099511627776,1048576", "1048576,1099511627776"}) {
    all.push_back({"aten.trace.default", sizes, integer("unused", "0")});
    all.push_back({"aten.diag.default", sizes, integer("diagonal", "0")});
    all.push_back({"aten.diagonal.default", sizes, integer("offset", "0")});
  }
  all.push_back({"aten.diag_embed.default", "1099511627776", integer("offset", "0")});
  all.push_back({"aten.im2col.default", "1,1,1048576,1048576",
                 str_cat(ints("kernel_size", "524288,1"), ",", ints("dilation", "1,1"), ",", ints("padding", "0,0"),
                         ",", ints("stride", "1,1"))});
  for (const Attack& attack : all) {
    std::vector<Entry> entries = good_entries();
    entries[1].bytes = program_with(attack.target, attack.sizes, attack.arguments);
    const testing::MemoryWatch watch(64 << 20);
    const auto imported = import(zip_of(entries));
    EXPECT_EQ(watch.overdrawn(), 0u) << attack.target << " " << attack.arguments;
    // An offset beyond the matrix is a diagonal of nothing; a chunk for each element, and more, are chunks.
    if (imported.ok()) continue;
    EXPECT_TRUE(imported.status().code() == Code::kConversion || imported.status().code() == Code::kCorruptFile)
        << imported.status().message();
  }
}

TEST_F(TorchArchive, RefusesDeepNesting) {
  std::vector<Entry> entries = good_entries();
  entries[1].bytes = std::string(200000, '[');
  expect(entries, Code::kCorruptFile, "JSON");
  std::string node = kAdd;
  for (int i = 0; i < 60; ++i) {
    node.insert(
        0,
        R"({"target":"torch.ops.higher_order.cond","name":"y","inputs":[{"name":"","arg":{"as_graph":{"name":"g","graph":{"inputs":[],"outputs":[],"nodes":[)");
    node += R"(],"tensor_values":{}}}},"kind":1}],"outputs":[]})";
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
