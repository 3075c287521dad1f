// Sessions and runs that several threads use at once, and what a forked child finds of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include <pinnace/cancel.h>
#include <pinnace/custom_op.h>
#include <pinnace/model.h>

#include "base/process.h"
#include "base/threads/thread.h"
#include "cpp/forks.h"
#include "cpp/text_program.h"

namespace pinnace {
namespace {

using std::chrono::milliseconds;
using testing::Holder;
using testing::in_child;
using testing::program_of;

/// An operator that waits until it is let go.
struct Gate {
  std::atomic<int> inside{0};
  std::atomic<bool> open{false};
  CustomOp op;
  Options options;
  std::optional<Program> program;

  Gate() {
    op.name = "gate";
    op.outputs = 1;
    op.shape = [](std::span<const TensorType> in, const CustomAttributes&, std::span<TensorType> out) {
      out[0] = in[0];
      return Status();
    };
    op.reference = [this](std::span<const Tensor> in, const CustomAttributes&, std::span<const Tensor> out) {
      inside.fetch_add(1);
      while (!open.load()) std::this_thread::sleep_for(milliseconds(1));
      std::memcpy(out[0].memory.host, in[0].memory.host, out[0].memory.bytes);
      return Status();
    };
    options.target = "cpu";
    options.ops = {&op};
    LoadOptions load;
    load.ops = {&op};
    auto model = Model::parse(R"(graph "g" {
      input %x : f32[2]
      %y : f32[2] = gate(%x)
      %z : f32[2] = relu(%y)
      output "z" %z
    })",
                              load);
    EXPECT_TRUE(model.ok()) << model.status().message();
    auto built = model->build();
    EXPECT_TRUE(built.ok()) << built.status().message();
    program.emplace(std::move(*built));
  }
  void wait_until_inside() const {
    while (inside.load() == 0) std::this_thread::sleep_for(milliseconds(1));
  }
};

Tensor floats_of(std::vector<float>& values, std::vector<int64_t> shape) {
  Tensor t;
  t.type.dtype = DType::kF32;
  for (int64_t n : shape) t.type.shape.push_back(Dim(n));
  t.memory.host = values.data();
  t.memory.bytes = values.size() * sizeof(float);
  return t;
}

