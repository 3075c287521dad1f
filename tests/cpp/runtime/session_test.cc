// Sessions: results, symbols, state, control flow, sizes that depend on data, misuse, cancelling, memory.
#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include <pinnace/log.h>
#include <pinnace/model.h>

#include "base/threads/thread_pool.h"
#include "cases/run_case.h"
#include "compile/plan.h"
#include "cpp/text_program.h"
#include "program/writer.h"

namespace pinnace {
namespace {

using testing::program_of;

template <class T>
Tensor tensor(DType dtype, const std::vector<int64_t>& shape, std::vector<T>& values) {
  Tensor t;
  t.type.dtype = dtype;
  for (int64_t n : shape) t.type.shape.push_back(Dim(n));
  t.memory.host = values.data();
  t.memory.bytes = values.size() * sizeof(T);
  return t;
}

std::vector<float> floats(const Tensor& t) {
  const auto* data = static_cast<const float*>(t.memory.host);
  return {data, data + t.type.elements()};
}

constexpr char kSymbolic[] = R"(graph "g" {
  symbol n 2..8 multiple 2
  input %x : f32[n,3]
  %y : f32[n,3] = relu(%x)
  output "y" %y
})";

TEST(Session, ConstantsBesideImagesAreOneNumberOrOnePerChannel) {
  for (const auto& [shape, values] : std::vector<std::pair<std::string, std::string>>{{"", "5"},
                                                                                      {"1", "5"},
                                                                                      {"1,1", "5"},
                                                                                      {"1,1,1", "5"},
                                                                                      {"1,1,1,1", "5"},
                                                                                      {"3,1,1", "5,6,7"},
                                                                                      {"1,3,1,1", "5,6,7"}}) {
    const std::string text = str_cat(R"(graph "g" {
      input %x : f32[2,3,2,2]
      const %w : f32[3,3,1,1] = {1,0,0, 0,1,0, 0,0,1}
      const %c : f32[)",
                                     shape, "] = {", values, R"(}
      %v : f32[2,3,2,2] = conv(%x, %w)
      %y : f32[2,3,2,2] = add(%v, %c)
      output "y" %y
    })");
    auto session = Session::create(program_of(text));
    ASSERT_TRUE(session.ok()) << session.status().message();
    std::vector<float> x(24);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    ASSERT_TRUE(session->run(std::vector{tensor(DType::kF32, {2, 3, 2, 2}, x)}).ok());
    const std::vector<float> y = floats(session->output(0));
    for (size_t i = 0; i < x.size(); ++i) {
      const float more = values.size() == 1 ? 5.0f : 5.0f + static_cast<float>(i / 4 % 3);
      EXPECT_EQ(y[i], x[i] + more) << "constant of shape [" << shape << "], element " << i;
    }
  }
}

TEST(Session, ChecksSymbolsOnEveryRunAndNamesThem) {
  auto session = Session::create(program_of(kSymbolic));
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x(30, -1.0f);
  x[0] = 2;
  EXPECT_TRUE(session->run(std::vector{tensor(DType::kF32, {4, 3}, x)}).ok());
  EXPECT_EQ(floats(session->output(0))[0], 2);
  EXPECT_EQ(session->output_type(0).shape, (Shape{4, 3}));
  const auto refused = [&](const std::vector<int64_t>& shape, const std::string& part) {
    const Status status = session->run(std::vector{tensor(DType::kF32, shape, x)});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  refused({3, 3}, "dimension 0 is 3, 'n' must be a multiple of 2");
  refused({10, 3}, "dimension 0 is 10, 'n' must be in [2, 8]");
  refused({4, 2}, "dimension 1 is 2, must be 3");
  refused({4}, "has rank 1");
}

TEST(Session, OpenSizesKeepToTheirBound) {
  auto session = Session::create(program_of(R"(graph "g" {
    input %x : f32[?<=4]
    input %z : f32[4]
    %at : i64[1,?<=4] = non_zero(%z)
    output "x" %x
    output "at" %at
  })"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x(5, 1), z = {0, 1, 0, 1}, to(5);
  std::vector<int64_t> at(10);
  const auto run = [&](int64_t in, int64_t out, int64_t places) {
    return session->run(std::vector{tensor(DType::kF32, {in}, x), tensor(DType::kF32, {4}, z)},
                        std::vector{tensor(DType::kF32, {out}, to), tensor(DType::kI64, {1, places}, at)});
  };
  EXPECT_TRUE(run(4, 4, 2).ok());
  EXPECT_EQ(run(5, 4, 2).message(), "input 'x': dimension 0 is 5, must be at most 4");
  EXPECT_EQ(run(4, 5, 2).message(), "output 'x': dimension 0 is 5, must be at most 4");
  EXPECT_EQ(run(4, 4, 5).message(), "output 'at': dimension 1 is 5, must be at most 4");
}

// Tables of a resize and weights that are computed from sizes: those of the plans that are kept, not of all there were.
TEST(Session, GivesBackWhatWasPackedForSizesThatAreGone) {
  constexpr int64_t kMost = 400, kChannels = 32;
  auto session = Session::create(program_of(R"(graph "g" {
    symbol w 1..400
    input %x : f32[1,32,2,w]
    const %scales : f32[4] = {1, 1, 8, 1}
    %y : f32[1,32,16,w] = resize(%x, none, %scales) {mode="linear"}
    output "y" %y
  })"),
                                 {.target = "cpu", .plan_cache = 2});
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x(2 * kChannels * kMost, 1), y(16 * kChannels * kMost);
  int64_t most = 0;
  for (int64_t w = 1; w <= kMost; ++w) {
    ASSERT_TRUE(session
                    ->run(std::vector{tensor(DType::kF32, {1, kChannels, 2, w}, x)},
                          std::vector{tensor(DType::kF32, {1, kChannels, 16, w}, y)})
                    .ok());
    const int64_t bytes = session->plan().constant_bytes;
    EXPECT_GT(bytes, 0);
    most = std::max(most, bytes);
  }
  EXPECT_LT(most, 64 << 10);
}

