// Operators that sum products of quantised types, held to q = clamp(round_half_even(float32(sum) * m) + zero): sums of
// one product for all 65536 pairs of bytes, longer ones against sums in 64 bits, accumulators at their ends.
#include <cstring>
#include <functional>

#include "cpp/cpu/quantized_contract.h"

namespace pinnace::testing {
namespace {

/// Scales of x, w and y, by which m is a half, whole, above one, endless, denormal, zero, huge.
constexpr float kScales[][3] = {{0.5f, 1, 1},
                                {1, 1, 1},
                                {2, 1, 1},
                                {0.02f, 0.003f, 0.05f},
                                {1 / 3.0f, 1 / 7.0f, 1 / 11.0f},
                                {1e-20f, 1e-20f, 1},
                                {1e-30f, 1e-20f, 1},
                                {1e10f, 1e10f, 1},
                                {3e38f, 1, 1},
                                {0.25f, 0.125f, 1}};
constexpr int32_t kBiases[] = {0,     1, -1, INT32_MAX, INT32_MIN, (1 << 24) + 1, -(1 << 24) - 3, INT32_MAX - 64,
                               12345, -7};

struct Case {
  DType x, w;
  Parameters from, to;
  std::vector<float> w_scales;  ///< one, or one per byte of w
  std::vector<int32_t> w_zeros;
  bool bias;
  const char* activation;
};

std::shared_ptr<const Quantization> weights_of(const Case& c, int32_t axis) {
  return std::make_shared<Quantization>(Quantization{c.w_scales, c.w_zeros, c.w_scales.size() > 1 ? axis : -1, 0});
}

/// Result of byte i of x times byte j of w, at [i * 256 + j].
std::vector<uint8_t> products(const Case& c) {
  Limits limits = limits_of(c.x);
  if (std::string_view(c.activation) == "relu") limits.low = std::max(limits.low, c.to.zero);
  if (std::string_view(c.activation) == "clip") {
    limits = {stored_of(-1.0f, c.to, c.x), stored_of(6.0f, c.to, c.x)};
  }
  std::vector<uint8_t> want;
  for (const uint8_t x : every_byte(c.x)) {
    size_t j = 0;
    for (const uint8_t w : every_byte(c.w)) {
      const size_t channel = c.w_scales.size() > 1 ? j : 0;
      int64_t sum = int64_t{integer_of(x, c.x) - c.from.zero} * (integer_of(w, c.w) - c.w_zeros[channel]);
      if (c.bias) sum += kBiases[j % std::size(kBiases)];
      want.push_back(static_cast<uint8_t>(requantized(sum, c.from.scale, c.w_scales[channel], c.to, limits)));
      ++j;
    }
  }
  return want;
}

std::vector<uint8_t> transposed(const std::vector<uint8_t>& square) {
  std::vector<uint8_t> turned(square.size());
  for (size_t i = 0; i < square.size(); ++i) turned[i % 256 * 256 + i / 256] = square[i];
  return turned;
}

/// The same products by each operator that forms them; x varies along one side of the result, w along the other.
bool check(const Case& c) {
  const std::vector<uint8_t> want = products(c);
  std::vector<int32_t> bias;
  for (size_t j = 0; j < 256; ++j) bias.push_back(kBiases[j % std::size(kBiases)]);
  const auto finish = [&](Call& call) -> Call& {
    if (c.bias) call.input(DType::kI32, {256}, bias);
    if (*c.activation) call.attr("activation", std::string(c.activation));
    if (std::string_view(c.activation) == "clip") call.attr("activation_params", std::vector<double>{-1, 6});
    return call.declare(c.to);
  };
  const auto x = every_byte(c.x), w = every_byte(c.w);
  Call conv("conv"), turned("conv_transpose"), gemm("gemm"), gemm_t("gemm"), mat_mul("mat_mul");
  conv.quantized(c.x, {1, 1, 256}, x, c.from).input(c.w, {256, 1, 1}, w, weights_of(c, 0));
  turned.quantized(c.x, {1, 1, 256}, x, c.from).input(c.w, {1, 256, 1}, w, weights_of(c, 1));
  gemm.quantized(c.x, {256, 1}, x, c.from).input(c.w, {1, 256}, w, weights_of(c, 1));
  gemm_t.quantized(c.x, {1, 256}, x, c.from).input(c.w, {256, 1}, w, weights_of(c, 0));
  gemm_t.attr("trans_a", int64_t{1}).attr("trans_b", int64_t{1});
  mat_mul.quantized(c.x, {256, 1}, x, c.from).input(c.w, {1, 256}, w, weights_of(c, 1));
  const std::vector<uint8_t> by_channel = transposed(want);
  return finish(conv).gives(by_channel) && finish(turned).gives(by_channel) && finish(gemm).gives(want) &&
         finish(gemm_t).gives(want) && finish(mat_mul).gives(want);
}

TEST(QuantizedContract, SumsOfOneProduct) {
  size_t combination = 0;
  for (const DType x : {DType::kI8, DType::kU8}) {
    for (const DType w : {DType::kI8, DType::kU8}) {
      for (const auto& [x_scale, w_scale, y_scale] : kScales) {
        for (const int32_t x_zero : zero_points(x)) {
          for (const int32_t w_zero : zero_points(w)) {
            for (const int32_t y_zero : zero_points(x)) {
              const size_t at = combination++;
              if (!in_slice(at, 64, 2)) continue;
              Case c{x, w, {x_scale, x_zero}, {y_scale, y_zero}, {w_scale}, {w_zero}, at % 2 == 0, ""};
              c.activation = at % 5 == 0 ? "relu" : at % 5 == 1 ? "clip" : "";
              if (at % 3 == 0) {  // per channel
                for (size_t j = 0; j < 256; ++j) {
                  c.w_scales.push_back(w_scale * (1 + static_cast<float>(j) / 97));
                  c.w_zeros.push_back(zero_points(w)[j % zero_points(w).size()]);
                }
                c.w_scales.pop_back();
                c.w_zeros.pop_back();
                if (x_scale * 4 > 3e38f) continue;  // m would leave float32, which is refused
              }
              ASSERT_TRUE(check(c)) << to_string(TensorType{w, {}, nullptr}) << " bias " << c.bias << " "
                                    << c.activation;
            }
          }
        }
      }
    }
  }
}

/// Sums as long as int32 holds are taken, one product more is refused.
TEST(QuantizedContract, LongestSums) {
  struct Longest {
    DType dtype;
    int32_t zero;
    uint8_t byte;
    int64_t magnitude;
  };
  for (const Longest& l : {Longest{DType::kU8, 0, 255, 255}, Longest{DType::kI8, -128, 127, 255},
                           Longest{DType::kI8, 0, 128, 128}, Longest{DType::kU8, 128, 0, 128}}) {
    const int64_t length = INT32_MAX / (l.magnitude * l.magnitude);
    const auto call_of = [&](int64_t count) {
      const std::vector<uint8_t> bytes(static_cast<size_t>(count), l.byte);
      const Parameters p{1, l.zero};
      Call call("mat_mul");
      call.quantized(l.dtype, {1, count}, bytes, p).quantized(l.dtype, {count, 1}, bytes, p);
      return call.declare({3e7f, 5});
    };
    const int64_t sum = length * l.magnitude * l.magnitude;
    EXPECT_TRUE(call_of(length).gives(
        std::vector<uint8_t>{static_cast<uint8_t>(requantized(sum, 1, 1, {3e7f, 5}, limits_of(l.dtype)))}));
    const Call longer = call_of(length + 1);
    const auto refused = longer.run(longer.op->reference);
    ASSERT_FALSE(refused.ok()) << length + 1;
    EXPECT_NE(refused.status().message().find("could leave int32"), std::string::npos) << refused.status().message();
  }
}

// ------------------------------------------------------------------------------------------------ sums of many
// products

TEST(QuantizedContract, MatricesOfManySizes) {
  Random random(test_seed());
  for (int round = 0; round < 60; ++round) {
    const auto size = [&] { return random.integer(1, round % 4 ? 9 : 70); };
    const int64_t batch = random.integer(1, 3), rows = size(), inner = size(), columns = size();
    const DType x = random.bits() & 1 ? DType::kI8 : DType::kU8, w = random.bits() & 1 ? DType::kI8 : DType::kU8;
    const auto zero_of = [&](DType dtype) {
      return static_cast<int32_t>(random.integer(limits_of(dtype).low, limits_of(dtype).high));
    };
    const Parameters from{0.02f, zero_of(x)}, weight{0.01f, zero_of(w)}, to{0.05f, zero_of(x)};
    const auto a = random_bytes(random, batch * rows * inner), b = random_bytes(random, inner * columns);
    std::vector<uint8_t> want;
    for (int64_t r = 0; r < batch * rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        int64_t sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += int64_t{integer_of(a[static_cast<size_t>(r * inner + k)], x) - from.zero} *
                 (integer_of(b[static_cast<size_t>(k * columns + c)], w) - weight.zero);
        }
        want.push_back(static_cast<uint8_t>(requantized(sum, from.scale, weight.scale, to, limits_of(x))));
      }
    }
    Call call("mat_mul");
    call.quantized(x, {batch, rows, inner}, a, from).quantized(w, {inner, columns}, b, weight).declare(to);
    ASSERT_TRUE(call.gives(want));
    // Plain integers with zero points as inputs: the sums themselves.
    std::vector<int32_t> sums;
    for (int64_t r = 0; r < batch * rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        int32_t sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += (integer_of(a[static_cast<size_t>(r * inner + k)], x) - from.zero) *
                 (integer_of(b[static_cast<size_t>(k * columns + c)], w) - weight.zero);
        }
        sums.push_back(sum);
      }
    }
    Call plain("mat_mul_integer");
    plain.input(x, {batch, rows, inner}, a).input(w, {inner, columns}, b);
    plain.input(x, {}, std::vector<uint8_t>{static_cast<uint8_t>(from.zero)});
    plain.input(w, {}, std::vector<uint8_t>{static_cast<uint8_t>(weight.zero)});
    ASSERT_TRUE(plain.gives(sums));
  }
}

