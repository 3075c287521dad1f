// The target "auto" beside a back end that is measured: the first answers are the CPU's, a thread of its own tries the
// other back end meanwhile, and sessions change over between two runs. What may happen to such a thread: the session or
// the process ends, the process forks, the thread cannot be had, everybody is cancelled.
#include "runtime/device_search.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "cpp/fault_harness.h"
#include "cpp/forks.h"
#include "cpp/runtime/beside_a_fake.h"

#if PINNACE_SEARCHES_BESIDE_RUNS

namespace pinnace::testing {
namespace {

using namespace std::chrono_literals;

class DeviceSearches : public BesideAFake {
 protected:
  Options options() const { return options_for("auto"); }
  static float count(const Session& session) { return static_cast<const float*>(session.state(0)->memory.host)[0]; }
  /// Runs until the convolution is placed on `backend`; false if that takes longer than 20 s.
  bool runs_until_on(Session& session, const char* backend, int* runs) const {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < end) {
      EXPECT_TRUE(session.run(in.all).ok());
      ++*runs;
      EXPECT_EQ(count(session), static_cast<float>(-*runs));
      if (row(session, "conv").backend == backend) return true;
    }
    return false;
  }
  /// Runs until the search has ended without a change.
  bool runs_until_decided(Session& session) const {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < end) {
      EXPECT_TRUE(session.run(in.all).ok());
      EXPECT_EQ(row(session, "conv").backend, "cpu");
      if (why(session).find("it is tried beside the first runs") == std::string::npos) return true;
    }
    return false;
  }
  const Inputs in{kLarge};
};

