// Quantisation after training: statistics that do not depend on order, ranges, and what the rewrites make of a graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <pinnace/model.h>
#include <pinnace/session.h>

#include "base/text.h"

namespace pinnace {
namespace {

Tensor tensor(std::vector<float>& elements, Shape shape) {
  return {{DType::kF32, std::move(shape), nullptr}, {elements.data(), elements.size() * sizeof(float)}};
}

std::vector<float> normal(size_t count, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0, scale);
  std::vector<float> all(count);
  for (float& x : all) x = draw(random);
  return all;
}

TEST(ValueStatistics, EqualForEveryOrderAndGrouping) {
  constexpr int64_t kSamples = 12, kChannels = 3, kInner = 700;
  constexpr size_t kEach = kChannels * kInner;
  std::vector<float> all;
  for (uint32_t n = 0; n < kSamples; ++n) {
    const std::vector<float> sample = normal(kEach, n, std::ldexp(1.0f, static_cast<int>(n * 5 % 7) - 3));
    all.insert(all.end(), sample.begin(), sample.end());
  }
  const auto gathered = [&](const std::vector<std::vector<int64_t>>& workers, int64_t group) {
    ValueStatistics whole;
    for (const auto& samples : workers) {
      ValueStatistics own;
      for (size_t i = 0; i < samples.size(); i += static_cast<size_t>(group)) {
        std::vector<float> batch;
        const size_t last = std::min(samples.size(), i + static_cast<size_t>(group));
        for (size_t k = i; k < last; ++k) {
          const auto at = all.begin() + samples[k] * static_cast<int64_t>(kEach);
          batch.insert(batch.end(), at, at + kEach);
        }
        EXPECT_TRUE(own.add(tensor(batch, {static_cast<int64_t>(last - i), kChannels, kInner}), 1).ok());
      }
      auto sent = ValueStatistics::from_bytes(own.to_bytes());
      EXPECT_TRUE(sent.ok());
      EXPECT_TRUE(whole.merge(*sent).ok());
    }
    return whole.to_bytes();
  };
  const std::vector<int64_t> in_order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
                             mixed = {7, 3, 11, 0, 5, 9, 1, 10, 2, 8, 4, 6};
  const auto wanted = gathered({in_order}, 1);
  EXPECT_EQ(gathered({in_order}, 12), wanted);
  EXPECT_EQ(gathered({in_order}, 5), wanted);
  EXPECT_EQ(gathered({mixed}, 7), wanted);
  EXPECT_EQ(gathered({{4, 6}, {7, 3, 11, 0, 5}, {}, {9, 1, 10, 2, 8}}, 2), wanted);
}

TEST(ValueStatistics, Numbers) {
  ValueStatistics s;
  EXPECT_EQ(s.samples(), 0);
  EXPECT_EQ(s.range(RangeRule::kMse).high, 0);
  std::vector<float> x = {1, 2, 3, 4, -5, 6, 7, 8};
  ASSERT_TRUE(s.add(tensor(x, {2, 2, 2}), 1).ok());
  EXPECT_EQ(s.samples(), 2);
  EXPECT_EQ(s.extremes().low, -5);
  EXPECT_EQ(s.extremes().high, 8);
  EXPECT_EQ(s.channel_means(), (std::vector<double>{1, 5.5}));
  const auto h = s.histogram();
  uint64_t total = 0;
  for (size_t i = 0; i < h.counts.size(); ++i) {
    total += h.counts[i];
    const double low = h.low + static_cast<double>(i) * h.step;
    EXPECT_EQ(h.counts[i], static_cast<uint64_t>(std::count_if(
                               x.begin(), x.end(), [&](double v) { return v >= low && v < low + h.step; })));
  }
  EXPECT_EQ(total, 8u);
}

TEST(ValueStatistics, WhatItRefuses) {
  ValueStatistics s;
  std::vector<float> x = {1, 2, 3, 4};
  EXPECT_FALSE(s.add(tensor(x, {2, 2}), 2).ok());
  EXPECT_FALSE(s.add(tensor(x, {2, 2}), 0).ok());
  EXPECT_FALSE(s.add(tensor(x, {2, 4}), 1).ok());  // less memory than that
  for (const float wrong : {std::nanf(""), INFINITY, -INFINITY}) {
    for (size_t at = 0; at < 4; ++at) {
      std::vector<float> y = x;
      y[at] = wrong;
      const Status status = s.add(tensor(y, {2, 2}), 1);
      ASSERT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_NE(status.message().find(str_cat("sample ", at / 2, " ")), std::string::npos) << status.message();
    }
  }
  EXPECT_EQ(s.samples(), 0);
  ASSERT_TRUE(s.add(tensor(x, {2, 2}), 1).ok());
  const auto before = s.to_bytes();
  std::vector<float> more(6);
  EXPECT_FALSE(s.add(tensor(more, {2, 3}), 1).ok());
  ValueStatistics other;
  ASSERT_TRUE(other.add(tensor(more, {2, 3}), 1).ok());
  EXPECT_FALSE(s.merge(other).ok());
  EXPECT_EQ(s.to_bytes(), before);
}

TEST(ValueStatistics, DamagedBytes) {
  ValueStatistics s;
  std::vector<float> x = normal(600, 1);
  ASSERT_TRUE(s.add(tensor(x, {2, 3, 100}), 1).ok());
  const auto bytes = s.to_bytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(ValueStatistics::from_bytes(std::span(bytes).first(length)).status().code(), Code::kCorruptFile);
  }
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 64); ++i) {  // the header; whatever it is taken for can be used
    for (const int bit : {0, 3, 7}) {
      auto damaged = bytes;
      damaged[i] ^= std::byte(1 << bit);
      if (auto read = ValueStatistics::from_bytes(damaged); read.ok()) {
        for (const RangeRule rule :
             {RangeRule::kMinMax, RangeRule::kPercentile, RangeRule::kMse, RangeRule::kEntropy}) {
          read->range(rule);
        }
        std::vector<float> again = x;
        static_cast<void>(read->add(tensor(again, {2, 3, 100}), 1));  // refused or not
      }
    }
  }
}

