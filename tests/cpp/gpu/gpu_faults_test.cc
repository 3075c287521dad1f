// Faults of a device end in the right answer or in an error that says which: memory that cannot be had, submits that
// fail, devices that are lost, stored kernels that are damaged, barriers that are missing.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "backends/gpu/self_check.h"
#include "base/files/atomic_file.h"
#include "base/hash.h"
#include "cpp/gpu/gpu_session.h"
#include "cpp/program/program_fixture.h"

namespace pinnace::testing {
namespace {

std::set<std::string> backends_of(const Session& session) {
  std::set<std::string> all;
  for (const Placement& row : session.placement()) all.insert(row.backend);
  return all;
}

class GpuFaults : public ::testing::TestWithParam<const gpu::Driver*> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device(*GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
  const char* name() const { return GetParam()->name; }
  SmallNetwork net;
};

TEST_P(GpuFaults, AnyBufferMayFail) {
  int failed = 0;
  for (int n = 1; n < 40; ++n) {
    const GpuOptions with(str_cat("no_self_check,staging,fail_buffer=", n));
    std::set<std::string> ran;
    {  // whose device goes with it: the next one counts anew
      auto session = net.session(name(), "fp32");
      ASSERT_TRUE(session.ok()) << n << ": " << session.status().message();
      for (int run = 0; run < 2; ++run) EXPECT_EQ(net.check(*session, 1e-4), "") << n;
      ran = backends_of(*session);
    }
    auto strict = net.session(name(), "fp32", false);
    if (ran.contains("cpu")) {
      ++failed;
      EXPECT_FALSE(strict.ok()) << n;
      EXPECT_TRUE(strict.status().code() == Code::kDeviceLost || strict.status().code() == Code::kOutOfMemory);
      continue;
    }
    EXPECT_TRUE(strict.ok()) << n << ": " << strict.status().message();
    EXPECT_GT(failed, 2) << "faults were not met";
    return;
  }
  FAIL() << "40 buffers for a small network";
}

TEST_P(GpuFaults, AnyBufferOfASelfCheckMayFail) {
  for (int n : {1, 2, 5, 11, 23}) {  // its own results, for these options
    const GpuOptions with(str_cat("fail_buffer=", n, ",fail_self_test=gather_int32"));
    auto session = net.session(name(), "fp32");
    ASSERT_TRUE(session.ok()) << n << ": " << session.status().message();
    EXPECT_EQ(net.check(*session, 1e-4), "") << n;
  }
}

TEST_P(GpuFaults, ADeviceThatIsAlwaysLostLeavesTheCpu) {
  const GpuOptions with("no_self_check,fail_submit=1");
  auto session = net.session(name(), "fp32");
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(net.check(*session, 1e-4), "");
  EXPECT_EQ(backends_of(*session), std::set<std::string>{"cpu"});
}

TEST_P(GpuFaults, ADeviceLostInTheSelfCheckLeavesTheCpu) {
  const GpuOptions with("fail_submit=1,fail_self_test=gather_int32");
  auto session = net.session(name(), "fp32");
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(net.check(*session, 1e-4), "");
  EXPECT_EQ(backends_of(*session), std::set<std::string>{"cpu"});
}

TEST_P(GpuFaults, SessionsOfOneProgramMoveTogether) {
  const GpuOptions with("no_self_check,fail_submit=7");
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      auto session = net.session(name(), "fp32");
      if (!session) {
        wrong[t] = session.status().message();
        return;
      }
      for (int run = 0; run < 6 && wrong[t].empty(); ++run) wrong[t] = net.check(*session, 1e-4);
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "");
}

// ---- the file of compiled kernels and self-checks

class Folder {
 public:
  Folder() { setenv("PINNACE_GPU_CACHE", path().c_str(), 1); }
  ~Folder() { unsetenv("PINNACE_GPU_CACHE"); }
  const std::string& path() const { return folder_.path(); }
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(path())) all.push_back(entry.path().string());
    return all;
  }

 private:
  TemporaryFolder folder_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST_P(GpuFaults, AStoredFileIsUsedAndADamagedOneIsNot) {
  const Folder folder;
  const auto runs = [&] {
    auto session = net.session(name(), "fp32", false);
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_EQ(net.check(*session, 1e-4), "");
  };
  runs();
  ASSERT_EQ(folder.files().size(), 1u);
  const std::string path = folder.files()[0], whole = bytes_of(path);
  EXPECT_NE(whole.find("softmax_f32\t\n"), std::string::npos) << "results of self-checks";
  runs();
  // Every kind of damage: cut, changed, foreign, empty, long, a folder. What is left is written anew.
  for (size_t at : {size_t{0}, size_t{7}, size_t{8}, size_t{20}, whole.size() / 2, whole.size() - 1}) {
    write_bytes(path, whole.substr(0, at));
    runs();
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    write_bytes(path, changed);
    runs();
  }
  write_bytes(path, whole + "more");
  runs();
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  runs();
  std::filesystem::remove(path);
  const GpuOptions other("unknown_subgroup");  // a context of its own, which reads the file of the first
  write_bytes(path, whole);
  runs();
}

