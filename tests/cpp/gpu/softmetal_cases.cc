// Inputs, launches and plain loops for the kernels of tests/softmetal/.
#include "cpp/gpu/softmetal_cases.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/half.h"

namespace pinnace {
namespace {

using Type = SoftmetalCase::Type;

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
std::vector<std::byte> result_bytes(size_t bytes) {
  return std::vector<std::byte>(bytes, std::byte{0xff});
}

std::vector<float> floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000;
  return values;
}
std::vector<uint16_t> to_halves(std::vector<float>& values) {
  std::vector<uint16_t> halves(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    halves[i] = float_to_half(values[i]);
    values[i] = half_to_float(halves[i]);
  }
  return halves;
}
uint32_t divided(int a, int b) {
  return static_cast<uint32_t>((a + b - 1) / b);
}
uint32_t bits_of(float f) {
  uint32_t bits = 0;
  memcpy(&bits, &f, 4);
  return bits;
}

std::vector<double> product(const std::vector<float>& a, const std::vector<float>& b, int M, int N, int K) {
  std::vector<double> c(static_cast<size_t>(M) * N);
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < K; ++k) {
      for (int n = 0; n < N; ++n) c[static_cast<size_t>(m) * N + n] += double{a[m * K + k]} * b[k * N + n];
    }
  }
  return c;
}

SoftmetalCase gemm_tiled(int M, int N, int K, bool relu) {
  const auto a = floats(static_cast<size_t>(M) * K, 1), b = floats(static_cast<size_t>(K) * N, 2), bias = floats(N, 3);
  SoftmetalCase c{"gemm_tiled", {bytes_of(a), bytes_of(b), bytes_of(bias), result_bytes(size_t{4} * M * N)}};
  c.push = bytes_of(std::vector<int>{M, N, K});
  c.spec = {relu ? 1 : 0};
  c.groups = {divided(N, 32), divided(M, 32), 1};
  c.local = {16, 16, 1};
  c.written = 8;
  std::vector<double> want = product(a, b, M, N, K);
  for (size_t i = 0; i < want.size(); ++i) {
    want[i] += bias[i % N];
    if (relu) want[i] = std::max(want[i], 0.0);
  }
  c.expected = {{3, Type::kF32, want, 1e-6}};
  return c;
}

SoftmetalCase softmax(int rows, int columns, uint32_t invocations) {
  const auto x = floats(static_cast<size_t>(rows) * columns, 4);
  const float scale = 7.5f;
  SoftmetalCase c{"softmax", {bytes_of(x), result_bytes(size_t{4} * rows * columns)}};
  c.push = bytes_of(std::vector<uint32_t>{static_cast<uint32_t>(columns), bits_of(scale)});
  c.groups = {static_cast<uint32_t>(rows), 1, 1};
  c.local = {invocations, 1, 1};
  c.written = 2;
  std::vector<double> want;
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < columns; ++i) sum += std::exp(double{scale} * x[r * columns + i]);
    for (int i = 0; i < columns; ++i) want.push_back(std::exp(double{scale} * x[r * columns + i]) / sum);
  }
  c.expected = {{1, Type::kF32, want, 3e-6}};
  return c;
}

SoftmetalCase depthwise(int blocks, int in, int stride) {
  const int out = (in - 1) / stride + 1;
  const auto x = floats(size_t{4} * blocks * in * in, 5), w = floats(size_t{36} * blocks, 6),
             bias = floats(size_t{4} * blocks, 7);
  SoftmetalCase c{"depthwise",
                  {bytes_of(x), bytes_of(w), bytes_of(bias), result_bytes(size_t{16} * blocks * out * out)}};
  c.push = bytes_of(std::vector<int>{blocks, in, in, out, out, stride});
  c.groups = {divided(out, 8), divided(out, 8), divided(blocks, 2)};
  c.local = {8, 8, 2};
  c.written = 8;
  std::vector<double> want;
  for (int b = 0; b < blocks; ++b) {
    for (int i = 0; i < out * out * 4; ++i) {
      const int lane = i % 4, column = i / 4 % out, row = i / 4 / out;
      double sum = bias[b * 4 + lane];
      for (int t = 0; t < 9; ++t) {
        const int r = row * stride - 1 + t / 3, q = column * stride - 1 + t % 3;
        if (r < 0 || r >= in || q < 0 || q >= in) continue;
        sum += double{x[((b * in + r) * in + q) * 4 + lane]} * w[(b * 9 + t) * 4 + lane];
      }
      want.push_back(std::clamp(sum, 0.0, 6.0));
    }
  }
  c.expected = {{3, Type::kF32, want, 1e-6}};
  return c;
}

