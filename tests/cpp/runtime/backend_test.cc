// What lies above back ends, proved by a fake one: who runs what and why, boundaries and their bytes, workspace, strict
// mode, payloads, and going on when a device is lost.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include <pinnace/model.h>

#include "cpp/text_program.h"
#include "fakes/backend.h"
#include "fakes/null_backend.h"
#include "program/program_data.h"
#include "program/writer.h"

namespace pinnace {
namespace {

using fakes::FakeBackend;
using testing::model_of;
using testing::program_of;

constexpr char kNet[] = R"(graph "net" {
  symbol n 1..4
  input %x : f32[n,2,6,6]
  const %w1 : f32[3,2,3,3] = {0.5,-1,2,0,1,0.25,-0.5,1,1,2,1,0,-1,-2,1,1,0.5,0.5,1,1,1,0,0,0,-1,-1,-1,0,1,0,1,-4,1,0,1,0,2,0,-2,1,0,-1,0.5,0,0.5,1,2,3,3,2,1,0,0,1}
  const %b1 : f32[3] = {0.5,-0.25,1}
  const %w2 : f32[3,3,1,1] = {1,0.5,0,-1,1,2,0,0,1}
  %c1 : f32[n,3,6,6] = conv(%x, %w1, %b1) {pads=[1,1,1,1]}
  %r1 : f32[n,3,6,6] = relu(%c1)
  %s : f32[n,3,6,6] = sigmoid(%r1)
  %c2 : f32[n,3,6,6] = conv(%s, %w2)
  %a : f32[n,3,6,6] = add(%c2, %r1) {activation="relu"}
  output "y" %a
})";

Options on(const Backend& backend, const std::string& target = "fake") {
  Options options;
  options.target = target;
  options.threads = 1;
  options.backends = {&backend};
  return options;
}

/// Something different in every element.
std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(0.37f * static_cast<float>(i) + 0.1f);
  return values;
}

Tensor tensor(const std::vector<int64_t>& shape, std::vector<float>& values) {
  Tensor t;
  for (int64_t n : shape) t.type.shape.push_back(Dim(n));
  t.memory.host = values.data();
  t.memory.bytes = values.size() * sizeof(float);
  return t;
}

std::vector<float> output(const Session& session, int i = 0) {
  const Tensor t = session.output(i);
  const auto* data = static_cast<const float*>(t.memory.host);
  return {data, data + t.type.elements()};
}

/// The outputs of kNet for a batch of n.
Result<std::vector<float>> run_net(Session& session, int64_t n) {
  std::vector<float> x = ramp(static_cast<size_t>(n) * 72);
  PINNACE_TRY(session.run(std::vector{tensor({n, 2, 6, 6}, x)}));
  return output(session);
}

std::vector<float> cpu_result(const Program& program, int64_t n) {
  auto session = Session::create(program, {.target = "cpu", .threads = 1});
  EXPECT_TRUE(session.ok());
  auto y = run_net(*session, n);
  EXPECT_TRUE(y.ok()) << y.status().message();
  return *y;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5f) << "element " << i;
}

const Placement& row(const std::vector<Placement>& rows, const std::string& op, int nth = 0) {
  for (const Placement& r : rows) {
    if (r.op == op && nth-- == 0) return r;
  }
  static const Placement none;
  ADD_FAILURE() << "no " << op;
  return none;
}

