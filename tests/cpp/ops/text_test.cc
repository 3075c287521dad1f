// The text form: round trips, exact errors, and texts that somebody has damaged on purpose.
#include <gtest/gtest.h>

#include "base/status.h"
#include "cases/parse_case.h"
#include "cpp/runtime/everything.h"
#include "graph/lexer.h"

namespace pinnace::testing {

Graph graph_with_everything() {
  auto graph = parse(kEverythingText);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(*graph) : Graph();
}

namespace {

std::string error_of(std::string_view text) {
  const auto graph = parse(text);
  if (graph.ok()) return "no error";
  EXPECT_EQ(graph.status().code(), Code::kInvalidArgument);
  return graph.status().message();
}

/// The error of a graph with these statements on line 2.
std::string error_in(const std::string& statements) {
  return error_of("graph \"g\" {\n" + statements + "\n}");
}

TEST(Text, PrintsWhatItParsed) {
  EXPECT_EQ(print(graph_with_everything()), kEverythingText);
}

TEST(Text, SampleVerifies) {
  const Status status = verify(graph_with_everything());
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Text, KeepsEveryField) {
  const Graph g = graph_with_everything();
  ASSERT_EQ(g.symbols.size(), 2u);
  EXPECT_EQ(g.symbols[1], (Symbol{"N + 1", 0, Symbol::kUnbounded, 16}));
  const Node& node = *g.nodes[0];
  EXPECT_EQ(node.op, "top_k");
  EXPECT_EQ(node.version, 11);
  EXPECT_EQ(node.source, (SourceLocation{"net.py", 41, "layers.1"}));
  EXPECT_EQ(node.inputs.back(), kNoValue);
  EXPECT_EQ(attr_kind(*node.attr("alpha")), AttrKind::kFloat);
  EXPECT_EQ(attr_kind(*node.attr("axis")), AttrKind::kInt);
  EXPECT_EQ(std::get<std::vector<double>>(*node.attr("scales"))[1], 2.0);
  EXPECT_EQ(std::get<std::vector<std::string>>(*node.attr("names"))[1], "b, c");
  const Graph& body = *std::get<GraphPtr>(*node.attr("body"));
  EXPECT_EQ(body.value(0).type.shape[0], Dim::of_symbol(0));
  const Value& i4 = g.value(g.nodes[2]->inputs[0]);
  EXPECT_EQ(i4.type.quantization->scales, std::vector<float>{0.5f});
  EXPECT_EQ(g.states[0].output, g.nodes[1]->outputs[0]);
}

TEST(Text, LeavesOut) {
  const auto g = parse(R"(graph "g" { symbol n 1..inf  # a comment, %x : to be ignored
    input %x:f32[n] %relu_0 = relu(%x) %b = relu "relu_1" (%relu_0) %c = relu(%b){} %d = add(%b, %c) output "y" %d })");
  ASSERT_TRUE(g.ok()) << g.status().message();
  EXPECT_EQ(g->nodes[0]->version, 1);
  EXPECT_EQ(g->nodes[0]->name, "relu_0");
  EXPECT_EQ(g->nodes[1]->name, "relu_1");
  EXPECT_EQ(g->nodes[2]->name, "relu_2") << "a name that a later node was given is not taken";
  EXPECT_EQ(g->nodes[3]->name, "add_0");
  EXPECT_EQ(g->symbols[0].multiple_of, 1);
  EXPECT_EQ(g->value(g->outputs[0]).type, TensorType());
}

TEST(Text, TellsAttributesApart) {
  const auto g = parse(
      R"(graph "g" { = op() {a=1, b=1., c=-inf, d=[1,2], e=[1,2.5], f=floats[1,2], g=ints[3], h=strings["s"], i=2e0} })");
  ASSERT_TRUE(g.ok()) << g.status().message();
  const Node& n = *g->nodes[0];
  EXPECT_EQ(attr_kind(*n.attr("a")), AttrKind::kInt);
  EXPECT_EQ(attr_kind(*n.attr("b")), AttrKind::kFloat);
  EXPECT_EQ(attr_kind(*n.attr("c")), AttrKind::kFloat);
  EXPECT_EQ(attr_kind(*n.attr("d")), AttrKind::kInts);
  EXPECT_EQ(std::get<std::vector<double>>(*n.attr("e")), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(std::get<std::vector<double>>(*n.attr("f")), (std::vector<double>{1, 2}));
  EXPECT_EQ(attr_kind(*n.attr("g")), AttrKind::kInts);
  EXPECT_EQ(attr_kind(*n.attr("h")), AttrKind::kStrings);
  EXPECT_EQ(attr_kind(*n.attr("i")), AttrKind::kFloat);
}

TEST(Text, PrintsLongConstantsAsHash) {
  const Graph g = graph_with_everything();
  const std::string text = print(g, 8);
  EXPECT_NE(text.find("const %w : f32[2] = {0.1,-inf}"), std::string::npos);
  EXPECT_NE(text.find("const %f64 : f64[2] = hash "), std::string::npos);
  EXPECT_NE(error_of(text).find("printed as a hash only"), std::string::npos) << error_of(text);
}

TEST(Text, SaysWhereAndWhat) {
  EXPECT_EQ(error_of(""), "line 1, column 1: expected 'graph', found the end of the text");
  EXPECT_EQ(error_of("graph \"g\" {} x"), "line 1, column 14: expected the end of the text after the graph, found 'x'");
  EXPECT_EQ(error_in("  %a = relu(%b)"), "line 2, column 13: no value of that name is defined before, found '%b'");
  EXPECT_EQ(error_in("input %x : f33[2]"), "line 2, column 12: expected an element type, found 'f33'");
  EXPECT_EQ(error_in("input %x : f32[-2]"),
            "line 2, column 16: expected a size, an integer in [0, 9223372036854775807], found '-2'");
  EXPECT_EQ(error_in("input %x : f32[n]"), "line 2, column 16: no symbol of that name is declared, found 'n'");
  EXPECT_EQ(error_in("const %x : u8[1] = {256}"),
            "line 2, column 21: expected an element, an integer in [0, 255], found '256'");
  EXPECT_EQ(error_in("= op() {a=\"x}"),
            "line 2, column 11: expected a value of an attribute, an integer in "
            "[-9223372036854775808, 9223372036854775807]; the string has no closing quote on its line: '\"x}'");
}

TEST(Text, RefusesEachMistake) {
  const std::pair<const char*, const char*> kMistakes[] = {
      {"input %x : f32[1] input %x : f32[1]", "a value of that name is defined already"},
      {"%a = op \"n\" () %b = op \"n\" ()", "a node of that name is defined already"},
      {"%a = op(%a)", "no value of that name is defined before"},
      {"symbol n 1..2 symbol n 1..2", "a symbol of that name is declared already"},
      {"= op() {b=graph \"n\" { symbol n 1..2 }}", "symbols belong to the outermost graph"},
      {"= op() {b=graph \"n\" { output \"y\" %x }} input %x : f32[]", "no value of that name is defined before"},
      {"state \"s\" %h : f32[1] next %n = {0}", "no value of that name is defined before"},
      {"state \"s\" %h : f32[?] next %h = {0}", "has a dynamic size"},
      {"const %c : f32[3] = {1,2}", "expected ','"},
      {"const %c : f32[1] = {1,2}", "expected '}' after 1 elements"},
      {"const %c : f32[9223372036854775807,9223372036854775807] = {1}", "the text is shorter than that"},
      {"const %c : f32[0,9223372036854775807,9223372036854775807] = {1}", "expected '}' after 0 elements"},
      {"const %c : f32[1000000] = {0}", "the text is shorter than that"},
      {"const %c : f32[1] = {1e39}", "a number that 32 bits can hold"},
      {"const %c : f16[1] = {65536}", "is out of range"},
      {"const %c : bf16[1] = {1e39}", "is out of range"},
      {"const %c : i4[1] = {8}", "an integer in [-8, 7]"},
      {"const %c : u2[1] = {4}", "an integer in [0, 3]"},
      {"const %c : f8e4m3fn[1] = {500}", "element 500 is out of range"},
      {"const %c : f8e4m3fnuz[1] = {inf}", "out of range"},
      {"const %c : f4e2m1[1] = {nan}", "out of range"},
      {"const %c : f6e3m2[1] = {99}", "out of range"},
      {"const %c : f8e8m0[1] = {0}", "out of range"},
      {"const %c : bool[1] = {2}", "an integer in [0, 1]"},
      {"const %c : i32[1] = {1.0}", "expected an element"},
      {"= op() {a=1, a=2}", "the attribute is given twice"},
      {"= op() {a=[]}", "an empty list needs its kind"},
      {"= op() {a=[1,\"x\"]}", "expected an item"},
      {"= op() {a=[\"x\",1]}", "expected a string"},
      {"= op() {a=ints[1.5]}", "expected an item, an integer"},
      {"= op() {a=strings[1]}", "expected an item in quotes"},
      {"= op() {a=99999999999999999999}", "an integer in"},
      {"= op() {a=1e999}", "64 bits can hold"},
      {"= op@0 ()", "expected a version"},
      {"= op() at \"f\":-1", "expected a line"},
      {"input %x : i8[1]{scale 1}", "expected ','"},
      {"const %x : i8[2]{scales [1], zeros []} = {1}", "expected ','"},
      {"const %x : i8[1]{scales [1], zeros []} = {1,2}", "after 1 elements of int8[1]{1 scales, axis -1}"},
      {"input %x : i8[1]{zero 1}", "expected 'scales'"},
      {"input %1 : f32[]", "% must be followed by a name or a string"},
      {"output \"y\" \"\\q\"", "a backslash must be followed by"},
      {"input %x : f32[1x]", "not a number"},
      {"input %x : f32[;]", "no token starts with this character"},
      {"bogus", "expected symbol, input, state, const, output, a node or '}'"},
  };
  for (const auto& [statements, sentence] : kMistakes) {
    const std::string error = error_in(statements);
    EXPECT_NE(error.find(sentence), std::string::npos) << statements << "\ngives: " << error;
    EXPECT_EQ(error.find("line 2, column "), 0u) << error;
  }
}

/// Whatever parse makes of a text, the rest must be able to live with it.
void live_with(std::string_view text) {
  const auto graph = parse(text);
  if (!graph.ok()) {
    EXPECT_EQ(graph.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(graph.status().message().find("line "), 0u) << graph.status().message();
    return;
  }
  (void)verify(*graph);
  const std::string printed = print(*graph);
  const auto again = parse(printed);
  ASSERT_TRUE(again.ok()) << again.status().message() << "\nin " << printed;
  EXPECT_EQ(print(*again), printed);
  EXPECT_TRUE(same(*graph, *again));
  EXPECT_TRUE(same(*graph, graph->clone()));
}

TEST(Text, SurvivesTruncation) {
  const std::string_view text = kEverythingText;
  for (size_t length = 0; length < text.size(); ++length) live_with(text.substr(0, length));
}

TEST(Text, SurvivesDamage) {
  Random random(test_seed());
  for (int i = 0; i < 2000; ++i) {
    std::string text = kEverythingText;
    const auto flips = random.integer(1, 3);
    for (int64_t k = 0; k < flips; ++k) {
      char& c = text[static_cast<size_t>(random.integer(0, static_cast<int64_t>(text.size()) - 1))];
      // Half of the changes are bits, half are characters that mean something here.
      constexpr std::string_view kMeaningful = "{}()[]:,=@?<.%\"\\0129-einx# \n";
      c = random.integer(0, 1) ? static_cast<char>(c ^ (1 << random.integer(0, 7)))
                               : kMeaningful[static_cast<size_t>(random.integer(0, kMeaningful.size() - 1))];
    }
    SCOPED_TRACE(str_cat("text ", i, " of seed ", test_seed()));
    live_with(text);
  }
}

std::string nested_text(int depth) {
  std::string text = "graph \"0\" {";
  for (int i = 1; i <= depth; ++i) text += "= op() {b=graph \"n\" {";
  for (int i = 1; i <= depth; ++i) text += "}}";
  return text + "}";
}

TEST(Text, LimitsNesting) {
  live_with(nested_text(200));
  const auto deep = parse(nested_text(200));
  ASSERT_TRUE(deep.ok()) << deep.status().message();
  EXPECT_TRUE(verify(*deep).ok());
  EXPECT_NE(error_of(nested_text(201)).find("nested 200 deep"), std::string::npos);
  EXPECT_NE(error_of(nested_text(10000)).find("nested 200 deep"), std::string::npos);
}

TEST(Text, TakesLongChains) {
  std::string text = "graph \"chain\" { input %v0 : f32[4]\n";
  for (int i = 1; i <= 10000; ++i) text += str_cat("%v", i, " : f32[4] = relu(%v", i - 1, ")\n");
  const auto graph = parse(text + "output \"y\" %v10000 }");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->nodes.size(), 10000u);
  EXPECT_TRUE(verify(*graph).ok());
  EXPECT_TRUE(same(*graph, *parse(print(*graph))));
}

TEST(Text, SameSeesEveryDifference) {
  const Graph sample = graph_with_everything();
  EXPECT_TRUE(same(sample, graph_with_everything()));
  // Each character that can be changed so that the text still parses and prints otherwise.
  const std::string text = kEverythingText;
  int seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'1', '7', 'q', 'b'}) {
      std::string changed = text;
      changed[i] = c;
      const auto other = parse(changed);
      if (!other.ok()) continue;
      const bool equal = print(*other) == text;
      EXPECT_EQ(same(sample, *other), equal) << "character " << i << " as " << c;
      seen += !equal;
    }
  }
  EXPECT_GT(seen, 500);
}

