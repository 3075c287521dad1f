// Weights that a file holds packed for the CPU: what is written, what is used in place, what is told of those of other
// instruction sets, layouts and hands; what is read of a file and what is not; sixteen sessions of one program.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "backends/cpu/kernel.h"
#include "base/hash.h"
#include "cases/run_case.h"
#include "compile/targets.h"
#include "cpp/program/program_fixture.h"
#include "ops/type_inference.h"
#include "program/writer.h"
#include "runtime/prepared_data.h"

namespace pinnace::testing {
namespace {

using cpu::cpu_kernels;
using cpu::CpuKernel;
using cpu::CpuKernelLine;
using cpu::kAnyDType;
using cpu::kPackedLayout;

/// A convolution of every family, a product, a recurrent layer and an 8-bit convolution; weights are added by net().
constexpr char kNet[] = R"(graph "net" {
  input %x : f32[1,16,20,20]
  input %s : f32[5,2,12]
  input %q : u8[1,8,9,9]{scale 0.1, zero 131}
  %a : f32[1,32,20,20] = conv "winograd" (%x, %w1, %b1) {pads=[1,1,1,1], activation="relu"}
  %b : f32[1,32,10,10] = conv "depthwise" (%a, %w2, %b2) {pads=[1,1,1,1], strides=[2,2], group=32}
  %c : f32[1,40,10,10] = conv "pointwise" (%b, %w3, %b3)
  %d : f32[1,40,1,1] = global_average_pool "pool" (%c)
  const %to : i64[2] = {1,40}
  %e : f32[1,40] = reshape "flat" (%d, %to)
  %f : f32[1,300] = gemm "dense" (%e, %w4, %b4) {trans_b=1}
  output "f" %f
  %h : f32[5,1,2,40], %hn : f32[1,2,40] = gru "recurrent" (%s, %w5, %r5, %b5) {linear_before_reset=1}
  output "h" %h
  %y : u8[1,24,9,9]{scale 0.2, zero 128} = conv "quantised" (%q, %w6) {pads=[1,1,1,1]}
  output "y" %y
})";

Graph net() {
  std::string text = kNet;
  Random random(7);
  const auto constant = [&](const char* name, const char* type, int64_t count, float scale) {
    std::string line = str_cat("const %", name, " : ", type, " = {");
    for (int64_t i = 0; i < count; ++i) line += str_cat(i ? "," : "", random.uniform(-scale, scale));
    text.insert(text.find('\n') + 1, line + "}\n");
  };
  constant("w1", "f32[32,16,3,3]", 32 * 16 * 9, 0.1f);
  constant("b1", "f32[32]", 32, 1);
  constant("w2", "f32[32,1,3,3]", 32 * 9, 0.3f);
  constant("b2", "f32[32]", 32, 1);
  constant("w3", "f32[40,32,1,1]", 40 * 32, 0.2f);
  constant("b3", "f32[40]", 40, 1);
  constant("w4", "f32[300,40]", 300 * 40, 0.2f);
  constant("b4", "f32[300]", 300, 1);
  constant("w5", "f32[1,120,12]", 120 * 12, 0.3f);
  constant("r5", "f32[1,120,40]", 120 * 40, 0.2f);
  constant("b5", "f32[1,240]", 240, 1);
  std::string line = "const %w6 : i8[24,8,3,3]{scale 0.05, zero 0} = {";
  for (int64_t i = 0; i < 24 * 8 * 9; ++i) line += str_cat(i ? "," : "", random.integer(-128, 127));
  text.insert(text.find('\n') + 1, line + "}\n");
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  const Status typed = update_types(*graph);
  EXPECT_TRUE(typed.ok()) << typed.message();
  return std::move(*graph);
}

Program plain() {
  auto bytes = write_program(net(), {}, {});
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return load({bytes->data(), bytes->size()});
}