TEST_F(DeviceSearches, TheFirstAnswersAreTheCpusAndTheSessionChangesOver) {
  auto session = Session::create(network(kLarge), options());
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(row(*session, "conv").backend, "cpu");
  EXPECT_EQ(why(*session),
            "fake was passed over by auto: it is tried beside the first runs, and takes over between two if it is "
            "faster\n");
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(fake.asked, 0) << "nothing is looked for before the first run";
  int runs = 0;
  ASSERT_TRUE(session->run(in.all).ok());
  ++runs;
  EXPECT_EQ(row(*session, "conv").backend, "cpu");
  ASSERT_TRUE(runs_until_on(*session, "fake", &runs));
  EXPECT_EQ(row(*session, "conv").notice.find("chosen by auto: "), 0u) << row(*session, "conv").notice;
  EXPECT_NE(row(*session, "conv").notice.find(" ms without it"), std::string::npos);
  EXPECT_GE(fake.compiled, 1);
  // Answers there are its own, and the state goes on.
  fake.idle = false;
  ASSERT_TRUE(session->run(in.all).ok());
  EXPECT_EQ(count(*session), static_cast<float>(-++runs));
  auto plain = Session::create(network(kLarge), options_for("cpu"));
  ASSERT_TRUE(plain.ok() && plain->run(in.all).ok());
  const auto *got = static_cast<const float*>(session->output(0).memory.host),
             *want = static_cast<const float*>(plain->output(0).memory.host);
  for (size_t i = 0; i < in.x.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << i;
}

TEST_F(DeviceSearches, ASlowerDeviceChangesNothing) {
  fake.idle = false;
  fake.extra_ms = 60;
  const Program program = network(kLarge);
  auto session = Session::create(program, options());
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(runs_until_decided(*session));
  EXPECT_NE(why(*session).find(" ms there, "), std::string::npos) << why(*session);
  // The next one knows that without asking the device.
  const int runs = fake.runs, asked = fake.asked;
  auto again = Session::create(program, options());
  ASSERT_TRUE(again.ok());
  EXPECT_NE(why(*again).find(" ms there, "), std::string::npos) << why(*again);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(again->run(in.all).ok());
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(fake.runs, runs);
  EXPECT_EQ(fake.asked, asked);
}

TEST_F(DeviceSearches, WhatIsRememberedIsNotTimedAgain) {
  const Program program = network(kLarge);
  {
    auto first = Session::create(program, options());
    ASSERT_TRUE(first.ok());
    int runs = 0;
    ASSERT_TRUE(runs_until_on(*first, "fake", &runs));
  }
  fake.idle = false;
  auto session = Session::create(program, options());
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(row(*session, "conv").backend, "cpu");
  const int before = fake.runs;
  int runs = 0;
  ASSERT_TRUE(runs_until_on(*session, "fake", &runs));
  EXPECT_EQ(fake.runs, before + 1) << "only the session's own run";
}

TEST_F(DeviceSearches, FixedNeverChanges) {
  fake.idle = false;
  fake.extra_ms = 60;
  auto fixed = Session::create(network(kLarge), options_for("auto:fixed"));
  ASSERT_TRUE(fixed.ok());
  EXPECT_EQ(row(*fixed, "conv").backend, "cpu");
  const int runs = fake.runs;
  EXPECT_GE(runs, 1) << "it was timed before the first run";
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(fixed->run(in.all).ok());
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(fake.runs, runs);
}

TEST_F(DeviceSearches, StatesMoveIntoTheDevicesMemory) {
  fake.keeps_states = true;
  auto session = Session::create(network(kLarge), options());
  ASSERT_TRUE(session.ok());
  const float begun[] = {41, 42};
  Tensor value = *session->state(0);
  value.memory.host = const_cast<float*>(begun);
  ASSERT_TRUE(session->set_state(0, value).ok());
  for (int runs = 1;; ++runs) {
    ASSERT_TRUE(session->run(in.all).ok());
    EXPECT_EQ(count(*session), 41.0f - static_cast<float>(runs));
    if (row(*session, "conv").backend == "fake") break;
    ASSERT_LT(runs, 20000);
  }
}

TEST_F(DeviceSearches, ResultsAreReadWhileASessionChangesOver) {
  for (int i = 0; i < 20; ++i) {
    fake.measured_as += " again";
    auto session = Session::create(network(kLarge), options());
    ASSERT_TRUE(session.ok() && session->run(in.all).ok());
    std::atomic<bool> ends{false};
    std::thread reader([&] {
      while (!ends) EXPECT_EQ(session->output_type(0).shape[3], Dim(kLarge));
    });
    int runs = 1;
    EXPECT_TRUE(runs_until_on(*session, "fake", &runs));
    ends = true;
    reader.join();
  }
}

TEST_F(DeviceSearches, ASessionThatNeverRanLeavesTheSearchToOthers) {
  const Program program = network(kLarge);
  const auto prepared = Prepared::create(program, options());
  ASSERT_TRUE(prepared.ok());
  {
    auto unused = Session::create(*prepared);
    ASSERT_TRUE(unused.ok());
  }
  auto session = Session::create(*prepared), other = Session::create(program, options());
  ASSERT_TRUE(session.ok() && other.ok());
  int runs = 0;
  EXPECT_TRUE(runs_until_on(*session, "fake", &runs));
  runs = 0;
  EXPECT_TRUE(runs_until_on(*other, "fake", &runs));
}

TEST_F(DeviceSearches, ASessionThatGoesEndsTheSearchAndNothingIsUsedAfterIt) {
  fake.idle = false;
  fake.extra_ms = 300;
  for (const auto pause : {0ms, 60ms, 150ms, 250ms, 500ms}) {
    fake.measured_as += " again";
    auto session = Session::create(network(kLarge), options());
    ASSERT_TRUE(session.ok());
    ASSERT_TRUE(session->run(in.all).ok());
    std::this_thread::sleep_for(pause);
    {
      const Session gone = std::move(*session);
    }
    const int asked = fake.asked, runs = fake.runs, compiled = fake.compiled;
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(fake.asked, asked);
    EXPECT_EQ(fake.runs, runs);
    EXPECT_EQ(fake.compiled, compiled);
  }
}

TEST_F(DeviceSearches, ASessionAfterAnEndedSearchBeginsAnother) {
  const Program program = network(kLarge);
  const auto prepared = Prepared::create(program, options());
  ASSERT_TRUE(prepared.ok());
  {
    auto session = Session::create(*prepared);
    ASSERT_TRUE(session.ok() && session->run(in.all).ok());
  }
  auto session = Session::create(program, options());
  ASSERT_TRUE(session.ok());
  int runs = 0;
  EXPECT_TRUE(runs_until_on(*session, "fake", &runs));
}

TEST_F(DeviceSearches, SessionsOfManyThreadsShareOneSearch) {
  const Program program = network(kLarge);
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(4);
  for (std::string& w : wrong) {
    threads.emplace_back([&] {
      auto session = Session::create(program, options());
      int runs = 0;
      if (!session || !runs_until_on(*session, "fake", &runs)) w = "it did not change over";
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "");
}

TEST_F(DeviceSearches, ACancelledRunEndsItselfAlone) {
  auto session = Session::create(network(kLarge), options());
  ASSERT_TRUE(session.ok());
  int runs = 0;
  ASSERT_TRUE(session->run(in.all).ok());
  ++runs;
  CancelToken token;
  token.cancel();
  EXPECT_EQ(session->run(in.all, {}, {}, {.cancel = &token}).code(), Code::kCancelled);
  EXPECT_TRUE(runs_until_on(*session, "fake", &runs));
}

TEST_F(DeviceSearches, AThreadThatCannotBeHadLeavesTheSessionWhereItIs) {
  if (!kFaultsCanBeMade) GTEST_SKIP() << "sanitizers have these functions themselves";
  {
    auto session = Session::create(network(kLarge), options());
    ASSERT_TRUE(session.ok());
    {
      const FaultScope scope(Fault::kThread, 1);
      EXPECT_TRUE(session->run(in.all).ok());
      EXPECT_TRUE(FaultScope::fired());
    }
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(session->run(in.all).ok());
    std::this_thread::sleep_for(200ms);
    EXPECT_EQ(row(*session, "conv").backend, "cpu");
    EXPECT_EQ(fake.asked, 0);
  }
  // Nor does it matter where memory ends while one is begun.
  bool fired = true;
  for (int64_t nth = 1; fired; ++nth) {
    auto session = Session::create(network(kLarge), options());
    ASSERT_TRUE(session.ok());
    Status status;
    {
      const FaultScope scope(Fault::kAllocation, nth);
      status = session->run(in.all);
      fired = FaultScope::fired();
    }
    EXPECT_TRUE(status.ok() || status.code() == Code::kOutOfMemory) << status.message();
    EXPECT_TRUE(session->run(in.all).ok()) << nth;
    ASSERT_LT(nth, 500);
  }
}

TEST_F(DeviceSearches, AForkedChildGoesOnWithoutTheSearch) {
  fake.idle = false;
  fake.extra_ms = 100;
  auto session = Session::create(network(kLarge), options());
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(session->run(in.all).ok());
  for (const auto pause : {0ms, 90ms, 30ms, 60ms, 120ms}) {
    std::this_thread::sleep_for(pause);
    EXPECT_EQ(in_child([&] {
                for (int i = 0; i < 3; ++i) {
                  const Status status = session->run(in.all);
                  if (!status.ok()) return 1;
                  if (row(*session, "conv").backend != "cpu") return 2;
                }
                {
                  const Session gone = std::move(*session);
                }  // waits for nobody
                return 0;
              }),
              0);
  }
  EXPECT_TRUE(runs_until_decided(*session));
}

TEST_F(DeviceSearches, AProcessEndsInTheMiddleOfOne) {
  for (const auto pause : {0ms, 50ms, 150ms, 400ms}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      // Neither is destroyed: as global variables of a program that calls exit(), where leak checkers find them.
      static fakes::FakeBackend* own;
      static Result<Session>* session;
      own = new fakes::FakeBackend("own");
      own->max_channels = 64;
      own->is_measured = true;
      own->measured_as = "own";
      own->extra_ms = 200;
      Options with = options();
      with.backends = {own};
      session = new Result<Session>(Session::create(network(kLarge), with));
      if (!session->ok() || !(*session)->run(in.all).ok()) ::_exit(3);
      std::this_thread::sleep_for(pause);
      std::exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

}  // namespace
}  // namespace pinnace::testing

#endif
