// Model::streamed: graphs cut into chunks of random sizes give what the whole gives, the end included; rule by rule,
// and for random stacks of layers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "base/text.h"
#include "cpp/text_program.h"

namespace pinnace::testing {
namespace {

/// A float tensor with its time as rows: [outer, time, inner].
struct Array {
  std::vector<int64_t> shape;
  std::vector<float> values;
  int64_t outer(int64_t axis) const {
    int64_t n = 1;
    for (int64_t i = 0; i < axis; ++i) n *= shape[static_cast<size_t>(i)];
    return n;
  }
  int64_t inner(int64_t axis) const {
    int64_t n = 1;
    for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) n *= shape[i];
    return n;
  }
  Array cut(int64_t axis, int64_t begin, int64_t end) const {
    Array c{shape, {}};
    c.shape[static_cast<size_t>(axis)] = end - begin;
    const int64_t size = shape[static_cast<size_t>(axis)], row = inner(axis);
    for (int64_t o = 0; o < outer(axis); ++o) {
      c.values.insert(c.values.end(), values.begin() + (o * size + begin) * row,
                      values.begin() + (o * size + end) * row);
    }
    return c;
  }
};

Array joined(const std::vector<Array>& parts, int64_t axis) {
  Array all{parts[0].shape, {}};
  all.shape[static_cast<size_t>(axis)] = 0;
  for (const Array& p : parts) all.shape[static_cast<size_t>(axis)] += p.shape[static_cast<size_t>(axis)];
  for (int64_t o = 0; o < all.outer(axis); ++o) {
    for (const Array& p : parts) {
      const int64_t rows = p.shape[static_cast<size_t>(axis)] * p.inner(axis);
      all.values.insert(all.values.end(), p.values.begin() + o * rows, p.values.begin() + (o + 1) * rows);
    }
  }
  return all;
}

Array first_output(const Session& session) {
  const Tensor y = session.output(0);
  Array out;
  for (const Dim& d : y.type.shape) out.shape.push_back(d.size);
  const auto* data = static_cast<const float*>(y.memory.host);
  out.values.assign(data, data + y.type.elements());
  return out;
}

Array run(Session& session, Array x) {
  Tensor in;
  for (const int64_t n : x.shape) in.type.shape.push_back(Dim(n));
  in.memory.host = x.values.data();
  in.memory.bytes = x.values.size() * sizeof(float);
  const Status status = session.run(std::span(&in, 1));
  EXPECT_TRUE(status.ok()) << status.message();
  if (!status.ok()) return {};
  return first_output(session);
}

Session session_of(const Program& program, bool shape_invariant) {
  auto session = Session::create(program, {.target = "cpu", .threads = 1, .shape_invariant = shape_invariant});
  EXPECT_TRUE(session.ok()) << session.status().message();
  return std::move(*session);
}

/// See hold(). shape_invariant: of both sessions, whose results are then the same to the bit.
int64_t hold_with(bool shape_invariant, const std::string& text, int axis, int64_t elements, uint32_t seed) {
  SCOPED_TRACE(str_cat(text, shape_invariant ? " shape-invariant" : ""));
  auto whole = Model::parse(text, {});
  EXPECT_TRUE(whole.ok()) << whole.status().message();
  if (!whole.ok()) return -1;
  const StreamAxis stream{"x", axis};
  const auto model = whole->streamed(std::span(&stream, 1));
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return -1;
  const Program program = *model->build(), source = *whole->build();
  const auto inputs = program.streamed_inputs();
  const auto outputs = program.streamed_outputs();
  EXPECT_TRUE(inputs.ok() && inputs->size() == 1 && outputs.ok() && outputs->size() == 1);
  if (!inputs.ok() || !outputs.ok()) return -1;
  const StreamedInput in = inputs->at(0);
  const StreamedOutput out = outputs->at(0);
  Session chunks = session_of(program, shape_invariant), at_once = session_of(source, shape_invariant);
  elements = std::max<int64_t>(1, elements / in.multiple) * in.multiple;
  std::mt19937 random(seed);
  Array x;
  for (const Dim& d : source.inputs()[0].type.shape) x.shape.push_back(d.known() ? d.size : elements);
  int64_t count = 1;
  for (const int64_t n : x.shape) count *= n;
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < count; ++i) x.values.push_back(normal(random));
  const Array y = run(at_once, x);
  if (y.shape.empty()) return -1;
  EXPECT_EQ(y.shape[static_cast<size_t>(out.axis)], elements * out.up / out.down + out.more);
  float largest = 1e-6f;
  for (const float v : y.values) largest = std::max(largest, std::fabs(v));
  for (int split = 0; split < 3; ++split) {
    EXPECT_TRUE(chunks.reset_state().ok());
    std::vector<Array> parts;
    for (int64_t at = 0; at < elements;) {
      const int64_t left = (elements - at) / in.multiple;
      const int64_t most = split == 0 ? 1 : split == 1 ? std::max<int64_t>(1, std::min<int64_t>(left, 5)) : left;
      const int64_t size = std::uniform_int_distribution<int64_t>(1, most)(random) * in.multiple;
      parts.push_back(run(chunks, x.cut(axis, at, at + size)));
      if (parts.back().shape.empty()) return -1;
      EXPECT_EQ(parts.back().shape[static_cast<size_t>(out.axis)], size * out.up / out.down);
      at += size;
    }
    const int64_t late = in.latency * out.up / out.down, rest = std::max<int64_t>(0, late + out.more);
    const auto left = chunks.finish();
    EXPECT_TRUE(left.ok()) << left.status().message();
    if (!left.ok()) return -1;
    EXPECT_EQ(left->at(0), rest);
    if (in.tail) parts.push_back(first_output(chunks).cut(out.axis, 0, left->at(0)));
    const Array all = joined(parts, out.axis);
    const int64_t length = y.shape[static_cast<size_t>(out.axis)];
    EXPECT_GE(all.shape[static_cast<size_t>(out.axis)], late + length);
    if (all.shape[static_cast<size_t>(out.axis)] < late + length) return -1;
    for (const float v : all.cut(out.axis, 0, late).values) EXPECT_EQ(v, 0.0f);
    const Array got = all.cut(out.axis, late, late + length);
    for (size_t i = 0; i < got.values.size(); ++i) {
      if (std::fabs(got.values[i] - y.values[i]) <= (shape_invariant ? 0 : 1e-6f * largest)) continue;
      ADD_FAILURE() << "split " << split << ", element " << i << ": " << got.values[i] << " for " << y.values[i];
      return -1;
    }
  }
  return in.latency;
}

