// Tables by way of the reference code; parameters of binary operators.
#include "backends/cpu/quantize/lookup_table_i8.h"

#include "ops/activation.h"

namespace pinnace::cpu {

bool table_i8_takes(const KernelNode& node) {
  if (!fits_nhwc_i8(node.input(0)) || !node.output_quantization(0)) return false;
  for (int i = 1; i < node.input_count(); ++i) {
    if (node.has_input(i) && (!node.input_data(i) || node.input(i).elements() != 1)) return false;
  }
  return true;
}

Status fill_table_i8(const KernelNode& node, bool unsigned_bytes, uint8_t* table) {
  const TensorType x{node.input(0).dtype, {256}, node.input(0).quantization};
  const TensorType y{x.dtype, {256}, node.output_quantization(0)};
  const auto flip = static_cast<uint8_t>(unsigned_bytes ? nhwc_offset(x.dtype) : 0);
  uint8_t bytes[256], results[256];
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i ^ flip);
  std::vector<const TensorType*> types{&x};
  std::vector<const void*> data{bytes};
  std::vector<TensorView> in{{&x, reinterpret_cast<std::byte*>(bytes)}};
  for (int i = 1; i < node.input_count(); ++i) {
    const bool there = node.has_input(i);
    types.push_back(there ? &node.input(i) : nullptr);
    data.push_back(there ? node.input_data(i) : nullptr);
    in.push_back(there ? TensorView{types.back(), static_cast<std::byte*>(const_cast<void*>(data.back()))}
                       : TensorView{});
  }
  const TensorView out{&y, reinterpret_cast<std::byte*>(results)};
  const TensorType* declared[] = {&y};
  PINNACE_TRY(node.op().reference(NodeView(node.node(), node.op(), types, data, declared), in, {&out, 1}));
  for (int i = 0; i < 256; ++i) table[i] = results[i] ^ flip;
  return {};
}

void requantize_table_i8(const TensorType& from, const TensorType& to, uint8_t table[256]) {
  const int32_t offset = nhwc_offset(from.dtype);
  for (int32_t i = 0; i < 256; ++i) {
    const int32_t q = quantize(dequantize(i - offset, scale_zero(from)), scale_zero(to), int_range(to.dtype));
    table[i] = static_cast<uint8_t>(q + offset);
  }
}

BinaryRowsI8 binary_rows_i8(const KernelNode& node, const TensorType& a, const TensorType& b, const TensorType& y) {
  BinaryRowsI8 rows{};
  IntRange range = int_range(y.dtype);
  if (node.node().op == "add") {
    const auto activation = parse_activation(node);
    assert(activation.ok());
    range = activation_range(*activation, y);
  }
  rows.op = node.node().op == "add" ? BinaryI8::kAdd : node.node().op == "sub" ? BinaryI8::kSub : BinaryI8::kMul;
  rows.a_real = real_i8(a);
  rows.b_real = real_i8(b);
  rows.y_real = real_i8(y);
  rows.store = store_i8(y, range);
  return rows;
}

}  // namespace pinnace::cpu