TEST(NullBackend, RunsAWholeProgramAndComputesNothing) {
  const fakes::NullBackend null;
  Options options = on(null, "null");
  options.fallback = false;
  auto session = Session::create(program_of(kNet), options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (const Placement& p : session->placement()) {
    EXPECT_EQ(p.backend, "null");
    EXPECT_EQ(p.kernel, "nothing");
  }
  auto y = run_net(*session, 3);
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(*y, std::vector<float>(3 * 3 * 6 * 6));
}

TEST(NullBackend, LeavesToTheCpuWhatItsRuleRefuses) {
  constexpr const char* kText = R"(graph "g" {
    input %x : f32[3]
    %n : i32[3] = cast(%x) {to="i32"}
    %m : i32[3] = neg(%n)
    %y : f32[3] = cast(%m) {to="f32"}
    output "y" %y })";
  const fakes::NullBackend null;
  auto session = Session::create(program_of(kText), on(null, "null"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  const Placement neg = row(session->placement(), "neg");
  EXPECT_EQ(neg.backend, "cpu");
  ASSERT_EQ(neg.why.size(), 1u);
  EXPECT_NE(neg.why[0].find("it takes float32 alone, is int32[3] (rule Z-1)"), std::string::npos) << neg.why[0];
}

TEST(Backend, BytesThatAreCastToAQuantisedTypeAreReadWhereTheyLie) {
  constexpr const char* kText = R"(graph "g" {
    input %x : u8[1,2,3,3] input %z : u8[4]
    %q : u8[1,2,3,3]{scale 0.1, zero 30} = cast(%x) {to="u8"}
    %a : u8[1,2,3,3]{scale 0.1, zero 30} = relu(%q)
    %b : u8[1,2,3,3]{scale 0.2, zero 0} = relu(%q)
    %y = cast(%a) {to="u8"} %w = cast(%b) {to="u8"}
    %v : u8[4]{scale 0.5, zero 1} = cast(%z) {to="u8"}
    output "y" %y output "w" %w output "v" %v })";
  auto session = Session::create(program_of(kText), {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<uint8_t> x(18), z{7, 0, 255, 1};
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(14 * i);
  const std::vector<uint8_t> before = x;
  Tensor inputs[2];
  for (Dim d : {Dim(1), Dim(2), Dim(3), Dim(3)}) inputs[0].type.shape.push_back(d);
  inputs[1].type.shape.push_back(Dim(4));
  for (int i : {0, 1}) {
    inputs[i].type.dtype = DType::kU8;
    inputs[i].memory.host = i ? z.data() : x.data();
    inputs[i].memory.bytes = i ? z.size() : x.size();
  }
  ASSERT_TRUE(session->run(inputs).ok());
  const auto bytes = [&](int i) { return static_cast<const uint8_t*>(session->output(i).memory.host); };
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i], before[i]);
    EXPECT_EQ(bytes(0)[i], std::max<int>(x[i], 30));
    EXPECT_EQ(bytes(1)[i], (std::max<int>(x[i], 30) - 30) / 2);  // halves of even numbers
  }
  for (size_t i = 0; i < z.size(); ++i) EXPECT_EQ(bytes(2)[i], z[i]);
}

TEST(Backend, TakesWhatItSupportsAndTheRestGoesToTheCpuWithAReason) {
  const FakeBackend fake;
  const Program program = program_of(kNet);
  auto session = Session::create(program, on(fake));
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (int64_t n : {1, 3}) {
    const auto y = run_net(*session, n);
    ASSERT_TRUE(y.ok()) << y.status().message();
    expect_near(*y, cpu_result(program, n));
  }
  EXPECT_EQ(fake.nodes_run, 8);  // four nodes, two runs
  const auto rows = session->placement();
  ASSERT_EQ(rows.size(), 5u);
  for (const char* op : {"conv", "relu", "add"}) {
    EXPECT_EQ(row(rows, op).backend, "fake");
    EXPECT_EQ(row(rows, op).kernel, "fake_loops");
    EXPECT_TRUE(row(rows, op).why.empty());
  }
  const Placement& sigmoid = row(rows, "sigmoid");
  EXPECT_EQ(sigmoid.backend, "cpu");
  ASSERT_EQ(sigmoid.why.size(), 1u);
  EXPECT_EQ(sigmoid.why[0], "fake does not take sigmoid 'sigmoid_0': it has conv, add and relu only (rule K-1)");
}

TEST(Backend, ReportsTheBytesThatCrossABorder) {
  const FakeBackend fake;
  auto session = Session::create(program_of(kNet), on(fake));
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(run_net(*session, 2).ok());
  const auto rows = session->placement();
  const int64_t value = 2 * 3 * 6 * 6 * 4;
  EXPECT_EQ(row(rows, "sigmoid").bytes_copied, value);
  EXPECT_EQ(row(rows, "conv", 1).bytes_copied, value);
  for (const auto& [op, nth] : {std::pair{"conv", 0}, {"relu", 0}, {"add", 0}}) {
    EXPECT_EQ(row(rows, op, nth).bytes_copied, 0) << op;  // r1 was made by the same back end
  }
  EXPECT_EQ(session->plan().segments, 3);
}

TEST(Backend, NodesOfOneTargetRunTogether) {
  // In the order of the text each second node would change the back end; the branches are independent.
  const FakeBackend fake;
  auto session = Session::create(program_of(R"(graph "g" {
    input %x : f32[1,2,4,4]
    %a1 : f32[1,2,4,4] = relu(%x)
    %b1 : f32[1,2,4,4] = sigmoid(%x)
    %a2 : f32[1,2,4,4] = add(%a1, %x)
    %b2 : f32[1,2,4,4] = tanh(%b1)
    %a3 : f32[1,2,4,4] = relu(%a2)
    %b3 : f32[1,2,4,4] = sigmoid(%b2)
    %y : f32[1,2,4,4] = add(%a3, %b3)
    output "y" %y
  })"),
                                 on(fake));
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = ramp(32);
  ASSERT_TRUE(session->run(std::vector{tensor({1, 2, 4, 4}, x)}).ok());
  EXPECT_EQ(session->plan().segments, 3);
  EXPECT_EQ(fake.runs, 2);
  const auto sigmoid = [](float v) { return 1 / (1 + std::exp(-v)); };
  const auto y = output(*session);
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y[i], std::max(std::max(x[i], 0.0f) + x[i], 0.0f) + sigmoid(std::tanh(sigmoid(x[i]))), 1e-5f);
  }
}

