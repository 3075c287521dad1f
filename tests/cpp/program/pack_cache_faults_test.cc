// The user's cache of packed weights while each allocation, each call of the file system and each start of a thread
// fails once: what cannot be kept or read is packed, nothing is left half-written, and nobody waits for a writer that
// failed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include <pinnace/pack_cache.h>
#include <pinnace/pinnace.h>

#include "base/status.h"
#include "cpp/fault_harness.h"
#include "cpp/program/program_fixture.h"
#include "program/writer.h"

namespace pinnace::testing {
namespace {

class PackCacheFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(PackCacheFaults, ASessionIntoTheCacheAndFromIt) {
  if (!kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
  const TemporaryFolder folder;
  const std::string path = folder.file("a.pnc"), cache = folder.file("cache");
  setenv("PINNACE_CACHE", cache.c_str(), 1);
  static constexpr int64_t kSide = 512;  // 1 MiB, from which on weights are kept
  Graph graph;
  graph.name = "wide";
  const ValueId x = graph.add_input("x", {DType::kF32, {1, kSide}, nullptr});
  const std::vector<float> weights(static_cast<size_t>(kSide * kSide), 0.5f);
  const ValueId w = *graph.add_constant_of<float>("w", DType::kF32, {kSide, kSide}, std::span<const float>(weights));
  const ValueId y = graph.add_value("y", {DType::kF32, {1, kSide}, nullptr});
  graph.add_node("mat_mul", 1, "product", {x, w}, {y});
  graph.add_output("y", y);
  const auto bytes = write_program(graph, {}, {});
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  ASSERT_TRUE(load(to_vector(*bytes)).save(path).ok());
  Options options{.target = "cpu", .threads = 1};
  options.packed_store = &user_pack_cache();
  std::vector<float> ones(kSide, 1.0f);
  Tensor input;
  input.type.shape = {1, kSide};
  input.memory.host = ones.data();
  input.memory.bytes = ones.size() * sizeof(float);
  std::optional<Session> session;
  const auto run = [&]() -> Status {
    PINNACE_ASSIGN(const Program program, Program::open(path));
    PINNACE_ASSIGN(Session made, Session::create(program, options));
    session.emplace(std::move(made));
    PINNACE_TRY(session->run(std::span(&input, 1)));
    return wait_for_pack_cache(std::chrono::seconds(20)) ? Status() : Status(Code::kFile, "the cache is busy");
  };
  const auto gives = [&] {
    const Tensor out = session->output(0);
    const auto* const values = static_cast<const float*>(out.memory.host);
    return std::all_of(values, values + kSide, [](float v) { return v == 0.5f * kSide; });
  };
  for (const bool filled : {false, true}) {
    const auto before = [&] {
      std::filesystem::remove_all(cache);
      if (filled && !run().ok()) ADD_FAILURE() << "the cache is not filled";
      session.reset();
    };
    const auto after = [&](const Status& status) -> std::string {
      if (status.ok() && !gives()) return "other numbers";
      if (const Status now = run(); !now.ok()) return "it does not run any more: " + now.message();
      for (const auto& entry : std::filesystem::directory_iterator(cache)) {
        if (entry.path().extension() == ".tmp") return entry.path().string() + " is left in the cache";
      }
      return gives() ? "" : "other numbers now";
    };
    FaultScenario scenario{
        filled ? "session, from the cache" : "session, into the cache", before, run, after, [&] { session.reset(); },
        {Fault::kAllocation, Fault::kNoMoreAllocations, Fault::kFile}};
    if (!filled) scenario.meets.push_back(Fault::kThread);
    fail_everywhere(scenario, GetParam());
  }
  ASSERT_TRUE(wait_for_pack_cache(std::chrono::seconds(20)));
  setenv("PINNACE_CACHE", "", 1);
}

INSTANTIATE_TEST_SUITE_P(All, PackCacheFaults,
                         ::testing::Values(Fault::kAllocation, Fault::kNoMoreAllocations, Fault::kFile, Fault::kThread),
                         kFaultTestName);

}  // namespace
}  // namespace pinnace::testing