SoftmetalCase gemm_f16(int M, int N, int K) {
  auto a = floats(static_cast<size_t>(M) * K, 8), b = floats(static_cast<size_t>(K) * N, 9);
  const auto a16 = to_halves(a), b16 = to_halves(b);
  SoftmetalCase c{"gemm_f16", {bytes_of(a16), bytes_of(b16), result_bytes(size_t{2} * M * N)}};
  c.push = bytes_of(std::vector<int>{M, N, K});
  c.groups = {divided(N, 32), divided(M, 8), 1};
  c.local = {8, 8, 1};
  c.written = 4;
  c.expected = {{2, Type::kF16, product(a, b, M, N, K), 1.0 / 2048}};  // half a unit of the largest
  return c;
}

SoftmetalCase dot_i8(int rows, int columns, int quads) {
  std::mt19937 random(10);
  std::vector<int8_t> x(size_t{4} * rows * quads), w(size_t{4} * columns * quads);
  for (int8_t& v : x) v = static_cast<int8_t>(random());
  for (int8_t& v : w) v = static_cast<int8_t>(random());
  const float scale = 0.0007f;
  const int zero = 5;
  SoftmetalCase c{"dot_i8",
                  {bytes_of(x), bytes_of(w), result_bytes((static_cast<size_t>(rows) * columns + 3) / 4 * 4)}};
  c.push = bytes_of(std::vector<uint32_t>{static_cast<uint32_t>(rows), static_cast<uint32_t>(columns),
                                          static_cast<uint32_t>(quads), static_cast<uint32_t>(zero), bits_of(scale)});
  c.groups = {divided(columns, 8), divided(rows, 4), 1};
  c.local = {8, 4, 1};
  c.written = 4;
  std::vector<double> want;
  for (int r = 0; r < rows; ++r) {
    for (int n = 0; n < columns; ++n) {
      int sum = 0;
      for (int k = 0; k < 4 * quads; ++k) sum += int{x[r * 4 * quads + k]} * w[n * 4 * quads + k];
      const int q = static_cast<int>(std::nearbyint(static_cast<float>(sum) * scale)) + zero;
      want.push_back(std::clamp(q, -128, 127));
    }
  }
  c.expected = {{2, Type::kI8, want, 0}};
  return c;
}

SoftmetalCase gemm_simdgroup(int M, int N, int K) {
  auto a = floats(static_cast<size_t>(M) * K, 11);
  const auto a16 = to_halves(a);
  const auto b = floats(static_cast<size_t>(K) * N, 12);
  SoftmetalCase c{"gemm_simdgroup", {bytes_of(a16), bytes_of(b), result_bytes(size_t{4} * M * N)}};
  c.push = bytes_of(std::vector<int>{M, N, K});
  c.groups = {static_cast<uint32_t>(N / 8), 1, 1};
  c.local = {128, 1, 1};
  c.written = 4;
  c.expected = {{2, Type::kF32, product(a, b, M, N, K), 1e-6}};
  return c;
}

SoftmetalCase histogram(uint32_t count) {
  std::mt19937 random(13);
  std::vector<uint8_t> x((count + 3) / 4 * 4);
  for (uint8_t& v : x) v = static_cast<uint8_t>(random() % 251);
  SoftmetalCase c{"histogram", {bytes_of(x), bytes_of(std::vector<uint32_t>(64))}};
  c.push = bytes_of(std::vector<uint32_t>{count});
  c.groups = {divided(static_cast<int>(count), 64), 1, 1};
  c.local = {64, 1, 1};
  c.written = 2;
  std::vector<double> want(64);
  for (uint32_t i = 0; i < count; ++i) want[x[i] / 4] += 1;
  c.expected = {{1, Type::kI32, want, 0}};
  return c;
}