/// Holds chunks of random sizes against the whole; gives the latency, -1 where something failed.
int64_t hold(const std::string& text, int axis, int64_t elements, uint32_t seed) {
  // A running sum's state is float32, and the sum itself double.
  if (text.find("cum_sum") == std::string::npos) hold_with(true, text, axis, elements, seed);
  return hold_with(false, text, axis, elements, seed);
}

std::string graph(const std::string& body, const std::string& shape = "1,2,t") {
  return "graph \"g\" { symbol t 1..100000 input %x : f32[" + shape + "] " + body + " output \"y\" %y }";
}

/// A constant with values that differ.
std::string weights(const std::string& name, const std::vector<int64_t>& shape, uint32_t seed) {
  std::mt19937 random(seed);
  int64_t count = 1;
  std::string sizes, values;
  for (const int64_t n : shape) {
    count *= n;
    sizes += (sizes.empty() ? "" : ",") + std::to_string(n);
  }
  for (int64_t i = 0; i < count; ++i) {
    values += (i ? "," : "") + std::to_string(static_cast<int>(random() % 2001 - 1000) / 1000.0);
  }
  return "const %" + name + " : f32[" + sizes + "] = {" + values + "} ";
}

std::string ints(const std::string& name, const std::vector<int64_t>& values) {
  std::string list;
  for (const int64_t v : values) list += (list.empty() ? "" : ",") + std::to_string(v);
  return "const %" + name + " : i64[" + std::to_string(values.size()) + "] = {" + list + "} ";
}