TEST(Text, PrintsGraphsThatDoNotVerify) {
  Graph g;
  g.name = "bad";
  g.add_input("x", {DType::kF32, {Dim::of_symbol(7)}, nullptr});
  g.add_node("op", 1, "n", {5}, {-3})->set_attr("b", GraphPtr());
  g.outputs = {99};
  g.states.push_back({"s", -5, 12, nullptr});
  g.add_constant("c", {static_cast<DType>(15), {1}, nullptr}, *Constant::copy_of("x", 1));
  EXPECT_NE(print(g).find("%<99>"), std::string::npos);
  EXPECT_FALSE(parse(print(g)).ok());
}

TEST(Text, Lexes) {
  Lexer lexer("a.b..c 1..8 1.5e-3 1e 0x1 -inf -foo");
  const auto next = [&] { return std::string(lexer.next().raw); };
  EXPECT_EQ(next(), "a.b");
  EXPECT_EQ(next(), "..");
  EXPECT_EQ(next(), "c");
  EXPECT_EQ(next(), "1");
  EXPECT_EQ(next(), "..");
  EXPECT_EQ(next(), "8");
  EXPECT_EQ(next(), "1.5e-3");
  EXPECT_EQ(lexer.next().kind, TokenKind::kBad);
  EXPECT_FALSE(is_bare_name("a..b"));
  EXPECT_FALSE(is_bare_name("1a"));
  EXPECT_FALSE(is_bare_name(""));
  EXPECT_TRUE(is_bare_name("_a.1"));
}

}  // namespace
}  // namespace pinnace::testing
