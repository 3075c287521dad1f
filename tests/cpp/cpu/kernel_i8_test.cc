// 8-bit kernels on seeded random nodes, a family at a time, on every instruction set that this processor has: the bytes
// of the reference code. Odd sizes, channels that fill no register, zero points at the ends, multipliers above one,
// results that saturate at both ends. A slice in every run, 1,000 of a family with PINNACE_TEST_ALL=1.
#include <map>

#include "cpp/cpu/quantized_contract.h"

namespace pinnace::testing {
namespace {

/// What one family ran: lines of kernels.inc by name.
class Family {
 public:
  Family() : random_(test_seed()) {}
  Random& random() { return random_; }
  int64_t upto(int64_t low, int64_t high) { return random_.integer(low, high); }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + random_.integer(0, static_cast<int64_t>(list.size()) - 1));
  }
  DType byte() { return one_of({DType::kI8, DType::kU8}); }
  Parameters parameters(DType dtype, float scale) {
    const auto zeros = zero_points(dtype);
    return {scale, zeros[static_cast<size_t>(upto(0, static_cast<int64_t>(zeros.size()) - 1))]};
  }
  /// Bytes over the whole range, or some of them at its ends.
  std::vector<uint8_t> bytes(DType dtype, int64_t count) {
    std::vector<uint8_t> all = random_bytes(random_, count);
    const Limits limits = limits_of(dtype);
    const int64_t kind = upto(0, 5);
    for (uint8_t& b : all) {
      if (kind == 0) b = static_cast<uint8_t>(limits.high);
      if (kind == 1) b = static_cast<uint8_t>(limits.low);
      if (kind == 2 && upto(0, 1)) b = static_cast<uint8_t>(upto(0, 1) ? limits.high : limits.low);
    }
    return all;
  }
  Call& operand(Call& call, DType dtype, const Shape& shape, Parameters p) {
    int64_t count = 1;
    for (const Dim& d : shape) count *= d.size;
    return call.quantized(dtype, shape, bytes(dtype, count), p);
  }
  /// Weights of a product: i8 around 0 or u8 around 128, or with any zero points, for all channels of `axis` or for
  /// each.
  Call& weights(Call& call, const Shape& shape, int32_t axis) {
    const DType dtype = byte();
    int64_t count = 1;
    for (const Dim& d : shape) count *= d.size;
    Quantization q{{}, {}, -1, 0};
    const bool each = upto(0, 1), any = upto(0, 2) == 0;
    const int64_t channels = each ? shape[static_cast<size_t>(axis)].size : 1;
    for (int64_t i = 0; i < channels; ++i) {
      q.scales.push_back(0.002f * static_cast<float>(upto(1, 30)));
      const int32_t zero = any ? parameters(dtype, 1).zero : dtype == DType::kU8 ? 128 : 0;
      q.zero_points.push_back(zero);
    }
    if (each) q.axis = axis;
    return call.input(dtype, shape, bytes(dtype, count), std::make_shared<Quantization>(q));
  }
  Call& bias(Call& call, int64_t n) {
    std::vector<int32_t> numbers;
    for (int64_t i = 0; i < n; ++i) {
      numbers.push_back(static_cast<int32_t>(upto(0, 20) == 0 ? upto(INT32_MIN, INT32_MAX) : upto(-20000, 20000)));
    }
    return call.input(DType::kI32, {n}, numbers);
  }
  /// A scale of a result under which sums of `length` products spread over its range, saturate, or have m above one.
  float result_scale(int64_t length) {
    return one_of({0.0005f, 0.05f, 0.05f * static_cast<float>(length), 30.0f * static_cast<float>(length)});
  }
  void activation(Call& call) {
    const int64_t kind = upto(0, 3);
    if (kind == 1) call.attr("activation", std::string("relu"));
    if (kind == 2) {
      const double low = static_cast<double>(upto(-3, 2));
      call.attr("activation", std::string("clip"));
      call.attr("activation_params", std::vector<double>{low, low + static_cast<double>(upto(-1, 6))});
    }
  }