TEST(Backend, LimitsAreNamedWithRuleAndValue) {
  FakeBackend fake;
  fake.max_channels = 2;
  auto session = Session::create(program_of(kNet), on(fake));
  ASSERT_TRUE(session.ok());
  for (const Placement& r : session->placement()) {
    EXPECT_EQ(r.backend, "cpu");
    ASSERT_EQ(r.why.size(), 1u);
  }
  EXPECT_EQ(row(session->placement(), "conv").why[0],
            "fake does not take conv 'conv_0': it has room for 2 channels, is 3 (rule K-2)");
  ASSERT_TRUE(run_net(*session, 1).ok());
  EXPECT_EQ(fake.runs, 0);
}

TEST(Backend, WorkspaceIsPartOfThePlan) {
  const FakeBackend fake;
  const Program program = program_of(kNet);
  auto plain = Session::create(program, {.target = "cpu", .threads = 1});
  auto session = Session::create(program, on(fake));
  ASSERT_TRUE(plain.ok() && session.ok());
  ASSERT_TRUE(run_net(*plain, 4).ok() && run_net(*session, 4).ok());
  // The largest segment holds s, c2, r1 and a in its own layout, besides what lies between segments.
  const int64_t value = 4 * 3 * 36 * 4;
  EXPECT_GE(session->plan().peak_bytes, 4 * value);
  EXPECT_GT(session->plan().peak_bytes, plain->plan().peak_bytes);
}

TEST(Backend, StrictModeWaitsForTheSizeThatATableFixes) {
  // The fake does not broadcast, which the sum does at n = 1; every size but 1 and 3 breaks its shape rule.
  constexpr const char* kText = R"(graph "g" {
    symbol n 1..inf
    input %x : f32[n,1,1,2]
    const %t : f32[3,1,1,2] = {1,2,3,4,5,6}
    %y : f32[3,1,1,2] = add(%x, %t)
    output "y" %y })";
  const FakeBackend fake;
  Options options = on(fake);
  options.fallback = false;
  auto session = Session::create(program_of(kText), options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = ramp(6);
  EXPECT_TRUE(session->run(std::vector{tensor({3, 1, 1, 2}, x)}).ok());
  EXPECT_EQ(fake.runs, 1);
  EXPECT_EQ(session->run(std::vector{tensor({1, 1, 1, 2}, x)}).code(), Code::kUnsupported);
  EXPECT_EQ(session->run(std::vector{tensor({2, 1, 1, 2}, x)}).code(), Code::kInvalidArgument);
  EXPECT_EQ(fake.runs, 1);
}

TEST(Backend, StrictModeRefusesInsteadOfFallingBack) {
  const FakeBackend fake;
  Options options = on(fake);
  options.fallback = false;
  const auto refused = Session::create(program_of(kNet), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kUnsupported);
  ASSERT_EQ(refused.status().nodes().size(), 1u);
  EXPECT_EQ(refused.status().nodes()[0].op, "sigmoid");
  EXPECT_NE(refused.status().message().find("1 of 5 nodes cannot run on fake"), std::string::npos)
      << refused.status().message();
  // What it takes as a whole runs.
  auto session = Session::create(program_of(R"(graph "g" {
    input %x : f32[1,2,4,4]
    %y : f32[1,2,4,4] = relu(%x)
    output "y" %y
  })"),
                                 options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = ramp(32);
  EXPECT_TRUE(session->run(std::vector{tensor({1, 2, 4, 4}, x)}).ok());
  EXPECT_EQ(fake.runs, 1);
}

