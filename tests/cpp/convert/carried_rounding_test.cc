// Gram matrices of rows, and rounding by them against the method's definition, each weight with an inverse of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <pinnace/model.h>

#include "base/text.h"
#include "quantize/carried_rounding.h"

namespace pinnace {
namespace {

Tensor tensor(const std::vector<float>& elements, Shape shape) {
  return {{DType::kF32, std::move(shape), nullptr},
          {const_cast<float*>(elements.data()), elements.size() * sizeof(float)}};
}

/// Rows whose elements go together: few directions and little noise.
std::vector<float> related_rows(int64_t rows, int64_t length, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0, 1);
  constexpr int64_t kDirections = 3;
  std::vector<float> direction(static_cast<size_t>(kDirections * length)), all;
  for (float& x : direction) x = draw(random);
  for (int64_t r = 0; r < rows; ++r) {
    float by[kDirections];
    for (float& b : by) b = draw(random);
    for (int64_t i = 0; i < length; ++i) {
      float x = 0.2f * draw(random);
      for (int64_t d = 0; d < kDirections; ++d) x += by[d] * direction[static_cast<size_t>(d * length + i)];
      all.push_back(x * (i % 5 == 0 ? 4.0f : 1.0f));
    }
  }
  return all;
}

TEST(GramMatrix, SumsOfProductsHoweverRowsAreGrouped) {
  constexpr int64_t kRows = 150, kLength = 21;
  const std::vector<float> x = related_rows(kRows, kLength, 3);
  GramMatrix whole, single, threes;
  ASSERT_TRUE(whole.add(tensor(x, {kRows, kLength})).ok());
  for (int64_t r = 0; r < kRows; ++r) {
    const std::vector<float> row(x.begin() + r * kLength, x.begin() + (r + 1) * kLength);
    ASSERT_TRUE(single.add(tensor(row, {kLength})).ok());
  }
  for (int64_t r = 0; r < kRows; r += 3) {
    const std::vector<float> rows(x.begin() + r * kLength, x.begin() + (r + 3) * kLength);
    ASSERT_TRUE(threes.add(tensor(rows, {1, 3, kLength})).ok());
  }
  EXPECT_EQ(whole.rows(), kRows);
  EXPECT_EQ(whole.length(), kLength);
  for (int64_t i = 0; i < kLength; ++i) {
    for (int64_t j = 0; j < kLength; ++j) {
      double sum = 0;
      for (int64_t r = 0; r < kRows; ++r) {
        sum += static_cast<double>(x[static_cast<size_t>(r * kLength + i)]) *
               static_cast<double>(x[static_cast<size_t>(r * kLength + j)]);
      }
      EXPECT_NEAR(whole.at(i, j), sum, 1e-9 * std::fabs(sum) + 1e-9) << i << ", " << j;
      EXPECT_EQ(whole.at(i, j), single.at(i, j));
      EXPECT_EQ(whole.at(i, j), threes.at(i, j));
      EXPECT_EQ(whole.at(i, j), whole.at(j, i));
    }
  }
}

TEST(GramMatrix, WhatItRefuses) {
  GramMatrix gram;
  std::vector<float> x = {1, 2, 3, 4};
  EXPECT_EQ(gram.add(tensor(x, {})).code(), Code::kInvalidArgument);
  ASSERT_TRUE(gram.add(tensor(x, {0, 4})).ok());
  EXPECT_EQ(gram.length(), 0);
  ASSERT_TRUE(gram.add(tensor(x, {2, 2})).ok());
  EXPECT_EQ(gram.add(tensor(x, {1, 4})).code(), Code::kInvalidArgument);
  x[3] = std::numeric_limits<float>::infinity();
  const Status status = gram.add(tensor(x, {2, 2}));
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("row 1"), std::string::npos) << status.message();
  EXPECT_EQ(gram.rows(), 2);
  EXPECT_EQ(gram.at(1, 1), 2.0 * 2 + 4.0 * 4);
}