  /// The reference's bytes from every line that takes the node. False after a failure.
  [[nodiscard]] bool agrees(const Call& call) {
    const auto want = call.run(call.op->reference);
    if (!want.ok()) {
      ADD_FAILURE() << call.text() << ": " << want.status().message();
      return false;
    }
    for (const CpuKernelLine& line : cpu_kernels()) {
      if (line.op != call.op->name || line.dtype != call.types[0].dtype || !line_runs(line)) continue;
      if (line.name.find("_i8_") == std::string_view::npos) continue;
      const auto got = call.run_line(line, static_cast<int>(upto(1, 3)));
      if (!got.ok() && got.status().code() == Code::kUnsupported) continue;
      if (!got.ok()) {
        ADD_FAILURE() << line.name << ": " << got.status().message();
        return false;
      }
      ++ran_[std::string(line.name)];
      for (size_t k = 1; k < want->size(); ++k) {
        const Buffer &a = (*got)[k].bytes, &b = (*want)[k].bytes;
        if (std::memcmp(a.data(), b.data(), b.size()) == 0) continue;
        ADD_FAILURE() << line.name << " " << call.text() << ": output " << k << " differs; seed " << test_seed();
        return false;
      }
      const Buffer &a = (*got)[0].bytes, &b = (*want)[0].bytes;
      for (size_t i = 0; i < b.size(); ++i) {
        if (a.data()[i] == b.data()[i]) continue;
        ADD_FAILURE() << line.name << " " << call.text() << ": byte " << i << " is " << static_cast<int>(a.data()[i])
                      << ", the reference gives " << static_cast<int>(b.data()[i]) << "; seed " << test_seed();
        for (const auto& [name, attr] : call.node.attrs) {
          if (const auto* list = std::get_if<std::vector<int64_t>>(&attr)) {
            ADD_FAILURE() << name << " " << ::testing::PrintToString(*list);
          }
        }
        return false;
      }
    }
    return true;
  }
  /// How often lines with this beginning ran, each at least that often.
  void expect_ran(std::string_view prefix) {
    for (const CpuKernelLine& line : cpu_kernels()) {
      if (!line.name.starts_with(prefix) || line.name.find("_i8_") == std::string_view::npos) continue;
      if (!line_runs(line)) continue;
      EXPECT_GT(ran_[std::string(line.name)], 0) << line.name;
    }
  }

 private:
  Random random_;
  std::map<std::string, int> ran_;
};

int cases(int slice) {
  static const char* const value = std::getenv("PINNACE_TEST_ALL");
  return value && std::string_view(value) == "1" ? 1000 : slice;
}

/// Kernel, stride, dilation and pads of a window that fits h x w.
struct Spatial {
  std::vector<int64_t> kernel, strides, dilations, pads;
};
Spatial spatial(Family& f, int64_t h, int64_t w, int64_t largest) {
  Spatial s;
  s.pads.assign(4, 0);
  for (int d = 0; d < 2; ++d) {
    const int64_t size = d ? w : h;
    const int64_t kernel = f.upto(1, largest), dilation = f.upto(0, 4) ? 1 : f.upto(1, 3);
    const int64_t extent = (kernel - 1) * dilation + 1;
    s.kernel.push_back(kernel);
    s.dilations.push_back(dilation);
    s.strides.push_back(f.upto(1, 3));
    s.pads[static_cast<size_t>(d)] = f.upto(0, std::min<int64_t>(extent - 1, 3));
    s.pads[static_cast<size_t>(d) + 2] = f.upto(0, std::min<int64_t>(extent - 1, 3));
    const int64_t missing = extent - size - s.pads[static_cast<size_t>(d)] - s.pads[static_cast<size_t>(d) + 2];
    if (missing > 0) {
      s.kernel.back() = 1;
      s.dilations.back() = 1;
      s.pads[static_cast<size_t>(d)] = s.pads[static_cast<size_t>(d) + 2] = 0;
    }
  }
  return s;
}

