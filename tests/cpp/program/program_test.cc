// Program: what goes in comes out, bytes are a function of what goes in, files are replaced atomically, mappings are
// shared, operators of other versions, differences.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "cpp/program/program_fixture.h"
#include "program/reader.h"
#include "program/writer.h"

namespace pinnace::testing {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Buffer write(const Graph& graph, Metadata metadata = {}, std::span<const Payload> payloads = {}) {
  auto bytes = write_program(graph, std::move(metadata), payloads);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return std::move(*bytes);
}

Program program_of(const Graph& graph, Metadata metadata = {}) {
  const Buffer bytes = write(graph, std::move(metadata));
  return load({bytes.data(), bytes.size()});
}

/// relu whose attributes have every kind, as an application's operator may.
Graph attribute_graph() {
  Graph g;
  g.name = "attributes";
  const ValueId x = g.add_input("x", {DType::kF32, {2}, nullptr});
  const ValueId y = g.add_value("y", {DType::kF32, {2}, nullptr});
  Node* node = g.add_node("mylib.everything", 1, "n", {x, kNoValue}, {y});
  node->set_attr("an_int", int64_t(INT64_MIN));
  node->set_attr("a_float", -0.0);
  node->set_attr("a_nan", std::nan(""));
  node->set_attr("a_string", std::string("caf\xc3\xa9 \"quoted\"\n\0end", 19));
  node->set_attr("ints", std::vector<int64_t>{});
  node->set_attr("floats", std::vector<double>{1e300, -0.0, INFINITY});
  node->set_attr("strings", std::vector<std::string>{"", "x"});
  auto body = std::make_shared<Graph>();
  body->name = "body";
  const ValueId in = body->add_input("in", {DType::kF32, {2}, nullptr});
  const ValueId out = body->add_value("out", {DType::kF32, {2}, nullptr});
  body->add_node("relu", 1, "inner", {in}, {out});
  body->add_output("o", out);
  node->set_attr("body", GraphPtr(std::make_shared<Graph>(body->clone())));
  auto second = std::make_shared<Graph>(body->clone());
  Node* deeper =
      second->add_node("mylib.everything", 1, "deeper", {in}, {second->add_value("v", {DType::kF32, {2}, nullptr})});
  deeper->set_attr("inside", GraphPtr(body));
  node->set_attr("zody", GraphPtr(second));
  g.add_output("y", y);
  return g;
}

TEST(Program, HoldsWhatWasWritten) {
  const Program program = load(sample_bytes());
  EXPECT_EQ(print(program.data().graph), print(sample_graph()));
  ASSERT_EQ(program.inputs().size(), 2u);
  EXPECT_EQ(program.inputs()[0].name, "x");
  EXPECT_EQ(to_string(program.inputs()[0].type, program.symbols()), "float32[batch,4]");
  EXPECT_EQ(program.outputs()[0].name, "out");
  ASSERT_EQ(program.symbols().size(), 2u);
  EXPECT_EQ(program.symbols()[1], (Symbol{"time", 0, Symbol::kUnbounded, 1}));
  ASSERT_EQ(program.states().size(), 1u);
  EXPECT_EQ(program.states()[0].name, "counter");
  const Metadata sorted = {{"producer", "pinnace"}, {"source", "net.pt2"}};
  EXPECT_EQ(Metadata(program.metadata().begin(), program.metadata().end()), sorted);
  const auto& payloads = program.data().payloads;
  ASSERT_EQ(payloads.size(), 2u);
  EXPECT_EQ(payloads[0].target, "cpu:avx2");
  EXPECT_EQ(text_of(payloads[0].bytes), "packed weights");
  EXPECT_EQ(payloads[1].key, "pipelines");
}

TEST(Program, StoresEqualConstantsOnceAndAligned) {
  const Program program = load(sample_bytes());
  const Graph& g = program.data().graph;
  const auto find = [&](const char* name) {
    for (const Value& v : g.values) {
      if (v.name == name) return v.constant->data();
    }
    return static_cast<const std::byte*>(nullptr);
  };
  EXPECT_EQ(find("w1"), find("w2"));
  EXPECT_NE(find("w1"), find("one"));
  for (const Value& v : g.values) {
    if (!v.constant) continue;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(v.constant->data()) % 64, 0u) << v.name;
    EXPECT_GE(v.constant->data(), program.bytes().data());
    EXPECT_LE(v.constant->data() + v.constant->bytes(), program.bytes().data() + program.bytes().size());
  }
}