TEST(Session, KeepsStateAndCommitsItOnlyAfterSuccess) {
  auto session = Session::create(program_of(R"(graph "g" {
    input %x : f32[2]
    input %at : i64[1]
    state "sum" %s : f32[2] next %t = {1,1}
    %t : f32[2] = add(%s, %x)
    %y : f32[1] = gather(%t, %at) {axis=0}
    output "y" %y
  })"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = {1, 2};
  std::vector<int64_t> good = {1}, bad = {7};
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(session->run(std::vector{tensor(DType::kF32, {2}, x), tensor(DType::kI64, {1}, good)}).ok());
    EXPECT_EQ(floats(session->output(0))[0], 1 + 2 * i);
  }
  EXPECT_FALSE(session->run(std::vector{tensor(DType::kF32, {2}, x), tensor(DType::kI64, {1}, bad)}).ok());
  EXPECT_EQ(floats(*session->state(0)), (std::vector<float>{4, 7}));
  ASSERT_TRUE(session->reset_state().ok());
  EXPECT_EQ(floats(*session->state(0)), (std::vector<float>{1, 1}));
}

constexpr char kSum[] = R"(graph "sum" {
    input %x : f32[2]
    const %one : f32[2] = {1,1}
    state "sum" %s : f32[2] next %t = {0,0}
    state "none" %e : f32[0] next %e = {}
    %u : f32[2] = add(%s, %x)
    %t : f32[2] = mul(%u, %one)
    output "y" %t
  })";

TEST(Session, SavesRestoresAndForksItsStates) {
  const Program program = program_of(kSum);
  auto session = Session::create(program, {.target = "cpu"});
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = {1, 2};
  const std::vector<Tensor> in = {tensor(DType::kF32, {2}, x)};
  ASSERT_TRUE(session->run(in).ok());
  const auto saved = session->save_state();
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  auto fork = session->fork();
  ASSERT_TRUE(fork.ok()) << fork.status().message();
  ASSERT_TRUE(session->run(in).ok());
  EXPECT_EQ(floats(*session->state(0)), (std::vector<float>{2, 4}));
  EXPECT_EQ(floats(*fork->state(0)), (std::vector<float>{1, 2}));
  ASSERT_TRUE(fork->run(in).ok());
  ASSERT_TRUE(fork->run(in).ok());
  EXPECT_EQ(floats(*fork->state(0)), (std::vector<float>{3, 6}));
  EXPECT_EQ(floats(*session->state(0)), (std::vector<float>{2, 4}));
  // The same program with other metadata is the same program.
  auto noted = program.with_metadata("note", "of a user");
  ASSERT_TRUE(noted.ok());
  auto other = Session::create(*noted, {.target = "cpu"});
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(other->restore_state(*saved).ok());
  EXPECT_EQ(floats(*other->state(0)), (std::vector<float>{1, 2}));
}

