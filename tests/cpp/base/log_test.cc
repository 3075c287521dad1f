// The log of the device library: who gets which message, what one costs that nobody wants, threads, forks, memory that
// ends, and what a session tells of itself.
#include "base/log.h"

#include <gtest/gtest.h>

#include <cstring>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <pinnace/pinnace.h>

#include "cpp/counted_memory.h"
#include "cpp/fault_harness.h"
#include "cpp/forks.h"
#include "cpp/program/program_fixture.h"
#include "program/writer.h"

namespace pinnace {
namespace {

/// A sink that keeps what it gets while it lives.
class Messages {
 public:
  explicit Messages(LogLevel least) { EXPECT_TRUE(set_log_sink(take, least, this).ok()); }
  ~Messages() { EXPECT_TRUE(set_log_sink(nullptr).ok()); }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  /// Whether one line has all of these parts.
  bool has(std::initializer_list<std::string_view> parts) const {
    const std::vector<std::string> lines = all();
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return std::all_of(parts.begin(), parts.end(),
                         [&](std::string_view part) { return line.find(part) != std::string::npos; });
    });
  }
  std::string text() const {
    std::string text;
    for (const std::string& line : all()) text += line + "\n";
    return text;
  }

 private:
  static void take(void* self, LogLevel level, std::string_view text) {
    auto* const to = static_cast<Messages*>(self);
    const std::lock_guard lock(to->mutex_);
    to->lines_.push_back(std::string(log_level_name(level)) + ": " + std::string(text));
  }
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST(Log, ArgumentsAreEvaluatedOnlyWhereSomebodyWantsThem) {
  int evaluated = 0;
  PINNACE_LOG_ERROR("nobody listens ", ++evaluated);
  EXPECT_EQ(evaluated, 0);
  {
    const Messages messages(LogLevel::kWarn);
    PINNACE_LOG_INFO("not wanted ", ++evaluated);
    EXPECT_EQ(evaluated, 0);
    PINNACE_LOG_WARN("wanted ", ++evaluated);
    EXPECT_EQ(messages.all(), std::vector<std::string>{"warn: wanted 1"});
  }
  PINNACE_LOG_ERROR("nobody listens any more ", ++evaluated);
  EXPECT_EQ(evaluated, 1);
}

TEST(Log, WithoutASinkTakesNoMemory) {
  if (!testing::kMemoryIsCounted) GTEST_SKIP() << "allocations are counted without sanitizers only";
  const testing::MemoryWatch watch;
  PINNACE_LOG_ERROR(std::string(100, 'x'), 1.5);
  log_several(LogLevel::kError, [] { PINNACE_LOG_ERROR(std::string(100, 'x')); });
  EXPECT_EQ(watch.allocations(), 0u);
}

TEST(Log, LevelsHaveNamesAndCanBeChanged) {
  for (int i = 0; i <= static_cast<int>(LogLevel::kOff); ++i) {
    const auto level = static_cast<LogLevel>(i);
    const auto read = log_level_from_name(log_level_name(level));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, level);
  }
  const auto none = log_level_from_name("loud");
  EXPECT_EQ(none.status().code(), Code::kInvalidArgument);
  EXPECT_NE(none.status().message().find("trace, debug, info, warn, error, off"), std::string::npos);

  EXPECT_TRUE(set_log_level(LogLevel::kTrace).ok());
  EXPECT_FALSE(logs(LogLevel::kError)) << "without a sink nothing is wanted";
  const Messages messages(LogLevel::kError);
  EXPECT_FALSE(logs(LogLevel::kWarn));
  EXPECT_TRUE(set_log_level(LogLevel::kTrace).ok());
  EXPECT_TRUE(logs(LogLevel::kTrace));
  EXPECT_TRUE(set_log_level(LogLevel::kOff).ok());
  EXPECT_FALSE(logs(LogLevel::kError));
  EXPECT_EQ(set_log_level(static_cast<LogLevel>(9)).code(), Code::kInvalidArgument);
  EXPECT_EQ(set_log_sink(nullptr, static_cast<LogLevel>(9)).code(), Code::kInvalidArgument);
}

