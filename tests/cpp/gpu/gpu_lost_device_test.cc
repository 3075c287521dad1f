// A GPU that is lost is opened anew, once, and the run is made again on it: whichever submit it is, with state, from
// several threads and programs; a second loss leaves the CPU, or an error where there is no fallback.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include <pinnace/model.h>

#include "cpp/gpu/gpu_session.h"
#include "cpp/text_program.h"

namespace pinnace::testing {
namespace {

/// Options that nobody used before in this process: devices are counted per text. No device binds as much as that.
std::string fresh(const std::string& options) {
  static std::atomic<uint64_t> next{uint64_t{1} << 40};
  return str_cat(options, ",max_binding_bytes=", next++);
}

/// Back ends, and all that the placement says.
struct Report {
  std::set<std::string> backends;
  std::string words;
};
Report report_of(const Session& session) {
  Report r;
  for (const Placement& row : session.placement()) {
    r.backends.insert(row.backend);
    r.words += row.notice + "\n";
    for (const std::string& why : row.why) r.words += why + "\n";
  }
  return r;
}

class GpuLostDevice : public ::testing::TestWithParam<const gpu::Driver*> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device(*GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
  std::string name() const { return GetParam()->name; }
  std::set<std::string> device_only() const { return {name()}; }
  SmallNetwork net;
};

TEST_P(GpuLostDevice, AnySubmitMayLoseTheDeviceOnce) {
  for (const char* memory : {"no_self_check", "no_self_check,staging"}) {
    for (const bool fallback : {true, false}) {
      int lost = 0;
      for (int n = 1; n <= 7; ++n) {
        const GpuOptions with(fresh(str_cat(memory, ",faulty_devices=1,fail_submit=", n)));
        auto session = net.session(GetParam()->name, "fp32", fallback);
        ASSERT_TRUE(session.ok()) << memory << " " << n << ": " << session.status().message();
        for (int run = 0; run < 5; ++run) ASSERT_EQ(net.check(*session, 1e-4), "") << memory << " " << n;
        const Report report = report_of(*session);
        EXPECT_EQ(report.backends, device_only()) << memory << " " << n << ": " << report.words;
        lost += report.words.find("and opened anew") != std::string::npos;
      }
      EXPECT_GE(lost, 5) << memory;  // a run is at least one submit
    }
  }
}

TEST_P(GpuLostDevice, ALossInTheSelfCheckOpensAnew) {
  const GpuOptions with(
      fresh("faulty_devices=1,fail_submit=1,fail_self_test=cum_sum_int32"));  // with results of its own
  auto session = net.session(GetParam()->name, "fp32", false);
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(net.check(*session, 1e-4), "");
  EXPECT_NE(report_of(*session).words.find("and opened anew"), std::string::npos);
}

TEST_P(GpuLostDevice, ASecondLossLeavesTheCpu) {
  // With staging the first submit is the weights' upload, whatever memory the device has.
  const GpuOptions with(fresh("no_self_check,staging,fail_submit=3"));
  auto session = net.session(GetParam()->name, "fp32");
  ASSERT_TRUE(session.ok()) << session.status().message();
  // The second device makes the lost run again and loses the next one.
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(net.check(*session, 1e-4), "");
    EXPECT_EQ(report_of(*session).backends, device_only());
  }
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(net.check(*session, 1e-4), "");
    const Report report = report_of(*session);
    EXPECT_EQ(report.backends, std::set<std::string>{"cpu"});
    EXPECT_NE(report.words.find("its device was lost, opened anew and lost again ("), std::string::npos);
    EXPECT_NE(report.words.find("(rule P-2)"), std::string::npos);
  }
}

TEST_P(GpuLostDevice, WithoutFallbackASecondLossIsAnError) {
  const GpuOptions with(fresh("no_self_check,staging,faulty_devices=2,fail_submit=3"));
  auto session = net.session(GetParam()->name, "fp32", false);
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (int run = 0; run < 2; ++run) EXPECT_EQ(net.check(*session, 1e-4), "");
  const std::string lost = str_cat("code ", static_cast<int>(Code::kDeviceLost), ":");
  for (int run = 0; run < 2; ++run) EXPECT_EQ(net.check(*session, 1e-4).substr(0, lost.size()), lost);
  EXPECT_EQ(report_of(*session).backends, device_only());
  // A new session has a new device.
  auto again = net.session(GetParam()->name, "fp32", false);
  ASSERT_TRUE(again.ok()) << again.status().message();
  for (int run = 0; run < 3; ++run) EXPECT_EQ(net.check(*again, 1e-4), "");
}