TEST(Session, RefusesSavedStatesThatAreNotItsOwn) {
  auto session = Session::create(program_of(kSum), {.target = "cpu"});
  std::string changed = kSum;
  changed.replace(changed.find("{1,1}"), 5, "{1,2}");  // another weight
  auto other = Session::create(program_of(changed.c_str()), {.target = "cpu"});
  ASSERT_TRUE(session.ok() && other.ok());
  const std::vector<std::byte> saved = *session->save_state();
  const auto refused = [&](Session& by, std::span<const std::byte> bytes, Code code, const char* why) {
    const Status status = by.restore_state(bytes);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
  };
  refused(*other, saved, Code::kInvalidArgument, "another program");
  refused(*session, {}, Code::kCorruptFile, "0 bytes");
  refused(*session, std::span(saved).first(saved.size() - 4), Code::kCorruptFile, "were saved");
  for (size_t i = 0; i < saved.size(); ++i) {  // any byte
    std::vector<std::byte> damaged = saved;
    damaged[i] ^= std::byte{1};
    const Status status = session->restore_state(damaged);
    const bool version = i >= 8 && i < 16;
    EXPECT_EQ(status.code(), version ? Code::kUnsupported : Code::kCorruptFile) << i << ' ' << status.message();
  }
  EXPECT_EQ(floats(*session->state(0)), (std::vector<float>{0, 0}));
}

TEST(Session, AStateMayTakeAnothersOldValue) {
  // A delay line, declared in either order, and two that change places.
  auto session = Session::create(program_of(R"(graph "g" {
    input %x : f32[2]
    state "a" %a : f32[2] next %x = {1,1}
    state "b" %b : f32[2] next %a = {2,2}
    state "d" %d : f32[2] next %c = {4,4}
    state "c" %c : f32[2] next %d = {3,3}
    %y : f32[2] = add(%a, %b)
    output "y" %y
  })"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  const std::vector<std::vector<float>> want = {{5, 1, 3, 4}, {6, 5, 4, 3}, {7, 6, 3, 4}};
  for (size_t run = 0; run < 3; ++run) {
    std::vector<float> x(2, 5 + static_cast<float>(run));
    ASSERT_TRUE(session->run(std::vector{tensor(DType::kF32, {2}, x)}).ok());
    for (int i = 0; i < 4; ++i) EXPECT_EQ(floats(*session->state(i))[1], want[run][static_cast<size_t>(i)]) << i;
  }
}

TEST(Session, RunsLoopsWithCarriedAndScannedValues) {
  auto session = Session::create(program_of(R"(graph "g" {
    input %trips : i64[]
    input %x : f32[2]
    %last : f32[2], %all : f32[?,2] = loop(%trips, none, %x, %x) {carried=1, body=graph "body" {
      input %i : i64[]
      input %c : bool[]
      input %a : f32[2]
      input %b : f32[2]
      %sum : f32[2] = add(%a, %b)
      output "c" %c
      output "sum" %sum
      output "each" %sum
    }}
    output "last" %last
    output "all" %all
  })"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = {1, 10};
  for (int64_t trips : {3, 0, 1, 40}) {
    std::vector<int64_t> count = {trips};
    const Status status = session->run(std::vector{tensor(DType::kI64, {}, count), tensor(DType::kF32, {2}, x)});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(floats(session->output(0))[1], 10.0f * static_cast<float>(trips + 1));
    EXPECT_EQ(session->output_type(1).shape, (Shape{trips, 2}));
    if (trips) {
      EXPECT_EQ(floats(session->output(1))[static_cast<size_t>(2 * trips - 1)], 10.0f * static_cast<float>(trips + 1));
    }
  }
}

