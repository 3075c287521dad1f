// concat along channels of NHWC-packed tensors, in float32 and fp16. Chosen where the operands are images
// already.
#include <cstring>

#include "backends/cpu/f32_isa.h"
#include "backends/cpu/nhwc_rows.h"

namespace pinnace::cpu {
namespace {

/// Along channels: the parts of each pixel side by side.
bool concat_takes(const KernelNode& node) {
  if (node.input_count() > 32) return false;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!is_nhwc_input(node, i) || node.input_data(i)) return false;
  }
  const auto axis = node.axis(node.attr_int("axis"), node.input(0).rank());
  return axis.ok() && *axis == 1;
}

template <const auto& isa>
Status concat_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  using T = ElementOf<isa>;
  const auto y = nhwc_of<T>(out[0], context.layouts[in.size()]);
  for_rows(context, y, [&](int64_t n, int64_t row) {
    T* to = y.at + n * y.step + row * y.row;
    for (size_t i = 0; i < in.size(); ++i) {
      const auto x = nhwc_of<T>(in[i], context.layouts[i]);
      const T* from = x.at + n * x.step + row * x.row;
      for (int64_t p = 0; p < y.size.w; ++p) {
        std::memcpy(to + p * y.pitch, from + p * x.pitch, sizeof(T) * static_cast<size_t>(x.size.c));
      }
      to += x.size.c;
    }
  });
  return {};
}

template <const auto& isa>
constexpr CpuKernel make_concat() {
  return {.takes = concat_takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = ~0u,
          .precision = isa.precision,
          .run = concat_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F16(concat_nhwc_f16, make_concat)

extern const CpuKernel concat_nhwc_f32_generic;
const CpuKernel concat_nhwc_f32_generic = make_concat<f32_generic>();

}  // namespace pinnace::cpu
