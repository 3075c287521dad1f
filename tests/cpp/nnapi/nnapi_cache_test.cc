// Compilation caching of libneuralnetworks.so: what is found is used, and nothing that can be wrong with a cache fails
// a compilation or changes a result.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "cpp/child_process.h"
#include "cpp/nnapi/nnapi_client.h"
#include "cpp/scratch_folder.h"

namespace {

using namespace nnapi_client;
namespace fs = std::filesystem;

/// A cache directory that goes away with the test.
struct Folder {
  const fs::path path;
  Folder() : path(pinnace::testing::scratch_folder() / ("nnapi_cache_" + std::to_string(getpid()))) {
    fs::remove_all(path);
    fs::create_directories(path);
    fs::permissions(path, fs::perms(0755));  // whatever the umask
  }
  ~Folder() { fs::remove_all(path); }
  /// The only file in it; empty if there is none.
  fs::path file() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(path)) {
      EXPECT_TRUE(found.empty()) << "more than one file";
      found = entry.path();
    }
    return found;
  }
  ino_t inode() const {
    struct stat of = {};
    EXPECT_EQ(stat(file().c_str(), &of), 0);
    return of.st_ino;
  }
};

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_file(const fs::path& path, const std::string& bytes) {
  fs::remove(path);  // a new file: the old one may be in use
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A fully connected layer of weights that follow from `seed`, after a convolution.
struct Network : Builder {
  explicit Network(unsigned seed) {
    std::mt19937 random(seed);
    const auto values = [&](size_t n) {
      std::vector<float> v(n);
      for (float& x : v) x = static_cast<float>(random() % 64) / 64;
      return v;
    };
    const uint32_t x = operand(kTensorFloat32, {1, 4, 4, 8});
    const uint32_t w = constant<float>(kTensorFloat32, {16, 3, 3, 8}, values(1152));
    const uint32_t b = constant<float>(kTensorFloat32, {16}, values(16)), t = operand(kTensorFloat32, {1, 4, 4, 16});
    const uint32_t one = scalar(1), none = scalar(0), y = operand(kTensorFloat32, {1, 32});
    add(kConv2d, {x, w, b, one, one, one, one}, {t});
    const uint32_t v = constant<float>(kTensorFloat32, {32, 256}, values(8192));
    const uint32_t c = constant<float>(kTensorFloat32, {32}, values(32));
    add(9, {t, v, c, none}, {y});
    finish({x}, {y});
  }
  /// Compiles with a cache (none if `directory` is empty) and runs.
  std::vector<float> run(const std::string& directory, uint8_t token = 7) const {
    ANeuralNetworksCompilation* compilation = nullptr;
    EXPECT_EQ(ANeuralNetworksCompilation_create(model, &compilation), 0);
    const std::vector<uint8_t> bytes(ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN, token);
    if (!directory.empty()) {
      EXPECT_EQ(ANeuralNetworksCompilation_setCaching(compilation, directory.c_str(), bytes.data()), 0);
    }
    EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), 0);
    ANeuralNetworksExecution* execution = nullptr;
    EXPECT_EQ(ANeuralNetworksExecution_create(compilation, &execution), 0);
    std::vector<float> x(128, 0.5f), y(32);
    EXPECT_EQ(ANeuralNetworksExecution_setInput(execution, 0, nullptr, x.data(), x.size() * sizeof(float)), 0);
    EXPECT_EQ(ANeuralNetworksExecution_setOutput(execution, 0, nullptr, y.data(), y.size() * sizeof(float)), 0);
    EXPECT_EQ(ANeuralNetworksExecution_compute(execution), 0);
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksCompilation_free(compilation);
    return y;
  }
};

TEST(NnapiCache, ASecondCompilationTakesWhatTheFirstMade) {
  const Folder folder;
  const Network network(1);
  const std::vector<float> right = network.run("");
  EXPECT_EQ(network.run(folder.path), right);
  const ino_t first = folder.inode();
  EXPECT_EQ(network.run(folder.path), right);
  EXPECT_EQ(folder.inode(), first) << "what was not of use would have been replaced";
}

TEST(NnapiCache, TheLogTellsOfCompilationsAndOfTheCache) {
  const Child child({"PINNACE_LOG=debug"});
  if (child.here()) {
    const Folder folder;
    const Network network(1);
    network.run(folder.path);
    network.run(folder.path);
    return;
  }
  for (const char* line : {" debug neuralnetworks: the cache has nothing for this model, 'pinnace-07",
                           " info neuralnetworks: planned ", " debug neuralnetworks: the model is written to the cache",
                           " debug neuralnetworks: the model is taken from the cache",
                           " info neuralnetworks: compiled a model of 2 operations for cpu, in "}) {
    EXPECT_TRUE(child.says(line)) << line << " is not in:\n" << child.output;
  }
}

