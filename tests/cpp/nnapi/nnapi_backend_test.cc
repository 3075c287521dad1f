// Every operator that the NNAPI back end lowers, on its cases, at every feature level, through our own library, held
// against the reference code. Each case runs with its first input alone as a value of the run, and with all inputs so.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cpp/cpu/quantized_contract.h"
#include "cpp/nnapi/nnapi_node.h"
#include "cpp/random_cases.h"

namespace pinnace::testing {
namespace {

constexpr int kLevels[] = {1, 2, 3, 4, 6, 7, 8};

const std::set<std::string>& lowered() {
  static const std::set<std::string> names = {
#define LOWERING(op, function) #op,
#include "backends/nnapi/lowerings.inc"
#undef LOWERING
  };
  return names;
}

/// What NNAPI fails for some values that we have a meaning for: boxes that leave the image. The run is made again.
bool fails_with_values(std::string_view op) {
  return op == "max_roi_pool" || op == "roi_align";
}

struct Tally {
  int ran = 0, refused = 0;
};

void try_case(const BuiltCase& built, const Tolerance& own, const std::string& sentence, std::map<int, Tally>& tally) {
  const auto views = built.input_views();
  for (const TensorView& v : views) {
    if (!all_tame(v) || (v.present() && v.elements() == 0)) return;
  }
  const auto reference = run_case(built);
  if (!reference.ok()) return;
  if (const auto types = infer_case(built);
      !types.ok() || std::any_of(types->begin(), types->end(), [](const TensorType& t) { return !t.concrete(); })) {
    return;  // only a run knows
  }
  for (const ReferenceOutput& o : *reference) {
    if (o.type.elements() == 0) return;
  }
  // Such a run is made again elsewhere.
  const bool wide = std::any_of(views.begin(), views.end(), exceeds_32_bits);
  for (int level : kLevels) {
    for (uint32_t values : {1u, ~0u}) {
      if (values == ~0u ? views.size() < 2 : !views[0].present()) continue;
      const auto got = run_case_with(
          [&](const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
            return run_on_nnapi(nnapi_level(level), values, node, in, out);
          },
          built);
      const std::string where = str_cat(sentence, " at level ", level, values == 1 ? "" : ", all inputs open");
      if (!got.ok() && got.status().code() == Code::kUnsupported) {
        ++tally[level].refused;
        EXPECT_FALSE(got.status().rule().empty()) << where;
        continue;
      }
      if (!got.ok() && got.status().code() == Code::kDeviceLost && (fails_with_values(built.op->name) || wide))
        continue;
      ASSERT_TRUE(got.ok()) << where << ": " << got.status().message();
      ++tally[level].ran;
      for (size_t i = 0; i < got->size(); ++i) {
        const TensorView want{&(*reference)[i].type, const_cast<std::byte*>((*reference)[i].bytes.data())};
        const TensorView is{&(*got)[i].type, const_cast<std::byte*>((*got)[i].bytes.data())};
        EXPECT_EQ(far_from(want, is, own), "") << where << ", output " << i;
      }
    }
  }
}

class NnapiBackend : public ::testing::TestWithParam<std::string> {};

TEST_P(NnapiBackend, MatchesTheReference) {
  std::map<int, Tally> tally;
  for (const CaseList& list : all_cases()) {
    if (list.op != GetParam()) continue;
    for (size_t i = 0; i < list.cases.size(); ++i) {
      const auto built = build_case(list.op, list.cases[i], case_seed(list.op, i));
      ASSERT_TRUE(built.ok()) << built.status().message();
      if (built->expect.error) continue;
      try_case(*built, list.cases[i].tolerance,
               str_cat(list.op, " case ", i, " (", list.cases[i].inputs, " | ", list.cases[i].attributes, ")"), tally);
    }
  }
  int ran = 0;
  for (const auto& [level, t] : tally) ran += t.ran;
  EXPECT_GT(ran, 0) << "no case of " << GetParam() << " is taken at any feature level";
}

INSTANTIATE_TEST_SUITE_P(Cases, NnapiBackend, ::testing::ValuesIn(lowered().begin(), lowered().end()),
                         [](const auto& info) { return info.param; });

class NnapiBackendRandom : public ::testing::TestWithParam<RandomFamily> {};

TEST_P(NnapiBackendRandom, MatchesTheReference) {
  const auto& [name, generate] = GetParam();
  std::map<int, Tally> tally;
  for (size_t i = 0; i < kRandomCases; ++i) {
    if (!in_slice(i, 20)) continue;
    Random random(case_seed(name, i));
    Draw draw{random};
    const RandomCase drawn = generate(draw);
    if (!lowered().contains(drawn.op)) continue;
    const Case source{.inputs = drawn.inputs.c_str(),
                      .attributes = drawn.attributes.c_str(),
                      .outputs = drawn.outputs,
                      .tolerance = drawn.tolerance,
                      .output_quantization = drawn.quantization.c_str()};
    const auto built = build_case(drawn.op.c_str(), source, case_seed(name, i));
    ASSERT_TRUE(built.ok()) << built.status().message();
    try_case(
        *built, drawn.tolerance,
        str_cat(name, " case ", i, ": ", drawn.op, " (", drawn.inputs.substr(0, 200), " | ", drawn.attributes, ")"),
        tally);
  }
}

INSTANTIATE_TEST_SUITE_P(Random, NnapiBackendRandom, ::testing::ValuesIn(random_families()),
                         [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace pinnace::testing