TEST(KernelI8, Convolutions) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const int64_t groups = f.upto(0, 3) ? 1 : f.upto(2, 4), in = f.one_of({1, 3, 4, 5, 8, 13, 16, 24, 37, 64});
    const int64_t out = f.one_of({1, 2, 7, 8, 16, 24, 31, 32, 33, 48, 67}), h = f.upto(1, 11), w = f.upto(1, 17);
    const Spatial s = spatial(f, h, w, 5);
    const DType dtype = f.byte();
    Call call("conv");
    f.operand(call, dtype, {f.upto(1, 2), in * groups, h, w}, f.parameters(dtype, 0.05f));
    f.weights(call, {out * groups, in, s.kernel[0], s.kernel[1]}, 0);
    if (f.upto(0, 2)) f.bias(call, out * groups);
    call.attr("group", groups).attr("strides", s.strides).attr("dilations", s.dilations).attr("pads", s.pads);
    f.activation(call);
    call.declare(f.parameters(dtype, f.result_scale(in * s.kernel[0] * s.kernel[1])));
    ASSERT_TRUE(f.agrees(call));
  }
  f.expect_ran("conv_nhwc_i8");
}

/// What the line makes of a convolution that adds the second operand of `sum`, as lower.cc puts them together.
Result<Buffer> convolution_and_sum(const CpuKernelLine& line, const Call& conv, const Call& sum, int threads) {
  Node node = conv.node;
  for (const auto& [name, attr] : sum.node.attrs) node.set_attr(name, attr);
  const TensorType y{sum.types[1].dtype, sum.types[1].shape, sum.declared.quantization};
  const auto raw = [](const std::vector<uint8_t>& bytes) {
    return reinterpret_cast<std::byte*>(const_cast<uint8_t*>(bytes.data()));
  };
  std::vector<TensorView> in;
  std::vector<const TensorType*> types;
  std::vector<const void*> data;
  for (size_t i = 0; i < conv.types.size(); ++i) {
    types.push_back(conv.present[i] ? &conv.types[i] : nullptr);
    data.push_back(conv.present[i] && i > 0 ? conv.bytes[i].data() : nullptr);
    in.push_back(conv.present[i] ? TensorView{&conv.types[i], raw(conv.bytes[i])} : TensorView{});
  }
  const Quantization& own = *conv.declared.quantization;
  Fusion fusion;
  fusion.residual = ResidualOf<FusedView>{.addend = {{&sum.types[1], raw(sum.bytes[1])}, {}},
                                          .own_scale = own.scales[0],
                                          .own_zero_point = own.zero_points[0]};
  PINNACE_ASSIGN(Buffer result, Buffer::allocate(static_cast<size_t>(y.bytes()), "a result"));
  const TensorView out{&y, result.data()};
  const TensorType* stated[] = {&sum.declared};
  const KernelNode both(NodeView(node, *conv.op, types, data, stated), fusion);
  PINNACE_TRY(run_forced(line, both, in, {&out, 1}, threads));
  return result;
}