// Each round has another size, so the plans and nodes of earlier rounds are gone when the run ends.
TEST(Session, ProfilesNameTheNodesOfAllRoundsOfALoop) {
  auto session = Session::create(program_of(R"(graph "g" {
    input %trips : i64[]
    input %x : f32[?]
    const %one : f32[1] = {1}
    %last : f32[?], %counts : i64[?] = loop(%trips, none, %x, %one) {carried=1, body=graph "body" {
      input %i : i64[]
      input %c : bool[]
      input %a : f32[?]
      input %one : f32[1]
      %grown : f32[?] = concat(%a, %one) {axis=0}
      %at : i64[1,?] = non_zero "a node with a name too long for a short string"(%grown)
      %count : i64[] = size(%at)
      output "c" %c
      output "grown" %grown
      output "count" %count
    }}
    output "last" %last
    output "counts" %counts
  })"),
                                 {.target = "cpu", .threads = 1, .plan_cache = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  constexpr int kRounds = 40;
  std::vector<int64_t> trips = {kRounds};
  std::vector<float> x = {1, 0};
  const std::vector<Tensor> inputs = {tensor(DType::kI64, {}, trips), tensor(DType::kF32, {2}, x)};
  ASSERT_TRUE(set_log_sink([](void*, LogLevel, std::string_view) {}, LogLevel::kWarn).ok());
  for (int run = 0; run < 10; ++run) ASSERT_TRUE(session->run(inputs).ok());  // one looks for reference code by itself
  ASSERT_TRUE(set_log_sink(nullptr).ok());
  EXPECT_EQ(session->output_type(1).shape, (Shape{kRounds}));
  const auto events = session->profile(inputs);
  ASSERT_TRUE(events.ok()) << events.status().message();
  std::map<std::string, int> seen;
  for (const ProfileEvent& e : *events) {
    ++seen[e.op];
    EXPECT_EQ(e.backend, "cpu");
    EXPECT_FALSE(e.kernel.empty());
    if (e.op == "non_zero") EXPECT_EQ(e.node, "a node with a name too long for a short string");
  }
  EXPECT_EQ(seen["non_zero"], kRounds);
}

TEST(Session, SizesThatDependOnData) {
  auto session = Session::create(program_of(R"(graph "g" {
    input %x : f32[4]
    %at : i64[1,?<=4] = non_zero(%x)
    %t : i64[?<=4,1] = transpose(%at)
    %picked : f32[?<=4] = gather_nd(%x, %t)
    %y : f32[?<=4] = add(%picked, %picked)
    output "y" %y
  })"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = {0, 3, 0, 5};
  ASSERT_TRUE(session->run(std::vector{tensor(DType::kF32, {4}, x)}).ok());
  EXPECT_EQ(floats(session->output(0)), (std::vector<float>{6, 10}));
  x = {1, 2, 3, 4};
  ASSERT_TRUE(session->run(std::vector{tensor(DType::kF32, {4}, x)}).ok());
  EXPECT_EQ(floats(session->output(0)), (std::vector<float>{2, 4, 6, 8}));
  x = {0, 0, 0, 0};
  ASSERT_TRUE(session->run(std::vector{tensor(DType::kF32, {4}, x)}).ok());
  EXPECT_EQ(session->output_type(0).shape, (Shape{0}));
}

TEST(Session, BoundsWhoseProductIsBeyondAnyMemoryAreNone) {
  // 2^16 non-zero elements at most in each of four dimensions: 2^67 bytes, which are 0 in 64 bits.
  auto session = Session::create(program_of(R"(graph "g" {
    const %sizes : i64[1] = {-1}
    input %x : f32[65536]
    %at : i64[1,?<=65536] = non_zero(%x)
    %a : i64[?<=65536] = reshape(%at, %sizes)
    %abcd : i64[?<=65536,?<=65536,?<=65536,?<=65536] = einsum(%a, %a, %a, %a) {equation="a,b,c,d->abcd"}
    %y : i64[?<=65536,?<=65536,?<=65536,?<=65536] = neg(%abcd)
    output "y" %y
  })"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_LT(session->plan().peak_bytes, int64_t{1} << 40);
  const TensorType planned{DType::kI64, Shape(4, Dim::unknown(65536)), {}};
  EXPECT_EQ(bound_bytes(planned), Dim::kUnknown);
  std::vector<float> x(65536);
  x[2] = x[3] = x[5] = 1;
  const Status status = session->run(std::vector{tensor(DType::kF32, {65536}, x)});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(session->output_type(0).shape, (Shape{3, 3, 3, 3}));
  const auto* y = static_cast<const int64_t*>(session->output(0).memory.host);
  EXPECT_EQ(y[0], -16);
  EXPECT_EQ(y[80], -625);
}

TEST(Session, LimitsTheTimeOfALoop) {
  auto session = Session::create(program_of(R"(graph "g" {
    input %x : f32[2]
    %last : f32[2] = loop(none, none, %x) {carried=1, body=graph "body" {
      input %i : i64[]
      input %c : bool[]
      input %a : f32[2]
      %next : f32[2] = abs(%a)
      output "c" %c
      output "next" %next
    }}
    output "last" %last
  })"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = {1, 10};
  ASSERT_TRUE(session->limit_loops(std::chrono::milliseconds(2)).ok());
  for (int i = 0; i < 2; ++i) {  // the session stays usable
    const Status status = session->run(std::vector{tensor(DType::kF32, {2}, x)});
    EXPECT_EQ(status.code(), Code::kCancelled);
    EXPECT_NE(status.message().find("loop"), std::string::npos) << status.message();
  }
  EXPECT_EQ(session->limit_loops(std::chrono::nanoseconds(-1)).code(), Code::kInvalidArgument);
}

TEST(Session, RefusesASecondCallerAndCancelsBetweenOperators) {
  auto session = Session::create(program_of(R"(graph "g" {
    input %trips : i64[]
    input %x : f32[1000]
    %last : f32[1000] = loop(%trips, none, %x) {carried=1, body=graph "body" {
      input %i : i64[]
      input %c : bool[]
      input %a : f32[1000]
      %b : f32[1000] = sigmoid(%a)
      output "c" %c
      output "b" %b
    }}
    output "last" %last
  })"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<int64_t> forever = {INT64_MAX}, once = {1};
  std::vector<float> x(1000, 1.0f);
  const std::vector inputs = {tensor(DType::kI64, {}, forever), tensor(DType::kF32, {1000}, x)};
  auto run = session->submit(inputs);
  ASSERT_TRUE(run.ok());
  EXPECT_NE(session->run(inputs).message().find("another thread"), std::string::npos);
  EXPECT_NE(session->reset_state().message().find("another thread"), std::string::npos);
  EXPECT_FALSE(run->done());
  const auto start = std::chrono::steady_clock::now();
  run->cancel();
  EXPECT_EQ(run->wait().code(), Code::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));  // 50 on a machine of its own
  EXPECT_TRUE(session->run(std::vector{tensor(DType::kI64, {}, once), tensor(DType::kF32, {1000}, x)}).ok());
}