TEST(Program, KeepsEveryKindOfAttributeAndNesting) {
  const Graph g = attribute_graph();
  const Program program = program_of(g);
  const Node& node = *program.data().graph.nodes[0];
  EXPECT_EQ(print(program.data().graph), print(g));
  EXPECT_TRUE(std::signbit(std::get<double>(*node.attr("a_float"))));
  EXPECT_TRUE(std::isnan(std::get<double>(*node.attr("a_nan"))));
  EXPECT_EQ(std::get<int64_t>(*node.attr("an_int")), INT64_MIN);
  EXPECT_EQ(std::get<std::string>(*node.attr("a_string")).size(), 19u);
  EXPECT_EQ(node.inputs[1], kNoValue);
  const auto nodes = program.nodes();
  ASSERT_EQ(nodes.size(), 5u);
  EXPECT_EQ(nodes[0].path, "");
  EXPECT_EQ(nodes[1].path, "n.body");
  EXPECT_EQ(nodes[3].path, "n.zody");
  EXPECT_EQ(nodes[4].path, "n.zody/deeper.inside");
  EXPECT_EQ(nodes[0].inputs[1], "");
}

TEST(Program, BytesAreAFunctionOfTheContents) {
  for (const Graph& g : {sample_graph(), attribute_graph()}) {
    const Buffer once = write(g, {{"b", "2"}, {"a", "1"}}),
                 again = write(g.clone(), {{"a", "0"}, {"a", "1"}, {"b", "2"}});
    ASSERT_EQ(text_of({once.data(), once.size()}), text_of({again.data(), again.size()}));
    const Program read = load({once.data(), once.size()});
    const ProgramData& data = read.data();
    const Buffer rewritten = write(data.graph, data.metadata, data.payloads);
    EXPECT_EQ(text_of({rewritten.data(), rewritten.size()}), text_of(read.bytes()));
  }
  const Program read = load(sample_bytes());
  const Buffer rewritten = write(read.data().graph, read.data().metadata, read.data().payloads);
  EXPECT_EQ(text_of({rewritten.data(), rewritten.size()}), text_of(read.bytes()));
}

TEST(Program, RemovingPayloadsLeavesGraphAndWeights) {
  const Program program = load(sample_bytes());
  const Buffer bytes = write(program.data().graph, program.data().metadata);
  const Program bare = load({bytes.data(), bytes.size()});
  EXPECT_EQ(print(bare.data().graph), print(program.data().graph));
  EXPECT_TRUE(bare.data().payloads.empty());
}

TEST(Program, OpensAFileAndSurvivesItsReplacement) {
  TemporaryFolder folder;
  const std::string path = folder.file("net.pnc");
  ASSERT_TRUE(load(sample_bytes()).save(path).ok());
  auto first = Program::open(path);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const std::string before = first->text();
  const Program copy = *first;
  EXPECT_EQ(copy.bytes().data(), first->bytes().data()) << "copies share one mapping";
  ASSERT_TRUE(program_of(attribute_graph()).save(path).ok());
  EXPECT_EQ(first->text(), before);
  ::unlink(path.c_str());
  first = Status(Code::kFile, "gone");
  EXPECT_EQ(copy.text(), before) << "the last copy keeps the mapping";
  EXPECT_TRUE(copy.save(path).ok());
  EXPECT_EQ(read_file(path), text_of(copy.bytes()));
}