TEST(KernelI8, ConvolutionsThatAdd) {
  Family f;
  std::map<std::string, int> ran;
  for (int i = 0; i < cases(60); ++i) {
    const int64_t groups = f.upto(0, 3) ? 1 : 2, in = f.one_of({1, 4, 13, 16, 40}), n = f.upto(1, 2);
    const int64_t out = f.one_of({1, 7, 8, 16, 24, 31, 32, 33, 48, 67}), h = f.upto(1, 9), w = f.upto(1, 17);
    const Spatial s = spatial(f, h, w, 3);
    const DType dtype = f.byte();
    Call conv("conv"), sum("add");
    f.operand(conv, dtype, {n, in * groups, h, w}, f.parameters(dtype, 0.05f));
    f.weights(conv, {out * groups, in, s.kernel[0], s.kernel[1]}, 0);
    if (f.upto(0, 2)) f.bias(conv, out * groups);
    conv.attr("group", groups).attr("strides", s.strides).attr("dilations", s.dilations).attr("pads", s.pads);
    const float scale = f.result_scale(in * s.kernel[0] * s.kernel[1]);
    conv.declare(f.parameters(dtype, scale));
    const auto product = conv.run(conv.op->reference);
    ASSERT_TRUE(product.ok()) << product.status().message();
    const ReferenceOutput& own = (*product)[0];
    const auto* bytes = reinterpret_cast<const uint8_t*>(own.bytes.data());
    sum.input(dtype, own.type.shape, std::vector<uint8_t>(bytes, bytes + own.bytes.size()), conv.declared.quantization);
    // Sums of equal scales lie in the middle between two results where theirs is twice as large.
    f.operand(sum, dtype, own.type.shape, f.parameters(dtype, f.one_of({scale, 0.02f, 3e38f})));
    f.activation(sum);
    sum.declare(f.parameters(dtype, f.one_of({scale, 2 * scale, 0.03f, 0.001f, 1e-38f})));
    const auto want = sum.run(sum.op->reference);
    ASSERT_TRUE(want.ok()) << want.status().message();
    for (const CpuKernelLine& line : cpu_kernels()) {
      if (!line.name.starts_with("conv_nhwc_i8") || line.dtype != dtype || !line_runs(line)) continue;
      const auto got = convolution_and_sum(line, conv, sum, static_cast<int>(f.upto(1, 3)));
      if (!got.ok() && got.status().code() == Code::kUnsupported) continue;  // zero points, on ARM64
      ASSERT_TRUE(got.ok()) << line.name << ": " << got.status().message();
      const Buffer& wanted = (*want)[0].bytes;
      for (size_t k = 0; k < wanted.size(); ++k) {
        ASSERT_EQ(got->data()[k], wanted.data()[k])
            << line.name << " " << conv.text() << ", " << sum.text() << ": byte " << k << "; seed " << test_seed();
      }
      ++ran[std::string(line.name)];
    }
  }
  for (const CpuKernelLine& line : cpu_kernels()) {
    if (line.name.starts_with("conv_nhwc_i8") && line_runs(line)) {
      EXPECT_GT(ran[std::string(line.name)], 0) << line.name;
    }
  }
}

TEST(KernelI8, DepthwiseConvolutions) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const int64_t channels = f.one_of({9, 16, 17, 32, 40, 48, 64, 80, 96, 112, 150}), h = f.upto(1, 12);
    const int64_t w = f.one_of({1, 2, 3, 7, 14, 31, 32, 33, 45});
    const Spatial s = spatial(f, h, w, f.one_of({3, 5, 7}));
    const DType dtype = f.byte();
    Call call("conv");
    f.operand(call, dtype, {f.upto(1, 2), channels, h, w}, f.parameters(dtype, 0.05f));
    f.weights(call, {channels, 1, s.kernel[0], s.kernel[1]}, 0);
    if (f.upto(0, 2)) f.bias(call, channels);
    call.attr("group", channels).attr("strides", s.strides).attr("dilations", s.dilations).attr("pads", s.pads);
    f.activation(call);
    call.declare(f.parameters(dtype, f.result_scale(s.kernel[0] * s.kernel[1])));
    ASSERT_TRUE(f.agrees(call));
  }
  f.expect_ran("conv_nhwc_depthwise_i8");
}

TEST(KernelI8, TransposedConvolutions) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const int64_t groups = f.upto(0, 3) ? 1 : f.upto(2, 5), in = f.one_of({1, 3, 4, 5, 13, 16, 37});
    const int64_t out = f.one_of({1, 2, 7, 8, 16, 24, 31, 33, 67}), h = f.upto(1, 7), w = f.upto(1, 9);
    const DType dtype = f.byte();
    std::vector<int64_t> kernel, strides, dilations, adds, pads(4);
    for (size_t d = 0; d < 2; ++d) {
      kernel.push_back(f.upto(1, 5));
      strides.push_back(f.upto(1, 4));
      dilations.push_back(f.upto(0, 3) ? 1 : f.upto(1, 3));
      adds.push_back(f.upto(0, 3) ? 0 : f.upto(0, strides[d] - 1));
      // Results may have no rows, but not fewer.
      const int64_t full = ((d ? w : h) - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1 + adds[d];
      pads[d] = f.upto(0, std::min<int64_t>(full / 2, 3));
      pads[d + 2] = f.upto(0, std::min<int64_t>(full / 2, 3));
    }
    Call call("conv_transpose");
    f.operand(call, dtype, {f.upto(1, 2), in * groups, h, w}, f.parameters(dtype, 0.05f));
    f.weights(call, {in * groups, out, kernel[0], kernel[1]}, 1);
    if (f.upto(0, 2)) f.bias(call, out * groups);
    call.attr("group", groups).attr("strides", strides).attr("dilations", dilations).attr("pads", pads);
    call.attr("output_padding", adds);
    f.activation(call);
    call.declare(f.parameters(dtype, f.result_scale(in * kernel[0] * kernel[1])));
    ASSERT_TRUE(f.agrees(call));
  }
  f.expect_ran("conv_transpose_i8");
}