TEST(Stream, ConvolutionsLagBehindByWhatTheyLookAhead) {
  struct Case {
    const char* attrs;
    int64_t kernel, latency;
  };
  for (const Case& c : {Case{"pads=[2,0]", 3, 0}, Case{"pads=[1,1]", 3, 1}, Case{"", 3, 2}, Case{"pads=[0,2]", 3, 2},
                        Case{"pads=[4,0]", 3, 0}, Case{"dilations=[3], pads=[3,3]", 3, 3}, Case{"strides=[2]", 2, 0},
                        Case{"strides=[2], pads=[1,1]", 4, 2}, Case{"strides=[3], pads=[0,1]", 1, 0},
                        Case{"strides=[4], pads=[2,2]", 8, 4}, Case{"group=2, pads=[1,1]", 3, 1}}) {
    const bool groups = std::string(c.attrs).starts_with("group");
    EXPECT_EQ(
        hold(graph(weights("w", {2, groups ? 1 : 2, c.kernel}, 1) + "%y = conv(%x, %w) {" + c.attrs + "}"), 2, 40, 1),
        c.latency)
        << c.attrs;
  }
}

TEST(Stream, TransposedConvolutionsAddUpWhatReachesIntoTheNextChunk) {
  for (const char* attrs :
       {"strides=[2]", "strides=[2], pads=[1,1]", "strides=[4], pads=[2,2]", "strides=[3]", "pads=[1,1]", "strides=[5]",
        "strides=[2], dilations=[2], pads=[1,2]", "strides=[2], output_padding=[1], pads=[1,1]"}) {
    hold(graph(weights("w", {2, 2, 4}, 2) + "%y = conv_transpose(%x, %w) {" + attrs + "}"), 2, 30, 2);
    hold(graph(weights("v", {2, 2, 3}, 3) + weights("w", {2, 2, 4}, 2) +
               "%h = conv(%x, %v) {pads=[1,1]} %y = conv_transpose(%h, %w) {" + attrs + "}"),
         2, 30, 2);
  }
}

TEST(Stream, PadsSlicesAndConstantsAlongTimeAreOffsets) {
  const std::string w = weights("w", {2, 2, 3}, 4), value = "const %v : f32[] = {0.5} ";
  const std::string conv = "%h = conv(%x, %w) {pads=[1,1]} ";
  hold(graph(w + ints("p", {0, 0, 2, 0, 0, 0}) + "%a = pad(%x, %p) %y = conv(%a, %w)"), 2, 30, 1);
  hold(graph(w + value + ints("p", {0, 0, 2, 0, 0, 1}) + "%a = pad(%x, %p, %v) %y = conv(%a, %w) {pads=[1,0]}"), 2, 30,
       1);
  hold(graph(w + value + ints("p", {0, 0, 3, 0, 0, 2}) + conv + "%a = pad(%h, %p, %v) %y = conv(%a, %w)"), 2, 30, 1);
  hold(graph(w + value + ints("p", {0, 1, 3, 0, 0, 2}) + "%a = pad(%x, %p, %v) %y = exp(%a)"), 2, 30, 1);
  hold(graph(w + ints("s", {1}) + ints("e", {-2}) + ints("a", {2}) + conv + "%b = slice(%h, %s, %e, %a) %y = relu(%b)"),
       2, 30, 1);
  hold(graph(w + ints("s", {1}) + ints("e", {9223372036854775807}) + ints("a", {2}) + ints("n", {3}) + conv +
             "%b = slice(%h, %s, %e, %a, %n) %y = relu(%b)"),
       2, 30, 1);
  hold(graph(w + "const %c : f32[1,2,2] = {0.5,0.5,0.5,0.5} %a = concat(%c, %x) {axis=2} %y = conv(%a, %w)"), 2, 30, 1);
  hold(
      graph(w + "const %c : f32[1,2,2] = {0.5,0.5,0.5,0.5} " + conv + "%a = concat(%h, %c) {axis=2} %y = conv(%a, %w)"),
      2, 30, 1);
}

