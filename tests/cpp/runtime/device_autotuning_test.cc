// The target "auto:fixed" beside a back end that is measured: the faster stays, its times are said and remembered, and
// what fails there is the reason for the CPU. The back end is a fake one, so that it is as fast as the test wants.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/hash.h"
#include "cpp/runtime/beside_a_fake.h"
#include "runtime/measured_times.h"

namespace pinnace::testing {
namespace {

class MeasuredChoice : public BesideAFake {
 protected:
  /// Decided before the first run: what a search beside the first ones does is in device_search_test.cc.
  Options options(const char* target = "auto:fixed") const { return options_for(target); }
};

TEST_F(MeasuredChoice, InputsTooLargeToBeMadeUpAreAReasonForTheRest) {
  const Program program = program_of(str_cat(R"(graph "g" {
    symbol a 2147483648..4294967296
    symbol b 2147483648..4294967296
    input %x : f32[1,16,100,100]
    input %unused : f32[a,b]
    const %w : f32[16,16,3,3] = )",
                                             numbers(16 * 16 * 9), R"(
    %y = conv(%x, %w) {pads=[1,1,1,1]}
    output "y" %y
  })"));
  auto session = Session::create(program, options());
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(row(*session, "conv").backend, "cpu");
  EXPECT_NE(why(*session).find("is too large to be made up"), std::string::npos) << why(*session);
}

TEST_F(MeasuredChoice, TheFasterBackEndIsTakenAndTheTimesAreSaid) {
  auto session = Session::create(network(kLarge), options());
  ASSERT_TRUE(session.ok()) << session.status().message();
  const Placement conv = row(*session, "conv");
  EXPECT_EQ(conv.backend, "fake");
  EXPECT_EQ(conv.notice.find("chosen by auto: "), 0u) << conv.notice;
  EXPECT_NE(conv.notice.find(" ms here, "), std::string::npos) << conv.notice;
  EXPECT_NE(conv.notice.find(" ms without it"), std::string::npos) << conv.notice;
  EXPECT_GE(fake.runs, 4);
  EXPECT_EQ(row(*session, "gather").backend, "cpu");
  // Nothing of it is left in the session: the state is the initial one, and answers are its own.
  fake.idle = false;
  const Inputs in(kLarge);
  for (int run = 1; run <= 3; ++run) {
    ASSERT_TRUE(session->run(in.all).ok());
    EXPECT_EQ(static_cast<const float*>(session->state(0)->memory.host)[1], static_cast<float>(-run));
  }
  auto plain = Session::create(network(kLarge), options("cpu"));
  ASSERT_TRUE(plain.ok() && plain->run(in.all).ok());
  const auto *got = static_cast<const float*>(session->output(0).memory.host),
             *want = static_cast<const float*>(plain->output(0).memory.host);
  for (size_t i = 0; i < in.x.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << i;
}

TEST_F(MeasuredChoice, TheSlowerOneIsPassedOverWithBothTimes) {
  fake.idle = false;
  fake.extra_ms = 60;  // more than any processor takes
  auto session = Session::create(network(kLarge), options());
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(row(*session, "conv").backend, "cpu");
  EXPECT_EQ(why(*session).find("fake was passed over by auto: "), 0u) << why(*session);
  EXPECT_NE(why(*session).find(" ms there, "), std::string::npos) << why(*session);
  EXPECT_NE(why(*session).find(" ms without it\n"), std::string::npos) << why(*session);
  const int runs = fake.runs;
  ASSERT_TRUE(session->run(Inputs(kLarge).all).ok());
  EXPECT_EQ(why(*session).find("fake was passed over by auto: "), 0u);
  EXPECT_EQ(fake.runs, runs);
  EXPECT_EQ(static_cast<const float*>(session->state(0)->memory.host)[0], -1.0f);
}

TEST_F(MeasuredChoice, SmallModelsAreNotMeasuredAndNamesAreOrders) {
  auto small = Session::create(network(20), options());
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(row(*small, "conv").backend, "cpu");
  EXPECT_EQ(why(*small), "");
  auto named = Session::create(network(20), options("fake"));
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(row(*named, "conv").backend, "fake");
  EXPECT_EQ(row(*named, "conv").notice, "");
  EXPECT_EQ(fake.runs, 0);
}

TEST_F(MeasuredChoice, WhatFailsThereIsTheReasonForTheCpu) {
  const Inputs in(kLarge);
  const auto reason = [&] {
    auto session = Session::create(network(kLarge), options());
    EXPECT_TRUE(session.ok()) << session.status().message();
    EXPECT_EQ(row(*session, "conv").backend, "cpu");
    EXPECT_TRUE(session->run(in.all).ok());
    return why(*session);
  };
  fake.fails = true;
  EXPECT_EQ(reason(), "fake was passed over by auto: the fake device does not do this\n");
  fake.fails = fake.idle = false;
  fake.lost_from_run = 1;
  EXPECT_EQ(reason(), "fake was passed over by auto: the fake device went away\n");
  fake.idle = true;  // so quick that it is run several times, however slow this processor is
  fake.lost_from_run = fake.runs + 3;
  EXPECT_EQ(reason(), "fake was passed over by auto: the fake device went away\n");
  fake.idle = false;
  fake.lost_from_run = 0;
  fake.fails_self_check = true;
  EXPECT_EQ(reason(), "fake was passed over by auto: the self-check gave 3 instead of 4\n");
  fake.fails_self_check = false;
  fake.max_channels = 2;
  EXPECT_EQ(reason(), "fake was passed over by auto: it takes no node for which a copy pays\n");
  fake.measured_as.clear();
  EXPECT_EQ(reason(), "fake was passed over by auto: it is this processor\n");
  fake.missing = "no device";
  EXPECT_EQ(reason(), "");
}

TEST_F(MeasuredChoice, ARunThatTakesTooLongIsStopped) {
  fake.idle = false;
  fake.extra_ms = 1200;
  auto session = Session::create(network(kLarge), options());
  ASSERT_TRUE(session.ok());
  EXPECT_NE(why(*session).find("more than 1000 ms there, "), std::string::npos) << why(*session);
  EXPECT_EQ(fake.runs, 1);
}

TEST_F(MeasuredChoice, OpenSizesAreMeasuredAtSizesOfTheirOwn) {
  auto session = Session::create(network(kLarge, "n"), options());
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(row(*session, "conv").backend, "fake");
  fake.idle = false;
  ASSERT_TRUE(session->run(Inputs(kLarge, 3).all).ok());
  EXPECT_EQ(row(*session, "conv").notice.find("chosen by auto: "), 0u);
}

TEST_F(MeasuredChoice, TimesAreRememberedInTheProcess) {
  const Program program = network(kLarge);
  {
    ASSERT_TRUE(Session::create(program, options()).ok());
  }
  const int runs = fake.runs;
  EXPECT_GT(runs, 0);
  auto again = Session::create(program, options());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(row(*again, "conv").backend, "fake");
  EXPECT_EQ(fake.runs, runs);
  // Of other threads, other outputs, another model, another device nothing is known.
  Options threads = options(), kept = options();
  threads.threads = 2;
  kept.keep = {"c"};
  int known = runs;
  const auto measured = [&](const Program& p, const Options& o) {
    EXPECT_TRUE(Session::create(p, o).ok());
    const bool news = fake.runs > known;
    known = fake.runs;
    return news;
  };
  EXPECT_TRUE(measured(program, threads));
  EXPECT_TRUE(measured(program, kept));
  EXPECT_TRUE(measured(network(kLarge + 1), options()));
  fake.measured_as += " of another driver";
  EXPECT_TRUE(measured(program, options()));
  EXPECT_FALSE(measured(program, options()));
}

TEST_F(MeasuredChoice, ManyThreadsMeasureOnce) {
  const Program program = network(kLarge);
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(6);
  for (std::string& w : wrong) {
    threads.emplace_back([&] {
      auto session = Session::create(program, options());
      if (!session) {
        w = session.status().message();
      } else if (row(*session, "conv").backend != "fake" || row(*session, "conv").notice.empty()) {
        w = row(*session, "conv").backend;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "");
}

// ---- the file

class MeasuredTimes : public MeasuredChoice {
 protected:
  void SetUp() override {
    MeasuredChoice::SetUp();
    setenv("PINNACE_GPU_CACHE", folder.path().c_str(), 1);
  }
  void TearDown() override { unsetenv("PINNACE_GPU_CACHE"); }
  std::string read() const {
    const auto names = folder.names();
    if (names.size() != 1) return {};
    std::ifstream file(folder.file(names[0]), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& bytes) const {
    std::ofstream(folder.file(folder.names()[0]), std::ios::binary) << bytes;
  }
  TemporaryFolder folder;
};

TEST_F(MeasuredTimes, AFileOfTheSameKeyIsBelievedAndADamagedOneIsNot) {
  const Program program = network(kLarge);
  {
    ASSERT_TRUE(Session::create(program, options()).ok());
  }
  const std::string whole = read();
  ASSERT_NE(whole.find(fake.measured_as), std::string::npos) << whole;
  EXPECT_NE(whole.find(" finished\n"), std::string::npos);
  // This process knows by itself; the file serves the next one, which has no other name for the device. So a file is
  // made for a device that this process does not know, and every damage to it means another measurement.
  const std::string own = fake.measured_as;
  const auto file_for = [&](const std::string& device, const std::string& from, const std::string& to) {
    std::string text = whole.substr(whole.find('\n') + 1);
    for (size_t at = 0; (at = text.find(own + "\n", at)) != std::string::npos;) text.replace(at, own.size(), device);
    if (const size_t found = text.find(from); !from.empty() && found != std::string::npos) {
      text.replace(found, from.size(), to);
    }
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    return str_cat("pinnace times 2 ", hash64(bytes), "\n", text);
  };
  const std::string key = whole.substr(whole.find('\n') + 1);
  const std::string key_line = key.substr(0, key.find('\n'));
  int next = 0;
  const auto believed = [&](const auto& damage) {
    const std::string device = str_cat(own, "-", ++next);
    std::string key_of_device = key_line;
    key_of_device.replace(key_of_device.rfind(own), own.size(), device);
    const std::string bytes = damage(device);
    std::ofstream(measured_times_path(key_of_device), std::ios::binary) << bytes;
    fake.measured_as = device;
    const int runs = fake.runs;
    auto session = Session::create(program, options());
    EXPECT_TRUE(session.ok());
    EXPECT_EQ(row(*session, "conv").backend, "fake");
    fake.measured_as = own;
    return fake.runs == runs;
  };
  EXPECT_TRUE(believed([&](const std::string& d) { return file_for(d, "", ""); }));
  // The driver is another one than that of the times, which only the device itself says.
  EXPECT_FALSE(believed([&](const std::string& d) { return file_for(d, "\n" + d + "\n", "\nan older driver\n"); }));
  EXPECT_FALSE(believed([&](const std::string&) { return std::string(whole); })) << "of another device";
  EXPECT_FALSE(believed([&](const std::string&) { return std::string(); }));
  EXPECT_FALSE(believed([&](const std::string& d) { return file_for(d, "", "") + "more"; }));
  EXPECT_FALSE(believed([&](const std::string& d) { return file_for(d, " finished\n", " perhaps\n"); }));
  EXPECT_FALSE(believed([&](const std::string& d) { return file_for(d, "model ", "Model "); }));
  for (size_t part : {size_t{3}, size_t{10}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_FALSE(believed([&](const std::string& d) { return file_for(d, "", "").substr(0, part); })) << part;
    EXPECT_FALSE(believed([&](const std::string& d) {
      std::string changed = file_for(d, "", "");
      changed[part] = static_cast<char>(changed[part] ^ 1);
      return changed;
    })) << part;
  }
}

TEST_F(MeasuredTimes, AFileCountsForThirtyDays) {
  const Program program = network(kLarge);
  const std::string own = fake.measured_as;
  const auto believed = [&](time_t age) {
    fake.measured_as = str_cat(own, " of ", age);
    EXPECT_TRUE(Session::create(program, options()).ok());
    const auto names = folder.names();
    const auto made = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      std::ifstream file(folder.file(name), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(file), {}).find(fake.measured_as) != std::string::npos;
    });
    EXPECT_NE(made, names.end());
    // This process remembers by itself: only a fresh one reads the file.
    timespec times[2] = {};
    times[0].tv_sec = times[1].tv_sec = ::time(nullptr) - age;
    EXPECT_EQ(::utimensat(AT_FDCWD, folder.file(*made).c_str(), times, 0), 0);
    const int runs = fake.runs;
    measured_times()->forget();
    EXPECT_TRUE(Session::create(program, options()).ok());
    return fake.runs == runs;
  };
  EXPECT_TRUE(believed(29 * 24 * 3600));
  EXPECT_FALSE(believed(31 * 24 * 3600));
  EXPECT_FALSE(believed(-31 * 24 * 3600));
}

TEST_F(MeasuredChoice, TheUsersCacheFolderIsUsedUnlessAVariableSaysOtherwise) {
  const TemporaryFolder folder;
  const std::string below = folder.file("cache/pinnace");
  setenv("PINNACE_CACHE", below.c_str(), 1);
  auto session = Session::create(network(kLarge), options());
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(row(*session, "conv").notice.find("not kept"), std::string::npos);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(below), {}), 1);
  // What nobody asked for is no news where it cannot be had.
  for (const char* no_folder : {"", "relative", "/proc/no/such folder"}) {
    setenv("PINNACE_CACHE", no_folder, 1);
    fake.measured_as += " again";
    auto again = Session::create(network(kLarge), options());
    ASSERT_TRUE(again.ok()) << no_folder;
    EXPECT_EQ(row(*again, "conv").notice.find("not kept"), std::string::npos) << no_folder;
  }
  setenv("PINNACE_CACHE", "", 1);
}

TEST_F(MeasuredTimes, AFolderThatCannotBeWrittenCostsNothingElse) {
  setenv("PINNACE_GPU_CACHE", "/proc/no such folder", 1);
  auto session = Session::create(network(kLarge), options());
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(row(*session, "conv").backend, "fake");
}

TEST_F(MeasuredTimes, AFolderThatOthersCanWriteIsNotUsedAndThePlacementSaysSo) {
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  auto session = Session::create(network(kLarge), options());
  ASSERT_TRUE(session.ok());
  const Placement placed = row(*session, "conv");
  EXPECT_EQ(placed.backend, "fake");
  EXPECT_NE(placed.notice.find("these times are not kept: cannot trust '" + folder.path()), std::string::npos)
      << placed.notice;
  EXPECT_TRUE(folder.names().empty());
}

// What is remembered holds until the back end fails.
TEST_F(MeasuredTimes, ARememberedDeviceThatFailsLeavesTheCpu) {
  const Program program = network(kLarge);
  {
    ASSERT_TRUE(Session::create(program, options()).ok());
  }
  fake.fails_self_check = true;
  auto session = Session::create(program, options());
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(row(*session, "conv").backend, "cpu");
  EXPECT_EQ(why(*session), "fake was passed over by auto: the self-check gave 3 instead of 4\n");
}

TEST_F(MeasuredChoice, ALostDeviceKeepsTheChoiceInThePlacement) {
  fake.opens_anew = true;
  auto session = Session::create(network(kLarge), options());
  ASSERT_TRUE(session.ok());
  fake.idle = false;
  fake.lost_runs = 1;
  fake.lost_from_run = fake.runs + 1;
  const Inputs in(kLarge);
  ASSERT_TRUE(session->run(in.all).ok());
  EXPECT_EQ(row(*session, "conv").backend, "fake");
  EXPECT_NE(
      row(*session, "conv").notice.find("its device was lost (the fake device went away) and opened anew; chosen"),
      std::string::npos)
      << row(*session, "conv").notice;
  fake.lost_from_run = fake.runs + 1;
  ASSERT_TRUE(session->run(in.all).ok());
  EXPECT_EQ(row(*session, "conv").backend, "cpu");
  EXPECT_NE(why(*session).find("opened anew and lost again (the fake device went away) (rule P-2)"), std::string::npos)
      << why(*session);
}

}  // namespace
}  // namespace pinnace::testing