TEST(ValueStatistics, ZerosOfBothSigns) {
  ValueStatistics one, two;
  std::vector<float> plus = {0.0f, 1.0f}, minus = {-0.0f, 1.0f};
  for (std::vector<float>* x : {&plus, &minus}) ASSERT_TRUE(one.add(tensor(*x, {2})).ok());
  for (std::vector<float>* x : {&minus, &plus}) ASSERT_TRUE(two.add(tensor(*x, {2})).ok());
  EXPECT_EQ(one.to_bytes(), two.to_bytes());
}

TEST(ValueStatistics, BytesThatClaimTooMuch) {
  ValueStatistics s;
  std::vector<float> x = {1, 2, 3, 4};
  ASSERT_TRUE(s.add(tensor(x, {2, 2}), 1).ok());
  const auto bytes = s.to_bytes();
  auto many = bytes;
  const int64_t most = std::numeric_limits<int64_t>::max();
  std::memcpy(many.data() + 8, &most, sizeof most);  // samples
  auto read = ValueStatistics::from_bytes(many);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(s.merge(*read).code(), Code::kInvalidArgument);
  EXPECT_EQ(s.to_bytes(), bytes);
  auto large = bytes;
  std::fill_n(large.end() - 32, 31, std::byte{0xff});  // both channels' sums
  large.back() = std::byte{0x7f};
  read = ValueStatistics::from_bytes(large);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->merge(*ValueStatistics::from_bytes(large)).code(), Code::kInvalidArgument);
  auto empty = bytes;
  std::fill(empty.begin() + 40, empty.end() - 32, std::byte{0});  // all counts
  EXPECT_EQ(ValueStatistics::from_bytes(empty).status().code(), Code::kCorruptFile);
}

TEST(ValueStatistics, ExtremeMagnitudes) {
  for (const float magnitude : {1e-45f, 1e-30f, 1.0f, 3e38f}) {
    ValueStatistics s;
    std::vector<float> x = {-magnitude, 0, magnitude};
    ASSERT_TRUE(s.add(tensor(x, {3}), -1).ok());
    std::vector<float> one = {1.0f};
    ASSERT_TRUE(s.add(tensor(one, {1}), -1).ok());
    for (const RangeRule rule : {RangeRule::kMinMax, RangeRule::kPercentile, RangeRule::kMse, RangeRule::kEntropy}) {
      const ValueRange r = s.range(rule);
      EXPECT_TRUE(r.low <= r.high && std::isfinite(r.low) && std::isfinite(r.high)) << magnitude;
    }
    uint64_t total = 0;
    for (const uint64_t n : s.histogram().counts) total += n;
    EXPECT_EQ(total, 4u);
  }
}