TEST(Backend, PreferenceIsTheOrderOfTargets) {
  FakeBackend small("small");
  small.max_channels = 2;
  const FakeBackend large("large");
  Options options = on(small, "small,large");
  options.backends = {&small, &large};
  auto session = Session::create(program_of(kNet), options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(row(session->placement(), "conv").backend, "large");
  EXPECT_EQ(row(session->placement(), "conv").why.size(), 1u);
  EXPECT_EQ(row(session->placement(), "sigmoid").why.size(), 2u);
  // cpu before fake: nothing is left for fake.
  auto cpu_first = Session::create(program_of(kNet), on(large, "cpu,large"));
  ASSERT_TRUE(cpu_first.ok());
  EXPECT_EQ(row(cpu_first->placement(), "conv").backend, "cpu");
}

TEST(Backend, AnUnavailableTargetIsRefusedByNameAndLeftOutOfAuto) {
  FakeBackend fake;
  fake.missing = "no fake device in this machine";
  const auto refused = Session::create(program_of(kNet), on(fake));
  EXPECT_EQ(refused.status().code(), Code::kUnsupported);
  EXPECT_EQ(refused.status().message(), "target 'fake' cannot run here: no fake device in this machine");
  auto session = Session::create(program_of(kNet), on(fake, "auto"));
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(row(session->placement(), "conv").backend, "cpu");
  fake.missing.clear();
  auto found = Session::create(program_of(kNet), on(fake, "auto"));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(row(found->placement(), "conv").backend, "fake");
}

TEST(Backend, VariantsOfTargetsAreKnownOrRefused) {
  const Program program = program_of(kNet);
  const auto refusal = [&](const std::string& target) {
    const Status status = Session::create(program, {.target = target}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << target;
    const auto checked = model_of(kNet).check(std::vector{target});
    EXPECT_EQ(checked.status().message(), status.message());
    return status.message();
  };
  EXPECT_NE(refusal("cpu:mmx").find("target 'cpu:mmx': 'mmx' is no instruction set known here"), std::string::npos);
  EXPECT_NE(refusal("cpu:").find("target 'cpu:': "), std::string::npos);
#if defined(__x86_64__)
  // Weights can be packed for ARM64 here, but not run.
  const Status arm64 = Session::create(program, {.target = "cpu:neon"}).status();
  EXPECT_EQ(arm64.code(), Code::kUnsupported);
  EXPECT_EQ(
      arm64.message(),
      "target 'cpu:neon' cannot run here: 'neon' is not an instruction set of x86-64, which this build is for; it "
      "has sse2 avx2 avx_vnni avx512 avx512_vnni avx512_bf16 amx_int8 amx_bf16");
  EXPECT_TRUE(model_of(kNet).check(std::vector<std::string>{"cpu:neon_dotprod"}).ok());
  auto baseline = Session::create(program, {.target = "cpu:sse2", .threads = 1});
  ASSERT_TRUE(baseline.ok()) << baseline.status().message();
  EXPECT_EQ(row(baseline->placement(), "conv").kernel, "conv_nhwc_f32_generic");
#endif
  const FakeBackend fake;
  EXPECT_EQ(Session::create(program, on(fake, "fake:big")).status().message(),
            "target 'fake:big': 'big': fake has no variants");
}

TEST(Backend, SizesThatDependOnDataStayWithTheCpu) {
  const FakeBackend fake;
  auto session = Session::create(program_of(R"(graph "g" {
    input %x : f32[1,2,2,2]
    %where : i64[4,?] = non_zero(%x)
    %at : i64[?,4] = transpose(%where) {perm=[1,0]}
    %hits : f32[?] = gather_nd(%x, %at)
    const %shape : i64[4] = {1,1,1,-1}
    %block : f32[1,1,1,?] = reshape(%hits, %shape)
    %y : f32[1,1,1,?] = relu(%block)
    output "y" %y
  })"),
                                 on(fake));
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = {0, 1, 0, -2, 0, 0, 3, 0};
  ASSERT_TRUE(session->run(std::vector{tensor({1, 2, 2, 2}, x)}).ok());
  EXPECT_EQ(output(*session), (std::vector<float>{1, 0, 3}));
  EXPECT_EQ(row(session->placement(), "relu").backend, "cpu");
  EXPECT_NE(row(session->placement(), "relu").why[0].find("(rule P-1)"), std::string::npos);
}

// ---- payloads -------------------------------------------------------------------------------------------------------

Program built_for_fake(const FakeBackend& fake) {
  BuildOptions build;
  build.targets = {"fake", "cpu"};
  build.backends = {&fake};
  auto program = model_of(kNet).build(build);
  EXPECT_TRUE(program.ok()) << program.status().message();
  return *program;
}

TEST(Payload, IsStoredAtBuildAndUsedInsteadOfPacking) {
  const FakeBackend fake;
  const Program program = built_for_fake(fake);
  EXPECT_EQ(fake.packed, 2);
  const auto payloads = program.payloads();
  ASSERT_EQ(payloads.size(), 2u);
  EXPECT_EQ(payloads[0].target, "fake");
  EXPECT_EQ(payloads[0].key, "conv_0");
  EXPECT_EQ(payloads[0].bytes, 64 + 3 * 2 * 9 * 4);

  const FakeBackend fresh;
  auto session = Session::create(program, on(fresh));
  ASSERT_TRUE(session.ok());
  const auto y = run_net(*session, 2);
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(fresh.packed, 0);
  EXPECT_EQ(session->plan().constant_bytes, 0);

  // Without it: the same bits, packed again.
  auto bare = program.without_payloads();
  ASSERT_TRUE(bare.ok()) << bare.status().message();
  EXPECT_TRUE(bare->payloads().empty());
  EXPECT_LT(bare->bytes().size(), program.bytes().size());
  auto slower = Session::create(*bare, on(fresh));
  ASSERT_TRUE(slower.ok());
  EXPECT_EQ(*run_net(*slower, 2), *y);
  EXPECT_EQ(fresh.packed, 2);
  EXPECT_TRUE(diff(program, *bare, false).empty());
  EXPECT_EQ(diff(program, *bare).size(), 2u);
}

TEST(Payload, ThatTheBackEndDidNotWriteIsPackedAnew) {
  const FakeBackend fake;
  const Program program = built_for_fake(fake);
  std::vector<Payload> payloads = program.data().payloads;
  std::vector<std::byte> foreign(payloads[0].bytes.size(), std::byte{1});
  std::vector<std::byte> too_short(payloads[1].bytes.begin(), payloads[1].bytes.end() - 4);
  payloads[0].bytes = foreign;
  payloads[1].bytes = too_short;
  auto bytes = write_program(program.data().graph, program.data().metadata, payloads);
  ASSERT_TRUE(bytes.ok());
  auto changed = Program::from_bytes({bytes->data(), bytes->size()});
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  const FakeBackend fresh;
  auto session = Session::create(*changed, on(fresh));
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(fresh.packed, 2);
  expect_near(*run_net(*session, 2), cpu_result(program, 2));
}

TEST(Payload, SessionsOfOneProgramPackOnce) {
  const FakeBackend fake;
  const Program program = program_of(kNet);
  std::vector<Session> sessions;
  for (int i = 0; i < 16; ++i) {
    auto session = Session::create(program, on(fake));
    ASSERT_TRUE(session.ok());
    ASSERT_TRUE(run_net(*session, 1 + i % 3).ok());
    sessions.push_back(std::move(*session));
  }
  EXPECT_EQ(fake.packed, 2);
}

// ---- loss of the device ---------------------------------------------------------------------------------------------

TEST(DeviceLost, TheRunIsMadeAgainElsewhereAndThePlacementSaysSo) {
  FakeBackend fake;
  const Program program = program_of(kNet);
  auto session = Session::create(program, on(fake));
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(run_net(*session, 2).ok());
  EXPECT_EQ(row(session->placement(), "conv").backend, "fake");
  fake.lost_from_run = fake.runs + 2;  // the next run's second segment
  const auto y = run_net(*session, 2);
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(*y, cpu_result(program, 2));
  const auto rows = session->placement();
  for (const Placement& r : rows) EXPECT_EQ(r.backend, "cpu");
  EXPECT_EQ(row(rows, "conv").why[0],
            "fake does not take conv 'conv_0': its device was lost (the fake device went away) (rule P-2)");
  const int runs = fake.runs;
  ASSERT_TRUE(run_net(*session, 3).ok());
  EXPECT_EQ(fake.runs, runs);  // it is not asked again by this session
  // A new session tries the device again.
  fake.lost_from_run = 0;
  auto again = Session::create(program, on(fake));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(row(again->placement(), "conv").backend, "fake");
}

TEST(DeviceLost, WithoutFallbackItIsAnError) {
  FakeBackend fake;
  fake.lost_from_run = 1;
  Options options = on(fake);
  options.fallback = false;
  auto session = Session::create(program_of(R"(graph "g" {
    input %x : f32[1,2,4,4]
    %y : f32[1,2,4,4] = relu(%x)
    output "y" %y
  })"),
                                 options);
  ASSERT_TRUE(session.ok());
  std::vector<float> x = ramp(32);
  const Status status = session->run(std::vector{tensor({1, 2, 4, 4}, x)});
  EXPECT_EQ(status.code(), Code::kDeviceLost);
  EXPECT_EQ(status.rule(), "fake");
}