/// The program with payloads for these instruction sets, as Model::build makes it.
Program packed_for(const Program& program, const std::vector<std::string>& targets) {
  std::vector<Payload> payloads;
  std::vector<std::shared_ptr<const Prepared>> all;
  for (const std::string& name : targets) {
    auto prepared = Prepared::to_store(program, {}, *find_target(name));
    EXPECT_TRUE(prepared.ok()) << prepared.status().message();
    const auto storable = (*prepared)->data().packed.storable();
    EXPECT_TRUE(storable.ok());
    for (const auto& e : *storable) payloads.push_back({e.target, e.key, e.bytes});
    all.push_back(*prepared);
  }
  auto bytes = write_program(program.data().graph, {}, payloads);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return load({bytes->data(), bytes->size()});
}

std::string best() {
  return str_cat("cpu:", cpu_isa_name(cpu_isa()));
}

/// All outputs' bytes.
Result<std::vector<std::byte>> run(Session& session) {
  std::vector<float> x(16 * 400), s(5 * 2 * 12);
  std::vector<uint8_t> q(8 * 81);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 23) / 8 - 1;
  for (size_t i = 0; i < s.size(); ++i) s[i] = static_cast<float>(i % 7) / 4 - 1;
  for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<uint8_t>(i * 37);
  std::vector<Tensor> in(3);
  void* const data[] = {x.data(), s.data(), q.data()};
  for (size_t i = 0; i < 3; ++i) {
    in[i].type = session.inputs()[i].type;
    in[i].type.quantization = nullptr;
    in[i].memory.host = data[i];
    in[i].memory.bytes = static_cast<size_t>(in[i].type.bytes());
  }
  PINNACE_TRY(session.run(in));
  std::vector<std::byte> all;
  for (int i = 0; i < 3; ++i) {
    const Tensor y = session.output(i);
    const auto* bytes = static_cast<const std::byte*>(y.memory.host);
    all.insert(all.end(), bytes, bytes + session.output_type(i).bytes());
  }
  return all;
}
std::vector<std::byte> result(const Program& program, const Options& options = {.target = "cpu"}) {
  auto session = Session::create(program, options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok()) return {};
  auto bytes = run(*session);
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

TEST(CpuPayload, IsUsedInPlaceAndGivesTheSameBits) {
  const Program bare = plain();
  const Program program = packed_for(bare, {best()});
  ASSERT_EQ(program.payloads().size(), 6u);  // in order of execution
  const char* const order[] = {"winograd", "depthwise", "pointwise", "dense", "recurrent", "quantised"};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(program.payloads()[i].target, best());
    EXPECT_NE(program.payloads()[i].key.find(order[i]), std::string::npos) << program.payloads()[i].key;
    EXPECT_EQ((program.data().payloads[i].bytes.data() - program.bytes().data()) % 64, 0);
  }
  auto session = Session::create(program, {.target = "cpu", .require_payload = true});
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(session->plan().constant_bytes, 0);
  EXPECT_TRUE(notices(*session).empty());
  EXPECT_EQ(*run(*session), result(bare));
}

