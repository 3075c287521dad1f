// What the lowerings of operators on quantised tensors share: constants of bytes, and tables that the reference fills.
#pragma once

#include "backends/gpu/lowering.h"
#include "ops/move.h"
#include "ops/product.h"

namespace pinnace::gpu {

/// A constant of bytes, four in 32 bits in the order of the host; `fill` writes all of them.
TensorId byte_constant(NodeLowering& n, std::string_view what, int64_t bytes,
                       std::function<Status(std::span<uint8_t>)> fill);

/// Element i of a constant of i8 or u8 as NC4HW4 buffers hold it: unsigned.
inline uint8_t unsigned_byte(const TensorType& type, const void* data, int64_t i) {
  return static_cast<uint8_t>(static_cast<const uint8_t*>(data)[i] ^ byte_offset(type.dtype));
}

/// What the reference makes of all bytes of the operands named (one or two inputs of 8 bits; 256 or 256 x 256 results
/// of type `made`, theirs or bool), all as images hold them (bools with the operands' offset). Other inputs are
/// constants of one element. For functions element by element.
Status reference_on_bytes(const NodeView& node, std::span<const int> operands, DType made, std::span<uint8_t> results);

/// Whether bytes of `from` are those of `to`. At scales where the reference, which goes by numbers, loses or saturates
/// them, they are not, equal as the two may be.
bool keeps_bytes(const TensorType& from, const TensorType& to);

/// to[row][lane] = value, of vectors of four integers.
void write_channel(std::span<float> to, int64_t row, int64_t lane, int32_t value);

}  // namespace pinnace::gpu
