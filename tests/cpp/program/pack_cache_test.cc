// The user's cache of packed weights: what one session packs the next one maps; entries that are damaged, of another
// file or not the user's alone change no result; the folder stays below its limit.
#include <pinnace/pack_cache.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

#include "cpp/forks.h"
#include "cpp/program/program_fixture.h"
#include "ops/type_inference.h"
#include "program/writer.h"
#include "runtime/prepared_data.h"

namespace pinnace::testing {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kDepth = 512;

/// The bytes of a program: a product with [kDepth, columns] weights, 2 KiB for each column.
std::vector<std::byte> product(int64_t columns, float scale = 1) {
  std::vector<float> weights(static_cast<size_t>(kDepth * columns));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = scale * std::sin(0.01f * static_cast<float>(i));
  Graph graph;
  graph.name = "g";
  const ValueId x = graph.add_input("x", {DType::kF32, {1, kDepth}, nullptr});
  const ValueId w = *graph.add_constant_of<float>("w", DType::kF32, {kDepth, columns}, std::span<const float>(weights));
  const ValueId y = graph.add_value("y", {DType::kF32, {1, columns}, nullptr});
  graph.add_node("mat_mul", 1, "product", {x, w}, {y});
  graph.add_output("y", y);
  EXPECT_TRUE(update_types(graph).ok());
  const auto bytes = write_program(graph, {}, {});
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return to_vector(*bytes);
}
constexpr int64_t kColumns = 1024;  // 2 MiB

class PackCaches : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("PINNACE_CACHE", folder.path().c_str(), 1);
    write(model, product(kColumns));
  }
  void TearDown() override {
    EXPECT_TRUE(wait_for_pack_cache(20s));
    setenv("PINNACE_CACHE", "", 1);
    unsetenv("PINNACE_CACHE_MB");
  }
  static void write(const std::string& path, std::span<const std::byte> bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  static std::vector<std::byte> read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    return {bytes.begin(), bytes.end()};
  }
  static Options options() {
    Options o;
    o.target = "cpu";
    o.threads = 1;
    o.packed_store = &user_pack_cache();
    return o;
  }
  struct Ran {
    bool packed = false;  ///< weights were packed for it
    std::vector<float> y;
  };
  /// As the first session of a process: of a program that is opened anew.
  static Ran run(const std::string& path, const Options& with = options()) {
    Ran ran;
    const auto program = Program::open(path);
    EXPECT_TRUE(program.ok()) << program.status().message();
    auto session = Session::create(*program, with);
    EXPECT_TRUE(session.ok()) << session.status().message();
    if (!session) return ran;
    ran.packed = session->plan().constant_bytes >= 1 << 20;
    std::vector<float> x(kDepth);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::cos(0.1f * static_cast<float>(i));
    Tensor in;
    in.type = {DType::kF32, {1, kDepth}, nullptr};
    in.memory.host = x.data();
    in.memory.bytes = x.size() * sizeof(float);
    EXPECT_TRUE(session->run(std::span(&in, 1)).ok());
    const Tensor out = session->output(0);
    const auto* y = static_cast<const float*>(out.memory.host);
    ran.y.assign(y, y + out.memory.bytes / sizeof(float));
    return ran;
  }
  /// The same, and what it packed is written.
  Ran run_and_wait(const std::string& path, const Options& with = options()) const {
    Ran ran = run(path, with);
    EXPECT_TRUE(wait_for_pack_cache(20s));
    return ran;
  }
  std::string entry() const {
    const auto names = folder.names();
    return names.size() == 1 ? folder.file(names[0]) : "";
  }

  const TemporaryFolder folder, models;
  const std::string model = models.file("net.pnc");
};