TEST(ValueStatistics, RangesWithOutliers) {
  ValueStatistics s;
  std::vector<float> x = normal(16384, 3);
  x[100] = 300;  // as far as all others together
  ASSERT_TRUE(s.add(tensor(x, {1, 16384})).ok());
  EXPECT_EQ(s.range(RangeRule::kMinMax).high, 300);
  EXPECT_LT(s.range(RangeRule::kPercentile, 99.99).high, 8);
  EXPECT_GT(s.range(RangeRule::kPercentile, 99.99).high, 2.5);
  EXPECT_EQ(s.range(RangeRule::kPercentile, 100).high, 300);
  EXPECT_LT(s.range(RangeRule::kEntropy).high, 200);
  EXPECT_GT(s.range(RangeRule::kEntropy).high, 2);
  // The mean square of one element cut off at 30 is 270^2 / 16384 = 4.4: more than what 256 steps of 1.2 cost.
  EXPECT_GT(s.range(RangeRule::kMse).high, 200);
}

TEST(ByteScale, HasZeroInIt) {
  const auto [scale, zero] = byte_scale({0.5, 2.0});
  EXPECT_EQ(zero, 0);
  EXPECT_FLOAT_EQ(scale, 2.0f / 255);
  EXPECT_NEAR(byte_scale({-1, 1}).second, 127.5, 0.5);
  EXPECT_EQ(byte_scale({-3, -1}).second, 255);
  EXPECT_EQ(byte_scale({0, 0}).first, 1.0f);
  EXPECT_GT(byte_scale({0, 1e-44}).first, 0.0f);
  EXPECT_TRUE(std::isfinite(byte_scale({-3e38, 3e38}).first));
}

constexpr const char* kNet = R"(graph "net" { input %x : f32[1,2,4,4]
  const %w1 : f32[2,2,1,1] = {1,-0.5,0.25,0.75} const %b1 : f32[2] = {0.1,-0.2}
  const %w2 : f32[2,2,1,1] = {0.5,0.5,-1,1} const %flat : i64[2] = {1,-1}
  const %w3 : f32[32,3] = {)";

std::string net() {
  std::string text = kNet;
  const auto weights = normal(96, 5);
  for (size_t i = 0; i < weights.size(); ++i) text += str_cat(i ? "," : "", weights[i]);
  return text + R"(}
  %a = conv(%x, %w1, %b1) {activation="relu"}
  %b = conv(%a, %w2)
  %s = add(%a, %b) {activation="silu"}
  %p = max_pool(%s) {kernel_shape=[1,1]}
  %r = reshape(%p, %flat)
  %y = gemm(%r, %w3)
  %z = softmax(%y)
  output "z" %z })";
}

/// Outputs, and kept values, of one run.
std::vector<std::vector<float>> run(const Model& model, std::vector<float> x, const std::vector<std::string>& keep = {},
                                    const Shape& shape = {1, 2, 4, 4}) {
  auto program = model.build();
  EXPECT_TRUE(program.ok()) << program.status().message();
  auto session = Session::create(*program, {.target = "cpu", .threads = 1, .keep = keep});
  EXPECT_TRUE(session.ok()) << session.status().message();
  const Tensor input = tensor(x, shape);
  EXPECT_TRUE(session->run(std::span(&input, 1)).ok());
  std::vector<std::vector<float>> all;
  for (size_t i = 0; i < session->outputs().size(); ++i) {
    const Tensor t = session->output(static_cast<int>(i));
    const auto* from = static_cast<const float*>(t.memory.host);
    all.emplace_back(from, from + t.type.elements());
  }
  return all;
}

QuantizeChoices choices_for(const Model& ready, const QuantizationSites& sites) {
  QuantizeChoices choices;
  std::vector<std::string> keep;
  for (const auto& n : sites.nodes) choices.nodes.push_back(n.name);
  std::vector<ValueStatistics> statistics(sites.values.size());
  for (uint32_t seed = 0; seed < 8; ++seed) {
    std::vector<float> x = normal(32, seed);
    std::vector<std::string> inner;
    for (const auto& v : sites.values) {
      if (v.name != "x") inner.push_back(v.name);
    }
    const auto found = run(ready, x, inner);
    size_t k = ready.outputs().size();
    for (size_t i = 0; i < sites.values.size(); ++i) {
      std::vector<float> value = sites.values[i].name == "x" ? x : found[k++];
      const auto size = static_cast<int64_t>(value.size());
      EXPECT_TRUE(statistics[i].add(tensor(value, {1, size})).ok());
    }
  }
  std::vector<ValueRange> ranges(sites.values.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const ValueRange own = statistics[i].range(RangeRule::kMinMax);
    ValueRange& group = ranges[static_cast<size_t>(sites.values[i].group)];
    group = {std::min(group.low, own.low), std::max(group.high, own.high)};
  }
  for (const auto& v : sites.values) {
    const auto [scale, zero] = byte_scale(ranges[static_cast<size_t>(v.group)]);
    choices.values.push_back({v.name, scale, zero});
  }
  return choices;
}