TEST(KernelI8, Products) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const int64_t M = f.one_of({1, 2, 5, 14, 15, 29, 60}), N = f.one_of({1, 3, 16, 31, 32, 65, 100}), K = f.upto(1, 70);
    const DType dtype = f.byte();
    const bool gemm = f.upto(0, 1), turned = f.upto(0, 1);
    Call call(gemm ? "gemm" : "mat_mul");
    const Shape a = !gemm && f.upto(0, 1) ? Shape{2, M, K} : Shape{M, K};
    f.operand(call, dtype, a, f.parameters(dtype, 0.05f));
    if (gemm && turned) {
      f.weights(call, {N, K}, 0);
      call.attr("trans_b", int64_t{1});
    } else {
      f.weights(call, {K, N}, 1);
    }
    if (f.upto(0, 2)) f.bias(call, N);
    f.activation(call);
    call.declare(f.parameters(dtype, f.result_scale(K)));
    ASSERT_TRUE(f.agrees(call));

    Call integer("mat_mul_integer");
    const DType b = f.byte();
    integer.input(dtype, {M, K}, f.bytes(dtype, M * K)).input(b, {K, N}, f.bytes(b, K * N));
    integer.input(dtype, {}, random_bytes(f.random(), 1));
    if (b == DType::kU8) integer.input(b, {}, std::vector<uint8_t>{128});
    ASSERT_TRUE(f.agrees(integer));
  }
  f.expect_ran("mat_mul_i8");
  f.expect_ran("mat_mul_integer_i8");
}

TEST(KernelI8, Elementwise) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const DType dtype = f.byte();
    Call call(f.one_of({"add", "sub", "mul"}));
    Shape shape{f.upto(1, 3), f.one_of({1, 3, 8, 15, 64, 70}), f.upto(1, 5), f.upto(1, 9)};
    if (f.upto(0, 4) == 0) shape[static_cast<size_t>(f.upto(0, 3))] = 0;
    const Shape pixel{f.upto(0, 1) ? shape[0] : Dim(1), shape[1], 1, 1};
    const int64_t kind = f.upto(0, 3);
    const Shape& a = kind == 1 ? pixel : shape;
    const Shape& b = kind == 2 ? pixel : kind == 3 ? Shape{} : shape;
    f.operand(call, dtype, a, f.parameters(dtype, f.one_of({0.01f, 0.07f, 3e38f})));
    f.operand(call, dtype, b, f.parameters(dtype, f.one_of({0.02f, 0.05f, 3e38f})));
    if (call.node.op == "add") f.activation(call);
    call.declare(f.parameters(dtype, f.one_of({0.03f, 0.001f, 2.0f, 1e-38f})));
    ASSERT_TRUE(f.agrees(call));
  }
  f.expect_ran("binary_i8");
  f.expect_ran("binary_nhwc_i8");
}

TEST(KernelI8, Maps) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const DType dtype = f.byte();
    Call call(f.one_of({"relu", "leaky_relu", "sigmoid", "tanh", "hard_swish", "hard_sigmoid", "silu", "gelu"}));
    f.operand(call, dtype, {f.upto(0, 2), f.upto(1, 40), f.upto(1, 5), f.upto(1, 9)},
              f.parameters(dtype, f.one_of({0.01f, 0.07f, 0.5f})));
    call.declare(f.parameters(dtype, f.one_of({0.03f, 0.004f, 2.0f})));
    ASSERT_TRUE(f.agrees(call));
  }
  f.expect_ran("activation_i8");
  f.expect_ran("activation_nhwc_i8");
}

