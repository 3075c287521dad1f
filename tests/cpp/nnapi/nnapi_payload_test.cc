// Weights that a file holds laid out for NNAPI: what is written for each level, that drivers map them from the file,
// what damaged and forged ones do, and that nothing of them is left behind.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "backends/nnapi/weight_store.h"
#include "base/hash.h"
#include "cases/run_case.h"
#include "compile/targets.h"
#include "cpp/child_process.h"
#include "cpp/program/program_fixture.h"
#include "ops/type_inference.h"
#include "program/writer.h"
#include "runtime/prepared_data.h"

namespace pinnace::testing {
namespace {

/// A convolution, a depthwise one, a product, a table that is gathered from, an 8-bit convolution with scales per
/// channel, and an embedding's indices, which are places.
constexpr char kNet[] = R"(graph "net" {
  symbol n 1..4
  input %x : f32[n,3,12,12]
  input %q : i8[1,8,9,9]{scale 0.1, zero 3}
  %a : f32[n,32,12,12] = conv "first" (%x, %w1, %b1) {pads=[1,1,1,1], activation="relu"}
  %b : f32[n,32,6,6] = conv "depthwise" (%a, %w2, %b2) {pads=[1,1,1,1], strides=[2,2], group=32}
  %c : f32[n,32,1,1] = global_average_pool "pool" (%b)
  %d : f32[n,32] = flatten "flat" (%c)
  %e : f32[n,50] = gemm "dense" (%d, %w3, %b3) {trans_b=1}
  const %at : i64[40] = {5,3,49,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36}
  %f : f32[n,40] = gather "picked" (%e, %at) {axis=1}
  output "f" %f
  %y : i8[1,24,9,9]{scale 0.2, zero 0} = conv "quantised" (%q, %w4, %b4) {pads=[1,1,1,1]}
  output "y" %y
})";

Graph net() {
  std::string text = kNet;
  Random random(7);
  const auto constant = [&](const char* name, const std::string& type, int64_t count, float scale) {
    std::string line = str_cat("const %", name, " : ", type, " = {");
    for (int64_t i = 0; i < count; ++i) line += str_cat(i ? "," : "", random.uniform(-scale, scale));
    text.insert(text.find('\n') + 1, line + "}\n");
  };
  const auto integers = [&](const char* name, const std::string& type, int64_t count, int most) {
    std::string line = str_cat("const %", name, " : ", type, " = {");
    for (int64_t i = 0; i < count; ++i) line += str_cat(i ? "," : "", random.integer(-most, most));
    text.insert(text.find('\n') + 1, line + "}\n");
  };
  constant("w1", "f32[32,3,3,3]", 32 * 27, 0.3f);
  constant("b1", "f32[32]", 32, 1);
  constant("w2", "f32[32,1,3,3]", 32 * 9, 0.3f);
  constant("b2", "f32[32]", 32, 1);
  constant("w3", "f32[50,32]", 50 * 32, 0.3f);
  constant("b3", "f32[50]", 50, 1);
  integers("w4", "i8[24,8,3,3]{scale 0.02, zero 0}", 24 * 72, 127);
  integers("b4", "i32[24]", 24, 500);
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  const Status typed = update_types(*graph);
  EXPECT_TRUE(typed.ok()) << typed.message();
  return std::move(*graph);
}

Program with(const Program& program, const std::vector<Payload>& payloads) {
  auto bytes = write_program(program.data().graph, {}, payloads);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return load({bytes->data(), bytes->size()});
}
Program plain() {
  auto bytes = write_program(net(), {}, {});
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return load({bytes->data(), bytes->size()});
}

/// The program with payloads for these targets, as Model::build makes it of segments with enough work.
Program stored_for(const Program& program, const std::vector<std::string>& targets) {
  std::vector<Payload> payloads;
  std::vector<std::shared_ptr<const Prepared>> all;
  for (const std::string& name : targets) {
    auto prepared = Prepared::to_store(program, {.fallback = false}, *find_target(name));
    EXPECT_TRUE(prepared.ok()) << prepared.status().message();
    if (!prepared.ok()) continue;
    const auto storable = (*prepared)->data().packed.storable();
    EXPECT_TRUE(storable.ok());
    for (const auto& e : *storable) payloads.push_back({e.target, e.key, e.bytes});
    all.push_back(*prepared);
  }
  return with(program, payloads);
}