TEST(Stream, PadsOfTheValueItself) {
  const std::string conv = weights("w", {2, 2, 5}, 1), behind = weights("k", {2, 2, 3}, 2);
  for (const bool mirrors : {true, false}) {
    const std::string mode = mirrors ? " {mode=\"reflect\"} " : " {mode=\"edge\"} ";
    for (const auto& [begin, end] :
         std::initializer_list<std::pair<int64_t, int64_t>>{{3, 3}, {0, 4}, {4, 0}, {1, 6}}) {
      const std::string pads = str_cat("const %p : i64[6] = {0,0,", begin, ",0,0,", end, "} ");
      EXPECT_EQ(hold(graph(str_cat(pads, "%y = pad(%x, %p)", mode)), 2, 30, 1), mirrors ? begin : 0);
      // Of what lags behind, of what ends early, and with a window behind it, which waits for what it reads alone.
      hold(graph(str_cat(pads, behind, "%h = conv(%x, %k) {pads=[1,1]} %y = pad(%h, %p)", mode)), 2, 30, 2);
      hold(graph(str_cat(pads, behind, "%h = conv(%x, %k) %y = pad(%h, %p)", mode)), 2, 30, 3);
      const std::string window = str_cat(pads, conv, "%q = pad(%x, %p)", mode);
      EXPECT_EQ(hold(graph(window + "%y = conv(%q, %w)"), 2, 30, 4),
                std::max(mirrors ? begin : 0, std::max<int64_t>(0, 4 - begin)));
      hold(graph(window + "%y = conv(%q, %w) {strides=[3]}"), 2, 30, 5);
      hold(graph(window + "%r = relu(%q) %y = conv(%r, %w) {dilations=[2]}"), 2, 30, 6);
      hold(graph(window + "const %c : f32[1,1,1,1] = {2} %y = mul(%q, %c)"), 2, 30, 10);  // another rank
      hold(graph(window + "%c = conv(%q, %w) {pads=[1,2]} %y = add(%c, %c)"), 2, 30, 7);
      hold(graph(window + "%y = max_pool(%q) {kernel_shape=[4], strides=[2]}"), 2, 30, 8);
      hold(graph(window + ints("s", {begin}) + ints("e", {INT64_MAX}) + ints("a", {2}) + "%y = slice(%q, %s, %e, %a)"),
           2, 30, 9);
    }
  }
}

TEST(Stream, BlocksAreLaidOverEachOther) {
  // Columns of the blocks as channels: [1, C * block, T] -> [1, C, 1, (T - 1) * stride + block].
  for (const auto& [block, stride] :
       std::initializer_list<std::pair<int64_t, int64_t>>{{4, 2}, {6, 4}, {2, 5}, {3, 3}}) {
    for (const int64_t left : {int64_t{0}, int64_t{1}}) {
      for (const int64_t spare : {int64_t{0}, stride - 1}) {
        const std::string sizes = "%n = shape(%x) {start=2} " + ints("m", {stride}) +
                                  ints("o", {block - stride - left + spare}) + ints("i", {1}) + ints("b", {1, block}) +
                                  "%g = mul(%n, %m) %l = add(%g, %o) %s = concat(%i, %l) {axis=0} ";
        hold(graph(sizes + str_cat("%y = col2im(%x, %s, %b) {strides=[1,", stride, "], pads=[0,", left, ",0,0]}"),
                   str_cat("1,", 2 * block, ",t")),
             2, 20, 1);
      }
    }
  }
}

TEST(Stream, ExpandsToTheNumberOfElements) {
  const std::string length = "%n = shape(%x) {start=2} const %v : f32[1,2,1] = {0.5,2} ";
  hold(graph(length + ints("r", {1, 2}) + "%s = concat(%r, %n) {axis=0} %e = expand(%v, %s) %y = mul(%x, %e)"), 2, 20,
       1);
  hold(
      graph("%s = shape(%x) " + ints("a", {1}) + weights("k", {2, 2, 3}, 1) +
            "%r = reduce_max(%x, %a) {keepdims=1} %h = conv(%x, %k) {pads=[1,1]} %e = expand(%r, %s) %y = sub(%h, %e)"),
      2, 20, 2);
}

TEST(Stream, WhatIsPaddedIsMaskedWhereItLagsBehind) {
  const std::string w = weights("w", {2, 2, 3}, 5), b = "const %b : f32[2] = {0.7,-0.4} ";
  // The bias makes what lies outside other than 0.
  EXPECT_EQ(hold(graph(w + b + "%h = conv(%x, %w, %b) {pads=[1,1]} %y = conv(%h, %w, %b) {pads=[1,1]}"), 2, 30, 3), 2);
  EXPECT_EQ(hold(graph(w + b +
                       "%h = conv(%x, %w, %b) {pads=[1,1]} %i = conv(%h, %w, %b) {pads=[2,2], strides=[2]} "
                       "%y = conv(%i, %w, %b) {pads=[1,1], dilations=[1]}"),
                 2, 30, 3),
            2);
}