TEST(CpuPayload, OfEveryInstructionSetIsMadeHereAndIsTheSameTwice) {
  const Program bare = plain();
  std::vector<std::string> all = {"cpu:neon", "cpu:neon_dotprod", "cpu:neon_i8mm", "cpu:sve"};  // packed on x86-64 too
#if defined(__x86_64__)
  for (const char* name : {"cpu:sse2", "cpu:avx2", "cpu:avx_vnni", "cpu:avx512", "cpu:avx512_vnni", "cpu:avx512_bf16",
                           "cpu:amx_int8", "cpu:amx_bf16"}) {
    all.push_back(name);
  }
#endif
  const Program program = packed_for(bare, all), again = packed_for(bare, all);
  EXPECT_EQ(program.payloads().size(), 6 * all.size());
  EXPECT_TRUE(std::ranges::equal(program.bytes(), again.bytes()));
  // Another hash is another layout: kPackedLayout goes up with it, or files of earlier builds compute nonsense. Those
  // of ARM64 are the same here and there.
  ASSERT_EQ(kPackedLayout, 2);
  const std::map<std::string, uint64_t> layouts = {
      {"cpu:sse2", 0x643b5e7fd607307b},      {"cpu:avx2", 0xc537ee6e51b8635d},
      {"cpu:avx512", 0x6dddfec04b2a0e84},    {"cpu:avx512_vnni", 0x437280d1795fe5f2},
      {"cpu:neon", 0xc38d2e3870171956},      {"cpu:neon_dotprod", 0x5edd081b6781c1e1},
      {"cpu:neon_i8mm", 0x68ca70cdbbd3ef58}, {"cpu:sve", 0x68ca70cdbbd3ef58}};
  for (const auto& [target, recorded] : layouts) {
    if (std::ranges::find(all, target) == all.end()) continue;
    Hasher hasher;
    for (const Payload& p : program.data().payloads) {
      if (p.target == target) hasher.add(p.bytes);
    }
    EXPECT_EQ(hasher.digest(), recorded) << target;
  }
  for (const std::string& target : all) {
    auto session = Session::create(program, {.target = target, .require_payload = true});
    if (session.status().code() == Code::kUnsupported) {
      const std::string_view why = session.status().message();
      EXPECT_TRUE(why.find("this processor does not have") != why.npos ||
                  why.find("is not an instruction set of") != why.npos)
          << why;
      continue;
    }
    EXPECT_EQ(*run(*session), result(bare, {.target = target})) << target;
  }
}

#if defined(__x86_64__)
TEST(CpuPayload, ServesOtherInstructionSetsThatRunTheSameKernels) {
  const Program program = packed_for(plain(), {"cpu:avx512_vnni"});
  for (const char* other : {"cpu:avx512_bf16", "cpu:amx_int8", "cpu:amx_bf16"}) {
    const auto prepared = Prepared::to_store(program, {}, *find_target(other));
    ASSERT_TRUE(prepared.ok()) << prepared.status().message();
    EXPECT_EQ((*prepared)->data().packed.made_bytes(), 0u) << other;
    const auto storable = (*prepared)->data().packed.storable();
    ASSERT_TRUE(storable.ok());
    EXPECT_EQ(storable->size(), 6u) << other;
  }
}
#endif

/// Panels of the baseline are as long on x86-64 as on ARM64, and in another order.
TEST(CpuPayload, OfTheBaselineIsNotTakenForAnotherArchitectures) {
  const std::string isa(cpu_isa_name(Cpu::generic));
  const Program program = packed_for(plain(), {str_cat("cpu:", isa)});
  const auto prepared = Prepared::to_store(program, {}, *find_target(str_cat("cpu:", isa)));
  ASSERT_TRUE(prepared.ok()) << prepared.status().message();
  const auto stored = (*prepared)->data().packed.storable();
  ASSERT_TRUE(stored.ok());
  ASSERT_FALSE(stored->empty());
  for (const auto& entry : *stored) {
    EXPECT_NE(entry.key.find(str_cat("_", isa, "/")), std::string::npos) << entry.key;
    EXPECT_EQ(entry.key.find("generic"), std::string::npos) << entry.key;
  }
}

/// Else a file would hold whatever memory held before, and no two builds the same bytes.
TEST(CpuPayload, PackingWritesEveryByte) {
  int packed = 0;
  for (const CaseList& list : all_cases()) {
    for (size_t c = 0; c < list.cases.size(); ++c) {
      const auto built = build_case(list.op, list.cases[c], case_seed(list.op, c));
      if (!built || built->inputs.empty() || !infer_case(*built)) continue;
      const auto pack_twice = [&](const NodeView& node, std::span<const TensorView>, std::span<const TensorView>) {
        for (const CpuKernelLine& line : cpu_kernels()) {
          const CpuKernel& kernel = *line.kernel;
          if (!kernel.stores || line.op != list.op || !node.has_input(0)) continue;
          if ((line.dtype != kAnyDType && line.dtype != node.input(0).dtype) || (kernel.takes && !kernel.takes(node))) {
            continue;
          }
          const auto bytes = static_cast<size_t>(kernel.packed_bytes(node));
          std::vector<std::byte> a(bytes, std::byte{0}), b(bytes, std::byte{0xff});
          EXPECT_TRUE(kernel.pack(node, a.data()).ok());
          EXPECT_TRUE(kernel.pack(node, b.data()).ok());
          EXPECT_TRUE(a == b) << line.name << ", case " << c << ": " << list.cases[c].inputs;
          EXPECT_TRUE(!kernel.valid || kernel.valid(node, a.data())) << line.name << ", case " << c;
          ++packed;
        }
        return Status();
      };
      (void)run_case_with(pack_twice, *built);
    }
  }
  EXPECT_GT(packed, 100);
}