/// GPTQ as it is defined: after each weight the others that are left move to where the cost is least, which takes the
/// inverse of what is left of the matrix.
std::vector<int32_t> by_definition(const GramMatrix& gram, std::vector<double> w,
                                   const std::vector<RoundingStep>& steps, int64_t block, int low, int high,
                                   double damping) {
  const int64_t n = gram.length();
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) mean += gram.at(i, i) / static_cast<double>(n);
  std::vector<int64_t> left(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) left[static_cast<size_t>(i)] = i;
  std::stable_sort(left.begin(), left.end(), [&](int64_t a, int64_t b) { return gram.at(a, a) < gram.at(b, b); });
  std::vector<int32_t> rounded(static_cast<size_t>(n));
  while (!left.empty()) {
    const auto m = static_cast<int64_t>(left.size());
    // Gauss and Jordan's inverse of the matrix of those that are left.
    std::vector<std::vector<double>> a(static_cast<size_t>(m), std::vector<double>(static_cast<size_t>(2 * m)));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        a[static_cast<size_t>(i)][static_cast<size_t>(j)] =
            gram.at(left[static_cast<size_t>(i)], left[static_cast<size_t>(j)]) + (i == j ? damping * mean : 0);
      }
      a[static_cast<size_t>(i)][static_cast<size_t>(m + i)] = 1;
    }
    for (size_t p = 0; p < static_cast<size_t>(m); ++p) {
      const double pivot = a[p][p];
      for (double& v : a[p]) v /= pivot;
      for (size_t i = 0; i < static_cast<size_t>(m); ++i) {
        if (i == p) continue;
        const double by = a[i][p];
        for (size_t j = 0; j < static_cast<size_t>(2 * m); ++j) a[i][j] -= by * a[p][j];
      }
    }
    const auto last = static_cast<size_t>(m - 1);
    const auto at = static_cast<size_t>(left[last]);
    const RoundingStep& step = steps[static_cast<size_t>(left[last] / block)];
    const double q =
        std::clamp(std::nearbyint(w[at] / static_cast<double>(step.scale)) + step.zero, double(low), double(high));
    rounded[at] = static_cast<int32_t>(q);
    const double error = w[at] - (q - step.zero) * static_cast<double>(step.scale);
    for (size_t i = 0; i < last; ++i) {
      w[static_cast<size_t>(left[i])] -=
          error * a[i][static_cast<size_t>(m) + last] / a[last][static_cast<size_t>(m) + last];
    }
    left.pop_back();
  }
  return rounded;
}

double cost(const GramMatrix& gram, const double* w, const int32_t* q, const RoundingStep* steps, int64_t block) {
  double sum = 0;
  const auto error = [&](int64_t i) {
    const RoundingStep& step = steps[i / block];
    return w[i] - static_cast<double>(q[i] - step.zero) * static_cast<double>(step.scale);
  };
  for (int64_t i = 0; i < gram.length(); ++i) {
    for (int64_t j = 0; j < gram.length(); ++j) sum += error(i) * gram.at(i, j) * error(j);
  }
  return sum;
}

TEST(CarriedRounding, IsGptq) {
  constexpr int64_t kLength = 40, kLines = 11, kBlock = 16, kBlocks = 3;
  GramMatrix gram;
  ASSERT_TRUE(gram.add(tensor(related_rows(200, kLength, 5), {200, kLength})).ok());
  std::mt19937 random(8);
  std::normal_distribution<double> draw(0, 1);
  std::vector<double> weights(kLines * kLength);
  for (double& w : weights) w = draw(random);
  for (const bool zeros : {false, true}) {
    const int low = zeros ? 0 : -8, high = zeros ? 15 : 7;
    std::vector<RoundingStep> steps(kLines * kBlocks);
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i] = {0.25f + 0.05f * static_cast<float>(i % 4), zeros ? static_cast<int32_t>(6 + i % 3) : 0};
    }
    std::vector<int32_t> nearest(weights.size()), carried(weights.size());
    const RoundedLines group{kLines, kLength, kBlock, low, high, weights, steps, carried};
    const GramMatrix* const one[] = {&gram};
    const auto rounding = CarriedRounding::create(one);
    ASSERT_TRUE(rounding.ok()) << rounding.status().message();
    rounding->round(group);
    round_to_nearest({kLines, kLength, kBlock, low, high, weights, steps, nearest});
    double plain = 0, better = 0;
    for (int64_t line = 0; line < kLines; ++line) {
      const auto from = static_cast<size_t>(line * kLength);
      const std::vector<double> own(weights.begin() + static_cast<ptrdiff_t>(from),
                                    weights.begin() + static_cast<ptrdiff_t>(from) + kLength);
      const std::vector<RoundingStep> its(steps.begin() + line * kBlocks, steps.begin() + (line + 1) * kBlocks);
      const std::vector<int32_t> wanted = by_definition(gram, own, its, kBlock, low, high, 0.1);
      EXPECT_EQ(std::vector<int32_t>(carried.begin() + static_cast<ptrdiff_t>(from),
                                     carried.begin() + static_cast<ptrdiff_t>(from) + kLength),
                wanted)
          << "line " << line;
      plain += cost(gram, own.data(), nearest.data() + from, its.data(), kBlock);
      better += cost(gram, own.data(), carried.data() + from, its.data(), kBlock);
    }
    EXPECT_LT(better, 0.5 * plain);
  }
}

