// Model::check: verdicts of targets before a program is built, which are those of the plan.
#include <gtest/gtest.h>

#include <pinnace/model.h>

#include "base/text.h"
#include "cpp/text_program.h"

namespace pinnace {
namespace {

using testing::model_of;

TEST(ModelCheck, AnswersWithoutADevice) {
  // The application's back ends are named in BuildOptions and Options; check() asks those built in.
  const std::vector<std::string> targets = {"cpu"};
  const auto rows =
      model_of(R"(graph "g" { input %x : f32[1,2] %r : f32[1,2] = relu(%x) %y : f32[1,2] = neg(%r) output "y" %y })")
          .check(targets);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->size(), 2u);
}

TEST(ModelCheck, SaysWhatThePlannerWillOfSizesThatComeWithTheRun) {
  constexpr std::pair<std::string_view, bool> kGraphs[] = {
      {"input %x : f32[1,3,1] input %n : i64[2] %y : f32[3] = squeeze(%x, %n)", true},
      {"input %x : f32[2,3] input %n : i32[1] %y : f32[1,3] = gather(%x, %n)", false},
      {"symbol n 1..9 input %x : f32[n,3] %k : i64[2,?] = non_zero(%x) %y : f32[2,?] = cast(%k) {to=\"f32\"}", true},
      {"symbol n 1..9 input %x : f32[n,3] %y : f32[n,3] = relu(%x)", false},
      {"input %x : f32[?,3] %y : f32[?,3] = relu(%x)", false},
  };
  for (const auto& [nodes, on_the_cpu] : kGraphs) {
    SCOPED_TRACE(nodes);
    const std::string text = str_cat("graph \"g\" { ", nodes, " output \"y\" %y }");
    const auto model = Model::parse(text, {.disabled_passes = {"all"}});
    ASSERT_TRUE(model.ok()) << model.status().message();
    const std::vector<std::string> targets = {"nnapi", "cpu"};
    const auto rows = model->check(targets);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    for (const CheckRow& row : *rows) {
      const bool refused = on_the_cpu && row.target == "nnapi";
      EXPECT_EQ(row.supported, !refused) << row.op;
      EXPECT_EQ(row.rule.find("P-1") == 0, refused) << row.op << ": " << row.rule;
    }
  }
}

}  // namespace
}  // namespace pinnace
