// Functions of one operand on 8-bit quantised types as look-ups in tables, over dense tensors and over images (channels
// last, unsigned). Those over images are chosen where the operand is one already.
#include "backends/cpu/plan/layout_rows.h"
#include "backends/cpu/unary/i8_table.h"

namespace pinnace::cpu {
namespace {

constexpr int64_t kEach = 32768;  // elements of a task

/// f(first, count) over all elements.
template <class F>
void in_parts(const KernelContext& context, int64_t elements, F f) {
  context.parallel((elements + kEach - 1) / kEach,
                   [&](int64_t t) { f(t * kEach, std::min(kEach, elements - t * kEach)); });
}

template <LookupI8& lookup>
Status map_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
               std::span<const TensorView> out) {
  const auto* table = reinterpret_cast<const uint8_t*>(context.packed);
  in_parts(context, out[0].elements(), [&](int64_t first, int64_t count) {
    lookup(table, in[0].data<uint8_t>() + first, out[0].data<uint8_t>() + first, count);
  });
  return {};
}

template <LookupI8& lookup>
constexpr CpuKernel make_map() {
  return {.takes = table_i8_takes,
          .packed_bytes = [](const NodeView&) -> int64_t { return 256; },
          .pack = pack_table_i8<false>,
          .packs = 0b110,
          .run = map_run<lookup>};
}

template <LookupI8& lookup>
Status image_map_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                     std::span<const TensorView> out) {
  const ImageI8 x = image_i8_of(in[0], context.layouts[0]), y = image_i8_of(out[0], context.layouts[in.size()]);
  const auto* table = reinterpret_cast<const uint8_t*>(context.packed);
  for_rows_i8(context, y, [&](int64_t n, int64_t row) {
    lookup(table, x.at + n * x.step + row * x.row, y.at + n * y.step + row * y.row, y.size.w * y.pitch);
  });
  return {};
}

bool image_map_takes(const NodeView& node) {
  return is_image_input_i8(node, 0) && table_i8_takes(node);
}

template <LookupI8& lookup>
constexpr CpuKernel make_image_map() {
  return {.takes = image_map_takes,
          .packed_bytes = [](const NodeView&) -> int64_t { return 256; },
          .pack = pack_table_i8<true>,
          .packs = 0b110,
          .layouts = Layouts::kFollows,
          .images = 0b1,
          .run = image_map_run<lookup>};
}

}  // namespace

PINNACE_LOOKUP_LEVELS(map_i8, make_map)
PINNACE_LOOKUP_LEVELS(map_image_i8, make_image_map)

}  // namespace pinnace::cpu
