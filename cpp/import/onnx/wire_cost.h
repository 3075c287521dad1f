// How much memory protobuf would take to parse a model, found by walking the bytes without building anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace pinnace::onnx {

/// Bytes of heap that parsing `bytes` as a ModelProto takes, rounded up. Two bytes of a file can stand for a message of
/// 200: a hostile file of 100 MB would take 10 GB, so the importer asks before it parses.
///
/// kCorruptFile with the offset: the bytes are not well-formed protobuf, or messages nest deeper than 100.
Result<int64_t> wire_cost(std::span<const std::byte> bytes);

}  // namespace pinnace::onnx
