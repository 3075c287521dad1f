// A small .pt2 archive, damaged: every truncation and seeded flips of bits are errors, or change nothing. Contents are
// covered by checksums; names, sizes and places of entries have to fit each other.
#include <gtest/gtest.h>
#include <pinnace/model.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "cases/parse_case.h"
#include "cpp/guarded.h"
#include "cpp/import/torch_fixture.h"
#include "cpp/scratch_folder.h"

namespace pinnace::testing {
namespace {
using Accept = std::function<void()>;

constexpr size_t kFlips = 2000;

class TorchCorruption : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = scratch_folder() / str_cat("pinnace_torch_", ::getpid(), "_", test->name(), ".pt2");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Result<Model> load(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return Model::load(path_.string());
  }
  /// Everything that the importer made of a file, constants in full.
  std::string whole(const Model& model) {
    std::string text = model.text(SIZE_MAX);
    for (const NodeInfo& node : model.nodes()) text += str_cat("\n", node.name, " ", node.source, " ", node.module);
    return text;
  }
  /// What is wrong with the answer to damaged bytes, empty if nothing is.
  std::string judge(const std::string& bytes, const std::string& wanted, const Accept& accept) {
    const auto model = load(bytes);
    if (model.ok()) {
      accept();
      return whole(*model) == wanted ? "" : "is another model: " + model->text();
    }
    const Status& status = model.status();
    const bool typed = status.code() == Code::kCorruptFile || status.code() == Code::kUnsupported ||
                       status.code() == Code::kConversion;
    if (!typed || status.message().empty()) return str_cat(code_name(status.code()), ": ", status.message());
    return status.message().find(path_.string()) == std::string::npos ? "does not name the file: " + status.message()
                                                                      : "";
  }
  std::string flipped(const std::string& good, size_t index) const {
    Random random(test_seed() * 104729 + index);
    std::string bytes = good;
    const auto bit = static_cast<size_t>(random.integer(0, static_cast<int64_t>(bytes.size()) * 8 - 1));
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    return bytes;
  }

  std::filesystem::path path_;
};

/// Archives with and without weights: without them only names hold the parts together.
struct Kind {
  const char* name;
  std::vector<torch_import::Entry> entries;
};
std::vector<Kind> kinds() {
  std::vector<torch_import::Entry> bare = torch_import::good_entries();
  bare.resize(2);
  std::string& program = bare[1].bytes;
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = program.find(from, at)) != std::string::npos; at += to.size()) {
      program.replace(at, from.size(), to);
    }
  };
  // x + p_w with a parameter becomes x + x.
  replace(R"({"as_tensor":{"name":"p_w"}},{"as_tensor")", R"({"as_tensor")");
  replace(R"({"parameter":{"arg":{"name":"p_w"},"parameter_name":"w"}},)", "");
  replace(R"("as_tensor":{"name":"p_w"})", R"("as_tensor":{"name":"x"})");
  return {{"with weights", torch_import::good_entries()}, {"without weights", std::move(bare)}};
}

TEST_F(TorchCorruption, EveryTruncationIsAnError) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const std::string good = torch_import::zip_of(kind.entries);
    const auto whole_file = load(good);
    ASSERT_TRUE(whole_file.ok()) << whole_file.status().message();
    const Allowance allowance{.memory = 16 * static_cast<int64_t>(good.size()) + (64 << 20)};
    const Observed seen = run_guarded(good.size(), allowance, [&](size_t length, const Accept& accept) {
      return judge(good.substr(0, length), "", accept);
    });
    EXPECT_EQ(seen.failure, "");
    EXPECT_EQ(seen.accepted, 0u);
  }
}

TEST_F(TorchCorruption, EveryFlippedBitIsAnErrorOrChangesNothing) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const std::string good = torch_import::zip_of(kind.entries);
    const auto whole_file = load(good);
    ASSERT_TRUE(whole_file.ok()) << whole_file.status().message();
    const std::string wanted = whole(*whole_file);
    const Allowance allowance{.memory = 16 * static_cast<int64_t>(good.size()) + (64 << 20)};
    const Observed seen = run_guarded(
        kFlips, allowance, [&](size_t i, const Accept& accept) { return judge(flipped(good, i), wanted, accept); });
    EXPECT_EQ(seen.failure, "") << "seed " << test_seed();
    EXPECT_LT(seen.accepted, kFlips / 5) << "dates and versions of entries have no meaning";
    RecordProperty("accepted", static_cast<int>(seen.accepted));
  }
}

}  // namespace
}  // namespace pinnace::testing
