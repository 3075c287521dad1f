// Between float32 and 16-bit integers, on x86-64: quantize_linear and dequantize_linear with one scale.
#include "backends/cpu/quantize/quantize_i16.h"

#include <algorithm>

#include "backends/cpu/kernel.h"
#include "base/dtype_code.h"
#include "ops/linear_quantization.h"

#if defined(__x86_64__)
namespace pinnace::cpu {
namespace {

constexpr int64_t kEach = 32768;  // elements of a task

/// f(first, count) over all elements.
template <class F>
void in_parts(const KernelContext& context, int64_t elements, F f) {
  context.parallel((elements + kEach - 1) / kEach,
                   [&](int64_t t) { f(t * kEach, std::min(kEach, elements - t * kEach)); });
}

/// One float32 scale for the whole tensor.
bool one_scale(const KernelNode& node) {
  const TensorType& scale = node.input(1);
  return scale.dtype == DType::kF32 && scale.rank() <= 1 && scale.elements() == 1 && node.attr_int("block_size") == 0;
}

bool quantize_takes(const KernelNode& node) {
  const std::string_view precision = node.attr_string("precision");
  const auto named = dtype_from_code(node.attr_string("output_dtype"));
  const DType stored = named ? *named : node.has_input(2) ? node.input(2).dtype : DType::kU8;
  return one_scale(node) && (stored == DType::kI16 || stored == DType::kU16) &&
         (precision.empty() || precision == "f32");
}

bool dequantize_takes(const KernelNode& node) {
  const std::string_view wanted = node.attr_string("output_dtype");
  return one_scale(node) && (wanted.empty() || wanted == "f32");
}

RealI8 real_of(std::span<const TensorView> in) {
  return {*in[1].data<float>(), in.size() > 2 && in[2].present() ? static_cast<int32_t>(load_int(in[2], 0)) : 0};
}

template <const QuantizeLoopsI16& loops>
Status quantize_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const IntRange range = int_range(out[0].dtype());
  in_parts(context, out[0].elements(), [&](int64_t first, int64_t count) {
    loops.quantize(in[0].data<float>() + first, real_of(in), static_cast<int32_t>(range.min),
                   static_cast<int32_t>(range.max), out[0].data<uint16_t>() + first, count);
  });
  return {};
}

template <const QuantizeLoopsI16& loops>
Status dequantize_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                      std::span<const TensorView> out) {
  in_parts(context, out[0].elements(), [&](int64_t first, int64_t count) {
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
