// What torch.backends._nnapi.prepare makes of a TorchScript module: a serialised NNAPI model, version 1, and its
// weights. Source of the layout: serializer.py of PyTorch 2.13, whose output is little-endian 32-bit words.
#pragma once

#include "nnapi/model.h"

namespace pinnace::nnapi {

/// Parses and checks it as a client's calls would be: operand types, operations against their signatures, order.
/// Buffers that it refers to are copied; they are kept by the operands. kCorruptFile: the offset in `bytes` and the
/// rule; every byte has to be used. kInvalidArgument, kUnsupported: an operation breaks a rule or needs a newer level.
Result<Model> parse_torch_model(std::span<const std::byte> bytes, std::span<const std::span<const std::byte>> buffers);

}  // namespace pinnace::nnapi