// What a session owns is there for whoever ran it, however soon another comes.
TEST(Session, IsSomeonesUntilItsOutputsWereSeen) {
  auto session = Session::create(program_of(kSymbolic));
  ASSERT_TRUE(session.ok());
  std::vector<float> x(12, 1.0f), z(12, 2.0f);
  const std::vector ones = {tensor(DType::kF32, {4, 3}, x)}, twos = {tensor(DType::kF32, {4, 3}, z)};
  int calls = 0;
  const auto sees = [&](float want) {
    return [&calls, &twos, want](const Session& own) {
      ++calls;
      EXPECT_EQ(static_cast<const float*>(own.output(0).memory.host)[0], want);
      EXPECT_EQ(const_cast<Session&>(own).run(twos).code(), Code::kInvalidArgument);
    };
  };
  EXPECT_TRUE(session->run(ones, {}, sees(1)).ok());
  auto run = session->submit(twos, {}, sees(2));
  ASSERT_TRUE(run.ok() && run->wait().ok());
  EXPECT_TRUE(session->profile(ones, {}, sees(1)).ok());
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(session->run({}, {}, sees(3)).ok());
  EXPECT_EQ(calls, 3);
}

/// As programs built with -ffast-math compute, and some that round otherwise.
class StrangeFloats {
 public:
  StrangeFloats() {
    std::fegetenv(&before_);
    std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);  // flush to zero, subnormal operands are zero
#elif defined(__aarch64__)
    uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    asm volatile("msr fpcr, %0" : : "r"(control | 1u << 24));
#endif
  }
  ~StrangeFloats() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
};

TEST(Session, ComputesAlikeWhateverFloatsItsCallerHas) {
  static constexpr const char* kText = R"(graph "g" {
    input %x : f32[300000]
    const %s : f32[] = {1e-10}
    const %t : f32[] = {0.1}
    %a : f32[300000] = mul(%x, %s)
    %b : f32[300000] = mul(%x, %t)
    output "a" %a
    output "b" %b
  })";
  std::vector<float> x(300000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % 2 ? 1e-30f * static_cast<float>(i % 100) : static_cast<float>(i);
  const std::vector in = {tensor(DType::kF32, {300000}, x)};
  const auto answers = [&](int threads) {
    Options options;
    options.threads = threads;
    auto session = Session::create(program_of(kText), options);
    EXPECT_TRUE(session.ok() && session->run(in).ok());
    std::vector<std::byte> bytes;
    for (int i = 0; i < 2; ++i) {
      const Tensor t = session->output(i);
      const auto* from = static_cast<const std::byte*>(t.memory.host);
      bytes.insert(bytes.end(), from, from + t.memory.bytes);
    }
    return bytes;
  };
  const auto want = answers(1);
  float smallest = 1;
  std::memcpy(&smallest, want.data() + 4, 4);
  ASSERT_GT(smallest, 0.0f);  // a subnormal number
  const StrangeFloats strange;
  const int rounding = std::fegetround();
  EXPECT_TRUE(answers(1) == want);
  EXPECT_TRUE(answers(2) == want);
  EXPECT_EQ(std::fegetround(), rounding) << "the caller's floats are the caller's";
}

