// quantize_linear and dequantize_linear between float32 and 8-bit integers with a scale for each index of an axis, or
// for each block of it. Elements that share a scale lie side by side, or each element of a row has its own.
#include <algorithm>

#include "backends/cpu/i8_isa.h"
#include "backends/cpu/quantize/quantize_node.h"
#include "ops/linear_quantization.h"
#include "ops/move.h"

namespace pinnace::cpu {
namespace {

constexpr int64_t kEach = 32768;  // elements of a task
constexpr int64_t kLeastRun = 8;  // elements that share a scale; fewer are not worth a call

/// The tensor in rows. With `own_scales`, element i of a row takes scale first_scale(row) + i, else all take that one.
struct ScaledRows {
  int64_t size, inner, block, blocks, elements, rows, most;
  bool own_scales;

  ScaledRows(const KernelNode& node, const TensorType& x) {
    const AxisView v = view_axis(x.shape, *node.axis(node.attr_int("axis"), x.rank()));
    size = v.size;
    inner = v.inner;
    block = node.attr_int("block_size");
    blocks = block ? size / block + (size % block != 0) : 0;
    own_scales = block ? inner > 1 : inner == 1;
    elements = v.outer * size * inner;
    most = block && !own_scales ? std::min(block, size) : !block && own_scales ? size : inner;
    rows = block && !own_scales ? v.outer * blocks : elements / most;
  }
  int64_t first_scale(int64_t row) const {
    if (block) return own_scales ? (row / size * blocks + row % size / block) * inner : row;
    return own_scales ? 0 : row % size;
  }
  /// f(row, first element, elements)
  template <class F>
  void run(const KernelContext& context, F f) const {
    const int64_t each = std::max<int64_t>(1, kEach / most);
    context.parallel((rows + each - 1) / each, [&](int64_t t) {
      for (int64_t row = t * each; row < std::min(rows, (t + 1) * each); ++row) {
        if (block && !own_scales) {
          const int64_t start = row % blocks * block;  // a row's last block may be shorter
          f(row, row / blocks * size + start, std::min(block, size - start));
        } else {
          f(row, row * most, most);
        }
      }
    });
  }
};

/// Several scales in float32.
bool scales_take(const KernelNode& node) {
  const TensorType &x = node.input(0), &scale = node.input(1);
  const bool one =
      scale.rank() == 0 || (scale.rank() == 1 && scale.elements() == 1 && node.attr_int("block_size") == 0);
  return !one && scale.dtype == DType::kF32 && x.elements() > 0 && node.axis(node.attr_int("axis"), x.rank()).ok();
}

RealI8 real_at(std::span<const TensorView> in, int64_t i, DType dtype) {
  const int32_t zero = in.size() > 2 && in[2].present() ? load_int(in[2], i) : 0;
  return {in[1].data<float>()[i], zero + nhwc_offset(dtype)};
}

bool quantize_takes(const KernelNode& node) {
  const DType stored = stored_type(node);
  if ((stored != DType::kI8 && stored != DType::kU8) || !divides_in_f32(node)) return false;
  if (!scales_take(node)) return false;
  const ScaledRows rows(node, node.input(0));
  return !rows.own_scales && rows.most >= kLeastRun;
}

template <const I8Isa& isa>
Status quantize_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const ScaledRows rows(node, *in[0].type);
  const auto flip = static_cast<uint8_t>(nhwc_offset(out[0].dtype()));
  rows.run(context, [&](int64_t row, int64_t first, int64_t count) {
    isa.quantize->quantize(in[0].data<float>() + first, real_at(in, rows.first_scale(row), out[0].dtype()), flip,
                           out[0].data<uint8_t>() + first, count);
  });
  return {};
}

bool dequantize_takes(const KernelNode& node) {
  if (!scales_take(node) || !gives_f32(node)) return false;
  return ScaledRows(node, node.input(0)).most >= kLeastRun;
}

/// Each element with its own scale and zero point, if there are any.
template <class T>
void dequantize_row(const T* x, const float* scales, const T* zeros, float* y, int64_t count) {
  if (zeros) {
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i] - zeros[i]) * scales[i];
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i]) * scales[i];
  }
}

template <const I8Isa& isa>
Status dequantize_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                      std::span<const TensorView> out) {
  const ScaledRows rows(node, *in[0].type);
  const auto flip = static_cast<uint8_t>(nhwc_offset(in[0].dtype()));
  const bool has_zeros = in.size() > 2 && in[2].present();
  const auto row_of = [&](auto zero, int64_t scale, int64_t first, int64_t count) {
    using T = decltype(zero);
    dequantize_row<T>(in[0].data<T>() + first, in[1].data<float>() + scale,
                      has_zeros ? in[2].data<T>() + scale : nullptr, out[0].data<float>() + first, count);
  };
  rows.run(context, [&](int64_t row, int64_t first, int64_t count) {
    const int64_t scale = rows.first_scale(row);
    if (!rows.own_scales) {
      isa.quantize->dequantize(in[0].data<uint8_t>() + first, real_at(in, scale, in[0].dtype()), flip,
                               out[0].data<float>() + first, count);
    } else if (in[0].dtype() == DType::kI8) {
      row_of(int8_t{}, scale, first, count);
    } else {
      row_of(uint8_t{}, scale, first, count);
    }
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_quantize() {
  return {.takes = quantize_takes, .run = quantize_run<isa>};
}
template <const I8Isa& isa>
constexpr CpuKernel make_dequantize() {
  return {.takes = dequantize_takes, .run = dequantize_run<isa>};
}

}  // namespace

PINNACE_KERNELS_I8(quantize_axis_i8, make_quantize)
PINNACE_KERNELS_I8(dequantize_axis_i8, make_dequantize)

}  // namespace pinnace::cpu