// A result that a file remembers is believed; one of another device is not.
TEST_P(GpuFaults, StoredResultsAreThoseOfTheDevice) {
  const Folder folder;
  const auto failed = [&](const char* options) {
    const GpuOptions with(options);
    const auto context = gpu::Context::open(*GetParam(), 0);
    EXPECT_TRUE(context.ok());
    (*context)->store_cache();
  };
  failed("");
  ASSERT_EQ(folder.files().size(), 1u);
  failed("fail_self_test=softmax");  // what a test spoils is not stored
  ASSERT_EQ(folder.files().size(), 1u);
  EXPECT_EQ(bytes_of(folder.files()[0]).find("softmax_f32\telement"), std::string::npos);
}

/// A file of compiled kernels and self-checks in its parts.
struct StoredFile {
  std::string identity, results, blob;

  explicit StoredFile(const std::string& bytes) {
    size_t at = 16;
    for (std::string* part : {&identity, &results, &blob}) {
      uint64_t length = 0;
      memcpy(&length, bytes.data() + at, 8);
      *part = bytes.substr(at + 8, length);
      at += 8 + length;
    }
    EXPECT_EQ(at, bytes.size());
  }
  std::string bytes() const {
    std::string made;
    for (const std::string* part : {&identity, &results, &blob}) {
      const uint64_t length = part->size();
      made.append(reinterpret_cast<const char*>(&length), 8).append(*part);
    }
    const uint64_t hash = hash64(std::as_bytes(std::span(made.data(), made.size())));
    return "pngpu002" + std::string(reinterpret_cast<const char*>(&hash), 8) + made;
  }
};

// A whole file, right by its hash, of another device, driver or set of kernels says nothing about this one.
TEST_P(GpuFaults, AFileOfAnotherDriverOrOfOtherKernelsIsIgnored) {
  const Folder folder;
  gpu::SelfChecks* known = nullptr;
  {
    const auto context = gpu::Context::open(*GetParam(), 0);
    ASSERT_TRUE(context.ok());
    known = &(*context)->self_checks();
    (*context)->store_cache();
  }
  ASSERT_EQ(folder.files().size(), 1u);
  const std::string path = folder.files()[0];
  const StoredFile whole(bytes_of(path));
  ASSERT_EQ(whole.bytes(), bytes_of(path));
  gpu::SelfChecks::Results before;
  {
    std::lock_guard lock(known->mutex);
    before = known->results;
  }
  const auto believed = [&](const StoredFile& file) {
    {
      std::lock_guard lock(known->mutex);
      known->results.clear();
    }
    write_bytes(path, file.bytes());
    const auto context = gpu::Context::open(*GetParam(), 0);
    EXPECT_TRUE(context.ok());
    std::lock_guard lock(known->mutex);
    return known->results.contains("softmax_f32");
  };
  StoredFile failing = whole;
  failing.results = "softmax_f32\telement 1 is 2, must be 3\n";
  EXPECT_TRUE(believed(failing));
  for (size_t at : {size_t{0}, failing.identity.size() / 2, failing.identity.size() - 1}) {  // name, version, kernels
    StoredFile foreign = failing;
    foreign.identity[at] = static_cast<char>(foreign.identity[at] ^ 1);
    EXPECT_FALSE(believed(foreign)) << foreign.identity;
  }
  // The right name with another driver's code, or none that a driver wrote: the API's header tells.
  for (size_t at : {size_t{0}, size_t{4}, size_t{8}, size_t{12}, size_t{16}, size_t{31}}) {
    StoredFile foreign = whole;
    foreign.blob.resize(std::max<size_t>(foreign.blob.size(), 64), 'x');
    foreign.blob[at] = static_cast<char>(foreign.blob[at] ^ 0x5a);
    write_bytes(path, foreign.bytes());
    auto session = net.session(name(), "fp32", false);
    ASSERT_TRUE(session.ok()) << at << ": " << session.status().message();
    EXPECT_EQ(net.check(*session, 1e-4), "") << at;
  }
  std::lock_guard lock(known->mutex);
  known->results = before;
}