Options on(const std::string& target, bool require = false) {
  return {.target = target, .threads = 1, .fallback = false, .require_payload = require};
}

Result<std::vector<std::byte>> run(Session& session, int64_t n = 1) {
  std::vector<float> x(static_cast<size_t>(n) * 3 * 144);
  std::vector<int8_t> q(8 * 81);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 23) / 8 - 1;
  for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<int8_t>(i * 37);
  std::vector<Tensor> in(2);
  for (size_t i = 0; i < 2; ++i) {
    in[i].type = session.inputs()[i].type;
    in[i].type.quantization = nullptr;
    if (i == 0) in[i].type.shape[0] = Dim(n);
    in[i].memory.host = i ? static_cast<void*>(q.data()) : x.data();
    in[i].memory.bytes = static_cast<size_t>(in[i].type.bytes());
  }
  PINNACE_TRY(session.run(in));
  std::vector<std::byte> all;
  for (int i = 0; i < 2; ++i) {
    const auto* bytes = static_cast<const std::byte*>(session.output(i).memory.host);
    all.insert(all.end(), bytes, bytes + session.output_type(i).bytes());
  }
  return all;
}
std::vector<std::byte> result(const Program& program, const Options& options, int64_t n = 1) {
  auto session = Session::create(program, options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok()) return {};
  auto bytes = run(*session, n);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? *bytes : std::vector<std::byte>();
}

std::vector<std::string> notices(const Session& session) {
  std::vector<std::string> all;
  for (const Placement& row : session.placement()) {
    if (!row.notice.empty()) all.push_back(row.notice);
  }
  return all;
}

const std::vector<std::string>& levels() {
  static const std::vector<std::string> all = {"nnapi:29", "nnapi:30", "nnapi:31", "nnapi:fl6", "nnapi:fl8"};
  return all;
}

struct File {
  TemporaryFolder folder;
  std::string path = folder.file("net.pnc");
  explicit File(const Program& program) { EXPECT_TRUE(program.save(path).ok()); }
  /// Flips a bit of the byte at `offset`.
  void damage(uint64_t offset) const {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
  }
};
uint64_t offset_in(const Program& program, const void* place) {
  return static_cast<uint64_t>(static_cast<const std::byte*>(place) - program.bytes().data());
}

/// Memory beside the file's that weights take: what a payload cannot have, here the places that are gathered.
constexpr int64_t kPlacesBytes = 192;

TEST(NnapiPayload, OfEachLevelIsMappedFromTheFileAndGivesTheSameBits) {
  const Program bare = plain();
  const File file(stored_for(bare, levels()));
  auto program = Program::open(file.path);
  ASSERT_TRUE(program.ok()) << program.status().message();
  for (const std::string& target : levels()) {
    SCOPED_TRACE(target);
    auto session = Session::create(*program, on(target, true));
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_TRUE(notices(*session).empty());
    for (int64_t n : {1, 3}) EXPECT_EQ(*run(*session, n), result(bare, on(target), n));
    EXPECT_EQ(session->plan().constant_bytes, kPlacesBytes) << "other sizes share them";
    // Of bytes that are no file, they are copied.
    auto copied = Session::create(stored_for(bare, {target}), on(target, true));
    ASSERT_TRUE(copied.ok()) << copied.status().message();
    EXPECT_EQ(*run(*copied), result(bare, on(target)));
    EXPECT_GT(copied->plan().constant_bytes, kPlacesBytes);
  }
}

TEST(NnapiPayload, IsTheSameTwiceAndOfOneLayout) {
  const Program bare = plain();
  const Program program = stored_for(bare, levels()), again = stored_for(bare, levels());
  EXPECT_TRUE(std::ranges::equal(program.bytes(), again.bytes()));
  // Another hash is another layout: kWeightLayout goes up with it, or files of earlier builds compute nonsense.
  ASSERT_EQ(nnapi_client::kWeightLayout, 1);
  const std::map<std::string, uint64_t> layouts = {
      {"nnapi:29", 0x701dbcfc759c16}, {"nnapi:30", 0xcdcb659a3fcd5d03}, {"nnapi:fl8", 0x3fe1003bd478939}};
  for (const auto& [target, recorded] : layouts) {
    Hasher hasher;
    for (const Payload& p : program.data().payloads) {
      if (p.target != target) continue;
      hasher.add(p.bytes);
      hasher.add(std::as_bytes(std::span(p.key)));
      EXPECT_EQ((p.bytes.data() - program.bytes().data()) % 64, 0);
    }
    EXPECT_EQ(hasher.digest(), recorded) << target << std::hex << hasher.digest();
  }
}