TEST(DeviceLost, AFailedSelfCheckMovesTheNodesWhenTheSessionIsMade) {
  FakeBackend fake;
  fake.fails_self_check = true;
  const Program program = program_of(kNet);
  auto session = Session::create(program, on(fake));
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(row(session->placement(), "conv").backend, "cpu");
  EXPECT_EQ(row(session->placement(), "conv").why[0],
            "fake does not take conv 'conv_0': its device was lost (the self-check gave 3 instead of 4) (rule P-2)");
  EXPECT_EQ(*run_net(*session, 2), cpu_result(program, 2));
  Options strict = on(fake);
  strict.fallback = false;
  EXPECT_EQ(Session::create(program_of(R"(graph "g" {
    input %x : f32[1,2,4,4]
    %y : f32[1,2,4,4] = relu(%x)
    output "y" %y
  })"),
                            strict)
                .status()
                .code(),
            Code::kDeviceLost);
}

TEST(DeviceLost, StateAndLoopsGoOnAsIfNothingHadHappened) {
  constexpr char kLoop[] = R"(graph "g" {
    input %x : f32[1,2,2,2]
    state "sum" %s : f32[1,2,2,2] next %t = {0,0,0,0,0,0,0,0}
    const %trips : i64[] = {3}
    %l : f32[1,2,2,2] = loop(%trips, none, %x) {body=graph "body" {
      input %i : i64[]
      input %c : bool[]
      input %v : f32[1,2,2,2]
      %v2 : f32[1,2,2,2] = add(%v, %v)
      output "c" %c
      output "v" %v2
    }, carried=1}
    %t : f32[1,2,2,2] = add(%s, %l)
    output "y" %t
  })";
  FakeBackend fake;
  const Program program = program_of(kLoop);
  auto session = Session::create(program, on(fake));
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = ramp(8);
  for (int run = 1; run <= 4; ++run) {
    if (run == 3) fake.lost_from_run = fake.runs + 2;  // inside the loop
    ASSERT_TRUE(session->run(std::vector{tensor({1, 2, 2, 2}, x)}).ok());
    const auto y = output(*session);
    for (size_t i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(y[i], 8 * static_cast<float>(run) * x[i]);
    if (run == 2) {
      EXPECT_EQ(fake.nodes_run, 8);
    }
  }
  EXPECT_EQ(fake.nodes_run, 9);
}