TEST(Stream, Pools) {
  const std::string w = weights("w", {2, 2, 3}, 6), conv = "%h = conv(%x, %w) {pads=[1,1]} ";
  hold(graph(w + conv + "%y = max_pool(%h) {kernel_shape=[3], pads=[1,1]}"), 2, 30, 1);
  hold(graph(w + conv + "%y = max_pool(%h) {kernel_shape=[2], strides=[2]}"), 2, 30, 1);
  hold(graph(w + conv + "%y = average_pool(%h) {kernel_shape=[4], strides=[2], pads=[1,1], count_include_pad=1}"), 2,
       30, 1);
}

TEST(Stream, MovesFramesAndOtherAxes) {
  hold(graph("%y = transpose(%x) {perm=[2,0,1]}"), 2, 30, 1);
  hold(graph(ints("s", {1, 2, -1, 4}) + "%y = reshape(%x, %s)", "1,2,t"), 2, 32, 1);
  hold(graph(ints("s", {1, -1, 6}) + "%y = reshape(%x, %s)", "1,t,2"), 1, 33, 1);
  hold(graph(weights("w", {3, 2, 3}, 7) + ints("s", {1, -1}) +
             "%h = conv(%x, %w) {pads=[1,1]} %t = transpose(%h) {perm=[0,2,1]} %y = reshape(%t, %s)"),
       2, 33, 1);
  hold(graph(weights("w", {2, 2, 3}, 7) + ints("s", {1, 2, -1, 4}) + ints("r", {1, 2, -1}) +
             "%h = conv(%x, %w) {pads=[1,1]} %f = reshape(%h, %s) %g = relu(%f) %y = reshape(%g, %r)"),
       2, 33, 1);
}

TEST(Stream, EinsumKeepsTheLetterOfTime) {
  const std::string w = weights("w", {2, 3, 2}, 4);
  hold(graph(weights("v", {2, 3}, 5) + "%y = einsum(%x, %v) {equation=\"bct, cd -> bdt\"}"), 2, 30, 1);
  hold(graph(weights("v", {2, 3}, 5) + "%y = einsum(%v, %x) {equation=\"cd,bct\"}"), 2, 30, 1);  // -> bdt
  hold(graph(w + "%y = einsum(%x, %w) {equation=\"btgi,gih->btgh\"}", "1,t,2,3"), 1, 30, 1);
  hold(graph(weights("k", {2, 2, 3}, 6) + "%h = conv(%x, %k) {pads=[1,1]} " +
             "%y = einsum(%x, %h) {equation=\"bct,bdt->bcdt\"}"),
       2, 30, 1);  // a delay line
  hold(graph("const %v : f32[2,1] = {0.5,2} %y = einsum(%x, %v) {equation=\"bct,ct->tc\"}"), 2, 30, 1);
  hold(graph("%y = einsum(%x) {equation=\"...t->t...\"}"), 2, 30, 1);
  hold(graph("%y = einsum(%x, %x) {equation=\"b...t,...t->b...t\"}"), 2, 30, 1);  // of other ranks
  hold(graph(weights("d", {2, 3}, 5) + "%y = einsum(%x, %d) {equation=\"b...t,...d->b...td\"}"), 2, 30, 1);
}

TEST(Stream, ComputedShapesLeaveTimeAloneOpen) {
  // [1, t, 4, 3] as [shape[:2], -1], the form in which flatten(2) is exported, then as groups again.
  const std::string shape = "%s = shape(%x) {end=2} ";
  hold(graph(shape + ints("m", {-1}) + "%r = concat(%s, %m) {axis=0} %y = reshape(%x, %r)", "1,t,4,3"), 1, 30, 1);
  hold(graph(shape + ints("m", {-1}) + ints("g", {2, -1}) +
                 "%r = concat(%s, %m) {axis=0} %a = reshape(%x, %r) %e = exp(%a) %u = concat(%s, %g) {axis=0} "
                 "%y = reshape(%e, %u)",
             "1,t,4,3"),
       1, 30, 1);
  hold(graph(weights("k", {2, 2, 3}, 6) + ints("m", {-1}) +
             "%h = conv(%x, %k) {strides=[2]} %t = transpose(%h) {perm=[2,0,1]} %s = shape(%t) {end=1} "
             "%r = concat(%s, %m) {axis=0} %y = reshape(%t, %r)"),
       2, 30, 1);
}