// y is x itself where the loop ends before it began, and x's memory is others' once the loop is over.
TEST(Session, ALoopWithoutIterationsKeepsItsValues) {
  auto session = Session::create(program_of(R"(graph "g" {
    input %m : i64[]
    input %in : f32[64]
    const %ax : i64[] = {0}
    %x : f32[64] = relu(%in)
    %y : f32[64] = loop(%m, none, %x) {carried=1, body=graph "b" {
      input %i : i64[] input %c : bool[] input %a : f32[64]
      %k : bool[] = identity(%c) %b : f32[64] = exp(%a)
      output "c" %k output "b" %b}}
    %s : f32[64] = cum_sum(%y, %ax)
    %u : f32[64] = cum_sum(%s, %ax)
    %v : f32[64] = cum_sum(%u, %ax)
    %z : f32[64] = add(%y, %v)
    output "z" %z
  })"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<int64_t> none = {0};
  std::vector<float> ones(64, 1.0f);
  ASSERT_TRUE(session->run(std::vector{tensor(DType::kI64, {}, none), tensor(DType::kF32, {64}, ones)}).ok());
  const auto* z = static_cast<const float*>(session->output(0).memory.host);
  EXPECT_EQ(z[0], 2);
  EXPECT_EQ(z[1], 5);
  EXPECT_EQ(z[2], 11);
  EXPECT_EQ(z[3], 21);
}

// Any text may be a node's name, also one that looks like the way to a node inside another.
TEST(Session, NamesOfNodesDoNotMixUpBodies) {
  const auto text = [](const char* inner) {
    constexpr const char* kExp = R"(graph "t" { input %x : f32[4] %r : f32[4] = exp(%x) output "r" %r })";
    return str_cat(R"(graph "g" { input %c : bool[] input %x : f32[4]
      %y : f32[4] = if "a" (%c, %c, %x) {then_branch=graph "t" { input %c : bool[] input %x : f32[4]
        %r : f32[4] = if "b" (%c, %x) {then_branch=)",
                   kExp, ", else_branch=", kExp, R"(} output "r" %r },
        else_branch=graph "e" { input %c : bool[] input %x : f32[4] %r : f32[4] = abs(%x) output "r" %r }}
      %z : f32[4] = if "a/then_branch/b" (%c, %x) {then_branch=)",
                   inner, ", else_branch=", kExp, R"(}
      %w : f32[4] = if "000000 then_branch/000000 b" (%c, %x) {then_branch=)",
                   inner, ", else_branch=", kExp, R"(}
      output "y" %y output "z" %z output "w" %w })");
  };
  uint8_t yes = 1;
  std::vector<float> ones(4, 1.0f);
  Tensor condition;
  condition.type = {DType::kBool, {}, nullptr};
  condition.memory.host = &yes;
  condition.memory.bytes = 1;
  const std::pair<const char*, float> inners[] = {
      {R"(graph "t" { input %x : f32[4] %r : f32[4] = tanh(%x) output "r" %r })", std::tanh(1.0f)},
      {R"(graph "t" { input %x : f32[4] %p : f32[4] = tanh(%x) %q : f32[4] = mul(%p, %x)
        %r : f32[4] = add(%q, %x) output "r" %r })",
       std::tanh(1.0f) + 1}};
  for (const auto& [inner, want] : inners) {
    auto session = Session::create(program_of(text(inner)));
    ASSERT_TRUE(session.ok()) << session.status().message();
    ASSERT_TRUE(session->run(std::vector{condition, tensor(DType::kF32, {4}, ones)}).ok());
    EXPECT_NEAR(static_cast<const float*>(session->output(0).memory.host)[0], std::exp(1.0f), 1e-5);
    EXPECT_NEAR(static_cast<const float*>(session->output(1).memory.host)[0], want, 1e-5);
    EXPECT_NEAR(static_cast<const float*>(session->output(2).memory.host)[0], want, 1e-5);
  }
}