TEST(KernelI8, Softmax) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const DType dtype = f.byte();
    Call call("softmax");
    // One column of many rows, or one of several dimensions; results that the largest number and a flat row make.
    const bool wide = f.upto(0, 1);
    const Shape shape = wide ? Shape{f.upto(0, 5), f.one_of({1, 7, 16, 31, 63, 64, 65, 128, 300, 1001})}
                             : Shape{f.upto(1, 3), f.one_of({1, 2, 15, 21, 64}), f.upto(1, 5), f.upto(1, 70)};
    // Powers of two make quotients that lie in the middle of two results.
    f.operand(call, dtype, shape, f.parameters(dtype, f.one_of({0.01f, 0.07f, 0.5f, 3.0f, 101.0f, 0x1p-9f})));
    call.attr("axis", f.upto(wide ? 1 : 0, wide ? 1 : 3));
    call.declare(f.parameters(dtype, f.one_of({0x1p-8f, 0.003f, 0x1p-10f, 0.1f, 1e-5f, 1e-7f})));
    ASSERT_TRUE(f.agrees(call));
  }
  f.expect_ran("softmax_i8");
}

TEST(KernelI8, Pools) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const DType dtype = f.byte();
    const int64_t h = f.upto(1, 9), w = f.upto(1, 12), channels = f.one_of({1, 3, 8, 17, 64, 300});
    const Parameters from = f.parameters(dtype, 0.07f), to = f.parameters(dtype, f.one_of({0.07f, 0.01f, 0.5f}));
    const Spatial s = spatial(f, h, w, 4);
    const int64_t kind = f.upto(0, 2);
    Call call(kind == 0 ? "max_pool" : kind == 1 ? "average_pool" : "global_average_pool");
    f.operand(call, dtype, {f.upto(1, 2), channels, h, w}, from);
    if (kind < 2) {
      call.attr("kernel_shape", s.kernel).attr("strides", s.strides).attr("dilations", s.dilations);
      call.attr("pads", s.pads);
      call.attr("ceil_mode", f.upto(0, 1));
    }
    if (kind == 1) call.attr("count_include_pad", f.upto(0, 1));
    call.declare(kind == 0 ? from : to);
    ASSERT_TRUE(f.agrees(call));
  }
  f.expect_ran("max_pool_nhwc_i8");
  f.expect_ran("average_pool_nhwc_i8");
  f.expect_ran("global_average_pool_nhwc_i8");
}

TEST(KernelI8, Resizing) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const DType dtype = f.byte();
    const std::string mode = f.one_of({"nearest", "linear", "linear", "cubic"});
    const bool rank3 = f.upto(0, 4) == 0;
    const int64_t h = f.upto(1, 8), w = f.upto(1, 13), channels = f.one_of({1, 3, 5, 8, 17, 48});
    std::vector<int64_t> sizes{f.upto(0, 3) ? f.upto(1, 20) : h, f.upto(0, 3) ? f.upto(1, 20) : w};
    Shape shape{f.upto(1, 2), channels, h, w};
    if (rank3) shape.erase(shape.begin() + 2);
    Call call("resize");
    const Parameters from = f.parameters(dtype, f.one_of({0.02f, 0.25f, 3.0f}));
    const int64_t count = shape[0].size * channels * (rank3 ? 1 : h) * w;
    const bool plain = mode == "nearest" && f.upto(0, 2) == 0;
    if (plain) {
      call.input(dtype, shape, f.bytes(dtype, count));
    } else {
      f.operand(call, dtype, shape, from);
    }
    const bool both = !rank3 && f.upto(0, 3);
    call.left_out().left_out();
    std::vector<int64_t> axes{rank3 ? 2 : 3};
    if (both) axes = {2, 3};
    if (!both) sizes.erase(sizes.begin());
    call.input(DType::kI64, {static_cast<int64_t>(sizes.size())}, sizes);
    call.attr("axes", axes).attr("mode", mode).attr("antialias", f.upto(0, 1));
    call.attr("coordinate_transformation_mode",
              std::string(f.one_of({"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"})));
    // The middle of two results is common where scales are powers of two.
    if (!plain) call.declare(mode == "nearest" ? from : f.parameters(dtype, f.one_of({0.02f, 0.25f, 0.5f, 0.001f})));
    ASSERT_TRUE(f.agrees(call));
  }
  f.expect_ran("resize_i8");
  f.expect_ran("resize_nhwc_i8");
}