TEST(Stream, CellsCarryTheirStates) {
  const std::string lstm = weights("w", {1, 12, 2}, 8) + weights("r", {1, 12, 3}, 9) + weights("b", {1, 24}, 10);
  const std::string gru = weights("w", {1, 9, 2}, 8) + weights("r", {1, 9, 3}, 9) + weights("b", {1, 18}, 10);
  const std::string ahead = weights("k", {2, 2, 3}, 11) + ints("s", {-1, 3}) +
                            "%h = conv(%x, %k) {pads=[1,1]} %t = transpose(%h) {perm=[2,0,1]} ";
  for (const char* layout : {"0", "1"}) {
    const bool first = *layout == '1';
    const std::string shape = first ? "2,t,2" : "t,2,2", attrs = "{hidden_size=3, layout=" + std::string(layout) + "}";
    hold(graph(str_cat(lstm, "%y, %p, %q = lstm(%x, %w, %r, %b) ", attrs), shape), first ? 1 : 0, 20, 1);
    hold(graph(str_cat(gru, "%y, %p = gru(%x, %w, %r, %b) ", attrs), shape), first ? 1 : 0, 20, 1);
  }
  EXPECT_EQ(hold(graph(lstm + ahead + "%y, %p, %q = lstm(%t, %w, %r, %b) {hidden_size=3}"), 2, 20, 1), 1);
  EXPECT_EQ(hold(graph(gru + ahead + "%y, %p = gru(%t, %w, %r, %b) {hidden_size=3}"), 2, 20, 1), 1);
  hold(graph("const %a : i64[] = {2} %y = cum_sum(%x, %a)"), 2, 20, 1);
  hold(
      graph(weights("k", {2, 2, 3}, 11) +
            "const %a : i64[] = {2} const %b : f32[2] = {1,2} %h = conv(%x, %k, %b) {pads=[1,1]} %y = cum_sum(%h, %a)"),
      2, 20, 1);
}

TEST(Stream, TwoDimensionalConvolutionsAlongEitherAxis) {
  const std::string w = weights("w", {2, 2, 3, 3}, 12);
  hold(graph(w + "%h = conv(%x, %w) {pads=[1,1,1,1]} %y = conv(%h, %w) {pads=[2,0,0,2], strides=[1,2]}", "1,2,t,5"), 2,
       30, 1);
  hold(graph(w + "%h = conv(%x, %w) {pads=[1,1,1,1]} %y = conv(%h, %w) {pads=[2,0,0,2], strides=[1,2]}", "1,2,5,t"), 3,
       30, 1);
}

