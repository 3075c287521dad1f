// What the lowerings of operators on quantised tensors share: constants of bytes, and tables that the reference fills.
#pragma once

#include "backends/gpu/lowering.h"
#include "ops/move.h"
#include "ops/product.h"

namespace pinnace::gpu {

/// A constant of bytes, four in a word in the order of the host; `fill` writes all of them.
TensorId byte_constant(NodeLowering& n, std::string_view what, int64_t bytes,
                       std::function<Status(std::span<uint8_t>)> fill);

/// Element i of a constant of i8 or u8 as images hold it: unsigned.
inline uint8_t unsigned_byte(const TensorType& type, const void* data, int64_t i) {
  return static_cast<uint8_t>(static_cast<const uint8_t*>(data)[i] ^ byte_offset(type.dtype));
}

/// What the reference makes of all bytes of the operands named (one or two inputs of 8 bits; 256 or 256 x 256 results
/// of type `made`, theirs or bool), all as images hold them (bools with the operands' offset). Other inputs are
/// constants of one element. For functions element by element.
Status reference_on_bytes(const NodeView& node, std::span<const int> operands, DType made, std::span<uint8_t> results);

/// The bytes of `from` that its 256 bytes become with another scale and zero point, as images hold them.
TensorId rescaling_table(NodeLowering& n, std::string_view what, const TensorType& from, const TensorType& to);
/// Whether bytes of `from` are those of `to`. At scales where the reference, which goes by numbers, loses or saturates
/// them, they are not, equal as the two may be.
bool keeps_bytes(const TensorType& from, const TensorType& to);
/// y = x with output 0's scale and zero point: rows of `count` elements; `from` says what those of x are.
void rescale_rows(NodeLowering& n, TensorId x, const TensorType& from, int64_t count, TensorId y);

/// Output 0 [N, C, rows, columns] = the pixels of input 0 at these places.
Status pick_places(NodeLowering& n, std::span<const int64_t> rows, std::span<const int64_t> columns);

/// to[row][lane] = value, of vectors of four integers.
void write_channel(std::span<float> to, int64_t row, int64_t lane, int32_t value);

}  // namespace pinnace::gpu