TEST_F(PackCaches, WhatOneSessionPacksTheNextOneMaps) {
  const Ran first = run_and_wait(model);
  EXPECT_TRUE(first.packed);
  ASSERT_NE(entry(), "");
  struct stat about = {};
  ASSERT_EQ(stat(entry().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  const auto whole = read(entry());
  const Ran second = run_and_wait(model);
  EXPECT_FALSE(second.packed);
  EXPECT_EQ(second.y, first.y);
  EXPECT_EQ(read(entry()), whole);
  // Sessions that live at the same time share what the first one packed.
  const auto program = Program::open(model);
  ASSERT_TRUE(program.ok());
  const auto a = Prepared::create(*program, options()), b = Prepared::create(*program, options());
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->get(), b->get());
}

TEST_F(PackCaches, NothingIsKeptUnlessItIsAskedForAndWorthIt) {
  const auto nothing = [&](const char* what) { EXPECT_TRUE(folder.names().empty()) << what; };
  Options with = options();
  with.packed_store = nullptr;
  EXPECT_TRUE(run_and_wait(model, with).packed);
  nothing("by default");
  with = options();
  with.keep = {"y"};
  run_and_wait(model, with);
  nothing("with kept values");
  setenv("PINNACE_CACHE_MB", "0", 1);
  run_and_wait(model);
  nothing("with a limit of 0");
  setenv("PINNACE_CACHE_MB", "much", 1);
  run_and_wait(model);
  nothing("with a limit that is none");
  unsetenv("PINNACE_CACHE_MB");
  write(models.file("small.pnc"), product(100));
  run_and_wait(models.file("small.pnc"));
  nothing("of 200 KiB");
  const auto program = Program::from_bytes(product(kColumns));
  ASSERT_TRUE(program.ok());
  ASSERT_TRUE(Session::create(*program, options()).ok());
  ASSERT_TRUE(wait_for_pack_cache(20s));
  nothing("of bytes that are no file");
  setenv("PINNACE_CACHE", "", 1);
  run_and_wait(model);
  nothing("without a folder");
}

TEST_F(PackCaches, DamagedEntriesChangeNoResultAndAreReplaced) {
  const Ran want = run_and_wait(model);
  const std::string path = entry();
  const std::vector<std::byte> whole = read(path);
  std::vector<size_t> places = {0, 9, 70, 130, 260, whole.size() / 2, whole.size() - 1};
  for (size_t place : places) {
    std::vector<std::byte> damaged = whole;
    damaged[place] ^= std::byte{16};
    write(path, damaged);
    const Ran got = run_and_wait(model);
    EXPECT_TRUE(got.packed) << place;
    EXPECT_EQ(got.y, want.y) << place;
    EXPECT_EQ(read(path), whole) << place;
  }
  for (size_t bytes : {size_t{0}, size_t{63}, whole.size() / 2, whole.size() - 1}) {
    write(path, std::span(whole).first(bytes));
    const Ran got = run_and_wait(model);
    EXPECT_TRUE(got.packed) << bytes;
    EXPECT_EQ(got.y, want.y) << bytes;
    EXPECT_EQ(read(path), whole) << bytes;
  }
  EXPECT_FALSE(run_and_wait(model).packed);
}

TEST_F(PackCaches, AnEntryCountsForOneFileAsItIs) {
  run_and_wait(model);
  const std::string path = entry();
  // Other weights under the same path, of the same size.
  write(model, product(kColumns, 2));
  const Ran twice = run_and_wait(model);
  EXPECT_TRUE(twice.packed);
  EXPECT_EQ(folder.names().size(), 1u) << "the new entry takes the old one's place";
  EXPECT_FALSE(run_and_wait(model).packed);
  // A file of another path with this one's entry, as if both had the same hashes.
  const std::string other = models.file("other.pnc");
  write(other, product(kColumns));
  const Ran once = run_and_wait(other);
  EXPECT_TRUE(once.packed);
  ASSERT_EQ(folder.names().size(), 2u);
  const auto names = folder.names();
  const std::string second = folder.file(names[0]) == path ? names[1] : names[0];
  write(folder.file(second), read(path));
  const Ran again = run_and_wait(other);
  EXPECT_TRUE(again.packed);
  EXPECT_EQ(again.y, once.y);
}

TEST_F(PackCaches, AFolderThatOthersCanWriteIsNotUsed) {
  run_and_wait(model);
  const std::string path = entry();
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  EXPECT_TRUE(run_and_wait(model).packed);
  ASSERT_EQ(chmod(folder.path().c_str(), 0700), 0);
  EXPECT_FALSE(run_and_wait(model).packed);
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_TRUE(run_and_wait(model).packed) << "and it is replaced";
  EXPECT_FALSE(run_and_wait(model).packed);
  setenv("PINNACE_CACHE", "/proc/no such folder", 1);
  EXPECT_TRUE(run_and_wait(model).packed);
}

TEST_F(PackCaches, WhatWasNotUsedForLongestGoesFirst) {
  setenv("PINNACE_CACHE_MB", "5", 1);
  std::vector<std::string> paths;
  const auto age = [&](const std::string& name, time_t seconds) {
    timespec times[2] = {};
    times[0].tv_sec = times[1].tv_sec = ::time(nullptr) - seconds;
    ASSERT_EQ(::utimensat(AT_FDCWD, folder.file(name).c_str(), times, 0), 0);
  };
  std::vector<std::string> made;
  for (int i = 0; i < 2; ++i) {
    paths.push_back(models.file(str_cat(i, ".pnc")));
    write(paths[i], product(kColumns));
    run_and_wait(paths[i]);
    for (const std::string& name : folder.names()) {
      if (std::find(made.begin(), made.end(), name) == made.end()) made.push_back(name);
    }
    age(made.back(), 100 - 10 * i);
  }
  ASSERT_EQ(made.size(), 2u);
  EXPECT_FALSE(run_and_wait(paths[0]).packed);                   // used again: the other one is the oldest now
  std::ofstream(folder.file(".packed-1.pnc.7-0.tmp")).put('x');  // of a process that was killed
  age(".packed-1.pnc.7-0.tmp", 2 * 24 * 3600);
  std::ofstream(folder.file("something else")).put('x');
  run_and_wait(model);
  EXPECT_FALSE(run_and_wait(paths[0]).packed);
  EXPECT_FALSE(run_and_wait(model).packed);
  const auto names = folder.names();
  EXPECT_EQ(std::find(names.begin(), names.end(), made[1]), names.end());
  EXPECT_EQ(names.size(), 3u) << "two entries, and what is not the cache's";
  setenv("PINNACE_CACHE_MB", "1", 1);  // too little for one
  EXPECT_TRUE(run_and_wait(paths[1]).packed);
  EXPECT_TRUE(run_and_wait(paths[1]).packed);
}

TEST_F(PackCaches, AForkedChildAndTheProcessesEndWaitForNobodyElse) {
  const auto program = Program::open(model);
  ASSERT_TRUE(program.ok());
  auto session = Session::create(*program, options());  // and its weights are being written
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(in_child([&] { return wait_for_pack_cache(20s) ? 0 : 1; }), 0);
  const std::string other = models.file("other.pnc");
  write(other, product(kColumns));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    run(other);
    std::exit(0);  // what it packed is written by then
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(wait_for_pack_cache(20s));
  EXPECT_FALSE(run_and_wait(other).packed);
}

}  // namespace
}  // namespace pinnace::testing