TEST(CarriedRounding, RowsWithoutRelationsAreRoundedToTheNearest) {
  constexpr int64_t kLength = 16;
  std::vector<float> x(kLength * kLength);
  for (size_t i = 0; i < kLength; ++i) x[i * kLength + i] = i % 3 ? 2.0f : 0.0f;
  GramMatrix gram;
  ASSERT_TRUE(gram.add(tensor(x, {kLength, kLength})).ok());
  std::vector<double> weights(kLength);
  for (size_t i = 0; i < kLength; ++i) weights[i] = 0.37 * static_cast<double>(i) - 2;
  const std::vector<RoundingStep> steps(1, RoundingStep{0.5f, 0});
  std::vector<int32_t> nearest(kLength), carried(kLength);
  round_to_nearest({1, kLength, kLength, -8, 7, weights, steps, nearest});
  const GramMatrix* const twice[] = {&gram, &gram};
  const auto rounding = CarriedRounding::create(twice);
  ASSERT_TRUE(rounding.ok());
  rounding->round({1, kLength, kLength, -8, 7, weights, steps, carried});
  EXPECT_EQ(carried, nearest);
}

/// Two nodes that share weights go by the rows of both; weights of other nodes are not touched.
TEST(CarriedRounding, OfAModel) {
  constexpr int64_t kLength = 16;
  std::string text = "graph \"g\" {\n input %x : f32[4,16]\n input %z : f32[4,16]\n const %w : f32[16,4] = {";
  std::mt19937 random(4);
  std::uniform_real_distribution<float> draw(-1, 1);
  for (int64_t i = 0; i < kLength * 4; ++i) text += str_cat(i ? "," : "", draw(random));
  text +=
      "}\n %a : f32[4,4] = mat_mul \"a\" (%x, %w)\n %b : f32[4,4] = mat_mul \"b\" (%z, %w)\n output \"a\" %a\n "
      "output \"b\" %b\n}";
  const auto model = Model::parse(text);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto sites = model->weight_sites();
  ASSERT_TRUE(sites.ok());
  ASSERT_EQ(sites->size(), 2u);
  EXPECT_EQ((*sites)[0].matrix, (*sites)[1].matrix);
  EXPECT_EQ((*sites)[0].rows, "x");
  EXPECT_EQ((*sites)[1].length, kLength);
  GramMatrix first, second, shorter;
  ASSERT_TRUE(first.add(tensor(related_rows(50, kLength, 1), {50, kLength})).ok());
  ASSERT_TRUE(second.add(tensor(related_rows(50, kLength, 2), {50, kLength})).ok());
  ASSERT_TRUE(shorter.add(tensor(related_rows(50, 8, 2), {50, 8})).ok());
  const std::string a = (*sites)[0].name, b = (*sites)[1].name;
  const auto bytes = [&](std::vector<std::pair<std::string, const GramMatrix*>> grams) {
    WeightChoices choices{.nodes = {a, b}, .bits = 4};
    choices.grams = std::move(grams);
    const auto made = model->with_stored_weights(choices);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? made->text(4096) : "";
  };
  const std::string plain = bytes({}), one = bytes({{a, &first}}), both = bytes({{a, &first}, {b, &second}});
  EXPECT_NE(plain, one);
  EXPECT_NE(one, both);
  EXPECT_EQ(both, bytes({{b, &second}, {a, &first}}));
  for (const auto& [grams, part] : {std::pair<std::vector<std::pair<std::string, const GramMatrix*>>, const char*>{
                                        {{a, &shorter}}, "of 16 elements"},
                                    {{{"nobody", &first}}, "not chosen"}}) {
    WeightChoices choices{.nodes = {a}, .bits = 4};
    choices.grams = grams;
    const auto made = model->with_stored_weights(choices);
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
    EXPECT_NE(made.status().message().find(part), std::string::npos) << made.status().message();
  }
}

}  // namespace
}  // namespace pinnace