// Sizes that depend on data are looked at before the element that should be there is.
TEST(Session, ConditionsWithoutAnElementAreRefused) {
  constexpr const char* kBody = R"({carried=1, body=graph "t" {
      input %i : i64[] input %c : bool[] input %x : f32[2]
      %r : f32[2] = exp(%x) %k : bool[] = identity(%c) output "k" %k output "r" %r }})";
  constexpr const char* kBranch = R"(graph "t" { input %x : f32[2] %r : f32[2] = exp(%x) output "r" %r })";
  constexpr const char* kFound = R"(const %s : i64[1] = {-1}
    %nz : i64[1,?] = non_zero(%b)
    %f : i64[?] = reshape(%nz, %s)
    %t : bool[?] = cast(%f) {to="bool"})";
  const std::pair<std::string, const char*> cases[] = {
      {str_cat(kFound, " %y : f32[2] = loop(%f, none, %x) ", kBody), "trip_count is int64[0], must have one element"},
      {str_cat("const %n : i64[] = {2} ", kFound, " %y : f32[2] = loop(%n, %t, %x) ", kBody),
       "cond is bool[0], must have one element"},
      {str_cat(kFound, " %y : f32[2] = if(%t, %x) {then_branch=", kBranch, ", else_branch=", kBranch, "}"),
       "cond is bool[0], must have one element"},
      {str_cat("const %n : i64[] = {3} ", R"(%y : f32[2] = loop(%n, none, %x, %b) {carried=1, body=graph "t" {
         input %i : i64[] input %c : bool[] input %x : f32[2] input %b : bool[2] )",
               kFound, R"( %r : f32[2] = exp(%x) output "k" %t output "r" %r }})"),
       "the body's cond is bool[0]"}};
  uint8_t never[2] = {0, 0};
  std::vector<float> x(2, 1.0f);
  Tensor none;
  none.type = {DType::kBool, {Dim(2)}, nullptr};
  none.memory.host = never;
  none.memory.bytes = 2;
  for (const auto& [nodes, error] : cases) {
    auto session = Session::create(
        program_of(str_cat("graph \"g\" { input %b : bool[2] input %x : f32[2] ", nodes, " output \"y\" %y }")));
    ASSERT_TRUE(session.ok()) << session.status().message();
    const Status status = session->run(std::vector{none, tensor(DType::kF32, {2}, x)});
    EXPECT_NE(status.message().find(error), std::string::npos) << nodes << ": " << status.message();
  }
}

constexpr char kConvolution[] = R"(graph "g" {
  input %x : f32[1,8,20,20]
  input %w : f32[16,8,3,3]
  %a : f32[1,8,20,20] = relu(%x)
  %b : f32[1,8,20,20] = add(%a, %a)
  %y : f32[1,8,20,20] = sigmoid(%b)
  output "y" %y
})";

TEST(Session, WritesIntoTheCallersMemoryAndRefusesOverlap) {
  auto session = Session::create(program_of(kSymbolic));
  ASSERT_TRUE(session.ok());
  std::vector<float> x(12, 1.0f), y(12, 0.0f);
  const std::vector in = {tensor(DType::kF32, {4, 3}, x)};
  ASSERT_TRUE(session->run(in, std::vector{tensor(DType::kF32, {4, 3}, y)}).ok());
  EXPECT_EQ(y, x);
  EXPECT_NE(session->run(in, in).message().find("overlaps"), std::string::npos);
  Tensor small = tensor(DType::kF32, {4, 3}, y);
  small.memory.bytes = 40;
  EXPECT_NE(session->run(in, std::vector{small}).message().find("40 bytes"), std::string::npos);
}

TEST(Session, ResultsDoNotDependOnThreadsAndWorkersRun) {
  const Program program = program_of(R"(graph "g" {
    input %x : f32[4,64,28,28]
    %y : f32[4,64,28,28] = sigmoid(%x)
    %z : f32[4,64,28,28] = softmax(%y) {axis=-1}
    output "z" %z
  })");
  std::vector<float> x(4 * 64 * 28 * 28);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i % 101) - 50) / 7;
  const std::vector in = {tensor(DType::kF32, {4, 64, 28, 28}, x)};
  std::vector<float> first;
  for (int threads : {1, 2, 3, 7}) {
    auto session = Session::create(program, {.threads = threads});
    ASSERT_TRUE(session.ok());
    const int64_t before = ThreadPool::shared().tasks_run_by_workers();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(session->run(in).ok());
    if (threads > 1) {
      EXPECT_GT(ThreadPool::shared().tasks_run_by_workers(), before);
    }
    if (first.empty()) first = floats(session->output(0));
    EXPECT_EQ(std::memcmp(first.data(), session->output(0).memory.host, first.size() * sizeof(float)), 0);
  }
}