TEST(SessionThreads, AnyNumberOfThreadsWaitsForOneRun) {
  for (const bool cancelled : {false, true}) {
    Gate gate;
    auto session = Session::create(*gate.program, gate.options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    std::vector<float> x = {1, 2};
    auto run = session->submit(std::vector{floats_of(x, {2})});
    ASSERT_TRUE(run.ok()) << run.status().message();
    gate.wait_until_inside();
    std::vector<Code> codes(16, Code::kUnsupported);
    std::vector<std::thread> waiting;
    for (Code& code : codes) waiting.emplace_back([&] { code = run->wait().code(); });
    EXPECT_FALSE(run->done());
    if (cancelled) {
      std::thread([&] { run->cancel(); }).join();
    }
    gate.open = true;
    for (std::thread& t : waiting) t.join();
    for (Code code : codes) EXPECT_EQ(code, cancelled ? Code::kCancelled : Code::kOk);
    EXPECT_TRUE(run->done());
    EXPECT_EQ(run->wait().code(), codes[0]);
    EXPECT_TRUE(session->run(std::vector{floats_of(x, {2})}).ok());
  }
}

TEST(SessionThreads, ARunNeitherWaitsForItselfNorIsWaitedForByItsOwnThread) {
  Gate gate;
  auto session = Session::create(*gate.program, gate.options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = {1, 2};
  std::optional<pinnace::Run> run;
  std::atomic<bool> there{false}, dropped{false};
  Status waited;
  auto submitted = session->submit(std::vector{floats_of(x, {2})}, {}, [&](const Session&) {
    while (!there.load()) std::this_thread::sleep_for(milliseconds(1));
    waited = run->wait();
    run.reset();
    dropped = true;
  });
  ASSERT_TRUE(submitted.ok());
  run.emplace(std::move(*submitted));
  there = true;
  gate.open = true;
  while (!dropped.load()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(waited.code(), Code::kInvalidArgument) << waited.message();
  // The session is free a moment later.
  Status status;
  for (int i = 0; i < 2000; ++i) {
    status = session->run(std::vector{floats_of(x, {2})});
    if (status.ok()) break;
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(SessionThreads, WhatDescribesASessionIsReadWhileItRuns) {
  const Program program = program_of(R"(graph "g" {
    symbol n 1..64
    input %x : f32[n,3]
    %y : f32[n,3] = relu(%x)
    %z : f32[n,3] = sigmoid(%y)
    output "z" %z
  })");
  // One plan and one set of memory: every other run frees what the one before it used.
  auto session = Session::create(program, {.target = "cpu", .threads = 1, .plan_cache = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, planned{0}, typed{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      while (!stop.load()) {
        const PlanInfo plan = session->plan();
        if (plan.peak_bytes > 0) {
          planned.fetch_add(1);
          if (plan.nodes_run != 2) wrong.fetch_add(1);
        }
        const auto rows = session->placement();
        if (rows.size() != 2 || rows[0].op != "relu" || rows[1].backend != "cpu") wrong.fetch_add(1);
        const TensorType type = session->output_type(0);
        if (type.shape.size() != 2 || type.shape[1] != Dim(3)) wrong.fetch_add(1);
        if (type.concrete()) typed.fetch_add(1);
        const Tensor output = session->output(0);
        if (output.memory.host && output.memory.bytes != static_cast<size_t>(output.type.bytes())) wrong.fetch_add(1);
        if (session->outputs()[0].name != "z" || session->inputs()[0].name != "x") wrong.fetch_add(1);
      }
    });
  }
  std::vector<float> x(64 * 3, 1.0f);
  // Until the readers, too, have had their turns.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto seen = [&] { return planned.load() > 0 && typed.load() > 0; };
  for (int round = 0; round < 400 || (!seen() && std::chrono::steady_clock::now() < end); ++round) {
    const int64_t n = 1 + round % 64 * 7 % 64;
    Tensor t = floats_of(x, {n, 3});
    EXPECT_TRUE(session->run(std::vector{t}).ok());
    EXPECT_EQ(session->output_type(0).shape, (Shape{n, 3}));
  }
  stop = true;
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GT(planned.load(), 0);
  EXPECT_GT(typed.load(), 0);
}

TEST(SessionThreads, AFailedRunLeavesTheFactsOfTheLastOneAndNoOutput) {
  const Program program = program_of(R"(graph "g" {
    symbol n 1..64
    input %i : i64[n]
    const %c : f32[4] = {0,1,2,3}
    %y : f32[n] = gather(%c, %i) {axis = 0}
    output "y" %y
  })");
  auto session = Session::create(program, {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<int64_t> i = {1, 2};
  Tensor t;
  t.type.dtype = DType::kI64;
  t.type.shape = {Dim(2)};
  t.memory.host = i.data();
  t.memory.bytes = sizeof(int64_t) * 2;
  ASSERT_TRUE(session->run(std::vector{t}).ok());
  const int64_t bytes = session->plan().peak_bytes;
  EXPECT_GT(bytes, 0);
  EXPECT_NE(session->output(0).memory.host, nullptr);
  i[0] = 9;
  ASSERT_FALSE(session->run(std::vector{t}).ok());
  EXPECT_EQ(session->plan().peak_bytes, bytes);
  EXPECT_EQ(session->output(0).memory.host, nullptr);
  EXPECT_FALSE(session->output_type(0).concrete());
}

TEST(SessionThreads, AStateIsCopiedWhole) {
  const Program program = program_of(R"(graph "g" {
    input %x : f32[2]
    state "s" %s : f32[2] next %t = {1,2}
    %t : f32[2] = add(%s, %x)
    output "t" %t
  })");
  auto session = Session::create(program, {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = {1, 1}, copy = {0, 0}, small = {0};
  ASSERT_TRUE(session->run(std::vector{floats_of(x, {2})}).ok());
  EXPECT_TRUE(session->copy_state(0, floats_of(copy, {2})).ok());
  EXPECT_EQ(copy, (std::vector<float>{2, 3}));
  EXPECT_EQ(session->copy_state(0, floats_of(small, {1})).code(), Code::kInvalidArgument);
  EXPECT_EQ(session->copy_state(1, floats_of(copy, {2})).code(), Code::kInvalidArgument);
}

TEST(ProcessMutex, IsKnownToBeLeftBehindAfterAFork) {
  ProcessMutex held, free;
  const Holder holder([&](Holder& h) {
    ASSERT_TRUE(held.lock());
    h.hold();
    held.unlock();
  });
  EXPECT_FALSE(held.try_lock());
  EXPECT_FALSE(held.left_behind());
  EXPECT_EQ(in_child([&] {
              if (held.lock() || !held.left_behind()) return 1;
              if (!free.lock()) return 2;
              free.unlock();
              held.lock_anew();
              if (held.left_behind()) return 3;
              held.unlock();
              return held.lock() ? 0 : 4;
            }),
            0);
}

TEST(PerProcess, AChildGoesOnWithWhatWasWholeAndBeginsAnewOtherwise) {
  static constinit PerProcess<std::vector<int>> all;
  all.lock()->push_back(1);
  EXPECT_EQ(in_child([&] { return static_cast<int>(all.lock()->size()); }), 1);
  const Holder holder([&](Holder& h) {
    const auto mine = all.lock();
    h.hold();
  });
  EXPECT_EQ(in_child([&] { return static_cast<int>(all.lock()->size()); }), 0);
}

TEST(SessionThreads, AForkedChildGoesOnAndWaitsForNoRunOfItsParent) {
  Gate gate;
  auto busy = Session::create(*gate.program, gate.options), idle = Session::create(*gate.program, gate.options);
  ASSERT_TRUE(busy.ok() && idle.ok());
  std::vector<float> x = {1, 2};
  auto run = busy->submit(std::vector{floats_of(x, {2})});
  ASSERT_TRUE(run.ok());
  gate.wait_until_inside();
  const auto child = [&] {
    gate.open = true;
    if (run->done() || run->wait().code() != Code::kInvalidArgument) return 1;
    if (busy->run(std::vector{floats_of(x, {2})}).code() != Code::kInvalidArgument) return 2;
    if (!idle->run(std::vector{floats_of(x, {2})}).ok()) return 3;
    auto fresh = Session::create(*gate.program, gate.options);
    if (!fresh.ok() || !fresh->run(std::vector{floats_of(x, {2})}).ok()) return 4;
    if (busy->placement().size() != 2) return 5;
    const pinnace::Run gone = std::move(*run);
    return 0;
  };
  EXPECT_EQ(in_child(child), 0);
  gate.open = true;
  EXPECT_TRUE(run->wait().ok());
}

/// A program with an operator whose shape function, which planning calls with locks held, waits while it is told to.
struct SlowShapes {
  std::atomic<bool> wait{false}, inside{false}, open{false};
  CustomOp op;
  Options options;
  std::optional<Program> program;

  SlowShapes() {
    op.name = "slow";
    op.outputs = 1;
    op.shape = [this](std::span<const TensorType> in, const CustomAttributes&, std::span<TensorType> out) {
      out[0] = in[0];
      inside = true;
      while (wait.load() && !open.load()) std::this_thread::sleep_for(milliseconds(1));
      return Status();
    };
    op.reference = [](std::span<const Tensor> in, const CustomAttributes&, std::span<const Tensor> out) {
      std::memcpy(out[0].memory.host, in[0].memory.host, out[0].memory.bytes);
      return Status();
    };
    options.target = "cpu";
    options.ops = {&op};
    LoadOptions load;
    load.ops = {&op};
    auto model = Model::parse(R"(graph "g" {
      symbol n 1..8
      input %x : f32[n]
      %y : f32[n] = slow(%x)
      output "y" %y
    })",
                              load);
    EXPECT_TRUE(model.ok()) << model.status().message();
    program.emplace(*model->build());
  }
};

TEST(SessionThreads, AForkInTheMiddleOfAnotherThreadsPlanningHangsNobody) {
  SlowShapes slow;
  auto session = Session::create(*slow.program, slow.options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x(8, 1.0f);
  ASSERT_TRUE(session->run(std::vector{floats_of(x, {3})}).ok());
  slow.wait = true;
  slow.inside = false;
  // One thread plans other sizes of the same program, one makes a session with other options.
  std::thread planning([&] {
    auto other = Session::create(*slow.program, slow.options);
    EXPECT_TRUE(other.ok() && other->run(std::vector{floats_of(x, {5})}).ok());
  });
  while (!slow.inside.load()) std::this_thread::sleep_for(milliseconds(1));
  std::thread making([&] {
    Options more = slow.options;
    more.plan_cache = 3;
    EXPECT_TRUE(Session::create(*slow.program, more).ok());
  });
  std::this_thread::sleep_for(milliseconds(50));
  const auto child = [&] {
    slow.wait = false;
    if (!session->run(std::vector{floats_of(x, {3})}).ok()) return 1;  // its plan is there
    const Status unplanned = session->run(std::vector{floats_of(x, {4})});
    if (!unplanned.ok() && unplanned.code() != Code::kInvalidArgument) return 2;
    auto fresh = Session::create(*slow.program, slow.options);
    if (!fresh.ok() || !fresh->run(std::vector{floats_of(x, {4})}).ok()) return 3;
    Options more = slow.options;
    more.plan_cache = 3;
    return Session::create(*slow.program, more).ok() ? 0 : 4;
  };
  EXPECT_EQ(in_child(child), 0);
  slow.open = true;
  planning.join();
  making.join();
}

TEST(SessionThreads, WaitingForAnotherThreadsWorkEndsWithTheCall) {
  SlowShapes slow;
  auto session = Session::create(*slow.program, slow.options), other = Session::create(*slow.program, slow.options);
  ASSERT_TRUE(session.ok() && other.ok());
  std::vector<float> x(8, 1.0f);
  slow.wait = true;
  slow.inside = false;
  std::thread planning([&] { EXPECT_TRUE(other->run(std::vector{floats_of(x, {5})}).ok()); });
  while (!slow.inside.load()) std::this_thread::sleep_for(milliseconds(1));
  const Status run = session->run(std::vector{floats_of(x, {4})}, {}, {}, {.timeout = milliseconds(30)});
  EXPECT_EQ(run.code(), Code::kCancelled);
  EXPECT_NE(run.message().find("the wait for the planning of a run"), std::string::npos) << run.message();

  Options more = slow.options;
  more.plan_cache = 3;
  slow.inside = false;
  std::thread making([&] { EXPECT_TRUE(Session::create(*slow.program, more).ok()); });
  while (!slow.inside.load()) std::this_thread::sleep_for(milliseconds(1));
  {
    const CancelScope scope({.timeout = milliseconds(30)});
    const Status created = Session::create(*slow.program, more).status();
    EXPECT_EQ(created.code(), Code::kCancelled);
    EXPECT_NE(created.message().find("the wait for the preparation of the same program"), std::string::npos)
        << created.message();
  }
  slow.open = true;
  planning.join();
  making.join();
  EXPECT_TRUE(session->run(std::vector{floats_of(x, {4})}).ok());
  EXPECT_TRUE(Session::create(*slow.program, more).ok());
}

TEST(Thread, JoiningInAForkedChildDoesNotWait) {
  std::atomic<bool> open{false};
  auto thread = Thread::start([&] {
    while (!open.load()) std::this_thread::sleep_for(milliseconds(1));
  });
  ASSERT_TRUE(thread.ok());
  EXPECT_EQ(in_child([&] {
              thread->join();
              return thread->joinable() ? 1 : 0;
            }),
            0);
  open = true;
  thread->join();
}

}  // namespace
}  // namespace pinnace
