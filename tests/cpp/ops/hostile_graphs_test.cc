// Graphs that shape rules, passes and reference code once took for something else than they are: each is refused with a
// sentence, or gives what the reference gives.
#include <gtest/gtest.h>

#include <chrono>

#include <pinnace/model.h>
#include <pinnace/session.h>
#include <pinnace/testing.h>

namespace pinnace::testing {
namespace {

struct Refused {
  const char* name;
  const char* graph;
  const char* sentence;
};

class HostileGraphs : public ::testing::TestWithParam<Refused> {};

TEST_P(HostileGraphs, AreRefused) {
  const auto model = Model::parse(GetParam().graph);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find(GetParam().sentence), std::string::npos) << model.status().message();
}

INSTANTIATE_TEST_SUITE_P(Operators, HostileGraphs,
                         ::testing::Values(Refused{"heads_that_overflow", R"(graph "g" {
  input %q : f32[1,1,0]
  input %k : f32[1,1,0]
  input %v : f32[1,1,4]
  %y : f32[1,1,4] = attention(%q, %k, %v) {kv_num_heads=1, q_num_heads=4611686018427387905}
  output "y" %y })",
                                                   "has 4611686018427387905 heads, may have 2147483647"},
                                           Refused{"weights_without_a_scale", R"(graph "g" {
  input %x : i8[1,1,2,2]{scale 0.5, zero 0}
  const %w : i8[0,1,1,1]{scales [], zeros [], axis 0} = {}
  %y : i8[1,0,2,2]{scale 0.5, zero 0} = conv(%x, %w)
  output "y" %y })",
                                                   "without a scale"},
                                           Refused{"a_scale_per_channel_in_another_shape", R"(graph "g" {
  const %w : i8[2,3]{scales [1,2], zeros [0,0], axis 0} = {1,2,3,4,5,6}
  const %s : i64[1] = {6}
  %y : i8[6] = reshape(%w, %s)
  output "y" %y })",
                                                   "is quantised per axis"},
                                           Refused{"a_constant_beyond_its_type", R"(graph "g" {
  symbol n 1..9
  input %x : f32[n]
  %s : i64[1] = shape(%x)
  %y : i8[n] = constant_of_shape(%s) {dtype="i8", int_value=300}
  output "y" %y })",
                                                   "int_value 300 is not in the range of int8"},
                                           Refused{"samples_of_many_dimensions", R"(graph "g" {
  input %x : f32[1,1,1,1,1,1,1,1,1,1,1]
  input %g : f32[1,1,1,1,1,1,1,1,1,1,9]
  %y : f32[1,1,1,1,1,1,1,1,1,1,1] = grid_sample(%x, %g)
  output "y" %y })",
                                                   "must have one rank of 3 to 10"}),
                         [](const auto& info) { return std::string(info.param.name); });

// Lists whose contents are known in part, and whose length their type does not say.
TEST(HostileContents, KnownListsOfAnotherLengthThanTheirType) {
  for (const char* nodes : {"%a : f32[?], %b : f32[?] = split(%x, %k) {axis=0} output \"a\" %a output \"b\" %b",
                            "const %two : i64[1] = {2} %l : i64[2] = reshape(%k, %two) %y : f32[?,?] = expand(%x, %l) "
                            "output \"y\" %y",
                            "const %two : i64[1] = {2} %l : i64[2] = reshape(%k, %two) %y : f32[?,?] = "
                            "constant_of_shape(%l) output \"y\" %y"}) {
    const std::string text =
        std::string("graph \"g\" { input %x : f32[6] input %s : i64[1] const %c : i64[3] = {1,2,3} ") +
        "%k : i64[?] = reshape(%c, %s) " + nodes + " }";
    const auto model = Model::parse(text);
    if (!model.ok()) EXPECT_FALSE(model.status().message().empty());  // whatever it says, nothing was written beyond
  }
}