TEST(Session, StrictModeAndUnknownTargetsAreRefusedByName) {
  const Program program = program_of(kConvolution);
  const Status unknown = Session::create(program, {.target = "tpu"}).status();
  EXPECT_EQ(unknown.code(), Code::kInvalidArgument);
  EXPECT_NE(unknown.message().find("'tpu' is not known"), std::string::npos);
#if !defined(__APPLE__)
  const Status absent = Session::create(program, {.target = "metal:1"}).status();
  EXPECT_EQ(absent.code(), Code::kUnsupported);
  EXPECT_NE(absent.message().find("'metal:1' is not in this build"), std::string::npos);
#endif
  EXPECT_NE(Session::create(program, {.target = "cpu:mmx"}).status().message().find("mmx"), std::string::npos);
  EXPECT_TRUE(Session::create(program, {.precision = "fp16", .fallback = false}).ok());
  const Status precision = Session::create(program, {.precision = "fp17"}).status();
  EXPECT_EQ(precision.code(), Code::kInvalidArgument);
  EXPECT_EQ(precision.message(), "precision 'fp17' is not one of fp32, fp16, bf16, auto");
  EXPECT_TRUE(Session::create(program, {.target = "cpu", .fallback = false}).ok());
}

TEST(Session, KeepsInnerValuesAndSharesPreparedPrograms) {
  const Program program = program_of(kConvolution);
  auto session = Session::create(program, {.keep = {"b"}});
  ASSERT_TRUE(session.ok());
  std::vector<float> x(8 * 400, 1.5f), w(16 * 72, 0.0f);
  ASSERT_TRUE(
      session->run(std::vector{tensor(DType::kF32, {1, 8, 20, 20}, x), tensor(DType::kF32, {16, 8, 3, 3}, w)}).ok());
  EXPECT_EQ(floats(session->output(1))[5], 3.0f);
  EXPECT_EQ(Session::create(program, {.keep = {"nowhere"}}).status().code(), Code::kInvalidArgument);
  auto a = Prepared::create(program), b = Prepared::create(program);
  EXPECT_EQ(a->get(), b->get());
}

constexpr char kFallback[] = R"(graph "g" {
  input %x : f32[2,8,24,20]
  input %grid : f32[2,30,31,2]
  %a : f32[2,8,24,20] = lrn(%x) {size=3}
  %b : f32[2,8,30,31] = grid_sample(%a, %grid) {mode="cubic"}
  %c : f32[2,31,30,8] = einsum(%b) {equation="nchw->nwhc"}
  %d : f32[2,31,30,8] = log_cum_sum_exp(%c) {axis=1}
  output "d" %d
})";

TEST(Session, FallbackNodesUseItsThreads) {
  const Program program = program_of(kFallback);
  std::vector<float> x(2 * 8 * 24 * 20), grid(2 * 30 * 31 * 2);
  testing::Random random(testing::test_seed());
  for (float& v : x) v = static_cast<float>(random.normal());
  for (float& v : grid) v = static_cast<float>(random.uniform(-1.1, 1.1));
  const std::vector in = {tensor(DType::kF32, {2, 8, 24, 20}, x), tensor(DType::kF32, {2, 30, 31, 2}, grid)};
  std::vector<float> first;
  for (int threads : {1, 2, 3, 7}) {
    auto session = Session::create(program, {.threads = threads});
    ASSERT_TRUE(session.ok()) << session.status().message();
    const int64_t before = ThreadPool::shared().tasks_run_by_workers();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(session->run(in).ok());
    // A busy machine may let the caller do all; workers get many more chances than they need.
    for (int i = 0; threads > 1 && i < 500 && ThreadPool::shared().tasks_run_by_workers() == before; ++i) {
      ASSERT_TRUE(session->run(in).ok());
    }
    EXPECT_EQ(ThreadPool::shared().tasks_run_by_workers() > before, threads > 1);
    const auto* y = static_cast<const float*>(session->output(0).memory.host);
    if (first.empty()) first.assign(y, y + session->output(0).type.elements());
    EXPECT_EQ(std::memcmp(first.data(), y, first.size() * sizeof(float)), 0) << threads << " threads";
  }
}

}  // namespace
}  // namespace pinnace