TEST(DeviceLost, ADeviceThatOpensAnewIsTriedOnceMore) {
  const Program program = program_of(kNet);
  FakeBackend fake;
  fake.opens_anew = true;
  std::vector<std::vector<float>> want;
  {
    auto well = Session::create(program, on(fake));
    ASSERT_TRUE(well.ok());
    for (int64_t n : {2, 3}) want.push_back(*run_net(*well, n));
  }
  fake.runs = 0;
  auto session = Session::create(program, on(fake));
  auto other = Session::create(program, on(fake));
  ASSERT_TRUE(session.ok() && other.ok());
  fake.lost_runs = 1;
  fake.lost_from_run = 2;  // the second segment of the first run
  EXPECT_EQ(*run_net(*session, 2), want[0]);
  EXPECT_EQ(fake.runs, 4);  // both segments again
  Placement conv = row(session->placement(), "conv");
  EXPECT_EQ(conv.backend, "fake");
  EXPECT_EQ(conv.notice, "its device was lost (the fake device went away) and opened anew");
  EXPECT_EQ(row(session->placement(), "sigmoid").notice, "");
  EXPECT_EQ(*run_net(*session, 3), want[1]);
  fake.lost_from_run = fake.runs + 1;
  EXPECT_EQ(*run_net(*session, 2), cpu_result(program, 2));
  conv = row(session->placement(), "conv");
  EXPECT_EQ(conv.backend, "cpu");
  EXPECT_EQ(conv.why[0],
            "fake does not take conv 'conv_0': its device was lost, opened anew and lost again (the fake device went "
            "away) (rule P-2)");
  // Others count for themselves.
  fake.lost_from_run = fake.runs + 1;
  EXPECT_EQ(*run_net(*other, 2), want[0]);
  EXPECT_EQ(row(other->placement(), "conv").backend, "fake");
}

// Whether the state lies with the session or on the device: it is the one before the run that was lost.
TEST(DeviceLost, StateIsKeptWhenTheDeviceIsOpenedAnew) {
  for (const bool kept : {false, true}) {
    FakeBackend fake;
    fake.opens_anew = true;
    fake.keeps_states = kept;
    fake.states_are_gone = true;  // but for those that are to survive
    Options options = on(fake);
    options.fallback = false;
    auto session = Session::create(program_of(R"(graph "g" {
      input %x : f32[1,2,2,2]
      state "sum" %s : f32[1,2,2,2] next %t = {0,0,0,0,0,0,0,0}
      %t : f32[1,2,2,2] = add(%s, %x)
      %y : f32[1,2,2,2] = add(%t, %x)
      output "y" %y
    })"),
                                   options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    fake.lost_runs = 1;
    fake.lost_from_run = 3;
    std::vector<float> x = ramp(8);
    for (int run = 1; run <= 5; ++run) {
      const Status status = session->run(std::vector{tensor({1, 2, 2, 2}, x)});
      ASSERT_TRUE(status.ok()) << status.message();
      const auto y = output(*session);
      for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(y[i], static_cast<float>(run + 1) * x[i], 1e-5) << run;
    }
    EXPECT_EQ(fake.runs, 6);
    fake.lost_from_run = fake.runs + 1;
    const Status status = session->run(std::vector{tensor({1, 2, 2, 2}, x)});
    EXPECT_EQ(status.code(), Code::kDeviceLost);
    EXPECT_EQ(status.rule(), "fake");
  }
}