TEST(Log, AMessageIsOnePrintableLineOfBoundedLength) {
  const Messages messages(LogLevel::kInfo);
  PINNACE_LOG_INFO("name '\x1b[31m\n  forged: line\xff'");
  EXPECT_EQ(messages.all().back(), R"(info: name '\x1b[31m\n  forged: line\xff')");
  PINNACE_LOG_INFO(std::string(1'000'000, 'a'));
  EXPECT_LT(messages.all().back().size(), 4100u);
  EXPECT_NE(messages.all().back().find(" bytes more)"), std::string::npos);
  PINNACE_LOG_INFO(std::string(1'000'000, '\x01'));  // each becomes four characters
  EXPECT_LT(messages.all().back().size(), 4100u);
  EXPECT_TRUE(messages.all().back().starts_with("info: \\x01\\x01")) << messages.all().back();
  std::string wide;
  for (int i = 0; i < 10'000; ++i) wide += "\u4e2d";
  PINNACE_LOG_INFO("a", wide);
  EXPECT_LT(messages.all().back().size(), 4100u);
  EXPECT_EQ(messages.all().back().find("\\x"), std::string::npos) << "a character was cut";
}

TEST(Log, ASinkReceivesFromAllThreads) {
  constexpr int kThreads = 4, kEach = 500;
  const Messages messages(LogLevel::kInfo);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kEach; ++i) PINNACE_LOG_INFO("thread ", t, " message ", i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  auto lines = messages.all();
  EXPECT_EQ(lines.size(), static_cast<size_t>(kThreads) * kEach);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(std::unique(lines.begin(), lines.end()), lines.end());
}

TEST(Log, ARemovedSinkIsCalledNoMore) {
  struct Life {
    std::atomic<bool> alive{true};
    std::atomic<int> calls{0};
  };
  static std::atomic<int> called_dead{0};
  called_dead = 0;
  const auto sink = [](void* user, LogLevel, std::string_view) {
    auto* const life = static_cast<Life*>(user);
    if (!life->alive.load()) ++called_dead;
    ++life->calls;
    std::this_thread::yield();
    if (!life->alive.load()) ++called_dead;
  };
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&stop, t] {
      while (!stop.load()) PINNACE_LOG_INFO("from ", t);
    });
  }
  std::vector<std::unique_ptr<Life>> lives;
  for (int i = 0; i < 50; ++i) {
    lives.push_back(std::make_unique<Life>());
    ASSERT_TRUE(set_log_sink(sink, LogLevel::kInfo, lives.back().get()).ok());
    while (lives.back()->calls.load() < 3) std::this_thread::yield();
    ASSERT_TRUE(set_log_sink(nullptr).ok());
    lives.back()->alive = false;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(called_dead.load(), 0);
}

TEST(Log, ASinkChangesNothingAndHearsNothingOfItself) {
  static std::vector<Code> codes;
  static int calls = 0;
  codes.clear();
  calls = 0;
  const auto sink = [](void*, LogLevel, std::string_view) {
    ++calls;
    PINNACE_LOG_ERROR("caused by the sink");
    codes = {set_log_sink(nullptr).code(), set_log_level(LogLevel::kOff).code()};
  };
  ASSERT_TRUE(set_log_sink(sink).ok());
  PINNACE_LOG_INFO("one");
  PINNACE_LOG_INFO("two");
  EXPECT_TRUE(set_log_sink(nullptr).ok());
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(codes, (std::vector<Code>{Code::kInvalidArgument, Code::kInvalidArgument}));
}

TEST(Log, ThroughTheCApi) {
  static std::vector<std::pair<pnc_log_level, std::string>> lines;
  lines.clear();
  int user = 7;
  const pnc_log_sink sink = [](void* given, pnc_log_level level, const char* text) {
    if (*static_cast<int*>(given) == 7) lines.emplace_back(level, text);
  };
  EXPECT_EQ(pnc_set_log_sink(sink, PNC_LOG_WARN, &user), PNC_OK);
  PINNACE_LOG_INFO("not wanted");
  PINNACE_LOG_WARN("a warning");
  EXPECT_EQ(pnc_set_log_level(PNC_LOG_DEBUG), PNC_OK);
  PINNACE_LOG_DEBUG("a decision");
  const int six = 6;  // C passes any integer
  pnc_log_level wrong;
  std::memcpy(&wrong, &six, sizeof wrong);
  EXPECT_EQ(pnc_set_log_level(wrong), PNC_INVALID_ARGUMENT);
  EXPECT_EQ(pnc_set_log_sink(sink, wrong, &user), PNC_INVALID_ARGUMENT);
  EXPECT_EQ(pnc_set_log_sink(nullptr, PNC_LOG_INFO, nullptr), PNC_OK);
  PINNACE_LOG_ERROR("nobody listens");
  using Line = std::pair<pnc_log_level, std::string>;
  EXPECT_EQ(lines, (std::vector<Line>{{PNC_LOG_WARN, "a warning"}, {PNC_LOG_DEBUG, "a decision"}}));
}