/// Windows in two dimensions, written out: padding is the zero point, so it adds nothing.
TEST(QuantizedContract, ConvolutionsOfManySizes) {
  Random random(test_seed() + 1);
  for (int round = 0; round < 60; ++round) {
    const int64_t groups = random.integer(1, 3), in_g = random.integer(1, 3), out_g = random.integer(1, 3);
    const int64_t channels = groups * in_g, filters = groups * out_g, kernel = random.integer(1, 3);
    const int64_t height = random.integer(kernel * 2, 9), width = random.integer(kernel * 2, 9);
    const int64_t stride = random.integer(1, 3), step = random.integer(1, 2), pad = random.integer(0, kernel - 1);
    const DType x = random.bits() & 1 ? DType::kI8 : DType::kU8, w = random.bits() & 1 ? DType::kI8 : DType::kU8;
    const Parameters from{0.03f, zero_points(x)[static_cast<size_t>(random.integer(0, 3))]},
        to{0.11f, zero_points(x)[2]};
    std::vector<float> scales;
    std::vector<int32_t> zeros, bias;
    for (int64_t m = 0; m < filters; ++m) {
      scales.push_back(0.01f * static_cast<float>(m + 1));
      zeros.push_back(zero_points(w)[static_cast<size_t>(m) % 4]);
      bias.push_back(static_cast<int32_t>(random.integer(-3000, 3000)));
    }
    const auto image = random_bytes(random, channels * height * width);
    const auto taps = random_bytes(random, filters * in_g * kernel * kernel);
    const int64_t reach = step * (kernel - 1) + 1;
    const int64_t out_h = (height + 2 * pad - reach) / stride + 1, out_w = (width + 2 * pad - reach) / stride + 1;
    std::vector<uint8_t> want;
    std::vector<int32_t> sums;
    for (int64_t m = 0; m < filters; ++m) {
      for (int64_t at = 0; at < out_h * out_w; ++at) {
        int64_t sum = 0;
        for (int64_t c = 0; c < in_g; ++c) {
          for (int64_t k = 0; k < kernel * kernel; ++k) {
            const int64_t y = at / out_w * stride + k / kernel * step - pad,
                          z = at % out_w * stride + k % kernel * step - pad;
            if (y < 0 || z < 0 || y >= height || z >= width) continue;
            const int64_t channel = m / out_g * in_g + c;
            sum += int64_t{integer_of(image[static_cast<size_t>((channel * height + y) * width + z)], x) - from.zero} *
                   (integer_of(taps[static_cast<size_t>((m * in_g + c) * kernel * kernel + k)], w) -
                    zeros[static_cast<size_t>(m)]);
          }
        }
        sums.push_back(static_cast<int32_t>(sum));
        const auto f = static_cast<size_t>(m);
        want.push_back(static_cast<uint8_t>(requantized(sum + bias[f], from.scale, scales[f], to, limits_of(x))));
      }
    }
    const auto windowed = [&](Call call) {
      call.attr("group", groups).attr("strides", std::vector<int64_t>{stride, stride});
      call.attr("dilations", std::vector<int64_t>{step, step}).attr("pads", std::vector<int64_t>(4, pad));
      return call;
    };
    Call conv("conv"), plain("conv_integer");
    conv.quantized(x, {1, channels, height, width}, image, from);
    conv.input(w, {filters, in_g, kernel, kernel}, taps,
               std::make_shared<Quantization>(Quantization{scales, zeros, 0, 0}));
    conv.input(DType::kI32, {filters}, bias).declare(to);
    ASSERT_TRUE(windowed(conv).gives(want)) << "seed " << test_seed();
    plain.input(x, {1, channels, height, width}, image).input(w, {filters, in_g, kernel, kernel}, taps);
    plain.input(x, {}, std::vector<uint8_t>{static_cast<uint8_t>(from.zero)});
    plain.input(w, {filters}, std::vector<uint8_t>(zeros.begin(), zeros.end()));
    ASSERT_TRUE(windowed(plain).gives(sums)) << "seed " << test_seed();
  }
}

