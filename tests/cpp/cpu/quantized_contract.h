// The arithmetic of quantised types written a second time, from the definition and not from the code: exact products in
// double, ties decided by comparing remainders. And a call of one operator on raw bytes, through its reference code and
// every CPU kernel that takes it, all of which must give the expected bytes.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/kernel.h"
#include "cases/run_case.h"

namespace pinnace::testing {

using namespace cpu;

/// Scale and zero point of a tensor.
struct Parameters {
  float scale = 1;
  int32_t zero = 0;
};

struct Limits {
  int32_t low, high;
};
inline Limits limits_of(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return {-128, 127};
    case DType::kU8:
      return {0, 255};
    case DType::kI16:
      return {-32768, 32767};
    default:
      return {0, 65535};
  }
}

/// Zero points at and beside the edges of the type.
inline std::vector<int32_t> zero_points(DType dtype) {
  return dtype == DType::kI8 ? std::vector<int32_t>{-128, -1, 0, 1, 127} : std::vector<int32_t>{0, 1, 128, 255};
}

/// float32(q - zero) * scale in float32: the product of 9 (17) and 24 bits is exact in double, and is rounded once.
inline float real_of(int32_t q, Parameters p) {
  return static_cast<float>(static_cast<double>(q - p.zero) * static_cast<double>(p.scale));
}

/// The integer nearest to x, of two equally near the even one; x is finite.
inline double nearest_even(double x) {
  const double below = std::floor(x);
  const double rest = x - below;  // exact
  if (rest != 0.5) return rest < 0.5 ? below : below + 1;
  return std::fmod(below, 2) == 0 ? below : below + 1;
}

/// clamp(x + zero) for a whole number or infinity x.
inline int32_t clamped(double x, int32_t zero, Limits limits) {
  const double q = x + zero;
  return q <= limits.low ? limits.low : q >= limits.high ? limits.high : static_cast<int32_t>(q);
}

/// clamp(round_half_even(x / scale) + zero), the quotient in float32 (by way of double, which has more than twice its
/// digits and two, so that rounding twice is rounding once); NaN gives the zero point.
inline int32_t stored_of(float x, Parameters p, DType dtype) {
  const auto ratio = static_cast<float>(static_cast<double>(x) / static_cast<double>(p.scale));
  if (std::isnan(ratio)) return p.zero;
  return clamped(std::isinf(ratio) ? ratio : nearest_even(ratio), p.zero, limits_of(dtype));
}

/// clamp(round_half_even(float32(sum) * m) + zero), m = float32(s_x * s_w / s_y) with the quotient in double.
inline int32_t requantized(int64_t sum, float x_scale, float w_scale, Parameters y, Limits limits) {
  const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(sum)));
  const auto m =
      static_cast<float>(static_cast<double>(x_scale) * static_cast<double>(w_scale) / static_cast<double>(y.scale));
  const auto real = static_cast<float>(static_cast<double>(static_cast<float>(wrapped)) * static_cast<double>(m));
  if (std::isnan(real)) return y.zero;
  return clamped(std::isinf(real) ? real : nearest_even(real), y.zero, limits);
}

/// One call: inputs as types and bytes, attributes, the declared quantisation of output 0.
struct Call {
  Node node;
  const OpDef* op;
  std::vector<TensorType> types;
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<bool> present;
  TensorType declared;

  explicit Call(std::string_view name, int outputs = 1) : op(find_op(name)) {
    node.op = name;
    node.name = "contract";
    node.outputs.assign(static_cast<size_t>(outputs), 0);
  }
  Call& attr(std::string_view name, Attr value) {
    node.set_attr(name, std::move(value));
    return *this;
  }
  /// An input from elements of any type.
  template <class T>
  Call& input(DType dtype, Shape shape, const std::vector<T>& elements,
              std::shared_ptr<const Quantization> quantization = nullptr) {
    node.inputs.push_back(static_cast<ValueId>(types.size()));
    types.push_back({dtype, std::move(shape), std::move(quantization)});
    const auto* raw = reinterpret_cast<const uint8_t*>(elements.data());
    bytes.emplace_back(raw, raw + elements.size() * sizeof(T));
    present.push_back(true);
    return *this;
  }
  /// A quantised one; `elements` are stored integers of an 8-bit type.
  Call& quantized(DType dtype, Shape shape, const std::vector<uint8_t>& elements, Parameters p) {
    return input(dtype, std::move(shape), elements, quantization(p));
  }
  Call& left_out() {
    node.inputs.push_back(kNoValue);
    types.emplace_back();
    bytes.emplace_back();
    present.push_back(false);
    return *this;
  }
  Call& declare(Parameters p) {
    declared.quantization = quantization(p);
    return *this;
  }
  static std::shared_ptr<const Quantization> quantization(Parameters p) {
    return std::make_shared<Quantization>(Quantization{{p.scale}, {p.zero}, -1, 0});
  }

