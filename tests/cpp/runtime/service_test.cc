// What sessions do with Options::service: processors and sleep on the CPU, times of loops, checks, and what back ends
// say that they have no use of. What NNAPI's driver is told: tests/python/sessions/service_test.py.
#include <gtest/gtest.h>

#include <cstring>

#include <pinnace/custom_op.h>
#include <pinnace/session.h>

#include "base/threads/processors.h"
#include "base/threads/thread_pool.h"
#include "cpp/text_program.h"

namespace pinnace {
namespace {

using testing::program_of;

constexpr char kNet[] = R"(graph "g" {
  input %x : f32[4]
  %m : f32[4] = test.where(%x)
  %y : f32[4] = abs(%m)
  output "y" %y
})";

/// Copies its input and notes where the thread that runs it may run, and whether workers are kept awake.
struct Where {
  Where() {
    op.name = "test.where";
    op.shape = [](std::span<const TensorType> in, const CustomAttributes&, std::span<TensorType> out) {
      out[0] = in[0];
      return Status();
    };
    op.reference = [this](std::span<const Tensor> in, const CustomAttributes&, std::span<const Tensor> out) {
      seen.push_back(Processors::of_this_thread().text());
      awake.push_back(ThreadPool::shared().kept_awake_by() > 0);
      std::memcpy(out[0].memory.host, in[0].memory.host, out[0].memory.bytes);
      return Status();
    };
  }
  CustomOp op;
  std::vector<std::string> seen;
  std::vector<bool> awake;
};

Status run(Session& session) {
  std::vector<float> x = {1, -2, 3, -4};
  Tensor t;
  t.type = {DType::kF32, {4}, nullptr};
  t.memory.host = x.data();
  t.memory.bytes = sizeof(float) * x.size();
  return session.run(std::vector{t});
}

Program custom_program(const Where& where) {
  auto model = Model::parse(kNet, {.ops = {&where.op}});
  EXPECT_TRUE(model.ok()) << model.status().message();
  auto program = model->build();
  EXPECT_TRUE(program.ok()) << program.status().message();
  return std::move(*program);
}

#if defined(__linux__)
TEST(Service, RunsStayOnItsProcessorsAndGiveThemBack) {
  const Processors before = Processors::of_this_thread();
  if (before.count() < 2) GTEST_SKIP() << "one processor";
  cpu_set_t own;
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
  int last = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i) last = CPU_ISSET(static_cast<size_t>(i), &own) ? i : last;
  Where where;
  const Program program = custom_program(where);
  auto session = Session::create(program, {.target = "cpu", .ops = {&where.op}, .service = {.processors = {last}}});
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(run(*session).ok());
  ASSERT_TRUE(session->profile({}, {}).status().code() == Code::kInvalidArgument);  // a run that fails gives back too
  EXPECT_EQ(where.seen, std::vector<std::string>{str_cat(last)});
  EXPECT_EQ(Processors::of_this_thread(), before);
  auto anywhere = Session::create(program, {.target = "cpu", .ops = {&where.op}});
  ASSERT_TRUE(anywhere.ok());
  ASSERT_TRUE(run(*anywhere).ok());
  EXPECT_EQ(where.seen.back(), before.text());
}

#endif

TEST(Service, LowPowerLetsWorkersSleep) {
  Where where;
  const Program program = custom_program(where);
  for (const char* preference : {"", "fast_single_answer", "sustained_speed", "low_power"}) {
    auto session = Session::create(
        program, {.target = "cpu", .threads = 2, .ops = {&where.op}, .service = {.preference = preference}});
    ASSERT_TRUE(session.ok()) << session.status().message();
    ASSERT_TRUE(run(*session).ok());
  }
  EXPECT_EQ(where.awake, (std::vector{true, true, true, false}));
  EXPECT_EQ(ThreadPool::shared().kept_awake_by(), 0);
}