TEST(CpuPayload, OfAnotherInstructionSetIsNoticedOrRefused) {
  const std::string other = cpu_isa() == Cpu::generic ? "" : str_cat("cpu:", cpu_isa_name(Cpu::generic));
  if (other.empty()) GTEST_SKIP() << "this processor has one instruction set";
  const Program bare = plain();
  const Program program = packed_for(bare, {other});
  auto session = Session::create(program, {.target = "cpu"});
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_EQ(notices(*session).size(), 6u);
  EXPECT_EQ(notices(*session)[0],
            str_cat("packed at load: the file has weights packed for ", other, ", this runs as ", best()));
  EXPECT_GT(session->plan().constant_bytes, 0);
  EXPECT_EQ(*run(*session), result(bare));
  const Status refused = Session::create(program, {.target = "cpu", .require_payload = true}).status();
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_NE(refused.message().find(str_cat("has no packed weights for ", best(), "; packed at load: the file has")),
            std::string::npos)
      << refused.message();
  EXPECT_EQ(Session::create(bare, {.target = "cpu", .require_payload = true}).status().code(), Code::kUnsupported);
}

/// Under right hashes: whoever forges a file puts them right.
Program with_payloads(const Program& program, const std::vector<Payload>& payloads) {
  auto bytes = write_program(program.data().graph, {}, payloads);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return load({bytes->data(), bytes->size()});
}

TEST(CpuPayload, OfAnotherLayoutOrLengthIsPackedAnewWithANotice) {
  const Program bare = plain();
  const Program program = packed_for(bare, {best()});
  std::vector<Payload> payloads = program.data().payloads;
  for (Payload& p : payloads) p.key.replace(0, p.key.find('/'), "layout 999");
  payloads[0].key = program.data().payloads[0].key;
  payloads[0].bytes = payloads[0].bytes.first(payloads[0].bytes.size() - 4);
  const Program changed = with_payloads(bare, payloads);
  auto session = Session::create(changed, {.target = "cpu"});
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_EQ(notices(*session).size(), 6u);
  EXPECT_NE(notices(*session)[0].find("are of another layout or for other sizes"), std::string::npos);
  EXPECT_EQ(*run(*session), result(bare));
}

TEST(CpuPayload, WithForgedContentsRunsWithinItsTensors) {
  const Program bare = plain();
  const Program program = packed_for(bare, {best()});
  Random random(11);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::vector<std::byte>> forged;
    std::vector<Payload> payloads = program.data().payloads;
    for (Payload& p : payloads) {
      forged.emplace_back(p.bytes.begin(), p.bytes.end());
      const int64_t edits = random.integer(0, 40);
      for (int64_t e = 0; e < edits; ++e) {
        // Half of them where a plan in front would be.
        const auto most = static_cast<int64_t>(p.bytes.size()) - 1;
        const int64_t at = random.integer(0, e % 2 ? most : std::min<int64_t>(most, 255));
        forged.back()[static_cast<size_t>(at)] = static_cast<std::byte>(random.integer(0, 255));
      }
      p.bytes = forged.back();
    }
    auto session = Session::create(with_payloads(bare, payloads), {.target = "cpu"});
    ASSERT_TRUE(session.ok()) << session.status().message();
    ASSERT_TRUE(run(*session).ok());
  }
}

// ---- what is read of a file, and what damage is found when ----------------------------------------------------------

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
const Constant& constant_named(const Program& program, std::string_view name) {
  for (const Value& v : program.data().graph.values) {
    if (v.name == name) return *v.constant;
  }
  ADD_FAILURE() << name;
  return *program.data().graph.values[0].constant;
}