TEST(Quantize, SitesOfANetwork) {
  auto model = Model::parse(net(), {.disabled_passes = {"all"}});
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto ready = model->ready_to_quantize();
  ASSERT_TRUE(ready.ok()) << ready.status().message();
  const auto sites = ready->quantization_sites();
  ASSERT_TRUE(sites.ok()) << sites.status().message();
  std::string ops;
  for (const auto& n : sites->nodes) ops += n.op + " ";
  EXPECT_EQ(ops, "conv conv add silu max_pool reshape gemm ");
  EXPECT_EQ(sites->nodes[0].weights, 4);
  int silu = -1, flat = -1;
  for (const auto& v : sites->values) {
    if (v.name == "s") silu = v.group;
    if (v.name == "r") flat = v.group;
    EXPECT_EQ(v.channel_axis, v.name == "x" || v.name == "a" || v.name == "r" ? 1 : -1) << v.name;
  }
  EXPECT_EQ(silu, flat);  // a pool and a reshape between
}

TEST(Quantize, IntegersAreThoseOfRoundedFloats) {
  auto model = Model::parse(net());
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto ready = model->ready_to_quantize();
  ASSERT_TRUE(ready.ok()) << ready.status().message();
  const auto sites = ready->quantization_sites();
  ASSERT_TRUE(sites.ok()) << sites.status().message();
  QuantizeChoices choices = choices_for(*ready, *sites);
  const auto integers = ready->quantized(choices);
  ASSERT_TRUE(integers.ok()) << integers.status().message();
  choices.fold = false;
  const auto rounded = ready->quantized(choices);
  ASSERT_TRUE(rounded.ok()) << rounded.status().message();
  size_t folded = 0;
  const std::string text = integers->text();
  for (const char* product : {"} = conv@1", "} = gemm@1"}) {
    for (size_t at = 0; (at = text.find(product, at)) != std::string::npos; ++at) ++folded;
  }
  EXPECT_EQ(folded, 3u) << text;
  EXPECT_EQ(text.find("f32[1,2,4,4] = conv"), std::string::npos) << text;
  double largest = 0;
  for (uint32_t seed = 20; seed < 24; ++seed) {
    const std::vector<float> x = normal(32, seed);
    const auto wanted = run(*rounded, x)[0], found = run(*integers, x)[0], exact = run(*model, x)[0];
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(found[i], wanted[i], 0.02);  // neighbouring integers of the logits
      largest = std::max(largest, std::fabs(static_cast<double>(found[i]) - static_cast<double>(exact[i])));
    }
  }
  EXPECT_LT(largest, 0.1);
  EXPECT_GT(largest, 0);
}

TEST(Quantize, ChannelsAreEvenedOutAndTheFunctionStays) {
  const std::string text = R"(graph "net" { input %x : f32[1,2,4,4]
    const %w1 : f32[2,2,1,1] = {100,-50,0.025,0.075} const %b1 : f32[2] = {0.1,0.2}
    const %w2 : f32[2,2,1,1] = {0.5,0.5,-1,1}
    %a = conv(%x, %w1, %b1) {activation="relu"} %b = conv(%a, %w2) output "b" %b })";
  auto model = Model::parse(text);
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto ready = model->ready_to_quantize({.equalize = true});
  ASSERT_TRUE(ready.ok()) << ready.status().message();
  const std::vector<float> x = normal(32, 9);
  const auto wanted = run(*model, x, {"a"}), found = run(*ready, x, {"a"});
  for (size_t i = 0; i < wanted[0].size(); ++i) EXPECT_NEAR(found[0][i], wanted[0][i], 1e-4 * 100);
  const auto most = [](const std::vector<float>& a, size_t channel) {
    return *std::max_element(a.begin() + static_cast<ptrdiff_t>(16 * channel),
                             a.begin() + static_cast<ptrdiff_t>(16 * channel + 16));
  };
  EXPECT_GT(most(wanted[1], 0), 100 * most(wanted[1], 1));
  EXPECT_LT(most(found[1], 0), 50 * most(found[1], 1));
}