TEST(NnapiPayload, KeysSayWhatTheBytesDependOnInOrderOfExecution) {
  const Program program = stored_for(plain(), {"nnapi:fl3"});
  const char* const order[] = {"first/filter1", "depthwise/filter1", "dense/bias2", "dense/filter1",
                               "quantised/filter1"};
  const auto payloads = program.payloads();
  ASSERT_EQ(payloads.size(), std::size(order));  // other biases have up to 128 bytes, which the library copies
  for (size_t i = 0; i < std::size(order); ++i) {
    const auto& p = payloads[i];
    EXPECT_EQ(p.target, "nnapi:29");
    EXPECT_TRUE(p.key.starts_with("layout 1/fl3/0000")) << p.key;
    EXPECT_NE(p.key.find(order[i]), std::string::npos) << p.key;
  }
}

TEST(NnapiPayload, OfOneLevelIsNeverAnothers) {
  const Program bare = plain();
  const Program program = stored_for(bare, {"nnapi:29"});
  // Zeros under right hashes: whoever reads them gives other results.
  std::vector<Payload> payloads = program.data().payloads;
  std::vector<std::vector<std::byte>> zeros;
  for (Payload& p : payloads) p.bytes = zeros.emplace_back(p.bytes.size());
  const Program forged = with(bare, payloads);
  EXPECT_NE(result(forged, on("nnapi:29")), result(bare, on("nnapi:29")));
  for (const std::string target : {"nnapi:30", "nnapi:fl8", "nnapi"}) {
    auto session = Session::create(forged, on(target));
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_EQ(*run(*session), result(bare, on(target)));
    ASSERT_EQ(notices(*session).size(), 4u);
    const std::string is = target == "nnapi" ? "nnapi:fl8" : target;
    EXPECT_EQ(notices(*session)[0], "laid out at load: the file has weights for nnapi:29, this runs as " + is);
    const Status refused = Session::create(forged, on(target, true)).status();
    EXPECT_EQ(refused.code(), Code::kUnsupported);
    EXPECT_NE(refused.message().find("a payload is required, and the file has nothing for " + is), std::string::npos)
        << refused.message();
  }
  // One that says that it is another's is not of its keys.
  for (Payload& p : payloads) p.target = "nnapi:30";
  EXPECT_EQ(result(with(bare, payloads), on("nnapi:30")), result(bare, on("nnapi:30")));
}

