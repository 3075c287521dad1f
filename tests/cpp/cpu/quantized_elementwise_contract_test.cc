// Elementwise operators on quantised types, held to their definition for every stored integer: all 256 bytes for one
// input, all 65536 pairs for two; zero points at the edges, scales that make ties, overflow and underflow.
#include <cstring>
#include <functional>

#include "cpp/cpu/quantized_contract.h"

namespace pinnace::testing {
namespace {

using Real = long double;

struct Unary {
  const char* op;
  Real (*f)(Real);
  std::vector<std::pair<const char*, double>> attrs = {};
};

Real between(Real x, Real low, Real high) {
  return x < low ? low : x > high ? high : x;
}
/// Attributes are doubles; a decimal literal is rounded to one before it is used.
constexpr double kSeluAlpha = 1.67326319217681884765625, kSeluGamma = 1.05070102214813232421875;

const Unary kUnary[] = {
    {"abs", [](Real x) { return std::fabs(x); }},
    {"acos", [](Real x) { return std::acos(x); }},
    {"acosh", [](Real x) { return std::acosh(x); }},
    {"asin", [](Real x) { return std::asin(x); }},
    {"asinh", [](Real x) { return std::asinh(x); }},
    {"atan", [](Real x) { return std::atan(x); }},
    {"atanh", [](Real x) { return std::atanh(x); }},
    {"ceil", [](Real x) { return std::ceil(x); }},
    {"celu", [](Real x) { return x > 0 ? x : Real(1.5) * std::expm1(x / Real(1.5)); }, {{"alpha", 1.5}}},
    {"cos", [](Real x) { return std::cos(x); }},
    {"cosh", [](Real x) { return std::cosh(x); }},
    {"elu", [](Real x) { return x >= 0 ? x : Real(0.75) * std::expm1(x); }, {{"alpha", 0.75}}},
    {"erf", [](Real x) { return std::erf(x); }},
    {"exp", [](Real x) { return std::exp(x); }},
    {"floor", [](Real x) { return std::floor(x); }},
    {"gelu", [](Real x) { return x / 2 * std::erfc(-x / std::sqrt(Real(2))); }},
    {"hard_sigmoid", [](Real x) { return between(Real(0.25) * x + Real(0.5), 0, 1); }, {{"alpha", 0.25}}},
    {"hard_swish", [](Real x) { return x * between(x / 6 + Real(0.5), 0, 1); }},
    {"leaky_relu", [](Real x) { return x < 0 ? Real(0.125) * x : x; }, {{"alpha", 0.125}}},
    {"log", [](Real x) { return std::log(x); }},
    {"mish", [](Real x) { return x * std::tanh(x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x))); }},
    {"neg", [](Real x) { return -x; }},
    {"reciprocal", [](Real x) { return 1 / x; }},
    {"relu", [](Real x) { return x > 0 ? x : 0; }},
    {"round", [](Real x) { return Real(nearest_even(static_cast<double>(x))); }},
    {"selu", [](Real x) { return x > 0 ? kSeluGamma * x : Real(kSeluGamma) * Real(kSeluAlpha) * std::expm1(x); }},
    {"shrink", [](Real x) { return x < -1  ? x + 2
                                   : x > 1 ? x - 2
                                           : 0; }, {{"bias", 2}, {"lambd", 1}}},
    {"sigmoid", [](Real x) { return 1 / (1 + std::exp(-x)); }},
    {"sign", [](Real x) { return Real((x > 0) - (x < 0)); }},
    {"silu", [](Real x) { return x < -1e4L ? -Real(0) : x / (1 + std::exp(-x)); }},
    {"sin", [](Real x) { return std::sin(x); }},
    {"sinh", [](Real x) { return std::sinh(x); }},
    {"softplus", [](Real x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }},
    {"softsign", [](Real x) { return x / (1 + std::fabs(x)); }},
    {"sqrt", [](Real x) { return std::sqrt(x); }},
    {"tan", [](Real x) { return std::tan(x); }},
    {"tanh", [](Real x) { return std::tanh(x); }},
    {"thresholded_relu", [](Real x) { return x > Real(0.5) ? x : 0; }, {{"alpha", 0.5}}},
};