TEST(Log, ACallThatTheParentWasInIsNotWaitedForInAChild) {
  static testing::Holder* holder = nullptr;
  const auto sink = [](void*, LogLevel, std::string_view text) {
    if (text == "hold") holder->hold();
  };
  ASSERT_TRUE(set_log_sink(sink).ok());
  {
    testing::Holder inside([](testing::Holder& self) {
      holder = &self;
      PINNACE_LOG_INFO("hold");
    });
    const int status = testing::in_child([] {
      PINNACE_LOG_INFO("from the child");
      const bool removed = set_log_sink(nullptr).ok();
      const Messages messages(LogLevel::kInfo);
      PINNACE_LOG_INFO("to the child's own");
      return removed && messages.has({"to the child's own"}) ? 0 : 1;
    });
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(set_log_sink(nullptr).ok());
}

TEST(Log, LackOfMemoryCostsTheMessageAlone) {
  if (!testing::kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
  static std::atomic<int> calls{0};
  const auto sink = [](void*, LogLevel, std::string_view) { ++calls; };
  ASSERT_TRUE(set_log_sink(sink, LogLevel::kTrace).ok());
  const std::string name(300, 'n');
  const auto log = [&] {
    PINNACE_LOG_INFO("a text that needs memory: ", name, std::string(200, 'x'));
    log_several(LogLevel::kInfo, [&] {
      const std::string made = name + name;
      PINNACE_LOG_INFO(made);
      PINNACE_LOG_INFO(name);
    });
  };
  calls = 0;
  log();
  EXPECT_EQ(calls.load(), 3);
  int failures = 0, missing = 0;
  for (int nth = 1;; ++nth) {
    bool fired = false;
    calls = 0;
    {
      const testing::FaultScope fault(testing::Fault::kAllocation, nth);
      log();
      fired = testing::FaultScope::fired();
    }
    if (!fired) break;
    ++failures;
    missing += 3 - calls.load();
  }
  EXPECT_GT(failures, 5);
  EXPECT_GE(missing, failures) << "each failure has cost a message, and nothing else";
  EXPECT_TRUE(set_log_sink(nullptr).ok());
}

// ---- what a session tells

constexpr const char* kText = R"(graph "net" {
  symbol n 1..8
  input %x : f32[n,4]
  const %w : f32[4,3] = {1234.5,2,3,4,5,6,7,8,9,10,11,12}
  %m : f32[n,3] = mat_mul(%x, %w)
  %y : f32[n,3] = relu(%m)
  output "y" %y
})";

struct Net {
  std::vector<std::byte> bytes;
  std::vector<float> x = std::vector<float>(8, 4321.5f);
  std::vector<Tensor> inputs;
  explicit Net(const char* text = kText) {
    const auto graph = parse(text);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    const auto written = write_program(*graph, {}, {});
    EXPECT_TRUE(written.ok());
    bytes = testing::to_vector(*written);
    Tensor tensor;
    tensor.type.shape = {2, 4};
    tensor.memory.host = x.data();
    tensor.memory.bytes = x.size() * sizeof(float);
    inputs = {tensor};
  }
};

