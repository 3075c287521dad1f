// Squeeze without axes of dynamic sizes: which of them are taken to be 1, what is said of it, and what is refused.
#include "import/onnx/dynamic_ranks.h"

#include <gtest/gtest.h>

#include "cpp/import/onnx_fixture.h"

namespace pinnace::testing {
namespace {

TEST(OpenRanks, RangesThatExcludeOne) {
  for (const Symbol& s : {Symbol{"n", 2}, Symbol{"n", 0, 0}, Symbol{"n", 0, 8, 2}}) EXPECT_TRUE(onnx::excludes_one(s));
  for (const Symbol& s : {Symbol{"n"}, Symbol{"n", 1, 1}, Symbol{"n", 1, 8}}) EXPECT_FALSE(onnx::excludes_one(s));
}

class OnnxOpenRanks : public OnnxTest {
 protected:
  /// x [n,m,3], squeezed without axes to an output that the file declares to have `rank` dimensions; -1: none declared.
  void make(int rank) {
    add_input("x", {-1, -1, 3});
    auto& shape = *graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.mutable_dim(0)->set_dim_param("n");
    shape.mutable_dim(1)->set_dim_param("m");
    add_node(graph(), "Squeeze", {"x"}, {"y"});
    add_output("y");
    auto& declared = *graph().mutable_output(0)->mutable_type()->mutable_tensor_type();
    declared.clear_shape();
    for (int i = 0; i < rank; ++i) declared.mutable_shape()->add_dim();
  }
  static std::vector<Symbol> symbols(const Imported& imported) { return imported.graph.symbols; }
};

TEST_F(OnnxOpenRanks, SizesAreAtLeastTwoWhereNothingContradicts) {
  for (int rank : {-1, 3}) {
    model_.Clear();
    SetUp();
    make(rank);
    const auto imported = import_model();
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    EXPECT_EQ(symbols(*imported), (std::vector<Symbol>{{"n", 2}, {"m", 2}}));
    EXPECT_EQ(imported->notes.size(), 2u);
  }
}

TEST_F(OnnxOpenRanks, OneSizeIsOneWhereTheFileHasOneDimensionLess) {
  make(2);
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(symbols(*imported), (std::vector<Symbol>{{"m", 2}}));
  ASSERT_EQ(imported->notes.size(), 2u);
  EXPECT_NE(imported->notes[1].find("'n' is fixed to 1"), std::string::npos) << imported->notes[1];
}

TEST_F(OnnxOpenRanks, AllAreOneWhereTheFileHasOnlyTheOthers) {
  make(1);
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_TRUE(symbols(*imported).empty());
  EXPECT_EQ(imported->notes.size(), 2u);
}

TEST_F(OnnxOpenRanks, RangesOfTheCallerStay) {
  make(1);
  auto imported = import_model({.symbols = {{"n", 3, 9}, {"m", 2, 4}}});
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(symbols(*imported), (std::vector<Symbol>{{"n", 3, 9}, {"m", 2, 4}}));
  EXPECT_TRUE(imported->notes.empty());
  imported = import_model({.symbols = {{"n", 1, 9}}});
  ASSERT_EQ(imported.status().code(), Code::kConversion);
  EXPECT_NE(imported.status().nodes()[0].rule.find("give 'n' the size 1"), std::string::npos);
}

}  // namespace
}  // namespace pinnace::testing