TEST(CpuPayload, DamagedWeightsAreAnErrorForThoseWhoReadThem) {
  const Program bare = plain();
  for (const bool packed : {false, true}) {
    const Program program = packed ? packed_for(bare, {best()}) : bare;
    const File file(program);
    const uint64_t start = offset_in(program, constant_named(program, "w4").data());
    file.damage(start + 1000);
    auto lazy = Program::open(file.path);
    ASSERT_TRUE(lazy.ok()) << lazy.status().message();
    auto session = Session::create(*lazy, {.target = "cpu"});
    EXPECT_EQ(session.ok(), packed) << "packed weights stand in for them";
    if (!packed) {
      EXPECT_EQ(session.status().code(), Code::kCorruptFile);
      EXPECT_EQ(session.status().rule(), "F-50") << session.status().message();
      EXPECT_EQ(session.status().offset(), static_cast<int64_t>(start));
      EXPECT_NE(session.status().message().find("net.pnc at 0x"), std::string::npos);
    }
    // By reference code, in another layout or at once: read, and so refused.
    EXPECT_EQ(lazy->without_payloads().status().code(), Code::kCorruptFile);
    EXPECT_EQ(Program::open(file.path, Verify::kFull).status().rule(), "F-13");
    auto unchecked = Program::open(file.path, Verify::kStructure);
    ASSERT_TRUE(unchecked.ok());
    EXPECT_TRUE(Session::create(*unchecked, {.target = "cpu"}).ok());
  }
}

TEST(CpuPayload, ADamagedSmallConstantIsFoundWhenTheFileIsOpened) {
  const Program program = plain();
  const File file(program);
  const uint64_t start = offset_in(program, constant_named(program, "b1").data());
  file.damage(start + 5);
  const auto opened = Program::open(file.path);
  EXPECT_EQ(opened.status().rule(), "F-50") << opened.status().message();
  EXPECT_EQ(opened.status().offset(), static_cast<int64_t>(start));
}

TEST(CpuPayload, ThatIsDamagedIsAnErrorForThoseWhoUseIt) {
  const Program program = packed_for(plain(), {best()});
  const File file(program);
  file.damage(offset_in(program, program.data().payloads[3].bytes.data()) + 70);
  auto lazy = Program::open(file.path);
  ASSERT_TRUE(lazy.ok()) << lazy.status().message();
  const Status status = Session::create(*lazy, {.target = "cpu"}).status();
  EXPECT_EQ(status.code(), Code::kCorruptFile);
  EXPECT_EQ(status.rule(), "F-13") << status.message();
  if (cpu_isa() != Cpu::generic) {
    const std::string other = str_cat("cpu:", cpu_isa_name(Cpu::generic));
    EXPECT_TRUE(Session::create(*lazy, {.target = other}).ok()) << "nobody reads it";
  }
  EXPECT_EQ(Program::open(file.path, Verify::kFull).status().rule(), "F-13");
}

TEST(CpuPayload, AFileWithoutHashesOfConstantsIsCheckedWhenItIsOpened) {
  const Program program = plain();
  FileParts parts(program.bytes());
  for (auto& value : parts.model->graphs[0]->values) value->hash = 0;
  const std::vector<std::byte> bytes = parts.write();
  const Program old = load(bytes);
  const File file(old);
  EXPECT_TRUE(Program::open(file.path).ok());
  file.damage(offset_in(old, constant_named(old, "w4").data()) + 1000);
  EXPECT_EQ(Program::open(file.path).status().rule(), "F-13");
}

#if defined(__linux__)
/// Resident bytes of the mapping of a file, by /proc/self/smaps.
int64_t resident(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  int64_t sum = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') != std::string::npos && line.find(':') > line.find('-')) {
      inside = line.size() >= path.size() && line.ends_with(path);
    }
    if (inside && line.starts_with("Rss:")) sum += std::stoll(line.substr(4)) * 1024;
  }
  return sum;
}