TEST(DeviceLost, OutputsGivenByTheCallerAreWrittenByTheSecondAttempt) {
  FakeBackend fake;
  const Program program = program_of(kNet);
  auto session = Session::create(program, on(fake));
  ASSERT_TRUE(session.ok());
  fake.lost_from_run = 2;
  std::vector<float> x = ramp(144), y(216, -1.0f);
  ASSERT_TRUE(session->run(std::vector{tensor({2, 2, 6, 6}, x)}, std::vector{tensor({2, 3, 6, 6}, y)}).ok());
  EXPECT_EQ(y, cpu_result(program, 2));
}

// ---- states that stay with a device ---------------------------------------------------------------------------------

/// s = relu(s + x), kept where it is made; u = u + x, which is an output too; y is made of both by the CPU.
constexpr char kStates[] = R"(graph "g" {
  symbol n 1..4
  input %x : f32[1,2,2,2]
  input %v : f32[n,2,2,2]
  state "kept" %s : f32[1,2,2,2] next %t = {1,1,1,1,1,1,1,1}
  state "seen" %u : f32[1,2,2,2] next %w = {0,0,0,0,0,0,0,0}
  %t : f32[1,2,2,2] = add(%s, %x) {activation="relu"}
  %w : f32[1,2,2,2] = add(%u, %x)
  %r : f32[n,2,2,2] = relu(%v)
  %z : f32[1,2,2,2] = sigmoid(%w)
  output "w" %w
  output "z" %z
  output "r" %r
})";

Status run_states(Session& session, float value, int64_t n = 1) {
  std::vector<float> x(8, value), v(static_cast<size_t>(8 * n), value);
  return session.run(std::vector{tensor({1, 2, 2, 2}, x), tensor({n, 2, 2, 2}, v)});
}
float state_of(const Session& session, int i) {
  const auto t = session.state(i);
  EXPECT_TRUE(t.ok()) << t.status().message();
  return t.ok() ? static_cast<const float*>(t->memory.host)[7] : NAN;
}

TEST(KeptStates, StayUntilSomebodyLooks) {
  FakeBackend fake;
  fake.keeps_states = true;
  auto session = Session::create(program_of(kStates), on(fake));
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (int run = 0; run < 5; ++run) ASSERT_TRUE(run_states(*session, 2).ok());
  EXPECT_EQ(fake.states_written, 1) << "the initial value of the one that nobody else reads";
  EXPECT_EQ(fake.states_read, 0);
  EXPECT_EQ(state_of(*session, 0), 11);
  EXPECT_EQ(state_of(*session, 1), 10);
  EXPECT_EQ(state_of(*session, 0), 11);
  EXPECT_EQ(fake.states_read, 1);
  ASSERT_TRUE(run_states(*session, 2).ok());
  EXPECT_EQ(fake.states_written, 1) << "looking moved nothing";
  EXPECT_EQ(state_of(*session, 0), 13);
  std::vector<float> set(8, -3);
  ASSERT_TRUE(session->set_state(0, tensor({1, 2, 2, 2}, set)).ok());
  EXPECT_EQ(state_of(*session, 0), -3);
  ASSERT_TRUE(run_states(*session, 5).ok());
  EXPECT_EQ(state_of(*session, 0), 2);
  ASSERT_TRUE(session->reset_state().ok());
  EXPECT_EQ(state_of(*session, 0), 1);
  ASSERT_TRUE(run_states(*session, 1).ok());
  EXPECT_EQ(state_of(*session, 0), 2);
  EXPECT_EQ(fake.states_written, 3);
}