TEST(Program, LastCopyClosesTheMapping) {
  TemporaryFolder folder;
  const std::string path = folder.file("mapped.pnc");
  ASSERT_TRUE(load(sample_bytes()).save(path).ok());
  const auto mapped = [&] { return read_file("/proc/self/maps").find(path) != std::string::npos; };
  {
    auto program = Program::open(path);
    ASSERT_TRUE(program.ok());
    auto constant = program->data().graph.values[1].constant;
    const Program copy = *program;
    EXPECT_TRUE(mapped());
    program = Status(Code::kFile, "gone");
    EXPECT_TRUE(mapped());
    EXPECT_EQ(constant->bytes(), 16u);
  }
  EXPECT_FALSE(mapped());
}

TEST(Program, OpenSaysWhyAFileCannotBeRead) {
  TemporaryFolder folder;
  const auto missing = Program::open(folder.file("none.pnc"));
  EXPECT_EQ(missing.status().code(), Code::kFile);
  EXPECT_NE(missing.status().message().find("none.pnc': No such file or directory (errno 2)"), std::string::npos)
      << missing.status().message();
  EXPECT_EQ(Program::open(folder.path()).status().code(), Code::kFile);
  EXPECT_EQ(Program::open("/dev/null").status().code(), Code::kFile);
  EXPECT_EQ(Program::open(std::string("a\0b", 3)).status().code(), Code::kFile);
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(Program::open(pipe).status().code(), Code::kFile) << "must not wait for a writer";
  write_file(folder.file("empty.pnc"), "");
  const auto empty = Program::open(folder.file("empty.pnc"));
  EXPECT_EQ(empty.status().code(), Code::kCorruptFile);
  EXPECT_EQ(empty.status().message(), "empty.pnc at 0x0: the file is empty (rule F-2)");
}

TEST(Program, WithMetadataChangesNothingElse) {
  const Program program = load(sample_bytes());
  auto changed = program.with_metadata("verified.cpu", "max error 1e-6");
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_EQ(changed->metadata().size(), 3u);
  EXPECT_EQ(print(changed->data().graph), print(program.data().graph));
  EXPECT_EQ(changed->data().payloads.size(), 2u);
  EXPECT_EQ(text_of(changed->data().payloads[1].bytes), text_of(program.data().payloads[1].bytes));
  load(changed->bytes(), Verify::kFull);
  const Buffer direct = write(program.data().graph, changed->data().metadata, program.data().payloads);
  EXPECT_EQ(text_of({direct.data(), direct.size()}), text_of(changed->bytes()));
  auto replaced = changed->with_metadata("source", "other.onnx");
  ASSERT_TRUE(replaced.ok());
  EXPECT_EQ(replaced->metadata()[1].second, "other.onnx");
  const std::pair<std::string, std::string> entries[] = {{"source", "third.onnx"}, {"verified.cpu", "yes"}, {"a", "b"}};
  auto several = changed->with_metadata(entries);
  ASSERT_TRUE(several.ok()) << several.status().message();
  auto one_by_one = *changed;
  for (const auto& [key, value] : entries) one_by_one = *one_by_one.with_metadata(key, value);
  EXPECT_TRUE(std::ranges::equal(several->bytes(), one_by_one.bytes()));
  EXPECT_EQ(program.with_metadata("", "x").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(program.with_metadata("key", "two\nlines").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(program.with_metadata("key", "\xff").status().code(), Code::kInvalidArgument);
}

TEST(Program, WithMetadataSharesWhatDidNotChange) {
  const auto program = std::make_unique<Program>(load(sample_bytes()));
  const auto changed = program->with_metadata("verified.cpu", "yes");
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  const auto again = changed->with_metadata("verified.cpu", "no: it was only a try");
  ASSERT_TRUE(again.ok()) << again.status().message();
  for (size_t i = 0; i < program->data().graph.values.size(); ++i) {
    EXPECT_EQ(again->data().graph.values[i].constant, program->data().graph.values[i].constant);
  }
  EXPECT_EQ(again->data().payloads[0].bytes.data(), program->data().payloads[0].bytes.data());
  EXPECT_GT(again->data().file.pieces().size(), 1u);
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(again->save(folder.file("net.pnc")).ok());
  EXPECT_EQ(read_file(folder.file("net.pnc")), text_of(again->bytes()));
  EXPECT_EQ(again->bytes().size(), again->data().file.size());
  EXPECT_EQ(again->bytes().data(), again->bytes().data()) << "joined once";
}

TEST(Program, WriterRefusesWhatTheReaderWould) {
  Graph g = sample_graph();
  g.values[1].name = "\xc3(";
  auto refused = write_program(g, {}, {});
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.status().rule(), "G-17");
  Graph h = sample_graph();
  for (Value& v : h.values) {
    if (v.name == "flags") v.constant = *Constant::copy_of("\1\2\1", 3);
  }
  EXPECT_EQ(write_program(h, {}, {}).status().rule(), "F-33");
  const Payload twice[] = {{"cpu", "k", {}}, {"cpu", "k", {}}};
  EXPECT_EQ(write_program(sample_graph(), {}, twice).status().rule(), "F-45");
  Graph broken = sample_graph();
  broken.outputs[0] = 99;
  EXPECT_EQ(write_program(broken, {}, {}).status().code(), Code::kInvalidArgument);
}

// A graph of which two nodes share each nested graph doubles at every level when it is written out.
TEST(Program, WriterStopsAtExponentialSharing) {
  auto inner = std::make_shared<Graph>();
  for (int level = 0; level < 100; ++level) {
    auto outer = std::make_shared<Graph>();
    outer->name = "level";
    for (const char* name : {"left", "right"})
      outer->add_node("mylib.hold", 1, name, {}, {})->set_attr("body", GraphPtr(inner));
    inner = outer;
  }
  EXPECT_EQ(write_program(*inner, {}, {}).status().code(), Code::kUnsupported);
}

// ------------------------------------------------------------------------------------------------------ saving

TEST(ProgramSave, LeavesNothingButTheFile) {
  TemporaryFolder folder;
  const mode_t mask = ::umask(027);
  ASSERT_TRUE(load(sample_bytes()).save(folder.file("net.pnc")).ok());
  ::umask(mask);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"net.pnc"});
  struct stat about;
  ASSERT_EQ(::stat(folder.file("net.pnc").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0640u);
}