// What one process found, the next one believes.
TEST_P(GpuFaults, AStoredFailureHolds) {
  const Folder folder;
  gpu::SelfChecks* known = nullptr;
  gpu::SelfChecks::Results before;
  const auto know = [&](const gpu::SelfChecks::Results& results) {
    std::lock_guard lock(known->mutex);
    known->results = results;
  };
  {
    const auto context = gpu::Context::open(*GetParam(), 0);
    ASSERT_TRUE(context.ok());
    known = &(*context)->self_checks();
    before = known->results;
    know({{"softmax_f32", "element 1 is 2, must be 3"}});
    (*context)->store_cache();
    know({});
  }
  auto session = net.session(name(), "fp32");
  know(before);
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(net.check(*session, 1e-4), "");
  bool said = false;
  for (const Placement& row : session->placement()) {
    for (const std::string& why : row.why) said |= why.find("softmax_f32: element 1 is 2") != std::string::npos;
  }
  EXPECT_TRUE(said);
}

TEST_P(GpuFaults, AFolderThatCannotBeWrittenCostsNothingElse) {
  setenv("PINNACE_GPU_CACHE", "/proc/no such folder", 1);
  auto session = net.session(name(), "fp32", false);
  unsetenv("PINNACE_GPU_CACHE");
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(net.check(*session, 1e-4), "");
}

TEST_P(GpuFaults, AFolderThatOthersCanWriteIsNotUsedAndThePlacementSaysSo) {
  const Folder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0777));
  auto session = net.session(name(), "fp32", false);
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(net.check(*session, 1e-4), "");
  bool said = false;
  for (const Placement& row : session->placement()) {
    said |= row.notice.find("pipelines are not kept: cannot trust '" + folder.path()) != std::string::npos;
  }
  EXPECT_TRUE(said);
  EXPECT_TRUE(folder.files().empty());
}

TEST_P(GpuFaults, WritersDoNotMeet) {
  const Folder folder;
  const auto context = gpu::Context::open(*GetParam(), 0);
  ASSERT_TRUE(context.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) (*context)->store_cache();
    });
  }
  for (std::thread& t : threads) t.join();
  ASSERT_EQ(folder.files().size(), 1u);
  auto session = net.session(name(), "fp32", false);
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(net.check(*session, 1e-4), "");
}

// ---- barriers

// The tests of the tests: a plan without one of its barriers is seen, by synchronisation validation on Vulkan, by
// softmetal when the list is finished.
TEST_P(GpuFaults, AMissingBarrierIsSeen) {
  const bool validated = std::string(name()) == "vulkan";
  for (int n = 1; n <= 5; ++n) {
    const GpuOptions with(str_cat("no_self_check,validation,drop_barrier=", n));
    const auto context = gpu::Context::open(*GetParam(), 0);
    ASSERT_TRUE(context.ok());
    auto session = net.session(name(), "fp32", false);
    if (validated) {
      ASSERT_TRUE(session.ok()) << session.status().message();
      static_cast<void>(net.check(*session, 1e9));
      EXPECT_NE((*context)->device().validation_texts().find("SYNC-HAZARD"), std::string::npos) << n;
    } else {
      EXPECT_NE(session.status().message().find("touch the same bytes"), std::string::npos) << n;
    }
    EXPECT_GT((*context)->device().validation_messages(), 0u) << n;
  }
  const GpuOptions with("no_self_check,validation,drop_barrier=1000");
  const auto context = gpu::Context::open(*GetParam(), 0);
  ASSERT_TRUE(context.ok());
  auto session = net.session(name(), "fp32", false);
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(net.check(*session, 1e-4), "");
  EXPECT_EQ((*context)->device().validation_messages(), 0u) << (*context)->device().validation_texts();
}

// ---- repeats, and what is not written

TEST_P(GpuFaults, AHundredRunsGiveTheSameBits) {
  for (const char* precision : {"fp32", "fp16"}) {
    std::vector<float> first;
    for (int made = 0; made < 4; ++made) {
      auto session = net.session(name(), precision, false);
      ASSERT_TRUE(session.ok()) << session.status().message();
      for (int run = 0; run < 25; ++run) {
        ASSERT_EQ(net.check(*session, 2e-2), "");
        const auto* got = static_cast<const float*>(session->output(0).memory.host);
        const std::vector<float> bits(got, got + net.want.size());
        if (first.empty()) first = bits;
        ASSERT_EQ(memcmp(first.data(), bits.data(), first.size() * sizeof(float)), 0) << precision << ", run " << run;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuFaults, ::testing::ValuesIn(gpu_drivers()), driver_name);

}  // namespace
}  // namespace pinnace::testing