TEST(Log, ASessionTellsWhatItDoesAndNoValue) {
  Net net;
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(testing::load(net.bytes).save(folder.file("net.pnc")).ok());
  const Messages messages(LogLevel::kTrace);
  auto program = Program::open(folder.file("net.pnc"));
  ASSERT_TRUE(program.ok());
  auto session = Session::create(*program, {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(session->run(net.inputs).ok());
  EXPECT_TRUE(messages.has({"info: opened ", "net.pnc': ", " bytes, 2 nodes, 0 payloads, in "})) << messages.text();
  EXPECT_TRUE(messages.has({"debug: mat_mul '", "' on cpu: "})) << messages.text();
  EXPECT_TRUE(messages.has({"info: weights for cpu:", ": 1 packed ("})) << messages.text();
  EXPECT_TRUE(messages.has({"info: planned 'net' for float32[1,4]: 2 nodes, 2 on cpu; 0 refusals, 1 segments"}))
      << messages.text();
  EXPECT_TRUE(messages.has({"info: planned 'net' for float32[2,4]"})) << messages.text();
  EXPECT_TRUE(messages.has({"info: prepared 'net' for cpu: fp32, 1 threads, "})) << messages.text();
  EXPECT_TRUE(messages.has({"trace: ran 'net' in "})) << messages.text();
  for (const char* value : {"1234", "4321"}) EXPECT_EQ(messages.text().find(value), std::string::npos);
}

TEST(Log, ARunIsToldOfOnlyWhereRunsAreTracedAndTakesNoMemory) {
  if (!testing::kMemoryIsCounted) GTEST_SKIP() << "allocations are counted without sanitizers only";
  Net net(R"(graph "net" {
    input %x : f32[2,4]
    %y : f32[2,4] = sigmoid(%x)
    output "y" %y
  })");
  auto session = Session::create(testing::load(net.bytes), {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(session->run(net.inputs).ok());
  const Messages messages(LogLevel::kDebug);
  size_t allocations = 1;
  {
    const testing::MemoryWatch watch;
    EXPECT_TRUE(session->run(net.inputs).ok());
    allocations = watch.allocations();
  }
  EXPECT_EQ(allocations, 0u);
  EXPECT_EQ(messages.text(), "");
  ASSERT_TRUE(set_log_level(LogLevel::kTrace).ok());
  EXPECT_TRUE(session->run(net.inputs).ok());
  EXPECT_EQ(messages.all().size(), 1u);
}

TEST(Log, ASessionWarnsOnceOfReferenceCodeThatTakesAFifth) {
  const Net net(R"(graph "net" {
    input %x : f64[40,40]
    %y : f64[40,40] = mat_mul(%x, %x)
    output "y" %y
  })");
  std::vector<double> x(size_t{40} * 40, 0.5);
  Tensor tensor;
  tensor.type.dtype = DType::kF64;
  tensor.type.shape = {40, 40};
  tensor.memory.host = x.data();
  tensor.memory.bytes = x.size() * sizeof(double);
  const std::vector<Tensor> inputs = {tensor};
  const Messages messages(LogLevel::kWarn);
  auto session = Session::create(testing::load(net.bytes), {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (int run = 1; run < 8; ++run) ASSERT_TRUE(session->run(inputs).ok());
  EXPECT_EQ(messages.text(), "");
  for (int run = 8; run < 20; ++run) ASSERT_TRUE(session->run(inputs).ok());
  const std::string name = session->placement()[0].node;
  EXPECT_EQ(messages.text(), str_cat("warn: reference code takes 100 % of a run of 'net', most of it for mat_mul '",
                                     name, "': no kernel takes these nodes' types and sizes, which placement names\n"));
  ASSERT_EQ(session->placement().size(), 1u);
  EXPECT_EQ(session->placement()[0].notice, "runs by reference code: no kernel takes its types and sizes");
}

TEST(Log, ASessionDoesNotWarnOfKernels) {
  Net net;
  const Messages messages(LogLevel::kWarn);
  auto session = Session::create(testing::load(net.bytes), {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (int run = 0; run < 20; ++run) ASSERT_TRUE(session->run(net.inputs).ok());
  EXPECT_EQ(messages.text(), "");
  for (const Placement& row : session->placement()) EXPECT_EQ(row.notice, "") << row.op;
}

TEST(Log, ARunThatNobodyWaitedForIsAnErrorIfItFailed) {
  Net net;
  auto session = Session::create(testing::load(net.bytes), {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok());
  const Messages messages(LogLevel::kError);
  {
    auto run = session->submit({});
    ASSERT_TRUE(run.ok());
    EXPECT_FALSE(run->wait().ok());
  }
  {
    EXPECT_TRUE(session->submit(net.inputs).ok());
  }
  EXPECT_EQ(messages.text(), "");
  {
    EXPECT_TRUE(session->submit({}).ok());
  }
  EXPECT_TRUE(messages.has({"error: a run that nobody waited for failed ("})) << messages.text();
}

}  // namespace
}  // namespace pinnace