TEST(Service, LoopsHaveItsTime) {
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
  })"),
                                 {.target = "cpu", .service = {.loop_timeout = std::chrono::milliseconds(2)}});
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = {1, 10};
  Tensor t;
  t.type = {DType::kF32, {2}, nullptr};
  t.memory.host = x.data();
  t.memory.bytes = sizeof(float) * x.size();
  EXPECT_EQ(session->run(std::vector{t}).code(), Code::kCancelled);
}

TEST(Service, WrongValuesAreNamed) {
  const Program program = program_of(R"(graph "g" { input %x : f32[4] %y : f32[4] = abs(%x) output "y" %y })");
  const auto refused = [&](const Service& service, const std::string& words) {
    const Status status = Session::create(program, {.target = "cpu", .service = service}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << words;
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  };
  refused({.preference = "fast"},
          "preference is 'fast', must be one of low_power, fast_single_answer, sustained_speed");
  refused({.priority = "HIGH"}, "priority is 'HIGH', must be one of low, medium, high");
  refused({.deadline = std::chrono::nanoseconds(-1)}, "deadline is -1 ns");
  refused({.loop_timeout = std::chrono::nanoseconds(INT64_MIN)}, "loop_timeout is -9223372036854775808 ns");
  refused({.processors = {-1}}, "processor -1");
  refused({.processors = {0, 100000}}, "processor ");
}

/// The notice of the only node.
std::string notice(const Program& program, const std::string& target, const Service& service) {
  auto session = Session::create(program, {.target = target, .service = service});
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok()) return {};
  EXPECT_TRUE(run(*session).ok());
  const std::vector<Placement> rows = session->placement();
  EXPECT_EQ(rows[0].backend, target.substr(0, target.find(':')));
  return rows[0].notice;
}

TEST(Service, BackEndsSayWhatTheyHaveNoUseOf) {
  const Program program = program_of(R"(graph "g" { input %x : f32[4] %y : f32[4] = abs(%x) output "y" %y })");
  EXPECT_EQ(notice(program, "cpu", {}), "");
  EXPECT_EQ(notice(program, "cpu", {.preference = "fast_single_answer"}), "");
  EXPECT_EQ(notice(program, "cpu",
                   {.preference = "sustained_speed",
                    .priority = "low",
                    .deadline = std::chrono::seconds(1),
                    .loop_timeout = std::chrono::seconds(1),
                    .cache_folder = "/nowhere",
                    .device = "none"}),
            "cpu has no use of preference, priority, deadline, cache_folder, device");
  const std::string low = notice(program, "cpu", {.preference = "low_power", .priority = "low"});
  EXPECT_TRUE(low.starts_with("cpu has no use of priority")) << low;
  EXPECT_EQ(low.find("all that the process may use are of one kind") != std::string::npos,
            !Processors::slowest().known())
      << low;
#if PINNACE_HAS_SOFTMETAL
  EXPECT_EQ(notice(program, "softmetal", {.preference = "low_power", .deadline = std::chrono::seconds(1)}),
            "softmetal has no use of preference, deadline");
#endif
}

TEST(Service, SessionsOfOtherWishesArePreparedAnew) {
  const Program program = program_of(R"(graph "g" { input %x : f32[4] %y : f32[4] = abs(%x) output "y" %y })");
  const auto prepared = [&](const Service& service) {
    auto made = Prepared::create(program, {.target = "cpu", .service = service});
    EXPECT_TRUE(made.ok());
    return *made;
  };
  const auto plain = prepared({});
  EXPECT_EQ(plain, prepared({}));
  for (const Service& other : {Service{.preference = "low_power"},
                               {.priority = "low"},
                               {.deadline = std::chrono::seconds(1)},
                               {.loop_timeout = std::chrono::seconds(1)},
                               {.cache_folder = "a"},
                               {.device = "a"},
                               {.processors = {0}}}) {
    if (!Processors::check(other.processors).ok()) continue;
    EXPECT_NE(plain, prepared(other));
  }
}

}  // namespace
}  // namespace pinnace