TEST_P(GpuLostDevice, ALossWhileItIsOpenedAnewLeavesTheCpu) {
  // The device does not open; it is lost again by its weights' upload, or by the run that is made again.
  for (const char* options : {"fail_open=2,fail_submit=2", "staging,fail_submit=1", "staging,fail_submit=2"}) {
    for (const bool fallback : {true, false}) {
      const GpuOptions with(fresh(str_cat("no_self_check,", options)));
      auto session = net.session(GetParam()->name, "fp32", fallback);
      const std::string lost = str_cat("code ", static_cast<int>(Code::kDeviceLost), ":");
      if (!fallback) {  // sooner or later
        bool failed = !session.ok();
        if (failed) {
          EXPECT_EQ(session.status().code(), Code::kDeviceLost);
          EXPECT_EQ(session.status().rule(), name());
        }
        for (int run = 0; session.ok() && run < 3; ++run) {
          const std::string wrong = net.check(*session, 1e-4);
          EXPECT_TRUE(wrong.empty() || wrong.starts_with(lost)) << wrong;
          failed |= !wrong.empty();
        }
        EXPECT_TRUE(failed) << options;
        continue;
      }
      ASSERT_TRUE(session.ok()) << options << ": " << session.status().message();
      for (int run = 0; run < 3; ++run) EXPECT_EQ(net.check(*session, 1e-4), "") << options;
      EXPECT_EQ(report_of(*session).backends, std::set<std::string>{"cpu"}) << options;
    }
  }
}

TEST_P(GpuLostDevice, StateGoesOnFromWhereItWas) {
  const Program program = program_of(R"(graph "g" {
    input %x : f32[4]
    state "sum" %s : f32[4] next %t = {0,0,0,0}
    %t : f32[4] = add(%s, %x)
    %y : f32[4] = mul(%t, %x)
    output "y" %y
  })");
  for (const std::string devices : {"1", "2", "3", "1,staging", "2,staging", "3,staging"}) {
    for (int n = 1; n <= 6; ++n) {
      const GpuOptions with(fresh(str_cat("no_self_check,faulty_devices=", devices, ",fail_submit=", n)));
      auto session = Session::create(program, {.target = name(), .threads = 1});
      ASSERT_TRUE(session.ok()) << session.status().message();
      std::vector<float> x = {1, 2, 3, 4};
      Tensor input;
      input.type = {DType::kF32, {4}, nullptr};
      input.memory.host = x.data();
      input.memory.bytes = 16;
      for (int run = 1; run <= 8; ++run) {
        ASSERT_TRUE(session->run({&input, 1}).ok()) << devices << " " << n << " " << run;
        const auto* y = static_cast<const float*>(session->output(0).memory.host);
        for (size_t i = 0; i < 4; ++i) {
          ASSERT_EQ(y[i], static_cast<float>(run) * x[i] * x[i]) << devices << " " << n << " " << run;
        }
      }
      if (devices[0] == '1') {
        EXPECT_EQ(report_of(*session).backends, device_only());
      }
    }
  }
}

// Sessions of one program share what is opened anew; those of another program come upon the lost device later.
TEST_P(GpuLostDevice, SessionsOfManyThreadsAndTwoProgramsRecover) {
  const SmallNetwork other;
  for (const char* devices : {"1", "2"}) {
    for (const bool fallback : {true, false}) {
      if (!fallback && devices[0] == '2') continue;
      const GpuOptions with(fresh(str_cat("no_self_check,fail_submit=9,faulty_devices=", devices)));
      std::vector<std::thread> threads;
      std::vector<std::string> wrong(6);
      std::vector<Report> reports(wrong.size());
      for (size_t t = 0; t < wrong.size(); ++t) {
        threads.emplace_back([&, t] {
          const SmallNetwork& mine = t % 2 ? net : other;
          auto session = mine.session(GetParam()->name, "fp32", fallback);
          if (!session) {
            wrong[t] = session.status().message();
            return;
          }
          for (int run = 0; run < 6 && wrong[t].empty(); ++run) wrong[t] = mine.check(*session, 1e-4);
          reports[t] = report_of(*session);
        });
      }
      for (std::thread& t : threads) t.join();
      for (size_t t = 0; t < wrong.size(); ++t) {
        EXPECT_EQ(wrong[t], "") << devices;
        if (devices[0] == '1') {
          EXPECT_EQ(reports[t].backends, device_only()) << reports[t].words;
        }
      }
    }
  }
}