TEST(ProgramSave, FollowsLinksAndRefusesDevicesAndFolders) {
  TemporaryFolder folder;
  write_file(folder.file("real.pnc"), "old");
  ASSERT_EQ(::symlink("real.pnc", folder.file("link.pnc").c_str()), 0);
  const Program program = load(sample_bytes());
  ASSERT_TRUE(program.save(folder.file("link.pnc")).ok());
  EXPECT_EQ(read_file(folder.file("real.pnc")), text_of(program.bytes()));
  struct stat about;
  ASSERT_EQ(::lstat(folder.file("link.pnc").c_str(), &about), 0);
  EXPECT_TRUE(S_ISLNK(about.st_mode));
  EXPECT_EQ(program.save("/dev/null").code(), Code::kFile);
  EXPECT_EQ(program.save(folder.path()).code(), Code::kFile);
  EXPECT_EQ(program.save("").code(), Code::kFile);
  const Status missing = program.save(folder.file("no/such/net.pnc"));
  EXPECT_EQ(missing.code(), Code::kFile);
  EXPECT_NE(missing.message().find("No such file or directory"), std::string::npos);
}

TEST(ProgramSave, AcceptsTheLongestName) {
  TemporaryFolder folder;
  EXPECT_TRUE(load(sample_bytes()).save(folder.file(std::string(251, 'n') + ".pnc")).ok());
}

/// Runs `body` in a child and gives how it ended; the child never returns into the test.
int in_child(void (*body)(const TemporaryFolder&), const TemporaryFolder& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    body(folder);
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(ProgramSave, KeepsTheOldFileWhenTheDiskIsFull) {
  TemporaryFolder folder;
  write_file(folder.file("net.pnc"), "old contents");
  const int status = in_child(
      [](const TemporaryFolder& f) {
        ::signal(SIGXFSZ, SIG_IGN);  // the write then fails with EFBIG, as with ENOSPC on a full disk
        const rlimit limit = {1000, 1000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const Status saved = load(sample_bytes()).save(f.file("net.pnc"));
        ::_exit(saved.code() == Code::kFile && saved.message().find("File too large") != std::string::npos ? 7 : 1);
      },
      folder);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_file(folder.file("net.pnc")), "old contents");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"net.pnc"}) << "the temporary file is gone";
}