TEST(CpuPayload, PagesOfWeightsThatOnlyPackingReadsLeaveTheProcess) {
  // 8 MB; the system may map pages around a fault, up to 2 MB of them.
  Graph g;
  const ValueId x = g.add_input("x", {DType::kF32, {1, 1024}, nullptr});
  const std::vector<float> weights(1024 * 2048, 0.5f);
  const ValueId w = *g.add_constant_of<float>("w", DType::kF32, {1024, 2048}, weights);
  const ValueId y = g.add_value("y", {DType::kF32, {1, 2048}, nullptr});
  g.add_node("mat_mul", 1, "product", {x, w}, {y});
  g.add_output("y", y);
  auto bytes = write_program(g, {}, {});
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const Program bare = load({bytes->data(), bytes->size()});
  const File file(bare), packed(packed_for(bare, {best()}));
  auto program = Program::open(file.path);
  ASSERT_TRUE(program.ok());
  EXPECT_LT(resident(file.path), 3 << 20);
  auto session = Session::create(*program, {.target = "cpu"});
  ASSERT_TRUE(session.ok());
  EXPECT_LT(resident(file.path), 3 << 20) << "8 MB of weights are packed, and their pages given back";
  std::vector<float> in(1024, 1.0f);
  std::vector<Tensor> inputs(1);
  inputs[0].type = session->inputs()[0].type;
  inputs[0].memory.host = in.data();
  inputs[0].memory.bytes = 4096;
  ASSERT_TRUE(session->run(inputs).ok());
  EXPECT_EQ(static_cast<const float*>(session->output(0).memory.host)[2047], 512.0f);
  EXPECT_LT(resident(file.path), 3 << 20);
  auto with = Program::open(packed.path);
  ASSERT_TRUE(with.ok());
  auto fast = Session::create(*with, {.target = "cpu"});
  ASSERT_TRUE(fast.ok());
  ASSERT_TRUE(fast->run(inputs).ok());
  EXPECT_EQ(static_cast<const float*>(fast->output(0).memory.host)[2047], 512.0f);
  EXPECT_GT(resident(packed.path), 8 << 20) << "used in place";
  EXPECT_LT(resident(packed.path), 12 << 20) << "and the weights are not read beside it";
}
#endif

// ---- many sessions --------------------------------------------------------------------------------------------------

TEST(CpuPayload, SixteenSessionsInSixteenThreadsPackOnceAndGiveOneThreadsResults) {
  const Program bare = plain();
  for (const bool packed : {false, true}) {
    const File file(packed ? packed_for(bare, {best()}) : bare);
    const auto want = result(bare, {.target = "cpu", .threads = 1});
    auto program = Program::open(file.path);
    ASSERT_TRUE(program.ok());
    constexpr int kSessions = 16;
    std::vector<std::thread> threads;
    std::vector<std::string> failures(kSessions);
    std::vector<std::shared_ptr<const Prepared>> prepared(kSessions);
    std::atomic<int> ready{0};
    std::atomic<bool> go{false};
    for (int t = 0; t < kSessions; ++t) {
      threads.emplace_back([&, t] {
        ++ready;
        while (!go) std::this_thread::yield();
        auto shared = Prepared::create(*program, {.target = "cpu", .threads = 2});
        auto session = shared ? Session::create(*shared) : Result<Session>(shared.status());
        if (!session) {
          failures[t] = session.status().message();
          return;
        }
        prepared[t] = *shared;
        for (int round = 0; round < 5; ++round) {
          const auto got = run(*session);
          if (!got || *got != want) failures[t] = got ? "another result" : got.status().message();
        }
      });
    }
    while (ready < kSessions) std::this_thread::yield();
    go = true;
    for (std::thread& thread : threads) thread.join();
    for (int t = 0; t < kSessions; ++t) EXPECT_EQ(failures[t], "") << t;
    for (const auto& one : prepared) EXPECT_EQ(one, prepared[0]) << "weights are packed again";
    EXPECT_EQ(prepared[0]->data().packed.made_bytes() == 0, packed);
  }
}

}  // namespace
}  // namespace pinnace::testing
