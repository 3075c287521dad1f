// Functions of one operand on 8-bit quantised types as look-ups in tables, over dense tensors and over NHWC-packed
// tensors (channels last, unsigned). Those over NHWC-packed tensors are chosen where the operand is one already.
#include "backends/cpu/nhwc_rows.h"
#include "backends/cpu/quantize/lookup_table_i8.h"

namespace pinnace::cpu {
namespace {

constexpr int64_t kEach = 32768;  // elements of a task

template <LookupI8& lookup>
Status map_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
               std::span<const TensorView> out) {
  const auto* table = reinterpret_cast<const uint8_t*>(context.packed);
  context.in_parts(out[0].elements(), kEach, [&](int64_t first, int64_t count) {
    lookup(table, in[0].data<uint8_t>() + first, out[0].data<uint8_t>() + first, count);
  });
  return {};
}

template <LookupI8& lookup>
constexpr CpuKernel make_map() {
  return {.takes = table_i8_takes,
          .packed_bytes = [](const KernelNode&) -> int64_t { return 256; },
          .pack = pack_table_i8<false>,
          .packs = 0b110,
          .run = map_run<lookup>};
}

template <LookupI8& lookup>
Status nhwc_map_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const NhwcI8 x = nhwc_i8_of(in[0], context.layouts[0]), y = nhwc_i8_of(out[0], context.layouts[in.size()]);
  const auto* table = reinterpret_cast<const uint8_t*>(context.packed);
  for_rows_i8(context, y, [&](int64_t n, int64_t row) {
    lookup(table, x.at + n * x.step + row * x.row, y.at + n * y.step + row * y.row, y.size.w * y.pitch);
  });
  return {};
}

bool nhwc_map_takes(const KernelNode& node) {
  return is_nhwc_input_i8(node, 0) && table_i8_takes(node);
}

template <LookupI8& lookup>
constexpr CpuKernel make_nhwc_map() {
  return {.takes = nhwc_map_takes,
          .packed_bytes = [](const KernelNode&) -> int64_t { return 256; },
          .pack = pack_table_i8<true>,
          .packs = 0b110,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .run = nhwc_map_run<lookup>};
}

}  // namespace

PINNACE_KERNELS_LOOKUP(activation_i8, make_map)
PINNACE_KERNELS_LOOKUP(activation_nhwc_i8, make_nhwc_map)

}  // namespace pinnace::cpu