TEST(KeptStates, FollowTheSizesOfRunsAndBelongToOneSession) {
  FakeBackend fake;
  fake.keeps_states = true;
  Options options = on(fake);
  options.plan_cache = 1;
  const Program program = program_of(kStates);
  auto a = Session::create(program, options), b = Session::create(program, options);
  ASSERT_TRUE(a.ok() && b.ok());
  float want_a = 1, want_b = 1;
  for (int run = 0; run < 30; ++run) {
    const auto value = static_cast<float>(run);
    ASSERT_TRUE(run_states(*a, value, 1 + run % 3).ok());
    want_a += value;
    if (run % 4) {
      ASSERT_TRUE(run_states(*b, -1, 1 + run / 7 % 4).ok());
      want_b = std::max(0.0f, want_b - 1);
    }
    // A run that is refused before it begins, of other sizes: the plan that has the state may go.
    if (run % 5 == 0) {
      std::vector<float> x(8), v(32), y(1);
      EXPECT_FALSE(a->run(std::vector{tensor({1, 2, 2, 2}, x), tensor({4, 2, 2, 2}, v)},
                          std::vector{tensor({1}, y), tensor({1}, y), tensor({1}, y)})
                       .ok());
    }
    if (run % 3) continue;
    EXPECT_EQ(state_of(*a, 0), want_a);
    EXPECT_EQ(state_of(*b, 0), want_b);
  }
}

// A device that cannot give a state up has it on: the plan that it lies with is not given up for those of other sizes.
TEST(KeptStates, StayWhereTheyCannotBeHadFrom) {
  for (int refusals = 1; refusals <= 3; ++refusals) {
    FakeBackend fake;
    fake.keeps_states = true;
    Options options = on(fake);
    options.plan_cache = 1;
    auto session = Session::create(program_of(kStates), options);
    ASSERT_TRUE(session.ok());
    ASSERT_TRUE(run_states(*session, 2, 1).ok());
    fake.states_refused = refusals;
    for (int i = 0; i < refusals; ++i) EXPECT_EQ(run_states(*session, 2, 2 + i % 2).code(), Code::kOutOfMemory);
    ASSERT_TRUE(run_states(*session, 3, 4).ok());
    EXPECT_EQ(state_of(*session, 0), 6);
    EXPECT_EQ(state_of(*session, 1), 5);
  }
}

TEST(KeptStates, AFailedRunLeavesThemAndFallbackTakesThemAlong) {
  FakeBackend fake;
  fake.keeps_states = true;
  auto session = Session::create(program_of(kStates), on(fake));
  ASSERT_TRUE(session.ok());
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(run_states(*session, 2).ok());
  fake.states_are_gone = true;  // a session that may go on without the device has them where they survive it
  fake.lost_from_run = fake.runs + 1;
  ASSERT_TRUE(run_states(*session, 2).ok());
  EXPECT_EQ(row(session->placement(), "relu").backend, "cpu");
  EXPECT_EQ(state_of(*session, 0), 9);
  EXPECT_EQ(state_of(*session, 1), 8);
}

TEST(KeptStates, ThatDieWithTheDeviceAreAnErrorUntilTheyAreSet) {
  FakeBackend fake;
  fake.keeps_states = true;
  Options options = on(fake);
  options.fallback = false;
  const Program program = program_of(R"(graph "g" {
    input %x : f32[1,2,2,2]
    state "kept" %s : f32[1,2,2,2] next %t = {1,1,1,1,1,1,1,1}
    %t : f32[1,2,2,2] = add(%s, %x)
    %y : f32[1,2,2,2] = relu(%x)
    output "y" %y
  })");
  auto session = Session::create(program, options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x(8, 2);
  const auto run = [&] { return session->run(std::vector{tensor({1, 2, 2, 2}, x)}); };
  ASSERT_TRUE(run().ok());
  ASSERT_TRUE(run().ok());
  fake.lost_from_run = fake.runs + 1;
  EXPECT_EQ(run().code(), Code::kDeviceLost);
  EXPECT_EQ(state_of(*session, 0), 5) << "it can still be read, and is the last committed one";
  fake.lost_from_run = 0;
  ASSERT_TRUE(run().ok());
  fake.states_are_gone = true;
  for (int i = 0; i < 2; ++i) {
    const Status status = session->state(0).status();
    EXPECT_EQ(status.code(), Code::kDeviceLost);
    EXPECT_NE(status.message().find("state 'kept' cannot be had from its device"), std::string::npos)
        << status.message();
  }
  const Status refused = run();
  EXPECT_EQ(refused.code(), Code::kDeviceLost) << "rather than go on with a wrong state";
  EXPECT_NE(refused.message().find("set or reset the state"), std::string::npos) << refused.message();
  ASSERT_TRUE(session->reset_state().ok());
  ASSERT_TRUE(run().ok());
  fake.states_are_gone = false;
  EXPECT_EQ(state_of(*session, 0), 3);
}

}  // namespace
}  // namespace pinnace