/// As many channels as a row has elements: what the second product sums over are not the first one's channels.
TEST(Quantize, ChannelsOfOtherAxesAreNotEvenedOut) {
  const std::string text = R"(graph "net" { input %x : f32[1,2,4,4]
    const %w1 : f32[4,2,1,1] = {100,-50,0.025,0.075,1,2,3,4} const %w2 : f32[4,3] = {0.5,0.5,-1,1,2,3,4,5,6,7,8,9}
    %a = conv(%x, %w1) %b = mat_mul(%a, %w2) output "b" %b })";
  auto model = Model::parse(text);
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto ready = model->ready_to_quantize({.equalize = true});
  ASSERT_TRUE(ready.ok()) << ready.status().message();
  const std::vector<float> x = normal(32, 9);
  EXPECT_EQ(run(*model, x), run(*ready, x));
}

TEST(Quantize, MeansAreOfOneAxis) {
  const std::string text = R"(graph "net" { input %x : f32[1,4,4]
    const %w1 : f32[2,4,1] = {1,2,3,4,5,6,7,8} const %w2 : f32[4,3] = {0.5,0.5,-1,1,2,3,4,5,6,7,8,9}
    %a = conv(%x, %w1) %b = mat_mul(%x, %w2) output "a" %a output "b" %b })";
  auto model = Model::parse(text);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto sites = model->quantization_sites();
  ASSERT_TRUE(sites.ok()) << sites.status().message();
  ASSERT_EQ(sites->nodes.size(), 2u);
  EXPECT_EQ(sites->values[0].name, "x");
  EXPECT_EQ(sites->values[0].channel_axis, -1);  // neither axis serves both
}

TEST(Quantize, BiasTakesTheMeanErrorOff) {
  // Weights that all round to the same side: 127 steps for 12.7, so that 0.04 becomes 0.
  const std::string text = R"(graph "net" { input %x : f32[1,3]
    const %w : f32[3,1] = {12.7,0.04,0.04} %y = gemm(%x, %w) output "y" %y })";
  auto model = Model::parse(text);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto sites = model->quantization_sites();
  ASSERT_TRUE(sites.ok() && sites->nodes.size() == 1) << sites.status().message();
  const auto result = [&](std::vector<std::pair<std::string, std::vector<double>>> means) {
    QuantizeChoices choices;
    choices.nodes = {sites->nodes[0].name};
    choices.values = {{"x", 1.0f, 0}, {"y", 0.1f, 0}};
    choices.means = std::move(means);
    const auto made = model->quantized(choices);
    EXPECT_TRUE(made.ok()) << made.status().message();
    auto program = made->build();
    auto session = Session::create(*program, {.target = "cpu"});
    std::vector<float> x = {0, 100, 200};
    const Tensor input = tensor(x, {1, 3});
    EXPECT_TRUE(session->run(std::span(&input, 1)).ok());
    return *static_cast<const float*>(session->output(0).memory.host);
  };
  EXPECT_NEAR(result({}), 0, 1e-6);
  EXPECT_NEAR(result({{"x", {0, 100, 200}}}), 12, 0.06);
}

