// A network that is worth measuring by "auto", and a fake back end beside which it is.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <pinnace/session.h>

#include "cpp/program/program_fixture.h"
#include "cpp/text_program.h"
#include "fakes/backend.h"

namespace pinnace::testing {

inline std::string numbers(int64_t count) {
  std::string text = "{";
  for (int64_t i = 0; i < count; ++i) text += str_cat(i ? "," : "", std::sin(0.37 * static_cast<double>(i)) / 16);
  return text + "}";
}

/// A convolution of 16 channels on images of this size, a state that counts runs, and an input of integers.
inline Program network(int64_t size, const char* rows = "1") {
  const std::string image = str_cat("f32[", rows, ",16,", size, ",", size, "]");
  return program_of(str_cat("graph \"g\" {\n", rows[0] == 'n' ? "  symbol n 1..64\n" : "", "  input %x : ", image,
                            "\n  input %i : i64[2]\n", "  state \"runs\" %s : f32[2] next %t = {0,0}\n",
                            "  const %w : f32[16,16,3,3] = ", numbers(16 * 16 * 9), "\n",
                            "  const %table : f32[3,2] = {1,1,2,2,3,3}\n", "  %c : ", image,
                            " = conv(%x, %w) {pads=[1,1,1,1]}\n  %y : ", image, " = relu(%c)\n",
                            "  %g : f32[2,2] = gather(%table, %i)\n  const %axes : i64[1] = {0}\n",
                            "  %one : f32[2] = reduce_min(%g, %axes) {keepdims=0}\n",
                            "  %t : f32[2] = sub(%s, %one)\n  output \"y\" %y\n  output \"t\" %t\n}"));
}
inline constexpr int64_t kLarge = 100;  // 23 million multiply-adds

struct Inputs {
  std::vector<float> x;
  std::vector<int64_t> i = {0, 2};
  std::vector<Tensor> all;
  explicit Inputs(int64_t size, int64_t rows = 1) {
    for (int64_t k = 0; k < rows * 16 * size * size; ++k) x.push_back(std::cos(0.11f * static_cast<float>(k)));
    Tensor image, indices;
    image.type = {DType::kF32, {rows, 16, size, size}, nullptr};
    image.memory.host = x.data();
    image.memory.bytes = x.size() * sizeof(float);
    indices.type = {DType::kI64, {2}, nullptr};
    indices.memory.host = i.data();
    indices.memory.bytes = 16;
    all = {image, indices};
  }
};

/// Each test has a device of its own, of which nothing is remembered.
class BesideAFake : public ::testing::Test {
 protected:
  // A real GPU would be measured first.
  static void SetUpTestSuite() { setenv("PINNACE_GPU_DEVICE_FILES", "/nonexistent", 1); }
  static void TearDownTestSuite() { unsetenv("PINNACE_GPU_DEVICE_FILES"); }
  void SetUp() override {
    fake.max_channels = 64;
    fake.is_measured = true;
    fake.idle = true;
    static int next = 0;
    fake.measured_as = str_cat("fake ", ++next);
  }
  Options options_for(const char* target) const {
    Options o;
    o.target = target;
    o.threads = 1;
    o.backends = {&fake};
    return o;
  }
  static Placement row(const Session& session, const std::string& op) {
    for (const Placement& r : session.placement()) {
      if (r.op == op) return r;
    }
    return {};
  }
  static std::string why(const Session& session) {
    std::string all;
    for (const std::string& text : row(session, "conv").why) {
      if (text.starts_with("fake ")) all += text + "\n";  // a machine may have a GPU too
    }
    return all;
  }
  fakes::FakeBackend fake;
};

}  // namespace pinnace::testing