/// Scales of x and y: exact halves, ratios without end, a step far below and far above the other, denormal and huge.
constexpr float kPairs[][2] = {{0.5f, 1.0f},  {0.1f, 0.03f},    {1.0f, 1 / 255.0f}, {0.25f, 0.5f},  {0.01f, 0.2f},
                               {1e-3f, 1e3f}, {1e-42f, 1e-42f}, {1e30f, 1e30f},     {3e38f, 1e38f}, {1.0f, 1e-38f}};

TEST(QuantizedContract, FunctionsOfOneInput) {
  size_t combination = 0;
  for (const Unary& unary : kUnary) {
    for (const DType dtype : {DType::kI8, DType::kU8}) {
      for (const auto& [from_scale, to_scale] : kPairs) {
        for (const int32_t x_zero : zero_points(dtype)) {
          for (const int32_t y_zero : zero_points(dtype)) {
            if (!in_slice(combination++, 4)) continue;
            const Parameters from{from_scale, x_zero}, to{to_scale, y_zero};
            Call call(unary.op);
            for (const auto& [name, value] : unary.attrs) call.attr(name, value);
            call.quantized(dtype, {256}, every_byte(dtype), from).declare(to);
            std::vector<uint8_t> want;
            for (int32_t q = limits_of(dtype).low; q <= limits_of(dtype).high; ++q) {
              // In double, then in float32: so is the definition.
              const auto value = static_cast<double>(unary.f(real_of(q, from)));
              want.push_back(static_cast<uint8_t>(stored_of(static_cast<float>(value), to, dtype)));
            }
            if (!call.gives(want)) return;
          }
        }
      }
    }
  }
}