SoftmetalCase packed_types() {
  constexpr int kCount = 64;
  const auto points = floats(size_t{3} * kCount, 14);
  auto h = floats(size_t{4} * kCount, 15);
  const auto h16 = to_halves(h);
  const float shift[3] = {1, 2, 3}, limit = 0.5f;
  SoftmetalCase c{"packed_types",
                  {bytes_of(points), bytes_of(h16), result_bytes(4 * kCount), result_bytes(4 * kCount)}};
  c.push = bytes_of(std::vector<float>{shift[0], shift[1], shift[2], limit});
  c.groups = {kCount / 32, 1, 1};
  c.local = {32, 1, 1};
  c.written = 13;
  std::vector<double> moved, out, bits;
  for (int t = 0; t < kCount; ++t) {
    double point[3];
    for (int d = 0; d < 3; ++d) moved.push_back(point[d] = points[t * 3 + d] + shift[d]);
    int big = 0;
    double chosen = 0;
    const double weights[4] = {1000, 100, 10, 1}, values[4] = {1, 2, 4, 8};
    for (int i = 0; i < 4; ++i) {
      // Products and sums of halves are rounded one by one.
      const float twice = half_to_float(float_to_half(h[t * 4 + i] * 2));
      const float value = half_to_float(float_to_half(twice + 0.5f));
      if (i == 0) {
        const uint32_t u = bits_of(value), low = u | 1024;
        bits.push_back(static_cast<int32_t>(__builtin_popcount(u) + 100 * (u ? __builtin_clz(u) : 32) +
                                            10000 * __builtin_ctz(low) + (u >> 23 & 255) * 1000000));
      }
      big += value > limit;
      if (value > limit) chosen += weights[i] * values[i];
    }
    out.push_back((big == 4 ? 100000 : 0) + (big > 0 ? 50000 : 0) + chosen +
                  std::sqrt(point[0] * point[0] + point[1] * point[1]) + t % 32);
  }
  c.expected = {{0, Type::kF32, moved, 1e-6}, {2, Type::kF32, out, 1e-6}, {3, Type::kI32, bits, 0}};
  return c;
}

SoftmetalCase scan() {
  constexpr int kCount = 128;
  std::mt19937 random(16);
  std::vector<int32_t> x(kCount);
  for (int32_t& v : x) v = static_cast<int32_t>(random() % 1000) - 500;
  SoftmetalCase c{"scan", {bytes_of(x), result_bytes(4 * kCount), result_bytes(4 * kCount)}};
  c.local = {kCount, 1, 1};
  c.threadgroup_bytes = 16 * 4;
  c.written = 6;
  std::vector<double> want;
  for (int i = 0; i < kCount; ++i) want.push_back((i ? want.back() : 0) + x[i]);
  c.expected = {{1, Type::kI32, want, 0}, {2, Type::kI32, std::vector<double>(kCount, 31), 0}};
  return c;
}

SoftmetalCase transpose(int rows, int columns) {
  std::vector<int16_t> x((static_cast<size_t>(rows) * columns + 1) / 2 * 2);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int16_t>(i * 7919);
  SoftmetalCase c{"transpose", {bytes_of(x), result_bytes(2 * x.size())}};
  c.push = bytes_of(std::vector<int>{rows, columns});
  c.groups = {divided(columns, 16), divided(rows, 16), 1};
  c.local = {16, 16, 1};
  c.written = 2;
  std::vector<double> want;
  for (int q = 0; q < columns; ++q) {
    for (int r = 0; r < rows; ++r) want.push_back(x[r * columns + q]);
  }
  c.expected = {{1, Type::kI16, want, 0}};
  return c;
}

double value_of(const std::byte* data, Type type, size_t i) {
  const auto as = [&]<class T>(T) {
    T value;
    memcpy(&value, data + i * sizeof(T), sizeof(T));
    return value;
  };
  switch (type) {
    case Type::kF32:
      return as(float{});
    case Type::kF16:
      return half_to_float(as(uint16_t{}));
    case Type::kI32:
      return as(int32_t{});
    case Type::kI16:
      return as(int16_t{});
    case Type::kI8:
      break;
  }
  return as(int8_t{});
}

}  // namespace