// Plans for other sizes may be made on the new device while executables of the old one are still held.
TEST_P(GpuLostDevice, OldPlansAndNewOnesDoNotMeet) {
  const Program program = program_of(R"(graph "g" {
    symbol n 1..64
    input %x : f32[n,3]
    const %w : f32[3,2] = {1,2,3,4,5,6}
    %m : f32[n,2] = mat_mul(%x, %w)
    %y : f32[n,2] = relu(%m)
    output "y" %y
  })");
  const auto run = [](Session& session, int64_t rows) {
    std::vector<float> x(static_cast<size_t>(rows) * 3, 1.0f);
    Tensor input;
    input.type = {DType::kF32, {rows, 3}, nullptr};
    input.memory.host = x.data();
    input.memory.bytes = x.size() * sizeof(float);
    ASSERT_TRUE(session.run({&input, 1}).ok());
    const auto* y = static_cast<const float*>(session.output(0).memory.host);
    for (int64_t i = 0; i < rows; ++i) {
      EXPECT_EQ(y[2 * i], 9);
      EXPECT_EQ(y[2 * i + 1], 12);
    }
  };
  const GpuOptions with(fresh("no_self_check,faulty_devices=1,fail_submit=3"));
  auto first = Session::create(program, {.target = name(), .threads = 1, .fallback = false});
  auto second = Session::create(program, {.target = name(), .threads = 1, .fallback = false});
  auto thief = net.session(GetParam()->name, "fp32", false);
  ASSERT_TRUE(first.ok() && second.ok() && thief.ok());
  run(*first, 4);
  run(*second, 4);
  EXPECT_EQ(net.check(*thief, 1e-4), "");  // the third submit: lost, and opened anew
  run(*second, 7);                         // another plan, on the new device
  run(*first, 4);                          // the old plan is of no use
  run(*second, 4);
  run(*first, 7);
  EXPECT_EQ(report_of(*first).backends, device_only());
  EXPECT_EQ(report_of(*second).backends, device_only());
}

// A number that 32 bits do not hold is no loss: the device is well, and is not opened anew.
TEST_P(GpuLostDevice, ARefusedRunIsNoLoss) {
  const Program program = program_of(R"(graph "g" {
    input %a : i64[2]
    %y : i64[2] = mul(%a, %a)
    output "y" %y
  })");
  std::vector<int64_t> a = {3, int64_t{1} << 40};
  Tensor input;
  input.type = {DType::kI64, {2}, nullptr};
  input.memory.host = a.data();
  input.memory.bytes = 16;
  auto strict = Session::create(program, {.target = name(), .threads = 1, .fallback = false});
  ASSERT_TRUE(strict.ok()) << strict.status().message();
  const Status refused = strict->run({&input, 1});
  EXPECT_EQ(refused.code(), Code::kDeviceLost);
  EXPECT_EQ(refused.rule(), name() + " V-9");
  a[1] = 7;
  EXPECT_TRUE(strict->run({&input, 1}).ok());
  EXPECT_EQ(report_of(*strict).words.find("anew"), std::string::npos);
  a[1] = int64_t{1} << 31;
  auto session = Session::create(program, {.target = name(), .threads = 1});
  ASSERT_TRUE(session.ok() && session->run({&input, 1}).ok());
  EXPECT_EQ(static_cast<const int64_t*>(session->output(0).memory.host)[1], int64_t{1} << 62);
  EXPECT_EQ(report_of(*session).backends, std::set<std::string>{"cpu"});
  EXPECT_EQ(report_of(*session).words.find("anew"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuLostDevice, ::testing::ValuesIn(gpu_drivers()), driver_name);

}  // namespace
}  // namespace pinnace::testing
