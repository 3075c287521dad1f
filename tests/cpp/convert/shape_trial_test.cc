// try_shapes and with_ranges: what a search of sizes asks of a graph; with_names; and names of dimensions that ONNX
// files give to more than one size.
#include <gtest/gtest.h>

#include <pinnace/model.h>

#include "cpp/import/onnx_fixture.h"
#include "import/import.h"

namespace pinnace::testing {
namespace {

constexpr const char* kText = R"(graph "g" {
  symbol n 0..inf
  symbol h 0..inf
  input %x : f32[n,4]
  input %i : i64[h]
  const %t : f32[5,4] = {0,2,-1,nan,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}
  %g : f32[h,4] = gather "picked" (%t, %i) {axis=0}
  %y : f32[n,8] = concat "joined" (%x, %g) {axis=1}
  output "y" %y
})";

Model model_of(const std::string& text) {
  Result<Model> model = Model::parse(text, {.disabled_passes = {"all"}});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*model);
}

TEST(ShapeTrial, SaysHowFarTheRulesGet) {
  const Model model = model_of(kText);
  const std::vector<std::vector<int64_t>> fitting = {{3, 4}, {3}}, other = {{3, 4}, {2}};
  auto trial = model.try_shapes(fitting);
  ASSERT_TRUE(trial.ok()) << trial.status().message();
  EXPECT_TRUE(trial->fits);
  EXPECT_EQ(trial->inferred, 2u);
  EXPECT_TRUE(trial->nodes.empty());
  trial = model.try_shapes(other);
  ASSERT_TRUE(trial.ok()) << trial.status().message();
  EXPECT_FALSE(trial->fits);
  EXPECT_EQ(trial->inferred, 1u);
  EXPECT_NE(trial->failure.find("concat"), std::string::npos) << trial->failure;
}

TEST(ShapeTrial, DetailsHaveTypesContentsAndAttributes) {
  const Model model = model_of(kText);
  const std::vector<std::vector<int64_t>> shapes = {{3, 4}, {3}};
  const auto trial = model.try_shapes(shapes, true);
  ASSERT_TRUE(trial.ok()) << trial.status().message();
  ASSERT_EQ(trial->nodes.size(), 2u);
  EXPECT_EQ(trial->nodes[0].op, "gather");
  EXPECT_EQ(trial->nodes[0].attrs, (std::vector<std::pair<std::string, int64_t>>{{"axis", 0}}));
  for (const ValueAt& value : trial->values) {
    const Shape wanted = value.name == "y" ? Shape{3, 8} : value.type.shape;
    EXPECT_EQ(value.type.shape, wanted);
    EXPECT_FALSE(value.known) << value.name;  // floats, and an input
    EXPECT_EQ(value.range, value.name == "t" ? std::optional(std::pair(-1.0, 2.0)) : std::nullopt) << value.name;
  }
}

TEST(ShapeTrial, WrongShapesAreArguments) {
  const Model model = model_of(kText);
  for (const std::vector<std::vector<int64_t>>& shapes : {std::vector<std::vector<int64_t>>{},
                                                          {{3, 4}},
                                                          {{3}, {3}},
                                                          {{3, 5}, {3}},
                                                          {{-1, 4}, {3}},
                                                          {{INT64_MAX / 2, 4}, {3}}}) {
    EXPECT_EQ(model.try_shapes(shapes).status().code(), Code::kInvalidArgument);
  }
}

TEST(ShapeTrial, ContentsDecideTheBranch) {
  const Model model = model_of(R"(graph "g" {
  symbol t 0..inf
  input %x : f32[t]
  input %rate : i32[1]
  const %high : i32[1] = {16000}
  const %four : i64[1] = {4}
  const %six : i64[1] = {6}
  %c : bool[1] = equal "compared" (%rate, %high)
  %y : f32[?] = if "chosen" (%c, %x, %four, %six) {else_branch=graph "else_branch" {
    input %x : f32[t]
    input %four : i64[1]
    input %six : i64[1]
    %z : f32[?] = expand "wide" (%x, %six)
    output "z" %z
  }, then_branch=graph "then_branch" {
    input %x : f32[t]
    input %four : i64[1]
    input %six : i64[1]
    %z : f32[?] = expand "wide" (%x, %four)
    output "z" %z
  }}
  output "y" %y
})");
  const auto fits = [&](int64_t size, std::vector<InputContents> contents) {
    const std::vector<std::vector<int64_t>> shapes = {{size}, {1}};
    const auto trial = model.try_shapes(shapes, false, contents);
    EXPECT_TRUE(trial.ok()) << trial.status().message();
    return trial.ok() && trial->fits;
  };
  EXPECT_TRUE(fits(4, {}));
  EXPECT_TRUE(fits(6, {}));
  EXPECT_FALSE(fits(5, {}));
  EXPECT_TRUE(fits(4, {{1, {16000}}}));
  EXPECT_FALSE(fits(6, {{1, {16000}}}));
  EXPECT_FALSE(fits(4, {{1, {8000}}}));
  EXPECT_TRUE(fits(6, {{1, {8000}}}));
  const std::vector<std::vector<int64_t>> shapes = {{4}, {1}};
  for (const InputContents& bad : {InputContents{2, {1}}, InputContents{0, {1, 1, 1, 1}}, InputContents{1, {}},
                                   InputContents{1, {1, 1}}, InputContents{1, {int64_t{1} << 40}}}) {
    const auto trial = model.try_shapes(shapes, false, {&bad, 1});
    EXPECT_EQ(trial.status().code(), Code::kInvalidArgument) << bad.input;
  }
}

