// Between floats and 8-bit integers: quantize_linear, dequantize_linear and dynamic_quantize_linear with one scale.
#include <cmath>
#include <cstring>

#include "backends/cpu/i8_isa.h"
#include "backends/cpu/quantize/quantize_node.h"
#include "ops/linear_quantization.h"
#include "ops/move.h"

namespace pinnace::cpu {
namespace {

constexpr int64_t kEach = 32768;  // elements of a task

bool is_byte(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8;
}

// --------------------------------------------------------------------------------- quantize_linear, dequantize_linear

bool quantize_takes(const KernelNode& node) {
  return one_scale(node) && is_byte(stored_type(node)) && divides_in_f32(node);
}

RealI8 real_of(std::span<const TensorView> in, DType dtype) {
  const int32_t zero = in.size() > 2 && in[2].present() ? load_int(in[2], 0) : 0;
  return {*in[1].data<float>(), zero + nhwc_offset(dtype)};
}

template <const I8Isa& isa>
Status quantize_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const RealI8 real = real_of(in, out[0].dtype());
  const auto flip = static_cast<uint8_t>(nhwc_offset(out[0].dtype()));
  context.in_parts(out[0].elements(), kEach, [&](int64_t first, int64_t count) {
    isa.quantize->quantize(in[0].data<float>() + first, real, flip, out[0].data<uint8_t>() + first, count);
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_quantize() {
  return {.takes = quantize_takes, .run = quantize_run<isa>};
}

/// The same where a reader of the result wants it NHWC-packed.
bool quantize_nhwc_takes(const KernelNode& node) {
  return quantize_takes(node) && has_nhwc_sizes(node.input(0)) && node.input(0).elements() > 0;
}

template <const I8Isa& isa>
Status quantize_nhwc_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                         std::span<const TensorView> out) {
  const RealI8 real = real_of(in, out[0].dtype());
  const NhwcI8 y = nhwc_i8_of(out[0], context.layouts[in.size()]);
  const NhwcSizes& s = y.size;
  const int64_t rows = s.n * s.h, tasks = std::min(rows, (rows * s.w * s.c + kEach - 1) / kEach);
  context.parallel(tasks, [&](int64_t t) {
    for (int64_t u = rows * t / tasks; u < rows * (t + 1) / tasks; ++u) {
      const int64_t n = u / s.h, row = u % s.h;
      const float* from = in[0].data<float>() + (n * s.c * s.h + row) * s.w;
      uint8_t* to = y.at + n * y.step + row * y.row;
      for (int64_t c = 0; c < s.c; c += 4) {
        const auto planes = static_cast<int32_t>(std::min<int64_t>(4, s.c - c));
        isa.quantize->quantize_quads(from + c * s.h * s.w, s.h * s.w, planes, real, to + c, y.pitch, s.w);
      }
    }
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_quantize_nhwc() {
  return {.takes = quantize_nhwc_takes, .layouts = Layouts::kLeads, .run = quantize_nhwc_run<isa>};
}

// ------------------------------------------------------------------------------------------- dynamic_quantize_linear

/// Least and largest of `count` numbers and 0; NaN does not count.
struct Span {
  float low = 0, high = 0;
};
Span span_of(const float* x, int64_t count) {
  using Four = float __attribute__((vector_size(16)));
  Four low[2] = {}, high[2] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int64_t j = 0; j < 2; ++j) {
      Four v;
      std::memcpy(&v, x + i + 4 * j, sizeof v);
      low[j] = v < low[j] ? v : low[j];
      high[j] = v > high[j] ? v : high[j];
    }
  }
  Span span;
  const auto count_in = [&span](float v) {
    if (v < span.low) span.low = v;
    if (v > span.high) span.high = v;
  };
  for (int l = 0; l < 8; ++l) count_in(low[l / 4][l % 4]), count_in(high[l / 4][l % 4]);
  for (; i < count; ++i) count_in(x[i]);
  return span;
}

int64_t parts_of(const TensorType& type) {
  return (type.elements() + kEach - 1) / kEach;
}

template <const I8Isa& isa>
Status dynamic_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                   std::span<const TensorView> out) {
  const auto* x = in[0].data<float>();
  auto* spans = reinterpret_cast<Span*>(context.scratch);
  context.in_parts(in[0].elements(), kEach,
                   [&](int64_t first, int64_t count) { spans[first / kEach] = span_of(x + first, count); });
  Span all;
  for (int64_t i = 0; i < parts_of(*in[0].type); ++i) {
    all = {std::min(all.low, spans[i].low), std::max(all.high, spans[i].high)};
  }
  float scale = (all.high - all.low) / 255.0f;
  if (scale == 0) scale = 1;
  const float middle = 0.0f - all.low / scale;  // NaN only where x holds infinities of both signs
  const int32_t zero = middle == middle ? static_cast<int32_t>(std::nearbyint(limit(middle, 0.0, 255.0))) : 0;
  context.in_parts(in[0].elements(), kEach, [&](int64_t first, int64_t count) {
    isa.quantize->quantize(x + first, {scale, zero}, 0, out[0].data<uint8_t>() + first, count);
  });
  *out[1].data<float>() = scale;
  *out[2].data<uint8_t>() = static_cast<uint8_t>(zero);
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_dynamic() {
  return {.scratch_bytes = [](const KernelNode& node, int) -> int64_t {
            return parts_of(node.input(0)) * static_cast<int64_t>(sizeof(Span));
          },
          .run = dynamic_run<isa>};
}

// ---------------------------------------------------------------------------------------------------------------------

bool dequantize_takes(const KernelNode& node) {
  return one_scale(node) && gives_f32(node);
}

template <const I8Isa& isa>
Status dequantize_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                      std::span<const TensorView> out) {
  const RealI8 real = real_of(in, in[0].dtype());
  const auto flip = static_cast<uint8_t>(nhwc_offset(in[0].dtype()));
  context.in_parts(out[0].elements(), kEach, [&](int64_t first, int64_t count) {
    isa.quantize->dequantize(in[0].data<uint8_t>() + first, real, flip, out[0].data<float>() + first, count);
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_dequantize() {
  return {.takes = dequantize_takes, .run = dequantize_run<isa>};
}

}  // namespace

PINNACE_KERNELS_I8(quantize_i8, make_quantize)
PINNACE_KERNELS_I8(quantize_nhwc_i8, make_quantize_nhwc)
PINNACE_KERNELS_I8(dequantize_i8, make_dequantize)
PINNACE_KERNELS_I8(dynamic_quantize_i8, make_dynamic)

}  // namespace pinnace::cpu