TEST(QuantizedContract, Clip) {
  const float nan = std::nanf(""), inf = HUGE_VALF;
  const std::pair<float, float> bounds[] = {{0, 6}, {-0.3f, 0.7f}, {5, -5}, {-inf, inf}, {nan, 1}, {-1, nan}};
  for (const DType dtype : {DType::kI8, DType::kU8}) {
    for (const auto& [low, high] : bounds) {
      for (const int32_t zero : zero_points(dtype)) {
        const Parameters from{0.05f, zero}, to{0.1f, zero_points(dtype)[1]};
        Call call("clip");
        call.quantized(dtype, {256}, every_byte(dtype), from);
        call.input(DType::kF32, {}, std::vector<float>{low}).input(DType::kF32, {}, std::vector<float>{high});
        call.declare(to);
        std::vector<uint8_t> want;
        for (int32_t q = limits_of(dtype).low; q <= limits_of(dtype).high; ++q) {
          float x = real_of(q, from);
          x = std::isnan(low) || x < low ? low : x;
          x = std::isnan(x) ? x : std::isnan(high) || x > high ? high : x;
          want.push_back(static_cast<uint8_t>(stored_of(x, to, dtype)));
        }
        ASSERT_TRUE(call.gives(want)) << low << " " << high;
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------------- two inputs

struct Binary {
  const char* op;
  float (*f)(float, float);
};
const Binary kBinary[] = {
    {"add", [](float a, float b) { return a + b; }},
    {"div", [](float a, float b) { return a / b; }},
    {"max", [](float a, float b) { return std::isnan(a) || a >= b ? a : b; }},
    {"min", [](float a, float b) { return std::isnan(a) || a <= b ? a : b; }},
    {"mul", [](float a, float b) { return a * b; }},
    {"prelu", [](float a, float b) { return a >= 0 ? a : b * a; }},
    {"sub", [](float a, float b) { return a - b; }},
};
struct Comparison {
  const char* op;
  bool (*f)(float, float);
};
const Comparison kComparisons[] = {
    {"equal", [](float a, float b) { return a == b; }},
    {"greater", [](float a, float b) { return a > b; }},
    {"greater_or_equal", [](float a, float b) { return a >= b; }},
    {"less", [](float a, float b) { return a < b; }},
    {"less_or_equal", [](float a, float b) { return a <= b; }},
};

/// Scales of a, b and the result.
constexpr float kTriples[][3] = {{0.5f, 0.5f, 1.0f},
                                 {1.0f, 1.0f, 2.0f},
                                 {0.1f, 0.2f, 0.3f},
                                 {0.25f, 0.5f, 0.125f},
                                 {1 / 3.0f, 1 / 7.0f, 1 / 11.0f},
                                 {1e-30f, 1e-30f, 1e-30f},
                                 {1e-42f, 1e-40f, 1e-41f},
                                 {1.0f, 1e6f, 1e6f},
                                 {3e38f, 3e38f, 1e38f},
                                 {2.0f, 0.015625f, 4096.0f}};

/// Every pair of bytes: a changes slowly, b fast.
struct Pairs {
  std::vector<uint8_t> a, b;
  explicit Pairs(DType dtype) : Pairs(dtype, dtype) {}
  Pairs(DType of_a, DType of_b) {
    for (const uint8_t x : every_byte(of_a)) {
      for (const uint8_t y : every_byte(of_b)) {
        a.push_back(x);
        b.push_back(y);
      }
    }
  }
};

/// Calls f(type, a's parameters, b's, the result's) for a slice of all combinations.
void for_combinations(size_t parts, const std::function<bool(DType, Parameters, Parameters, Parameters)>& f) {
  size_t combination = 0;
  for (const DType dtype : {DType::kI8, DType::kU8}) {
    for (const auto& [a_scale, b_scale, y_scale] : kTriples) {
      for (const int32_t a : zero_points(dtype)) {
        for (const int32_t b : zero_points(dtype)) {
          for (const int32_t y : zero_points(dtype)) {
            if (!in_slice(combination++, parts, parts / 32)) continue;
            if (!f(dtype, {a_scale, a}, {b_scale, b}, {y_scale, y})) return;
          }
        }
      }
    }
  }
}

/// The operator of every pair, and with it the fused activations that `clamps` names, as ranges of stored integers.
bool check_pairs(const Binary& binary, DType dtype, Parameters a, Parameters b, Parameters y) {
  const Pairs pairs(dtype);
  std::vector<uint8_t> want(pairs.a.size());
  std::vector<float> of_a(256), of_b(256);
  for (int i = 0; i < 256; ++i) {
    of_a[static_cast<size_t>(i)] = real_of(integer_of(static_cast<uint8_t>(i), dtype), a);
    of_b[static_cast<size_t>(i)] = real_of(integer_of(static_cast<uint8_t>(i), dtype), b);
  }
  for (size_t i = 0; i < want.size(); ++i) {
    want[i] = static_cast<uint8_t>(stored_of(binary.f(of_a[pairs.a[i]], of_b[pairs.b[i]]), y, dtype));
  }
  Call call(binary.op);
  const Shape shape{static_cast<int64_t>(want.size())};
  call.quantized(dtype, shape, pairs.a, a).quantized(dtype, shape, pairs.b, b).declare(y);
  if (!call.gives(want)) return false;
  if (std::string_view(binary.op) != "add") return true;
  // relu and clip move the ends of the clamp; where they cross, the upper one holds.
  for (const auto& [low, high] : {std::pair{0.0, 6.0}, {-1.5, 0.25}, {3.0, -3.0}}) {
    const int32_t least = stored_of(static_cast<float>(low), y, dtype);
    const int32_t most = stored_of(static_cast<float>(high), y, dtype);
    std::vector<uint8_t> narrowed = want;
    for (uint8_t& q : narrowed) {
      q = static_cast<uint8_t>(std::min(std::max(integer_of(q, dtype), least), most));
    }
    Call clipped = call;
    clipped.attr("activation", std::string("clip")).attr("activation_params", std::vector<double>{low, high});
    if (!clipped.gives(narrowed)) return false;
  }
  std::vector<uint8_t> positive = want;
  for (uint8_t& q : positive) q = static_cast<uint8_t>(std::max(integer_of(q, dtype), y.zero));
  return call.attr("activation", std::string("relu")).gives(positive);
}

TEST(QuantizedContract, FunctionsOfTwoInputs) {
  for (const Binary& binary : kBinary) {
    for_combinations(
        64, [&](DType dtype, Parameters a, Parameters b, Parameters y) { return check_pairs(binary, dtype, a, b, y); });
  }
}

TEST(QuantizedContract, Comparisons) {
  for (const Comparison& comparison : kComparisons) {
    for_combinations(128, [&](DType dtype, Parameters a, Parameters b, Parameters) {
      const Pairs pairs(dtype);
      std::vector<uint8_t> want;
      for (size_t i = 0; i < pairs.a.size(); ++i) {
        const float x = real_of(integer_of(pairs.a[i], dtype), a), y = real_of(integer_of(pairs.b[i], dtype), b);
        want.push_back(comparison.f(x, y));
      }
      const Shape shape{static_cast<int64_t>(want.size())};
      Call call(comparison.op);
      return call.quantized(dtype, shape, pairs.a, a).quantized(dtype, shape, pairs.b, b).gives(want);
    });
  }
}

TEST(QuantizedContract, WhereAndConcatRequantise) {
  for_combinations(32, [&](DType dtype, Parameters a, Parameters b, Parameters y) {
    const std::vector<uint8_t> every = every_byte(dtype);
    std::vector<uint8_t> both, condition, chosen;
    for (const Parameters& p : {a, b}) {
      for (const uint8_t q : every) {
        both.push_back(static_cast<uint8_t>(stored_of(real_of(integer_of(q, dtype), p), y, dtype)));
      }
    }
    for (size_t i = 0; i < 256; ++i) {
      condition.push_back(i % 3 != 0);
      chosen.push_back(both[condition[i] ? i : 256 + i]);
    }
    Call where("where"), concat("concat");
    where.input(DType::kBool, {256}, condition).quantized(dtype, {256}, every, a).quantized(dtype, {256}, every, b);
    concat.quantized(dtype, {256}, every, a).quantized(dtype, {256}, every, b).attr("axis", int64_t{0});
    return where.declare(y).gives(chosen) && concat.declare(y).gives(both);
  });
  // Equal parameters: bytes are kept.
  const Parameters p{0.1f, 3};
  Call call("concat");
  call.quantized(DType::kI8, {256}, every_byte(DType::kI8), p).attr("axis", int64_t{0}).declare(p);
  EXPECT_TRUE(call.gives(every_byte(DType::kI8)));
}

TEST(QuantizedContract, MaxAndMinOfThree) {
  Random random(test_seed());
  const Parameters p[] = {{0.1f, 3}, {0.07f, -128}, {0.3f, 127}}, y{0.11f, -1};
  std::vector<uint8_t> in[3], largest, smallest;
  for (auto& bytes : in) bytes = random_bytes(random, 1000);
  for (size_t i = 0; i < 1000; ++i) {
    float x[3];
    for (size_t k = 0; k < 3; ++k) x[k] = real_of(integer_of(in[k][i], DType::kI8), p[k]);
    largest.push_back(static_cast<uint8_t>(stored_of(std::max({x[0], x[1], x[2]}), y, DType::kI8)));
    smallest.push_back(static_cast<uint8_t>(stored_of(std::min({x[0], x[1], x[2]}), y, DType::kI8)));
  }
  for (const char* op : {"max", "min"}) {
    Call call(op);
    for (size_t k = 0; k < 3; ++k) call.quantized(DType::kI8, {1000}, in[k], p[k]);
    EXPECT_TRUE(call.declare(y).gives(op == std::string_view("max") ? largest : smallest));
  }
}

/// Integers of 32 bits whose distance from the zero point does not fit 32 bits.
TEST(QuantizedContract, DistancesBeyondInt32) {
  const Parameters p{0.5f, 2147483647};
  Call call("neg");
  call.input(DType::kI32, {2}, std::vector<int32_t>{INT32_MIN, 2147483647}, Call::quantization(p));
  call.declare({1.0f, -1});
  EXPECT_TRUE(call.gives(std::vector<int32_t>{2147483647, -1}));
}

}  // namespace
}  // namespace pinnace::testing
