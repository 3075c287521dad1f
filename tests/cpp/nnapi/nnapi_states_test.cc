// States that stay with an NNAPI device: streams of many runs against the CPU at each feature level, layouts and
// elements of states, what others see of them, and runs that fail.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include <pinnace/model.h>

#include "cases/run_case.h"
#include "cpp/child_process.h"
#include "cpp/random_cases.h"
#include "cpp/text_program.h"
#include "program/program_data.h"

namespace pinnace::testing {
namespace {

constexpr int64_t kIn = 6, kHidden = 40;

std::string numbers(Random& random, size_t count, float scale) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += str_cat(i ? "," : "", random.uniform(-scale, scale));
  return text;
}

/// A stream of t steps a run through an LSTM or GRU; h (and c) go from one run to the next.
Program stream(bool lstm) {
  Random random(5);
  const int64_t gates = lstm ? 4 : 3;
  const auto rows = static_cast<size_t>(gates * kHidden);
  std::string text = str_cat("graph \"stream\" {\n symbol t 1..4\n input %x : f32[t,1,", kIn, "]\n");
  const auto constant = [&](const char* name, const std::string& type, size_t count, float scale) {
    text += str_cat(" const %", name, " : ", type, " = {", numbers(random, count, scale), "}\n");
  };
  constant("w", str_cat("f32[1,", rows, ",", kIn, "]"), rows * kIn, 0.4f);
  constant("r", str_cat("f32[1,", rows, ",", kHidden, "]"), rows * kHidden, 0.25f);
  constant("b", str_cat("f32[1,", 2 * rows, "]"), 2 * rows, 0.3f);
  const std::string state = str_cat("f32[1,1,", kHidden, "]");
  const std::string first = numbers(random, kHidden, 0.5f);
  text += str_cat(" state \"h\" %h : ", state, " next %hn = {", first, "}\n");
  if (lstm) text += str_cat(" state \"c\" %c : ", state, " next %cn = {", first, "}\n");
  text += str_cat(" %y : f32[t,1,1,", kHidden, "], %hn : ", state);
  text += lstm ? str_cat(", %cn : ", state, " = lstm(%x, %w, %r, %b, none, %h, %c)\n")
               : std::string(" = gru(%x, %w, %r, %b, none, %h) {linear_before_reset=1}\n");
  text += " output \"y\" %y\n}";
  return program_of(text);
}

Options on(const std::string& target, bool fallback = false, int plans = 8) {
  return {.target = target, .threads = 1, .fallback = fallback, .plan_cache = plans};
}

Result<std::vector<float>> step(Session& session, int64_t t, uint64_t seed) {
  Random random(seed);
  std::vector<float> x(static_cast<size_t>(t * kIn));
  for (float& v : x) v = random.uniform(-1.0f, 1.0f);
  Tensor in;
  in.type = {DType::kF32, {Dim(t), Dim(1), Dim(kIn)}, nullptr};
  in.memory.host = x.data();
  in.memory.bytes = x.size() * sizeof(float);
  PINNACE_TRY(session.run(std::vector{in}));
  const Tensor y = session.output(0);
  const auto* data = static_cast<const float*>(y.memory.host);
  return std::vector<float>(data, data + y.type.elements());
}

Result<std::vector<float>> state(const Session& session, int i) {
  PINNACE_ASSIGN(const Tensor t, session.state(i));
  const auto* data = static_cast<const float*>(t.memory.host);
  return std::vector<float>(data, data + t.type.elements());
}

void expect_near(const Result<std::vector<float>>& got, const Result<std::vector<float>>& want, int run) {
  ASSERT_TRUE(got.ok()) << "run " << run << ": " << got.status().message();
  ASSERT_TRUE(want.ok()) << "run " << run << ": " << want.status().message();
  ASSERT_EQ(got->size(), want->size());
  for (size_t i = 0; i < got->size(); ++i) ASSERT_NEAR((*got)[i], (*want)[i], 1e-4) << "run " << run << ", " << i;
}

bool all_on_nnapi(const Session& session) {
  for (const Placement& row : session.placement()) {
    if (row.backend != "nnapi" && row.backend != "none") return false;
  }
  return true;
}

/// `runs` of a stream on NNAPI and on the CPU; states are looked at, set and put back now and then, and the sizes of
/// runs vary.
void follow(const Program& program, const Options& options, int runs, int states, Random& random) {
  auto session = Session::create(program, options), other = Session::create(program, options);
  auto reference = Session::create(program, on("cpu"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(other.ok() && reference.ok());
  for (int run = 0; run < runs; ++run) {
    const int64_t t = random.integer(1, 3);
    const auto seed = static_cast<uint64_t>(random.integer(0, 1 << 30));
    expect_near(step(*session, t, seed), step(*reference, t, seed), run);
    if (::testing::Test::HasFatalFailure()) return;
    ASSERT_TRUE(step(*other, 1, seed + 1).ok());  // has states of its own
    const int i = static_cast<int>(random.integer(0, states - 1));
    const int64_t what = random.integer(0, 9);
    if (what == 0) {
      expect_near(state(*session, i), state(*reference, i), run);
    } else if (what == 1) {
      std::vector<float> values(kHidden);
      for (float& v : values) v = random.uniform(-1.0f, 1.0f);
      Tensor value;
      value.type = program.data().graph.value(program.data().graph.states[0].input).type;
      value.memory.host = values.data();
      value.memory.bytes = values.size() * sizeof(float);
      ASSERT_TRUE(session->set_state(i, value).ok());
      ASSERT_TRUE(reference->set_state(i, value).ok());
    } else if (what == 2 && run % 7 == 0) {
      ASSERT_TRUE(session->reset_state().ok());
      ASSERT_TRUE(reference->reset_state().ok());
    }
  }
  EXPECT_TRUE(all_on_nnapi(*session));
}

uint64_t seed_of(const char* name) {
  return case_seed(name, 0);
}

class NnapiStates : public ::testing::TestWithParam<int> {};

TEST_P(NnapiStates, FollowTheCpuOverManyRuns) {
  Random random(seed_of("nnapi states"));
  for (const bool lstm : {true, false}) {
    if (lstm && GetParam() < 3) continue;
    const Program program = stream(lstm);
    for (const bool fallback : {false, true}) {
      Options options = on(str_cat("nnapi:fl", GetParam()), fallback, fallback ? 1 : 8);
      SCOPED_TRACE(str_cat(lstm ? "lstm" : "gru", fallback ? ", with fallback" : ""));
      setenv("PINNACE_NNAPI_WORK", "any", 1);
      follow(program, options, 60, lstm ? 2 : 1, random);
      unsetenv("PINNACE_NNAPI_WORK");
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Levels, NnapiStates, ::testing::Values(2, 3, 4, 5, 8));

TEST(NnapiStates, LayoutsAndElementsOfStatesAreTheDevices) {
  // Channels last on the device; 8 bits that are shifted below feature level 4; 32 bits for 64.
  constexpr char kText[] = R"(graph "g" {
    input %x : f32[1,2,3,3]
    input %q : i8[1,2,3,3]{scale 0.1, zero 3}
    const %w : f32[2,2,1,1] = {0.5,-0.25,0.25,0.5}
    const %v : i8[2,2,1,1]{scale 0.05, zero 0} = {9,-3,4,8}
    state "image" %s : f32[1,2,3,3] next %t = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18}
    state "bytes" %p : i8[1,2,3,3]{scale 0.1, zero 3} next %o = {1,2,3,4,5,6,7,8,9,-10,-11,-12,-13,-14,-15,-16,-17,-18}
    %c : f32[1,2,3,3] = conv(%s, %w)
    %u : f32[1,2,3,3] = conv(%x, %w)
    %t : f32[1,2,3,3] = add(%c, %u)
    %e : i8[1,2,3,3]{scale 0.1, zero 3} = conv(%p, %v)
    %o : i8[1,2,3,3]{scale 0.1, zero 3} = add(%e, %q)
    %y : f32[1,2,3,3] = relu(%c)
    output "y" %y
  })";
  LoadOptions load;
  load.disabled_passes = {"all"};
  auto model = Model::parse(kText, load);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Program program = *model->build();
  for (int level : {1, 2, 3, 4, 5, 8}) {
    SCOPED_TRACE(level);
    auto session = Session::create(program, on(str_cat("nnapi:fl", level)));
    auto reference = Session::create(program, on("cpu"));
    ASSERT_TRUE(session.ok()) << session.status().message();
    std::vector<float> x(18);
    std::vector<int8_t> q(18);
    for (int run = 0; run < 12; ++run) {
      for (size_t i = 0; i < 18; ++i) {
        x[i] = std::sin(static_cast<float>(run) + static_cast<float>(i));
        q[i] = static_cast<int8_t>(30 * x[i]);
      }
      std::vector<Tensor> in(2);
      for (size_t i = 0; i < 2; ++i) {
        in[i].type = session->inputs()[i].type;
        in[i].type.quantization = nullptr;
        in[i].memory.host = i ? static_cast<void*>(q.data()) : x.data();
        in[i].memory.bytes = i ? 18 : 72;
      }
      ASSERT_TRUE(session->run(in).ok());
      ASSERT_TRUE(reference->run(in).ok());
      if (run % 4 != 3) continue;
      expect_near(state(*session, 0), state(*reference, 0), run);
      const auto *a = static_cast<const int8_t*>(session->state(1)->memory.host),
                 *b = static_cast<const int8_t*>(reference->state(1)->memory.host);
      for (size_t i = 0; i < 18; ++i) EXPECT_NEAR(a[i], b[i], 2) << i;  // 1 a run, and half of the run before
    }
    EXPECT_TRUE(all_on_nnapi(*session));
  }
}

TEST(NnapiStates, WithoutFallbackAreInTheDevicesMemoryAndElseInOurs) {
  Child child({"PINNACE_NNAPI_TRACE=1", "PINNACE_NNAPI_STRICT=1", "PINNACE_NNAPI_WORK=any"});
  if (child.here()) {
    for (const bool fallback : {false, true}) {
      auto session = Session::create(stream(true), on("nnapi:30", fallback));
      EXPECT_TRUE(session.ok());
      fprintf(stderr, "begin %d\n", fallback);
      for (uint64_t run = 0; run < 10; ++run) EXPECT_TRUE(step(*session, 1, run).ok());
      fprintf(stderr, "look %d\n", fallback);
      EXPECT_TRUE(state(*session, 0).ok());
      fprintf(stderr, "end %d\n", fallback);
    }
    return;
  }
  const auto count = [&](const std::string& from, const std::string& to, const std::string& what) {
    const size_t begin = child.output.find(from), end = child.output.find(to);
    EXPECT_NE(end, std::string::npos) << child.output;
    int found = 0;
    for (size_t at = begin; (at = child.output.find(what, at)) < end; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("begin 0", "look 0", " Memory_copy("), 2) << "initial values\n" << child.output;
  EXPECT_EQ(count("begin 0", "look 0", " Memory_createFromDesc("), 4) << "two of each state";
  EXPECT_EQ(count("look 0", "end 0", " Memory_copy("), 1);
  EXPECT_EQ(count("begin 1", "end 1", " Memory_copy("), 0);
  EXPECT_EQ(count("begin 1", "end 1", " Memory_createFromDesc("), 0);
  EXPECT_TRUE(child.says("strict: 0 violations")) << child.output;
}

/// The code of each run of a stream that meets faults, and whether all that succeeded follow one on the CPU that was
/// fed the same.
std::vector<Code> run_with_faults(Session& session, Session& reference, int runs) {
  std::vector<Code> codes;
  for (int run = 0; run < runs; ++run) {
    const auto got = step(session, 1, static_cast<uint64_t>(run));
    codes.push_back(got.status().code());
    if (!got.ok()) continue;
    expect_near(got, step(reference, 1, static_cast<uint64_t>(run)), run);
  }
  return codes;
}

TEST(NnapiStates, AFailedRunIsAsIfItHadNotBeen) {
  Child child({"PINNACE_NNAPI_FAULTS=computation@4=OP_FAILED;computation@9=OUT_OF_MEMORY;computation@10=BAD_STATE"});
  if (!child.here()) return;
  for (const char* target : {"nnapi:fl3", "nnapi:fl4", "nnapi:fl8"}) {
    auto session = Session::create(stream(true), on(target));
    auto reference = Session::create(stream(true), on("cpu"));
    ASSERT_TRUE(session.ok() && reference.ok());
    const std::vector<Code> codes = run_with_faults(*session, *reference, 20);
    if (target != std::string("nnapi:fl3")) continue;  // the faults are those of the first 20 computations
    for (size_t i = 0; i < codes.size(); ++i) {
      EXPECT_EQ(codes[i], i == 3 || i == 8 || i == 9 ? Code::kDeviceLost : Code::kOk) << i;
    }
  }
}

TEST(NnapiStates, ALostDeviceLeavesThemToTheCpu) {
  Child child({"PINNACE_NNAPI_FAULTS=computation@6=dead", "PINNACE_NNAPI_WORK=any"});
  if (!child.here()) return;
  auto session = Session::create(stream(true), on("nnapi:fl5", true));
  auto reference = Session::create(stream(true), on("cpu"));
  ASSERT_TRUE(session.ok() && reference.ok());
  for (int run = 0; run < 5; ++run) {
    const auto seed = static_cast<uint64_t>(run);
    expect_near(step(*session, 1, seed), step(*reference, 1, seed), run);
  }
  EXPECT_TRUE(all_on_nnapi(*session));
  for (const Code code : run_with_faults(*session, *reference, 10)) EXPECT_EQ(code, Code::kOk);
  EXPECT_FALSE(all_on_nnapi(*session));
  for (int i : {0, 1}) expect_near(state(*session, i), state(*reference, i), i);
}

TEST(NnapiStates, InADevicesMemoryThatIsGoneAreAnError) {
  Child child({"PINNACE_NNAPI_FAULTS=Memory_copy@3+=DEAD_OBJECT"});
  if (!child.here()) return;
  auto session = Session::create(stream(true), on("nnapi:fl4"));
  ASSERT_TRUE(session.ok());
  for (uint64_t run = 0; run < 3; ++run) ASSERT_TRUE(step(*session, 1, run).ok());
  const Status status = state(*session, 1).status();
  EXPECT_EQ(status.code(), Code::kDeviceLost);
  EXPECT_NE(status.message().find("state 'c' cannot be had from its device: NNAPI device pinnace-cpu: Memory_copy"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(step(*session, 1, 3).status().code(), Code::kDeviceLost);
}

TEST(NnapiStates, ADeviceThatMakesNoMemoryHasThemInOurs) {
  Child child({"PINNACE_NNAPI_FAULTS=Memory_createFromDesc@2=OP_FAILED;MemoryDesc_addOutputRole@2=BAD_DATA"});
  if (!child.here()) return;
  for (int i = 0; i < 2; ++i) {
    auto session = Session::create(stream(true), on("nnapi:fl4"));
    auto reference = Session::create(stream(true), on("cpu"));
    ASSERT_TRUE(session.ok() && reference.ok());
    for (const Code code : run_with_faults(*session, *reference, 8)) EXPECT_EQ(code, Code::kOk);
    for (int k : {0, 1}) expect_near(state(*session, k), state(*reference, k), k);
  }
}

size_t descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}
size_t mappings() {
  std::ifstream file("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(file, line);) count += line.find("memfd:pinnace") != std::string::npos;
  return count;
}

TEST(NnapiStates, GoWithTheirSession) {
  const Program program = stream(true);
  const auto prepared = Prepared::create(program, on("nnapi:fl8", false, 2));
  ASSERT_TRUE(prepared.ok()) << prepared.status().message();
  size_t files = 0, maps = 0;
  for (int round = 0; round < 20; ++round) {
    auto session = Session::create(*prepared);
    ASSERT_TRUE(session.ok());
    for (int64_t run = 0; run < 8; ++run) ASSERT_TRUE(step(*session, 1 + run % 4, 1).ok());  // plans come and go
    if (round == 4) files = descriptors();
    if (round == 4) maps = mappings();
  }
  EXPECT_EQ(descriptors(), files);
  EXPECT_LE(mappings(), maps + 2);
}

}  // namespace
}  // namespace pinnace::testing
