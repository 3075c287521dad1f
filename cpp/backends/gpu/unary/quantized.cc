// Functions of one quantised tensor as tables that the reference fills, exact by construction.
#include "backends/gpu/unary/int8_table.h"

#include "backends/gpu/quantize/int8.h"
#include "backends/gpu/unary/params.h"

namespace pinnace::gpu {

void runs(NodeLowering& n, const Runs& r, TensorId x, TensorId table, TensorId y) {
  if (r.count == 0) return;
  n.step(KernelId::int8_table, Int8TableConstants{.ROWS = r.rows ? 1 : 0, .TABLE = r.table ? 1 : 0},
         Int8TableParams{.count = r.count,
                         .run = r.run,
                         .from_image = r.from_image,
                         .to_image = r.to_image,
                         .to = r.to,
                         .offset = byte_offset(n.out().dtype)},
         {x, table, y}, line_groups(r.count, 64), static_cast<double>(r.count));
}

void function_of(NodeLowering& n, int main) {
  const NodeView view = n.view();
  const TensorId table = byte_constant(n, "table", 256, [view, main, made = n.out().dtype](std::span<uint8_t> to) {
    return reference_on_bytes(view, {&main, 1}, made, to);
  });
  const bool as_nc4hw4 = n.held_as_nc4hw4(main) && n.in(main).rank() >= 3;
  Runs all;
  all.rows = !as_nc4hw4;
  all.count = all.run = as_nc4hw4 ? image_shape(n.out()).vectors() : n.out().elements();
  const TensorId x = as_nc4hw4 ? n.nc4hw4(main) : n.dense(main), y = as_nc4hw4 ? n.make_nc4hw4() : n.make_dense();
  runs(n, all, x, table, y);
}

void rescale_bytes(const TensorType& from, const TensorType& to, std::span<uint8_t> bytes) {
  const int32_t offset = byte_offset(to.dtype);
  for (int32_t q = 0; q < 256; ++q) {
    const float real = dequantize(q - offset, scale_zero(from));
    bytes[static_cast<size_t>(q)] = static_cast<uint8_t>(quantize(real, scale_zero(to), int_range(to.dtype)) + offset);
  }
}

TensorId rescaling_table(NodeLowering& n, std::string_view what, const TensorType& from, const TensorType& to) {
  return byte_constant(n, what, 256, [from, to](std::span<uint8_t> bytes) {
    rescale_bytes(from, to, bytes);
    return Status();
  });
}

void rescale_rows(NodeLowering& n, TensorId x, const TensorType& from, int64_t count, TensorId y) {
  Runs r;
  r.rows = true;
  r.count = r.run = count;
  runs(n, r, x, rescaling_table(n, str_cat("scale ", to_string(from)), from, n.out()), y);
}

Status lower_quantized_function(NodeLowering& n) {
  for (int i = 1; i < n.view().input_count(); ++i) {
    if (!n.has(i)) continue;
    if (!n.constant(i)) return n.refuse(Rule::kConstant, str_cat(n.view().input_name(i)));
    if (n.in(i).elements() != 1) return n.refuse(Rule::kAttribute, to_string(n.in(i)));
  }
  function_of(n, 0);
  return {};
}

}  // namespace pinnace::gpu
