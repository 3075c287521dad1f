// Between float32 and 16-bit integers, on x86-64: quantize_linear and dequantize_linear with one scale.
#include "backends/cpu/quantize/quantize_i16.h"

#include <algorithm>

#include "backends/cpu/quantize/quantize_node.h"
#include "ops/linear_quantization.h"

#if defined(__x86_64__)
namespace pinnace::cpu {
namespace {

constexpr int64_t kEach = 32768;  // elements of a task

bool quantize_takes(const KernelNode& node) {
  const DType stored = stored_type(node);
  return one_scale(node) && (stored == DType::kI16 || stored == DType::kU16) && divides_in_f32(node);
}

bool dequantize_takes(const KernelNode& node) {
  return one_scale(node) && gives_f32(node);
}

RealI8 real_of(std::span<const TensorView> in) {
  return {*in[1].data<float>(), in.size() > 2 && in[2].present() ? static_cast<int32_t>(load_int(in[2], 0)) : 0};
}

template <const QuantizeLoopsI16& loops>
Status quantize_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const IntRange range = int_range(out[0].dtype());
  context.in_parts(out[0].elements(), kEach, [&](int64_t first, int64_t count) {
    loops.quantize(in[0].data<float>() + first, real_of(in), static_cast<int32_t>(range.min),
                   static_cast<int32_t>(range.max), out[0].data<uint16_t>() + first, count);
  });
  return {};
}

template <const QuantizeLoopsI16& loops>
Status dequantize_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                      std::span<const TensorView> out) {
  context.in_parts(out[0].elements(), kEach, [&](int64_t first, int64_t count) {
    float* const y = out[0].data<float>() + first;
    if (in[0].dtype() == DType::kI16) {
      loops.dequantize_signed(in[0].data<int16_t>() + first, real_of(in), y, count);
    } else {
      loops.dequantize_unsigned(in[0].data<uint16_t>() + first, real_of(in), y, count);
    }
  });
  return {};
}

template <const QuantizeLoopsI16& loops>
constexpr CpuKernel make_quantize() {
  return {.takes = quantize_takes, .run = quantize_run<loops>};
}
template <const QuantizeLoopsI16& loops>
constexpr CpuKernel make_dequantize() {
  return {.takes = dequantize_takes, .run = dequantize_run<loops>};
}

}  // namespace

extern const CpuKernel quantize_i16_avx2, quantize_i16_avx512_vnni;
const CpuKernel quantize_i16_avx2 = make_quantize<quantize_loops_i16_avx2>();
const CpuKernel quantize_i16_avx512_vnni = make_quantize<quantize_loops_i16_avx512_vnni>();
extern const CpuKernel dequantize_i16_avx2, dequantize_i16_avx512_vnni;
const CpuKernel dequantize_i16_avx2 = make_dequantize<quantize_loops_i16_avx2>();
const CpuKernel dequantize_i16_avx512_vnni = make_dequantize<quantize_loops_i16_avx512_vnni>();

}  // namespace pinnace::cpu
#endif