TEST(ProgramSave, KeepsTheOldFileWhenKilledBeforeTheRename) {
  TemporaryFolder folder;
  write_file(folder.file("net.pnc"), "old contents");
  const int status = in_child(
      [](const TemporaryFolder& f) {
        const auto bytes = sample_bytes();
        (void)write_file_atomically(f.file("net.pnc"), bytes, [] { ::raise(SIGKILL); });
      },
      folder);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(read_file(folder.file("net.pnc")), "old contents");
  EXPECT_EQ(folder.names().size(), 2u) << "the child's temporary file stays";
  ASSERT_TRUE(load(sample_bytes()).save(folder.file("net.pnc")).ok());
  EXPECT_TRUE(Program::open(folder.file("net.pnc")).ok());
}

// --------------------------------------------------------------------------------------------- operator versions

/// relu of version 3 beside the built-in operators.
struct NewerRelu {
  OpDef relu = *find_op("relu");
  const OpDef* list[1] = {&relu};
  NewerRelu() { relu.version = 3; }
};

Result<std::shared_ptr<const ProgramData>> read_with(const Buffer& bytes, const ReadOptions& options) {
  return read_program("net.pnc", nullptr, {bytes.data(), bytes.size()}, options);
}

TEST(ProgramVersions, OlderOperatorsAreUpgradedStepByStep) {
  const Buffer bytes = write(sample_graph());
  const NewerRelu newer;
  const Upgrade steps[] = {
      {"relu", 1,
       [](Graph&, Node& n) {
         n.source.module += "+2";
         return Status();
       }},
      {"relu", 2,
       [](Graph&, Node& n) {
         n.source.module += "+3";
         return Status();
       }},
  };
  const auto read = read_with(bytes, {.ops = OpTable(newer.list), .upgrades = steps});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ((*read)->graph.nodes[2]->version, 3);
  EXPECT_EQ((*read)->graph.nodes[2]->source.module, "+2+3");
  EXPECT_EQ((*read)->graph.nodes[0]->version, 1);
  const auto missing = read_with(bytes, {.ops = OpTable(newer.list), .upgrades = std::span(steps).first(1)});
  EXPECT_EQ(missing.status().code(), Code::kUnsupported);
  EXPECT_EQ(missing.status().message(),
            "net.pnc: operator relu is of version 2, this build has 3 and no step from 2 (node 'clamp')");
}

TEST(ProgramVersions, BrokenUpgradesAreNotTrusted) {
  const Buffer bytes = write(sample_graph());
  const NewerRelu newer;
  const Upgrade steps[] = {{"relu", 1,
                            [](Graph&, Node& n) {
                              n.inputs[0] = 999;
                              return Status();
                            }},
                           {"relu", 2, [](Graph&, Node&) { return Status(); }}};
  EXPECT_EQ(read_with(bytes, {.ops = OpTable(newer.list), .upgrades = steps}).status().rule(), "F-48");
}

TEST(ProgramVersions, NewerOperatorsAreRefusedByName) {
  Graph g = sample_graph();
  g.nodes[2]->version = 2;
  const Buffer bytes = write(g);
  const auto read = read_with(bytes, {});
  EXPECT_EQ(read.status().code(), Code::kUnsupported);
  EXPECT_EQ(read.status().message(), "net.pnc: operator relu is of version 2, this build has 1");
}