TEST(KernelI8, Concatenations) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const DType dtype = f.byte();
    Call call("concat");
    const int64_t n = f.upto(1, 2), h = f.upto(1, 5), w = f.upto(1, 9);
    const Parameters to = f.parameters(dtype, 0.05f);
    for (int64_t k = f.upto(1, 4); k > 0; --k) {
      f.operand(call, dtype, {n, f.upto(1, 40), h, w}, f.upto(0, 1) ? to : f.parameters(dtype, 0.03f));
    }
    ASSERT_TRUE(f.agrees(call.attr("axis", int64_t{1}).declare(to)));
  }
  f.expect_ran("concat_nhwc_i8");
}

TEST(KernelI8, DynamicQuantising) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const int64_t count = f.one_of({0, 1, 7, 8, 100, 1003, 70001});
    const float reach = f.one_of({0.0f, 1e-3f, 5.0f, 1e30f});
    std::vector<float> x;
    for (int64_t k = 0; k < count; ++k) x.push_back(static_cast<float>(f.random().normal()) * reach);
    for (int64_t k = f.upto(0, 3); k > 0 && count > 0; --k) {
      x[static_cast<size_t>(f.upto(0, count - 1))] = f.one_of({NAN, INFINITY, -INFINITY, -0.0f, 3e38f, 1e-42f});
    }
    if (f.upto(0, 3) == 0) {
      for (float& v : x) v = std::fabs(v);
    }
    Call call("dynamic_quantize_linear", 3);
    call.input(DType::kF32, {count}, x);
    ASSERT_TRUE(f.agrees(call));
  }
  f.expect_ran("dynamic_quantize_i8");
}

TEST(KernelI8, Quantising) {
  Family f;
  for (int i = 0; i < cases(60); ++i) {
    const DType dtype = f.byte();
    const Shape shape{f.upto(1, 2), f.upto(1, 20), f.upto(1, 4), f.one_of({1, 5, 16, 300})};
    int64_t count = 1;
    for (const Dim& d : shape) count *= d.size;
    const auto zero = static_cast<uint8_t>(f.parameters(dtype, 1).zero);
    const std::vector<float> scale{f.one_of({0.05f, 1.0f, 1e-3f, 1e-40f, 3e38f, 0.0f, -0.5f, NAN})};
    std::vector<float> x;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t kind = f.upto(0, 30);
      x.push_back(kind == 0   ? f.one_of({NAN, INFINITY, -INFINITY, -0.0f, 3e38f})
                  : kind == 1 ? static_cast<float>(f.upto(-300, 300)) * 0.5f
                              : static_cast<float>(f.random().normal() * 5));
    }
    Call down("quantize_linear"), up("dequantize_linear");
    down.input(DType::kF32, shape, x).input(DType::kF32, {}, scale).input(dtype, {}, std::vector<uint8_t>{zero});
    up.input(dtype, shape, random_bytes(f.random(), count)).input(DType::kF32, {}, scale);
    up.input(dtype, {}, std::vector<uint8_t>{zero});
    ASSERT_TRUE(f.agrees(down));
    if (scale[0] != scale[0]) continue;  // NaN has many bits
    ASSERT_TRUE(f.agrees(up));
  }
  f.expect_ran("quantize_i8");
  f.expect_ran("quantize_nhwc_i8");
  f.expect_ran("dequantize_i8");
}

}  // namespace
}  // namespace pinnace::testing