TEST(ShapeTrial, RangesOnlyBecomeNarrower) {
  const Model model = model_of(kText);
  const std::vector<Symbol> first = {{"n", 2, 8, 2}}, second = {{"n", 4, 8, 4}, {"h", 1, 3, 1}};
  const auto narrow = model.with_ranges(first);
  ASSERT_TRUE(narrow.ok()) << narrow.status().message();
  EXPECT_EQ(narrow->symbols()[0], first[0]);
  EXPECT_EQ(model.symbols()[0], (Symbol{"n"}));
  const auto narrower = narrow->with_ranges(second);
  ASSERT_TRUE(narrower.ok()) << narrower.status().message();
  EXPECT_EQ(narrower->symbols()[1], second[1]);
  const auto program = narrower->build();
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->symbols()[0], second[0]);
  for (const Symbol& bad :
       {Symbol{"z"}, Symbol{"n"}, Symbol{"n", 2, 9, 2}, Symbol{"n", 2, 8, 3}, Symbol{"n", 5, 7, 8}}) {
    EXPECT_EQ(narrow->with_ranges({&bad, 1}).status().code(), Code::kInvalidArgument) << bad.min << bad.name;
  }
}

TEST(ModelNames, InputsAndOutputsGetOtherNames) {
  const Model model = model_of(kText);
  const std::vector<std::string> inputs = {"y", "x"}, outputs = {"result"};  // an inner value is %y
  const auto renamed = model.with_names(inputs, outputs);
  ASSERT_TRUE(renamed.ok()) << renamed.status().message();
  EXPECT_EQ(renamed->inputs()[0].name, "y");
  EXPECT_EQ(renamed->inputs()[1].name, "x");
  EXPECT_EQ(renamed->outputs()[0].name, "result");
  EXPECT_EQ(renamed->nodes()[1].outputs[0], "y_1");
  EXPECT_EQ(model.inputs()[0].name, "x");
  const auto program = renamed->build();
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->inputs()[0].name, "y");
  EXPECT_EQ(program->outputs()[0].name, "result");
  using Names = std::vector<std::string>;
  const std::string zero("b\0", 2);
  for (const Names& names :
       {Names{"a"}, Names{"a", ""}, Names{"a", "a"}, Names{"a", "b\n"}, Names{"a", zero}, Names{"a", "b\xff"}}) {
    EXPECT_EQ(model.with_names(names, outputs).status().code(), Code::kInvalidArgument) << names.back();
  }
  for (const Names& names : {Names{}, Names{""}, Names{"b\x7f"}, Names{"b\xff"}, Names{"a", "b"}}) {
    EXPECT_EQ(model.with_names(inputs, names).status().code(), Code::kInvalidArgument) << names.size();
  }
}

class OnnxDimNames : public OnnxTest {
 protected:
  void name_dim(int input, int dim, const std::string& name) {
    auto& shape = *graph().mutable_input(input)->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.mutable_dim(dim)->set_dim_param(name);
  }
  void make(const std::string& first, const std::string& second) {
    add_input("x", {-1, 3});
    add_input("z", {-1, 3});
    name_dim(0, 0, first);
    name_dim(1, 0, second);
    add_node(graph(), "Add", {"x", "z"}, {"y"});
    add_output("y");
  }
  static std::vector<std::string> names(const Imported& imported) {
    std::vector<std::string> all;
    for (const Symbol& s : imported.graph.symbols) all.push_back(s.name);
    return all;
  }
};

TEST_F(OnnxDimNames, NamesThatSayNothingAreSeparate) {
  make("?", "?");
  for (const char* name : {"?", "unk__12", "None", "-1", "*", "unknown"}) {
    name_dim(0, 0, name);
    name_dim(1, 0, name);
    const auto imported = import_model();
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    EXPECT_EQ(names(*imported), (std::vector<std::string>{"x_dim0", "z_dim0"})) << name;
    ASSERT_EQ(imported->notes.size(), 1u);
    EXPECT_NE(imported->notes[0].find(str_cat("'", name, "'")), std::string::npos) << imported->notes[0];
    EXPECT_NE(imported->notes[0].find("x_dim0, z_dim0"), std::string::npos) << imported->notes[0];
  }
}

TEST_F(OnnxDimNames, NamesThatSayMoreAreShared) {
  make("unknown_batch", "unknown_batch");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(names(*imported), (std::vector<std::string>{"unknown_batch"}));
  EXPECT_TRUE(imported->notes.empty());
}

TEST_F(OnnxDimNames, MadeNamesAreNew) {
  make("?", "x_dim0");
  const auto imported = import_model();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(names(*imported), (std::vector<std::string>{"x_dim0_", "x_dim0"}));
}

TEST_F(OnnxDimNames, RangesKeepTheFilesName) {
  make("?", "?");
  const auto imported = import_model({.symbols = {{"?", 1, 8, 2}}});
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->graph.symbols, (std::vector<Symbol>{{"?", 1, 8, 2}}));
}

TEST_F(OnnxDimNames, NamesAreSeparatedOnDemand) {
  make("N", "N");
  write(path(), model_.SerializeAsString());
  for (const std::string& wanted : {std::string("N"), std::string()}) {
    const auto imported = import_onnx(path(), {.separate_dims = {wanted}});
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    EXPECT_EQ(names(*imported), (std::vector<std::string>{"x_dim0", "z_dim0"}));
  }
  const auto imported = import_onnx(path(), {.separate_dims = {"M"}});
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(names(*imported), (std::vector<std::string>{"N"}));
}

}  // namespace
}  // namespace pinnace::testing