TEST(Quantize, WhatItRefuses) {
  auto model = Model::parse(net(), {.disabled_passes = {"all"}});
  ASSERT_TRUE(model.ok());
  const auto refused = [&](const QuantizeChoices& choices, std::string_view part) {
    const Status status = model->quantized(choices).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  const std::string gemm = [&] {
    for (const NodeInfo& n : model->nodes()) {
      if (n.op == "gemm") return n.name;
    }
    return std::string();
  }();
  refused({.nodes = {"nowhere"}}, "there is no node 'nowhere'");
  refused({.values = {{"nowhere", 1, 0}}}, "there is no value 'nowhere'");
  refused({.values = {{"w1", 1, 0}}}, "a constant");
  refused({.values = {{"x", 0, 0}}}, "scale 0");
  refused({.values = {{"x", 1, 256}}}, "256");
  refused({.nodes = {gemm}}, "has no scale");
  refused({.nodes = {gemm}, .values = {{"r", 1, 0}, {"y", 1, 0}}, .means = {{"r", {1, 2}}}}, "2 means");
}

std::string dense_text(int64_t columns, std::string_view product) {
  std::string text = "graph \"dense\" { input %x : f32[1,2,4,4] const %w : f32[";
  const auto weights = normal(static_cast<size_t>(4 * columns), 9);
  const bool turned = product.find("trans_b") != std::string_view::npos;
  text += turned ? str_cat(columns, ",4] = {") : str_cat("4,", columns, "] = {");
  for (size_t i = 0; i < weights.size(); ++i) text += str_cat(i ? "," : "", weights[i]);
  return text +
         str_cat("} const %b : f32[3] = {0.5,-1,2} const %two : i64[2] = {8,4}\n", product, " output \"y\" %y }");
}

TEST(Quantize, RowsAreRoundedAtRunTime) {
  for (const char* product : {"%y = mat_mul(%x, %w, %b) {activation=\"relu\"}",
                              "%y = mat_mul(%x, %w) {activation=\"clip\", activation_params=[-1.0,1.0]}",
                              "%r = reshape(%x, %two) %y = gemm(%r, %w, %b) {activation=\"silu\"}",
                              "%r = reshape(%x, %two) %y = gemm(%r, %w, %b) {trans_b=1}"}) {
    const auto model = Model::parse(dense_text(3, product));
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto sites = model->weight_sites();
    ASSERT_TRUE(sites.ok());
    ASSERT_EQ(sites->size(), 1u);
    EXPECT_EQ((*sites)[0].why_not_dynamic, "");
    WeightChoices choices{.nodes = {(*sites)[0].name}, .dynamic = true};
    const auto integers = model->with_stored_weights(choices);
    ASSERT_TRUE(integers.ok()) << integers.status().message();
    EXPECT_NE(integers->text().find("mat_mul_integer@1"), std::string::npos) << integers->text();
    choices.integers = false;
    const auto floats = model->with_stored_weights(choices);
    ASSERT_TRUE(floats.ok()) << floats.status().message();
    EXPECT_EQ(floats->text().find("mat_mul_integer@1"), std::string::npos) << floats->text();
    for (uint32_t seed = 30; seed < 34; ++seed) {
      const std::vector<float> x = normal(32, seed);
      const auto exact = run(*model, x)[0], found = run(*integers, x)[0], rounded = run(*floats, x)[0];
      ASSERT_EQ(found.size(), exact.size());
      for (size_t i = 0; i < exact.size(); ++i) {
        EXPECT_NEAR(found[i], rounded[i], 1e-5) << product;
        EXPECT_NEAR(found[i], exact[i], 0.1) << product;
      }
    }
  }
}

/// `count` numbers for a constant, of which `text` makes the i-th.
template <class F>
std::string numbers(int count, F text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += str_cat(i ? "," : "", text(i));
  return all;
}

constexpr int kUnits = 48, kInputs = 40;  // matrices of more elements than types are inferred with

/// A cell whose matrices are not of one size, over any number of steps.
std::string cell_text(const char* first = "0.1") {
  const auto weight = [&](int i) { return i ? str_cat((i * 7 % 19 - 9) * 0.02) : std::string(first); };
  return str_cat("graph \"g\" { symbol t 1..9 input %x : f32[t,2,", kInputs, "] const %w : f32[1,", 3 * kUnits, ",",
                 kInputs, "] = {", numbers(3 * kUnits * kInputs, weight), "} const %r : f32[1,", 3 * kUnits, ",",
                 kUnits, "] = {", numbers(3 * kUnits * kUnits, [&](int i) { return weight(i + 1); }),
                 "}\n%y, %h = gru(%x, %w, %r) {hidden_size=", kUnits, "} output \"y\" %y }");
}

TEST(Quantize, MatricesOfCellsAreStored) {
  const auto model = Model::parse(cell_text());
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto sites = model->weight_sites();
  ASSERT_TRUE(sites.ok());
  ASSERT_EQ(sites->size(), 1u);
  EXPECT_EQ((*sites)[0].weights, 3 * kUnits * (kInputs + kUnits));
  EXPECT_EQ((*sites)[0].rows, "");
  for (const bool dynamic : {false, true}) {
    for (const int bits : {8, 4}) {
      if (dynamic && bits == 4) continue;
      WeightChoices choices{.nodes = {(*sites)[0].name}, .bits = bits, .dynamic = dynamic};
      const auto integers = model->with_stored_weights(choices);
      ASSERT_TRUE(integers.ok()) << integers.status().message();
      const std::string text = integers->text(16);
      for (const char* part : {"%w.int", "%w.scales : f32[1,144,1]", "%r.int", "%r.scales : f32[1,144,1]"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text;
      }
      choices.integers = false;
      const auto floats = model->with_stored_weights(choices);
      ASSERT_TRUE(floats.ok()) << floats.status().message();
      auto program = integers->build();
      ASSERT_TRUE(program.ok()) << program.status().message();
      auto session = Session::create(*program, {.target = "cpu", .threads = 1});
      ASSERT_TRUE(session.ok()) << session.status().message();
      for (const int64_t steps : {5, 2, 5}) {  // plans of several sizes share the floats
        std::vector<float> x = normal(static_cast<size_t>(steps * 2 * kInputs), 7);
        const auto output = [&](const Model& of) { return run(of, x, {}, {steps, 2, kInputs})[0]; };
        const auto exact = output(*model), rounded = output(*floats);
        const Tensor input = tensor(x, {steps, 2, kInputs});
        ASSERT_TRUE(session->run(std::span(&input, 1)).ok());
        const auto* found = static_cast<const float*>(session->output(0).memory.host);
        double apart = 0;
        for (size_t i = 0; i < exact.size(); ++i) {
          EXPECT_EQ(found[i], rounded[i]) << bits;
          EXPECT_NEAR(found[i], exact[i], bits == 8 ? 0.02 : 0.3) << bits;
          apart = std::max(apart, std::fabs(static_cast<double>(found[i]) - exact[i]));
        }
        EXPECT_GT(apart, 0);
      }
      for (const Placement& row : session->placement()) {
        if (row.op == "dequantize_linear") EXPECT_EQ(row.kernel, "computed ahead");
        if (row.op == "gru") EXPECT_NE(row.kernel.find("recurrent"), std::string::npos) << row.kernel;
      }
    }
  }
}

TEST(Quantize, MatricesOfInfiniteWeightsAreNone) {
  const auto model = Model::parse(cell_text("inf"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto sites = model->weight_sites();
  ASSERT_TRUE(sites.ok()) << sites.status().message();
  EXPECT_EQ(sites->at(0).weights, 3 * kUnits * kUnits);
}

TEST(Quantize, ValuesThatOthersReadAreComputed) {
  // What is a result, or has another reader, runs like any node; the cell takes it as it is.
  std::vector<std::vector<float>> found;
  for (const char* more : {"", "output \"r\" %d", "%n = neg(%d) output \"n\" %n"}) {
    const auto model = Model::parse(
        str_cat("graph \"g\" { input %x : f32[5,2,4] const %w : f32[1,80,4] = {",
                numbers(320, [](int i) { return (i * 7 % 19 - 9) * 0.05; }), "} const %i : i8[1,80,80] = {",
                numbers(6400, [](int i) { return i * 5 % 17 - 8; }), "} const %s : f32[] = {0.01} ",
                "%d = dequantize_linear(%i, %s) %y, %h = rnn(%x, %w, %d) {hidden_size=80} output \"y\" %y ", more, "}"),
        {.disabled_passes = {"all"}});
    ASSERT_TRUE(model.ok()) << model.status().message();
    found.push_back(run(*model, normal(40, 3), {}, {5, 2, 4})[0]);
    ASSERT_EQ(found.back().size(), found[0].size());
    for (size_t i = 0; i < found[0].size(); ++i) EXPECT_NEAR(found.back()[i], found[0][i], 1e-6) << more;
    auto program = model->build();
    auto session = Session::create(*program, {.target = "cpu"});
    ASSERT_TRUE(session.ok()) << session.status().message();
    for (const Placement& row : session->placement()) {
      if (row.op == "dequantize_linear") EXPECT_EQ(row.kernel == "computed ahead", *more == 0) << more;
    }
  }
}

TEST(Quantize, OutputsOfACutHaveNamesOfTheirOwn) {
  const auto model = Model::parse(R"(graph "g" { input %x : f32[2] %a = neg(%x) %b = exp(%a)
  output "a.made" %b output "a" %a })");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto cut = model->cut(std::vector<std::string>{"a"});
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  std::vector<std::string> names;
  for (const TensorSpec& output : cut->outputs()) names.push_back(output.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a.made", "a", "a.made_"}));
}

TEST(Quantize, Float16LeavesParametersInFloat32) {
  // Scales of a resize are computed in float16 and read in float32, in the program and in what it is held against.
  const auto model = Model::parse(R"(graph "g" { input %x : f32[1,1,4,4] input %s : f32[4] const %one : f32[] = {1}
  %t = mul(%s, %one) %y : f32[1,1,?,?] = resize(%x, none, %t) output "y" %y })",
                                  {.disabled_passes = {"all"}});
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::vector<std::string> nodes;
  const auto sites = model->float16_sites();
  ASSERT_TRUE(sites.ok()) << sites.status().message();
  for (const Float16Site& site : *sites) {
    if (site.why_not.empty()) nodes.push_back(site.name);
  }
  ASSERT_EQ(nodes.size(), 2u);
  for (const bool values : {true, false}) {
    const auto made = model->in_float16(nodes, values);
    EXPECT_TRUE(made.ok()) << made.status().message();
  }
}

TEST(Quantize, Float16) {
  const auto model = Model::parse(R"(graph "g" { input %x : f32[1,2,4,4]
  state "s" %s : f32[1,2,4,4] next %b = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}
  const %w : f32[2,2,1,1] = {1,0.3333333,0.1,100} const %huge : f32[] = {1e38} const %tiny : f32[] = {1e-9}
  const %to : i64[2] = {8,4}
  %a = conv(%x, %w) %b : f32[1,2,4,4] = add(%a, %s) %c = min(%b, %huge) %d = max(%c, %tiny) %i = cast(%d) {to="i32"}
  %r = reshape(%d, %to) output "r" %r output "i" %i })",
                                  {.disabled_passes = {"all"}});
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto sites = model->float16_sites();
  ASSERT_TRUE(sites.ok());
  std::string reasons;
  std::vector<std::string> nodes;
  for (const Float16Site& site : *sites) {
    reasons += str_cat(site.op, ": ", site.why_not, "; ");
    if (site.why_not.empty()) nodes.push_back(site.name);
  }
  EXPECT_EQ(reasons,
            "conv: ; add: ; min: its constant 'huge' has 1e+38, beyond float16; "
            "max: its constant 'tiny' has 1e-09, beyond float16; cast: it converts between types; reshape: ; ");
  const auto made = model->in_float16(nodes);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const std::string text = made->text();
  for (const char* part : {"f16[1,2,4,4] = conv", "f16[1,2,4,4] = add", "f32[1,2,4,4] = min", "f16[8,4] = reshape",
                           "input %x : f32", "%w.float16 : f16[2,2,1,1]"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text;
  }
  EXPECT_EQ(made->outputs()[0].type.dtype, DType::kF32);
  // What they are held against: rounded is what comes from elsewhere, under the names of the program's own casts.
  const auto wide = model->in_float16(nodes, false);
  ASSERT_TRUE(wide.ok()) << wide.status().message();
  const std::string held = wide->text();
  for (const char* part :
       {"%x.float16 : f32[1,2,4,4] = cast", "%s.float16 : f32[1,2,4,4] = cast", "%d.float16 : f32[1,2,4,4] = cast",
        "(%x.float16, %w.rounded)", "(%a, %s.float16)", "(%b, %huge)", "(%d.float16, %to)"}) {
    EXPECT_NE(held.find(part), std::string::npos) << part << " is not in " << held;
  }
  for (const char* cast : {"%x.float16", "%s.float16", "%d.float16"}) {
    EXPECT_NE(text.find(cast), std::string::npos) << cast << " is not in " << text;
  }
  for (const auto& [node, part] :
       {std::pair("nowhere", "there is no node 'nowhere'"), std::pair("min", "beyond float16")}) {
    std::string name = node;
    for (const Float16Site& site : *sites) {
      if (site.op == name) name = site.name;
    }
    const Status status = model->in_float16(std::vector{name}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

TEST(Quantize, WhatHasNoDynamicForm) {
  const auto why = [](const char* product) {
    const auto model = Model::parse(dense_text(3, product));
    EXPECT_TRUE(model.ok()) << model.status().message();
    const auto sites = model->weight_sites();
    EXPECT_TRUE(sites.ok() && sites->size() == 1);
    const auto made = model->with_stored_weights({.nodes = {(*sites)[0].name}, .dynamic = true});
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
    EXPECT_NE(made.status().message().find((*sites)[0].why_not_dynamic), std::string::npos) << made.status().message();
    return (*sites)[0].why_not_dynamic;
  };
  EXPECT_EQ(why("%r = reshape(%x, %two) %y = gemm(%r, %w) {alpha=2.0}"), "its sums are scaled");
  EXPECT_EQ(why("const %four : i64[2] = {4,8} %r = reshape(%x, %four) %y = gemm(%r, %w) {trans_a=1}"),
            "it multiplies columns");
  const auto model = Model::parse(dense_text(3, "%y = mat_mul(%x, %w)"));
  ASSERT_TRUE(model.ok());
  const std::string node = model->weight_sites()->at(0).name;
  for (const WeightChoices& choices : {WeightChoices{.nodes = {node}, .bits = 4, .dynamic = true},
                                       WeightChoices{.nodes = {node}, .block = 8, .dynamic = true},
                                       WeightChoices{.nodes = {node}, .symmetric = false, .dynamic = true}}) {
    EXPECT_EQ(model->with_stored_weights(choices).status().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace pinnace