/// Stacks of random layers with skips: every rule meets every delay.
TEST(Stream, RandomStacks) {
  std::mt19937 random(20);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  for (int round = 0; round < 40; ++round) {
    std::string text;
    std::string at = "x";
    const int layers = 2 + below(4);
    for (int i = 0; i < layers; ++i) {
      const std::string n = std::to_string(i), next = "v" + n;
      const int kind = below(8);
      if (kind < 3) {
        const int kernel = 1 + below(4), dilation = 1 + below(2), stride = kind == 2 ? 2 : 1;
        const int span = (kernel - 1) * dilation, left = below(span + 1);
        text += weights("w" + n, {2, 2, kernel}, random()) + weights("b" + n, {2}, random());
        text += str_cat("%", next, " = conv(%", at, ", %w", n, ", %b", n, ") {dilations=[", dilation, "], pads=[", left,
                        ",", span - left, "], strides=[", stride, "]} ");
      } else if (kind == 3) {
        text += weights("w" + n, {2, 2, 4}, random());
        text += str_cat("%", next, " = conv_transpose(%", at, ", %w", n, ") {pads=[1,1], strides=[2]} ");
      } else if (kind == 4) {
        text += str_cat(ints("p" + n, {0, 0, below(4), 0, 0, below(3)}), "const %c", n, " : f32[] = {0.25} ");
        text += str_cat("%", next, " = pad(%", at, ", %p", n, ", %c", n, ") ");
      } else if (kind == 5) {
        static constexpr std::string_view kFunctions[] = {"sigmoid", "relu", "cos", "atan", "shrink", "clip"};
        const std::string_view function = kFunctions[below(6)];
        const bool clip = function == "clip";
        if (clip) text += str_cat("const %l", n, " : f32[] = {", -below(2), "} const %u", n, " : f32[] = {6} ");
        text += str_cat("%", next, " = ", function, "(%", at, clip ? str_cat(", %l", n, ", %u", n) : "", ") ");
      } else if (kind == 6) {
        text += ints("s" + n, {below(3)}) + ints("e" + n, {-1 - below(2)}) + ints("a" + n, {2});
        text += str_cat("%", next, " = slice(%", at, ", %s", n, ", %e", n, ", %a", n, ") ");
      } else {  // a skip beside a convolution that looks ahead
        text += weights("w" + n, {2, 2, 3}, random());
        text += str_cat("%k", n, " = conv(%", at, ", %w", n, ") {pads=[1,1]} ");
        text += str_cat("%", next, " = add(%", at, ", %k", n, ") ");
      }
      at = next;
    }
    text += str_cat("%y = mul(%", at, ", %", at, ") ");
    if (hold(graph(text), 2, 64 + below(32), random()) < 0) {
      ADD_FAILURE() << "round " << round;
      return;
    }
  }
}

TEST(Stream, RefusesWhatNeedsTheFuture) {
  const auto refused = [](const std::string& body, const char* why, const char* shape = "1,2,t", int axis = 2) {
    const Model whole = model_of(graph(body, shape));
    const StreamAxis stream{"x", axis};
    const auto made = whole.streamed(std::span(&stream, 1));
    ASSERT_FALSE(made.ok()) << body;
    EXPECT_EQ(made.status().code(), Code::kConversion) << made.status().message();
    ASSERT_FALSE(made.status().nodes().empty()) << made.status().message();
    EXPECT_NE(made.status().nodes()[0].rule.find(why), std::string::npos) << made.status().nodes()[0].rule;
  };
  refused(ints("a", {2}) + "%m = reduce_mean(%x, %a) %y = sub(%x, %m)", "along time");
  refused("%y = softmax(%x) {axis=2}", "along time");
  refused("%y = global_average_pool(%x)", "no rule");
  refused(ints("p", {0, 0, 1, 0, 0, 1}) + "%y = pad(%x, %p) {mode=\"wrap\"}", "other end of time");
  refused(weights("w", {2, 2, 3}, 1) + "%y = conv(%x, %w) {auto_pad=\"same_upper\"}", "number of elements");
  refused(weights("w", {2, 9, 2}, 8) + weights("r", {2, 9, 3}, 9) +
              "%y, %h = gru(%x, %w, %r) {hidden_size=3, direction=\"bidirectional\"}",
          "backwards", "t,1,2", 0);
  refused(weights("w", {1, 9, 2}, 8) + weights("r", {1, 9, 3}, 9) +
              "%a, %h = gru(%x, %w, %r) {hidden_size=3} %y = relu(%h)",
          "last one", "t,1,2", 0);
  refused("%n = shape(%x) {start=2} %f = cast(%n) {to=\"f32\"} %y = div(%x, %f)", "number of elements");
  refused("%z = transpose(%x) {perm=[0,2,1]} %y = mat_mul(%x, %z)", "along time");
  refused("%y = einsum(%x) {equation=\"bct->bc\"}", "along time");
  refused("%y = einsum(%x, %x) {equation=\"bct,bcs->bts\"}", "every other");
  refused("%y = einsum(%x, %x) {equation=\"...ct,...tc->...c\"}", "every other");
  refused(weights("w", {2, 2, 3}, 1) +
              "%c = conv(%x, %w) {pads=[1,1]} %d = cast(%c) {to=\"f8e4m3fn\"} %s = cast(%x) {to=\"f8e4m3fn\"}"
              " %a = concat(%s, %d) {axis=1} %y = cast(%a) {to=\"f32\"}",
          "cannot be kept");
}

}  // namespace
}  // namespace pinnace::testing