TEST(ProgramVersions, UnknownOperatorsAreAllNamed) {
  FileParts parts(sample_bytes());
  for (auto& op : parts.model->operators) {
    if (parts.model->strings[op->name] == "add") op->name = static_cast<uint32_t>(parts.model->strings.size());
  }
  parts.model->strings.push_back("gelu_of_tomorrow");
  const auto read = Program::from_bytes(parts.write());
  EXPECT_EQ(read.status().code(), Code::kUnsupported);
  EXPECT_EQ(read.status().message(),
            str_cat("program: operator gelu_of_tomorrow (node 'first', net.py:41) is not in this build, which has ",
                    all_ops().size(), " operators; 3 of 5 nodes use operators that are missing"));
  ASSERT_EQ(read.status().nodes().size(), 3u);
  EXPECT_EQ(read.status().nodes()[1].node, "second");
}

TEST(ProgramVersions, ApplicationOperatorsAreLeftToTheSession) {
  EXPECT_TRUE(load(sample_bytes()).nodes().size() == 5);
  const Program program = program_of(attribute_graph());
  EXPECT_EQ(program.nodes()[0].op, "mylib.everything");
  FileParts parts(program.bytes());
  for (auto& op : parts.model->operators) op->application = true;  // says so of relu, too
  EXPECT_EQ(Program::from_bytes(parts.write()).status().code(), Code::kUnsupported);
}

// --------------------------------------------------------------------------------------------------- differences

TEST(ProgramDiff, EqualProgramsHaveNone) {
  EXPECT_TRUE(diff(load(sample_bytes()), load(sample_bytes())).empty());
  EXPECT_TRUE(diff(program_of(attribute_graph()), program_of(attribute_graph())).empty());
}

TEST(ProgramDiff, NamesEachDifference) {
  Graph g = sample_graph();
  g.nodes[1]->inputs[1] = g.nodes[0]->inputs[0];
  g.nodes[4]->set_attr("allowzero", int64_t(0));
  g.symbols[0].max = 32;
  const float changed[] = {1, 2, 3, 4};
  for (Value& v : g.values) {
    if (v.name == "w1") v.constant = *Constant::copy_of(changed, sizeof changed);
  }
  g.erase_nodes({false, false, true, false, false});
  g.outputs.pop_back();
  g.output_names.pop_back();
  g.compact();
  const auto lines = diff(program_of(sample_graph(), {{"k", "1"}}), program_of(g, {{"k", "2"}, {"l", "3"}}));
  const auto has = [&](std::string_view text) {
    for (const std::string& line : lines) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  };
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  EXPECT_TRUE(has("symbol 0: batch in [2, 16] in steps of 2 -> batch in [2, 32] in steps of 2")) << all;
  EXPECT_TRUE(has("add 'second': input 1: %w2 -> %x")) << all;
  EXPECT_TRUE(has("reshape 'shaped': attribute allowzero: 1 -> 0")) << all;
  EXPECT_TRUE(has("constant 'w1': 16 bytes, hash ")) << all;
  EXPECT_TRUE(has("relu 'clamp' removed")) << all;
  EXPECT_TRUE(has("output 1: 'clamped' %r -> absent")) << all;
  EXPECT_TRUE(has("metadata 'k': 1 -> 2")) << all;
  EXPECT_TRUE(has("metadata 'l': absent -> 3")) << all;
  EXPECT_TRUE(diff(program_of(g, {{"k", "1"}}), program_of(g), false).empty());
}

TEST(ProgramDiff, LooksIntoNestedGraphs) {
  Graph g = attribute_graph();
  Graph& body = *std::get<GraphPtr>(*g.nodes[0]->attr("body"));
  body.nodes[0]->source.line = 3;
  body.nodes[0]->source.file = "net.py";
  const auto lines = diff(program_of(attribute_graph()), program_of(g));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "mylib.everything 'n'.body/relu 'inner': source:  -> net.py:3");
}

TEST(ProgramDiff, ReportsPayloads) {
  const Program a = load(sample_bytes());
  const Buffer bytes = write(a.data().graph, a.data().metadata, std::span(a.data().payloads).first(1));
  const Program b = load({bytes.data(), bytes.size()});
  const auto lines = diff(a, b);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("payload 'pipelines' for vulkan: "), std::string::npos) << lines[0];
  EXPECT_TRUE(diff(a, b, false).empty());
}

}  // namespace
}  // namespace pinnace::testing