/// conv_transpose by its definition: every element of x adds its window to y.
TEST(QuantizedContract, TransposedConvolutionsOfManySizes) {
  Random random(test_seed() + 2);
  for (int round = 0; round < 40; ++round) {
    const int64_t channels = random.integer(1, 4), filters = random.integer(1, 4), kernel = random.integer(1, 4);
    const int64_t length = random.integer(1, 9), stride = random.integer(1, 3), pad = random.integer(0, kernel - 1);
    const int64_t out = (length - 1) * stride + kernel - 2 * pad;
    if (out < 1) continue;
    const Parameters from{0.1f, -3}, weight{0.2f, 4}, to{0.3f, 9};
    const auto x = random_bytes(random, channels * length), w = random_bytes(random, channels * filters * kernel);
    std::vector<int64_t> sums(static_cast<size_t>(filters * out));
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t f = 0; f < filters; ++f) {
          for (int64_t k = 0; k < kernel; ++k) {
            const int64_t o = i * stride + k - pad;
            if (o < 0 || o >= out) continue;
            sums[static_cast<size_t>(f * out + o)] +=
                int64_t{integer_of(x[static_cast<size_t>(c * length + i)], DType::kI8) - from.zero} *
                (integer_of(w[static_cast<size_t>((c * filters + f) * kernel + k)], DType::kI8) - weight.zero);
          }
        }
      }
    }
    std::vector<uint8_t> want;
    for (const int64_t sum : sums) {
      want.push_back(static_cast<uint8_t>(requantized(sum, from.scale, weight.scale, to, limits_of(DType::kI8))));
    }
    Call call("conv_transpose");
    call.quantized(DType::kI8, {1, channels, length}, x, from)
        .quantized(DType::kI8, {channels, filters, kernel}, w, weight);
    call.attr("strides", std::vector<int64_t>{stride}).attr("pads", std::vector<int64_t>{pad, pad}).declare(to);
    ASSERT_TRUE(call.gives(want)) << "seed " << test_seed();
  }
}

}  // namespace
}  // namespace pinnace::testing
