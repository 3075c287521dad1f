// Every row of unary.inc: the CPU's formula beside the reference formula over a grid of values. The GPU's formula is
// compared with the same reference by the cases of each operator (gpu_cases_test.cc: Vulkan and softmetal).
#include "ops/unary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backends/cpu/unary/activation_f32.h"
#include "backends/cpu/unary/unary_f32.h"
#include "base/cpu_features.h"
#include "base/text.h"

namespace pinnace::testing {
namespace {

struct Row {
  UnaryKind kind;
  double (*formula)(double x, double p, double q);
};
constexpr Row kRows[] = {
#define UNARY(kind, ...) {UnaryKind::kind, UnaryRow<UnaryKind::kind>::formula},
#include "ops/unary.inc"
#undef UNARY
};

struct Kernels {
  Cpu needs;
  const cpu::ActivationLoops<float>* activations;
  const cpu::UnaryLoopsF32* others;
};
constexpr Kernels kKernels[] = {
    {Cpu::generic, &cpu::activation_loops_f32_generic, &cpu::unary_loops_f32_generic},
#if defined(__x86_64__)
    {Cpu::avx2, &cpu::activation_loops_f32_avx2, &cpu::unary_loops_f32_avx2},
    {Cpu::avx512, &cpu::activation_loops_f32_avx512, &cpu::unary_loops_f32_avx512},
#elif defined(__aarch64__)
    {Cpu::sve, &cpu::activation_loops_f32_sve, nullptr},
#endif
};

/// Both signs, 2^-30 to 2^5 and the edges: the largest number whose exp is finite and the next one, halves of them.
std::vector<float> grid() {
  std::vector<float> values = {0.0f,      -0.0f,      88.0f,        -88.0f,       1e10f,       INFINITY,
                               -INFINITY, NAN,        88.72283173f, -88.7228317f, 88.7228394f, -88.7228394f,
                               44.36142f, -44.36142f, -3e7f,        -1e20f};
  float x = 0x1p-30f;
  while (x < 0x1p5f) {
    values.push_back(x);
    values.push_back(-x);
    x *= 1.19f;
  }
  return values;
}

/// What unary.inc promises, and the rounding of the reference to float32.
double bound(UnaryKind kind, double x, double y) {
  constexpr double kRounding = 0x1p-24;
  const double least = 0x1p-126 * std::max(1.0, std::fabs(x));  // exp ends at the least normal number
  const bool times_x = kind == UnaryKind::kSilu || kind == UnaryKind::kGelu || kind == UnaryKind::kGeluTanh;
  const double size =
      times_x ? std::max({1.0, std::fabs(x), std::fabs(y)}) : std::max(is_activation(kind) ? 1.0 : 0.0, std::fabs(y));
  return (kind == UnaryKind::kWholePower ? 5e-7 : 4e-7) * size + kRounding * std::fabs(y) + least;
}

/// The loop of a row; null where the instruction set has none.
auto loop_of(const Row& row, const Kernels& kernels) -> decltype(kernels.others->map) {
  if (is_activation(row.kind)) return kernels.activations->map;
  return kernels.others ? kernels.others->map : nullptr;
}

void compare(const Row& row, const Kernels& kernels, double p, double q) {
  const std::vector<float> x = grid();
  std::vector<float> y(x.size());
  const cpu::UnaryF32 function{row.kind, static_cast<float>(p), static_cast<float>(q)};
  loop_of(row, kernels)(function, x.data(), y.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const double real = static_cast<double>(x[i]);
    const double wanted = row.formula(real, static_cast<double>(function.p), static_cast<double>(function.q));
    const auto rounded = static_cast<float>(wanted);
    const std::string where = str_cat(unary_name(row.kind), "(", x[i], "; ", function.p, ", ", function.q, ") by ",
                                      kernel_isa_name(kernels.needs));
    if (std::isnan(rounded)) {
      EXPECT_TRUE(std::isnan(y[i])) << where << " is " << y[i];
    } else if (std::isinf(rounded)) {
      EXPECT_EQ(y[i], rounded) << where;
    } else {
      EXPECT_NEAR(static_cast<double>(y[i]), wanted, bound(row.kind, real, wanted)) << where;
    }
  }
}

TEST(UnaryKernel, EveryRowAgreesWithItsReference) {
  int compared = 0;
  for (const Row& row : kRows) {
    const auto parameters = unary_parameters(row.kind);
    const double p = parameters.size() > 0 ? parameters[0].float_default() : 0;
    const double q = parameters.size() > 1 ? parameters[1].float_default() : 0;
    for (const Kernels& kernels : kKernels) {
      if (!cpu_runs(kernels.needs) || !loop_of(row, kernels)) continue;
      compare(row, kernels, p, q);
      if (row.kind == UnaryKind::kWholePower) {
        compare(row, kernels, -3, 0);
      } else if (!parameters.empty()) {
        compare(row, kernels, 0.375, 1.75);
      }
      ++compared;
    }
  }
  EXPECT_GE(compared, static_cast<int>(std::size(kRows)));
}

TEST(Unary, NamesAndParameters) {
  EXPECT_EQ(unary_name(UnaryKind::kNone), "");
  for (const Row& row : kRows) {
    EXPECT_LE(unary_parameters(row.kind).size(), 2u) << unary_name(row.kind);
    const OpDef* op = find_op(unary_name(row.kind));
    if (op) {
      EXPECT_EQ(op->unary, row.kind) << op->name;
    }
  }
  for (const OpDef* op : all_ops()) {
    if (op->unary == UnaryKind::kNone) continue;
    EXPECT_EQ(unary_name(op->unary), op->name);
    EXPECT_TRUE(op->has(Trait::kElementwise)) << op->name;
    const auto parameters = unary_parameters(op->unary);
    if (op->unary == UnaryKind::kClip || op->unary == UnaryKind::kGelu) continue;  // inputs; a string
    ASSERT_EQ(op->attrs.size(), parameters.size()) << op->name;
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_EQ(std::string_view(op->attrs.begin()[i].name), std::string_view(parameters[i].name)) << op->name;
    }
  }
}

}  // namespace
}  // namespace pinnace::testing