  Result<std::vector<ReferenceOutput>> run(const RunFn& fn) const {
    std::vector<TensorView> views;
    for (size_t i = 0; i < types.size(); ++i) {
      auto* data = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(bytes[i].data()));
      views.push_back(present[i] ? TensorView{&types[i], data} : TensorView{});
    }
    const std::vector<const TensorType*> stated(node.outputs.size(), &declared);
    return run_node_with(fn, node, *op, views, stated);
  }

  /// By exactly this line. Images are values of a run, not constants.
  Result<std::vector<ReferenceOutput>> run_line(const CpuKernelLine& line, int threads) const {
    return run([&](const NodeView& view, std::span<const TensorView> in, std::span<const TensorView> out) {
      std::vector<const TensorType*> of, stated(out.size(), &declared);
      std::vector<const void*> data;
      for (int i = 0; i < view.input_count(); ++i) {
        const bool image = line.kernel->layouts != Layouts::kDense && i < 32 && (line.kernel->nhwc_inputs >> i & 1);
        const bool number = line.kernel->layouts == Layouts::kFollows && view.has_input(i) && view.input(i).rank() == 0;
        of.push_back(view.has_input(i) ? &view.input(i) : nullptr);
        data.push_back(image && !number ? nullptr : view.input_data(i));
      }
      return run_forced(line, NodeView(view.node(), view.op(), of, data, stated), in, out, threads);
    });
  }

  /// Output `index` of every implementation is `want`; `element` is its C++ type. Returns false after a failure.
  template <class T>
  [[nodiscard]] bool gives(const std::vector<T>& want, size_t index = 0) const {
    const auto compare = [&](const Result<std::vector<ReferenceOutput>>& got, std::string_view who) {
      if (!got.ok()) {
        ADD_FAILURE() << who << ": " << got.status().message();
        return false;
      }
      const ReferenceOutput& out = (*got)[index];
      if (out.bytes.size() != want.size() * sizeof(T)) {
        ADD_FAILURE() << who << " gives " << to_string(out.type) << " instead of " << want.size() << " elements";
        return false;
      }
      const auto* at = reinterpret_cast<const T*>(out.bytes.data());
      for (size_t i = 0; i < want.size(); ++i) {
        const auto* expected = reinterpret_cast<const std::byte*>(want.data() + i);
        if (std::memcmp(out.bytes.data() + i * sizeof(T), expected, sizeof(T)) == 0) continue;
        ADD_FAILURE() << who << " " << text() << " gives " << +at[i] << " at " << i << ", by definition " << +want[i];
        return false;
      }
      return true;
    };
    if (!compare(run(op->reference), "the reference of")) return false;
    for (const CpuKernelLine& line : cpu_kernels()) {
      if (line.op != op->name || !line_runs(line) || line.dtype != types[0].dtype) continue;
      const auto got = run_line(line, 2);
      if (!got.ok() && got.status().code() == Code::kUnsupported) continue;
      if (!compare(got, line.name)) return false;
    }
    return true;
  }

  std::string text() const {
    std::string all = node.op;
    for (size_t i = 0; i < types.size(); ++i) all += present[i] ? " " + to_string(types[i]) : " none";
    if (!declared.quantization) return all;
    const Quantization& q = *declared.quantization;
    return str_cat(all, " -> scale ", q.scales[0], ", zero ", q.zero_points[0]);
  }
};

/// Every stored integer of an 8-bit type, from the lowest.
inline std::vector<uint8_t> every_byte(DType dtype) {
  std::vector<uint8_t> all;
  for (int32_t q = limits_of(dtype).low; q <= limits_of(dtype).high; ++q) all.push_back(static_cast<uint8_t>(q));
  return all;
}

/// The stored integer of a byte.
inline int32_t integer_of(uint8_t byte, DType dtype) {
  return dtype == DType::kI8 ? static_cast<int8_t>(byte) : byte;
}

inline std::vector<uint8_t> random_bytes(Random& random, int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.bits());
  return bytes;
}

/// True for one in `parts` of the combinations, another one for every seed; with PINNACE_TEST_ALL=1 for one in
/// `parts_of_all`, which keeps everything together under a minute.
inline bool in_slice(size_t combination, size_t parts, size_t parts_of_all = 1) {
  static const bool all = [] {
    const char* value = std::getenv("PINNACE_TEST_ALL");
    return value && std::string_view(value) == "1";
  }();
  return (combination * 0x9e3779b1u + test_seed()) % (all ? parts_of_all : parts) == 0;
}

}  // namespace pinnace::testing