TEST(NnapiPayload, OfAnotherLengthIsLaidOutAnewWithANotice) {
  const Program bare = plain();
  const Program program = stored_for(bare, {"nnapi:29"});
  std::vector<Payload> payloads = program.data().payloads;
  payloads[0].bytes = payloads[0].bytes.first(payloads[0].bytes.size() - 4);
  const Program changed = with(bare, payloads);
  auto session = Session::create(changed, on("nnapi:29"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(notices(*session), std::vector<std::string>{
                                   "laid out at load: what the file has for nnapi:29 is of another layout or for other "
                                   "sizes"});
  EXPECT_EQ(*run(*session), result(bare, on("nnapi:29")));
}

TEST(NnapiPayload, DamageIsAnErrorForThoseWhoReadIt) {
  const Program program = stored_for(plain(), {"nnapi:29"});
  for (size_t i = 0; i < program.payloads().size(); ++i) {
    const File file(program);
    const std::span<const std::byte> bytes = program.data().payloads[i].bytes;
    file.damage(offset_in(program, bytes.data()) + (i % 2 ? 0 : bytes.size() - 1));
    auto opened = Program::open(file.path);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const Status status = Session::create(*opened, on("nnapi:29")).status();
    EXPECT_EQ(status.code(), Code::kCorruptFile) << status.message();
    EXPECT_EQ(status.rule(), "F-13") << status.message();
    EXPECT_TRUE(Session::create(*opened, on("nnapi:30")).ok()) << "nobody reads it";
    EXPECT_TRUE(Session::create(*opened, {.target = "cpu"}).ok());
  }
}

TEST(NnapiPayload, StandsInForTheGraphsWeights) {
  const Program bare = plain();
  for (const bool stored : {false, true}) {
    const Program program = stored ? stored_for(bare, {"nnapi:29"}) : bare;
    const File file(program);
    uint64_t start = 0;
    for (const Value& v : program.data().graph.values) {
      if (v.name == "w3") start = offset_in(program, v.constant->data());
    }
    file.damage(start + 4200);
    auto opened = Program::open(file.path);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    auto session = Session::create(*opened, on("nnapi:29"));
    EXPECT_EQ(session.ok(), stored);
    if (stored) {
      EXPECT_EQ(*run(*session), result(bare, on("nnapi:29")));
    } else {
      EXPECT_EQ(session.status().rule(), "F-50") << session.status().message();
    }
  }
}

TEST(NnapiPayload, WithForgedContentsRunsWithinItsTensors) {
  const Program bare = plain();
  const Program program = stored_for(bare, {"nnapi:29"});
  Random random(case_seed("nnapi payload", 0));
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<std::byte>> forged;
    std::vector<Payload> payloads = program.data().payloads;
    for (Payload& p : payloads) {
      forged.emplace_back(p.bytes.begin(), p.bytes.end());
      for (int64_t e = random.integer(0, 40); e > 0; --e) {
        const int64_t at = random.integer(0, static_cast<int64_t>(p.bytes.size()) - 1);
        forged.back()[static_cast<size_t>(at)] = static_cast<std::byte>(random.integer(0, 255));
      }
      p.bytes = forged.back();
    }
    auto session = Session::create(with(bare, payloads), on("nnapi:29", true));
    ASSERT_TRUE(session.ok()) << session.status().message();
    ASSERT_TRUE(run(*session).ok());
  }
}

TEST(NnapiPayload, IsMadeWithoutALibrary) {
  Child child({"PINNACE_NNAPI_LIBRARY=/nowhere/libneuralnetworks.so"});
  if (!child.here()) return;
  const Program program = stored_for(plain(), levels());
  EXPECT_EQ(program.payloads().size(), 5 * levels().size());
  EXPECT_EQ(Session::create(program, on("nnapi:29")).status().code(), Code::kUnsupported);
}

TEST(NnapiPayload, ThatTheLibraryDoesNotMapIsCopied) {
  Child child({"PINNACE_NNAPI_FAULTS=Memory_createFromFd@1=UNMAPPABLE"});
  if (!child.here()) return;
  const Program bare = plain();
  const File file(stored_for(bare, {"nnapi:29"}));
  auto program = Program::open(file.path);
  ASSERT_TRUE(program.ok());
  auto session = Session::create(*program, on("nnapi:29", true));
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_GT(session->plan().constant_bytes, kPlacesBytes);
  EXPECT_EQ(*run(*session), result(bare, on("nnapi:29")));
}

/// Lines of /proc/self/maps that have all of these.
size_t mappings(const std::vector<std::string>& parts) {
  std::ifstream file("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    count += std::ranges::all_of(parts, [&](const std::string& p) { return line.find(p) != std::string::npos; });
  }
  return count;
}
size_t descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST(NnapiPayload, TheLibraryMapsTheFileItselfForReading) {
  const Program bare = plain();
  const File file(stored_for(bare, levels()));
  size_t files = 0, maps = 0;
  for (int round = 0; round < 12; ++round) {
    auto program = Program::open(file.path);
    ASSERT_TRUE(program.ok());
    EXPECT_EQ(mappings({file.path, "r--s"}), 0u);
    auto session = Session::create(*program, on(levels()[static_cast<size_t>(round) % 2], true));
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_EQ(mappings({file.path, "r--s"}), 1u) << "one memory for all weights, shared, read-only";
    ASSERT_TRUE(std::filesystem::remove(file.path) || round > 0);  // the mapping keeps it
    EXPECT_EQ(*run(*session), result(bare, on(levels()[static_cast<size_t>(round) % 2])));
    EXPECT_TRUE(program->save(file.path).ok());
    if (round == 4) {
      files = descriptors();
      maps = mappings({"memfd:pinnace"});
    }
    EXPECT_EQ(descriptors(), round < 4 ? descriptors() : files);
    EXPECT_LE(mappings({"memfd:pinnace"}), round < 4 ? SIZE_MAX : maps);
  }
  EXPECT_EQ(mappings({file.path}), 0u);
}

}  // namespace
}  // namespace pinnace::testing