TEST(NnapiCache, TheLogIsSilentUnlessAskedAndRefusesUnknownLevels) {
  const Child child({"PINNACE_LOG=loud"});
  if (child.here()) {
    const Network network(1);
    network.run("");
    return;
  }
  EXPECT_TRUE(child.says(" error neuralnetworks: PINNACE_LOG: log level 'loud' is not one of trace, ")) << child.output;
  EXPECT_FALSE(child.says(" info neuralnetworks: ")) << child.output;
}

TEST(NnapiCache, WhatDrawsRandomNumbersIsTakenTooAndDrawsAnew) {
  const Folder folder;
  Builder b;
  const uint32_t logits = b.operand(kTensorFloat32, {1, 2}), samples = b.scalar(1000);
  const uint32_t seeds = b.constant<int32_t>(kTensorInt32, {2}, {0, 0}), y = b.operand(kTensorInt32, {1, 1000});
  b.add(74, {logits, samples, seeds}, {y});  // RANDOM_MULTINOMIAL
  b.finish({logits}, {y});
  const auto draw = [&] {
    ANeuralNetworksCompilation* compilation = nullptr;
    EXPECT_EQ(ANeuralNetworksCompilation_create(b.model, &compilation), 0);
    const std::vector<uint8_t> token(ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN, 9);
    EXPECT_EQ(ANeuralNetworksCompilation_setCaching(compilation, folder.path.c_str(), token.data()), 0);
    EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), 0);
    ANeuralNetworksExecution* execution = nullptr;
    EXPECT_EQ(ANeuralNetworksExecution_create(compilation, &execution), 0);
    const std::vector<float> even(2, 0.0f);
    std::vector<int32_t> drawn(1000, -1);
    EXPECT_EQ(ANeuralNetworksExecution_setInput(execution, 0, nullptr, even.data(), 8), 0);
    EXPECT_EQ(ANeuralNetworksExecution_setOutput(execution, 0, nullptr, drawn.data(), 4000), 0);
    EXPECT_EQ(ANeuralNetworksExecution_compute(execution), 0);
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksCompilation_free(compilation);
    return drawn;
  };
  const std::vector<int32_t> first = draw();
  const ino_t made = folder.inode();
  EXPECT_NE(draw(), first);
  EXPECT_EQ(folder.inode(), made) << "what was not of use would have been replaced";
}

TEST(NnapiCache, DirectoriesThatCannotBeUsedCostNothing) {
  const Folder folder;
  const Network network(1);
  const std::vector<float> right = network.run("");
  const std::string plain_file = folder.path / "file";
  write_file(plain_file, "text");
  for (const std::string& directory : {std::string("/nonexistent/folder"), plain_file, std::string("/proc"),
                                       std::string("relative/folder"), std::string(5000, 'x')}) {
    EXPECT_EQ(network.run(directory), right) << directory;
  }
}

TEST(NnapiCache, WhatOthersCanWriteIsNeitherReadNorWritten) {
  const Folder folder;
  const Network network(1);
  const std::vector<float> right = network.run("");
  fs::permissions(folder.path, fs::perms(0775));
  EXPECT_EQ(network.run(folder.path), right);
  EXPECT_TRUE(folder.file().empty()) << "a folder that a group can write";
  fs::permissions(folder.path, fs::perms(0755));
  EXPECT_EQ(network.run(folder.path), right);
  const ino_t first = folder.inode();
  EXPECT_EQ(fs::status(folder.file()).permissions(), fs::perms(0600));
  fs::permissions(folder.file(), fs::perms(0622));
  EXPECT_EQ(network.run(folder.path), right);
  EXPECT_NE(folder.inode(), first) << "a file that others can write was taken";
  const fs::path link = folder.path.string() + "_link";
  fs::create_directory_symlink(folder.path, link);
  EXPECT_EQ(network.run(link, 8), right);
  EXPECT_TRUE(fs::remove(link));
  EXPECT_FALSE(folder.file().empty()) << "and no second file, through the link";
}