/// Outputs of the reference and of a session on the CPU, of a graph without inputs.
void same_as_reference(const std::string& text) {
  const auto want = run_graph_text(text, {});
  ASSERT_TRUE(want.ok()) << want.status().message();
  const auto model = Model::parse(text);
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::create(*model->build(), {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(session->run({}).ok());
  for (size_t i = 0; i < want->size(); ++i) {
    const Tensor got = session->output(static_cast<int>(i));
    ASSERT_EQ(got.memory.bytes, want->at(i).bytes.size());
    for (size_t k = 0; k < got.memory.bytes / sizeof(float); ++k) {
      EXPECT_NEAR(static_cast<const float*>(got.memory.host)[k],
                  reinterpret_cast<const float*>(want->at(i).bytes.data())[k], 1e-5)
          << k;
    }
  }
}

TEST(FoldedTables, OfCastsThatCut) {
  for (const char* type : {"i64", "i32", "i8"}) {
    same_as_reference(
        std::string("graph \"g\" { const %c : ") + type +
        "[1,4] = {9,-9,7,17} %t : i4[1,4] = cast(%c) {to=\"i4\"} const %s : f32[] = {1} "
        "%d : f32[1,4] = dequantize_linear(%t, %s) const %i : i64[1] = {0} %y : f32[1,4] = gather(%d, %i) "
        "output \"y\" %y }");
  }
  same_as_reference(
      "graph \"g\" { const %c : i64[1,4] = {19,-9,7,17} %t : u4[1,4] = cast(%c) {to=\"u4\"} const %s : f32[] = {1} "
      "%d : f32[1,4] = dequantize_linear(%t, %s) const %i : i64[1] = {0} %y : f32[1,4] = gather(%d, %i) output \"y\" "
      "%y }");
}

TEST(FoldedTables, OfOneScaleInABlockAndOfNoColumns) {
  same_as_reference(
      "graph \"g\" { const %t : i8[1,4] = {1,2,3,4} const %s : f32[1,1] = {0.5} %d : f32[1,4] = "
      "dequantize_linear(%t, %s) {block_size=4} const %i : i64[2] = {0,0} %y : f32[2,4] = gather(%d, %i) "
      "output \"y\" %y }");
  same_as_reference(
      "graph \"g\" { const %t : i8[3,0] = {} const %s : f32[3] = {1,2,3} %d : f32[3,0] = dequantize_linear(%t, %s) "
      "{axis=0} const %i : i64[2] = {0,0} %y : f32[2,0] = gather(%d, %i) output \"y\" %y }");
}

TEST(FoldedMeans, WithAxesOf32Bits) {
  const auto model = Model::parse(R"(graph "g" {
  input %x : i8[1,2,3,3]
  const %s : f32[] = {0.5}
  const %z : i8[] = {0}
  const %axes : i32[2] = {2,3}
  %d : f32[1,2,3,3] = dequantize_linear(%x, %s, %z)
  %m : f32[1,2] = reduce_mean(%d, %axes) {keepdims=0}
  %y : i8[1,2] = quantize_linear(%m, %s, %z)
  output "y" %y })");
  EXPECT_TRUE(model.ok()) << model.status().message();
}

TEST(NestedGraphs, EinsumsOverSymbolsOfTheOuterGraph) {
  const std::string body =
      "{ input %a : f32[n,3] input %b : f32[3,4] %y : f32[4] = einsum(%a, %b) "
      "{equation=\"ij,jk->k\"} output \"y\" %y }";
  const auto model = Model::parse(
      "graph \"g\" { symbol n 1..8 input %c : bool[] input %a : f32[n,3] input %b : f32[3,4] "
      "%y : f32[4] = if(%c, %a, %b) {else_branch=graph \"e\" " +
      body + ", then_branch=graph \"t\" " + body + "} output \"y\" %y }");
  EXPECT_TRUE(model.ok()) << model.status().message();
}

TEST(NothingToWrite, EndsAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  for (const char* graph :
       {R"(graph "g" { const %x : f32[1,1,0] = {} const %c : f32[1,0] = {} const %p : i64[1,1] = {0}
  %y : f32[1,1,0] = rotary_embedding(%x, %c, %c, %p) {num_heads=4611686018427387904} output "y" %y })",
        R"(graph "g" { const %x : f32[1125899906842624,1,0] = {} const %w : f32[1,0,0] = {} const %l : i32[1] = {0}
  %y : f32[1125899906842624,1,1,0] = rnn(%x, %w, %w, none, %l) output "y" %y })",
        R"(graph "g" { const %x : f32[1,1,0] = {} const %n : i64[1] = {1}
  %y : f32[1,1,0] = attention(%x, %x, %x, none, none, none, %n) {q_num_heads=1073741824, kv_num_heads=1073741824}
  output "y" %y })"}) {
    const auto model = Model::parse(graph);
    if (!model.ok()) continue;
    const auto program = model->build();
    if (!program.ok()) continue;
    auto session = Session::create(*program, {.target = "cpu", .threads = 1});
    if (session.ok()) static_cast<void>(session->run({}));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace pinnace::testing
