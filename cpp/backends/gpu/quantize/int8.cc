// Constants of bytes and tables by way of the reference code.
#include "backends/gpu/quantize/int8.h"

#include <cstring>

namespace pinnace::gpu {

TensorId byte_constant(NodeLowering& n, std::string_view what, int64_t bytes,
                       std::function<Status(std::span<uint8_t>)> fill) {
  const int64_t words = std::max<int64_t>(1, (bytes + 3) / 4);
  return n.wide_weights(what, words, [bytes, fill = std::move(fill)](std::span<float> to) -> Status {
    PINNACE_ASSIGN(auto all, Scratch<uint8_t>::allocate(static_cast<int64_t>(to.size()) * 4, "weights"));
    std::fill_n(all.data(), to.size() * 4, uint8_t{0});
    PINNACE_TRY(fill({all.data(), static_cast<size_t>(bytes)}));
    std::memcpy(to.data(), all.data(), to.size() * 4);
    return {};
  });
}

bool keeps_bytes(const TensorType& from, const TensorType& to) {
  const float scale = scale_zero(to).scale;
  return same_quantization(from, to) && scale >= 1e-30f && scale <= 1e30f;
}

Status reference_on_bytes(const NodeView& node, std::span<const int> operands, DType made, std::span<uint8_t> results) {
  const bool pair = operands.size() == 2;
  const DType dtype = node.input(operands[0]).dtype;
  const auto flip = static_cast<uint8_t>(byte_offset(dtype));
  std::array<uint8_t, 256> bytes;
  for (size_t i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i ^ flip);
  std::vector<TensorType> own(static_cast<size_t>(node.input_count()));
  std::vector<const TensorType*> types(own.size(), nullptr);
  std::vector<const void*> data(own.size(), nullptr);
  std::vector<TensorView> in(own.size());
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    const auto at = static_cast<size_t>(i);
    const bool first = i == operands[0], second = pair && i == operands[1];
    own[at] = node.input(i);
    data[at] = node.input_data(i);
    if (first || second) {
      own[at].shape = !pair ? Shape{256} : first ? Shape{256, 1} : Shape{1, 256};
      data[at] = bytes.data();
    }
    if (!data[at]) return unsupported("an operand is not known");
    types[at] = &own[at];
    in[at] = {types[at], static_cast<std::byte*>(const_cast<void*>(data[at]))};
  }
  const TensorType y{made, pair ? Shape{256, 256} : Shape{256}, node.output_quantization(0)};
  const TensorType* declared[] = {&y};
  const TensorView out{&y, reinterpret_cast<std::byte*>(results.data())};
  PINNACE_TRY(node.op().reference(NodeView(node.node(), node.op(), types, data, declared), in, {&out, 1}));
  for (uint8_t& r : results) r ^= flip;
  return {};
}

void write_channel(std::span<float> to, int64_t row, int64_t lane, int32_t value) {
  to[static_cast<size_t>(row * 4 + lane)] = std::bit_cast<float>(value);
}

}  // namespace pinnace::gpu