TEST(NnapiCache, StrictModeSaysWhyNothingIsCached) {
  const Folder folder;
  fs::permissions(folder.path, fs::perms(0777));
  Child child({"PINNACE_NNAPI_STRICT=1", "PINNACE_TEST_FOLDER=" + folder.path.string()});
  if (child.here()) {
    const char* const shared = std::getenv("PINNACE_TEST_FOLDER");
    ASSERT_NE(shared, nullptr);
    Network(1).run(shared);
    return;
  }
  EXPECT_TRUE(child.says("strict: cache-folder: Compilation_finish(compilation1): nothing is cached: cannot trust '" +
                         folder.path.string() + "': others than its owner can write it (mode 777)\n"))
      << child.output;
}

TEST(NnapiCache, AnotherModelWithTheSameTokenIsToldApart) {
  const Folder folder;
  const Network one(1), two(2);
  const std::vector<float> right_one = one.run(""), right_two = two.run("");
  ASSERT_NE(right_one, right_two);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(one.run(folder.path), right_one);
    EXPECT_EQ(two.run(folder.path), right_two);
  }
}

TEST(NnapiCache, AnotherTokenHasAnotherFile) {
  const Folder folder;
  const Network one(1), two(2);
  one.run(folder.path, 1);
  two.run(folder.path, 2);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 2);
}

TEST(NnapiCache, TruncatedFilesAreReplaced) {
  const Folder folder;
  const Network network(1);
  const std::vector<float> right = network.run(folder.path);
  const fs::path file = folder.file();
  const std::string whole = read_file(file);
  for (size_t bytes :
       {size_t(0), size_t(1), size_t(63), size_t(64), size_t(1000), whole.size() / 2, whole.size() - 1}) {
    write_file(file, whole.substr(0, bytes));
    EXPECT_EQ(network.run(folder.path), right) << bytes;
    EXPECT_EQ(read_file(file), whole) << bytes;
  }
}

TEST(NnapiCache, DamagedFilesChangeNoResult) {
  const Folder folder;
  const Network network(1);
  const std::vector<float> right = network.run(folder.path);
  const fs::path file = folder.file();
  const std::string whole = read_file(file);
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
    // The header's and the graph's bytes more often than the weights'.
    const size_t at = random() % (round % 2 ? whole.size() : std::min<size_t>(whole.size(), 4096));
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    write_file(file, damaged);
    ASSERT_EQ(network.run(folder.path), right) << "byte " << at;
  }
}

TEST(NnapiCache, ForeignFilesAreReplaced) {
  const Folder folder;
  const Network network(1);
  const std::vector<float> right = network.run(folder.path);
  const fs::path file = folder.file();
  const std::string whole = read_file(file);
  write_file(file, "no program at all");
  EXPECT_EQ(network.run(folder.path), right);
  EXPECT_EQ(read_file(file), whole);
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(network.run(folder.path), right) << "a folder in its place";
  fs::remove(file);
  fs::create_symlink("/dev/zero", file);
  EXPECT_EQ(network.run(folder.path), right) << "an endless file";
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(network.run(folder.path), right) << "a pipe that nobody writes to";
}

TEST(NnapiCache, AnotherProcessorHasItsOwn) {
  const Folder folder;
  const Network network(1);
  const std::vector<float> right = network.run(folder.path);
  const ino_t first = folder.inode();
  {
    Child child({"PINNACE_CPU_ISA=sse2", "PINNACE_TEST_FOLDER=" + folder.path.string()});
    if (child.here()) {
      const char* const shared = std::getenv("PINNACE_TEST_FOLDER");
      ASSERT_NE(shared, nullptr);
      const std::vector<float> slow = Network(1).run(shared);
      for (size_t i = 0; i < slow.size(); ++i) EXPECT_NEAR(slow[i], right[i], 1e-3);
      return;
    }
  }
  EXPECT_NE(folder.inode(), first);
}

TEST(NnapiCache, ManyThreadsShareAToken) {
  const Folder folder;
  const Network network(1);
  const std::vector<float> right = network.run("");
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) EXPECT_EQ(network.run(folder.path), right);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(NnapiCache, OpenShapesAreNotStored) {
  const Folder folder;
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {0}), y = b.operand(kTensorFloat32, {0});
  b.add(28, {x}, {y});
  b.finish({x}, {y});
  ANeuralNetworksCompilation* compilation = nullptr;
  const std::vector<uint8_t> token(ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN, 1);
  ASSERT_EQ(ANeuralNetworksCompilation_create(b.model, &compilation), 0);
  ASSERT_EQ(ANeuralNetworksCompilation_setCaching(compilation, folder.path.c_str(), token.data()), 0);
  EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), 0);
  EXPECT_TRUE(folder.file().empty());
  ANeuralNetworksCompilation_free(compilation);
}

}  // namespace