const SoftmetalLibrary* softmetal_test_kernels() {
#ifdef PINNACE_TEST_KERNELS
  static const SoftmetalLibrary* const library = [] {
    void* handle = dlopen(PINNACE_TEST_KERNELS, RTLD_NOW | RTLD_LOCAL);
    const auto entry = handle ? reinterpret_cast<SoftmetalEntry>(dlsym(handle, SOFTMETAL_ENTRY)) : nullptr;
    return entry ? entry() : nullptr;
  }();
  return library;
#else
  return nullptr;
#endif
}

const std::vector<std::string>& softmetal_kernel_names() {
  static const auto* const names =
      new std::vector<std::string>{"depthwise", "dot_i8",       "gemm_f16", "gemm_simdgroup", "gemm_tiled",
                                   "histogram", "packed_types", "scan",     "softmax",        "transpose"};
  return *names;
}

std::vector<SoftmetalCase> softmetal_cases(const std::string& kernel) {
  if (kernel == "gemm_tiled")
    return {gemm_tiled(33, 45, 50, false), gemm_tiled(32, 64, 16, true), gemm_tiled(5, 7, 3, true)};
  if (kernel == "softmax") return {softmax(3, 100, 128), softmax(2, 1000, 128), softmax(1, 5, 64)};
  if (kernel == "depthwise") return {depthwise(3, 9, 1), depthwise(2, 12, 2), depthwise(1, 1, 1)};
  if (kernel == "gemm_f16") return {gemm_f16(9, 36, 68), gemm_f16(8, 32, 32), gemm_f16(1, 4, 4)};
  if (kernel == "dot_i8") return {dot_i8(5, 12, 9), dot_i8(1, 3, 1)};
  if (kernel == "gemm_simdgroup") return {gemm_simdgroup(40, 16, 24), gemm_simdgroup(8, 8, 8)};
  if (kernel == "histogram") return {histogram(1000), histogram(64)};
  if (kernel == "packed_types") return {packed_types()};
  if (kernel == "scan") return {scan()};
  return {transpose(33, 20), transpose(16, 16), transpose(1, 2)};
}

std::string wrong_answer(const SoftmetalCase& c, const std::vector<std::vector<std::byte>>& results) {
  for (const SoftmetalCase::Expected& e : c.expected) {
    double largest = 0;
    for (const double v : e.values) largest = std::max(largest, std::abs(v));
    for (size_t i = 0; i < e.values.size(); ++i) {
      const double got = value_of(results[static_cast<size_t>(e.buffer)].data(), e.type, i);
      if (std::abs(got - e.values[i]) <= e.tolerance * largest) continue;  // a NaN is not
      return str_cat("wrong answer: buffer ", e.buffer, " element ", i, " is ", got, ", not ", e.values[i]);
    }
  }
  return {};
}

std::string run_softmetal(const SoftmetalCase& c, const std::string& kernel, const softmetal::Execution& execution,
                          std::vector<std::vector<std::byte>>* results) {
  const SoftmetalLibrary* library = softmetal_test_kernels();
  uint32_t index = 0;
  while (index < library->kernel_count && library->name(index) != kernel) ++index;
  std::vector<std::vector<std::byte>> buffers = c.buffers;
  std::vector<std::byte> push = c.push;
  std::vector<SoftmetalConstant> constants;
  for (size_t i = 0; i < c.spec.size(); ++i) {
    constants.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(c.spec[i])});
  }
  char message[512] = "";
  SoftmetalLaunch launch{};
  for (size_t i = 0; i < buffers.size(); ++i) launch.buffers[i] = {buffers[i].data(), buffers[i].size()};
  launch.buffers[30] = {push.data(), push.size()};
  launch.threadgroup_bytes[0] = c.threadgroup_bytes;
  launch.constants = constants.data();
  launch.constant_count = constants.size();
  std::copy(c.groups.begin(), c.groups.end(), launch.groups);
  std::copy(c.local.begin(), c.local.end(), launch.group_size);
  launch.order = execution.order;
  launch.seed = execution.seed;
  launch.simd_width = execution.simd_width;
  launch.races = execution.races;
  launch.message = message;
  launch.message_bytes = sizeof message;
  if (library->run(index, &launch) != kSoftmetalOk) return message;
  if (results) *results = buffers;
  return wrong_answer(c, buffers);
}

}  // namespace pinnace
